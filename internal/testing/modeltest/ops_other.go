package modeltest

import (
	"maps"
	"strconv"

	"github.com/ebbdb/ebb/internal/command"
)

// channels are published to, and subscribed to.
var channels = []string{"ch1", "ch2", "ch*"}

// later are times in ms that do not pass during a sequence. Deadlines of fields are of
// those, or have passed: the newer servers count what has expired until they remove it,
// at times of their own (see the difference expired-fields-counted).
var later = []string{"100000", "105000", "5000000"}

// fieldPools returns for what the grammar makes of commands on deadlines of fields.
func fieldPools() *command.Pools {
	p := pools
	p.Named = maps.Clone(p.Named)
	p.Named["milliseconds"] = append([]string{"0", "-1"}, later...)
	p.Named["seconds"] = []string{"100", "5000", "0", "-1", "9223372036854775807"}
	return &p
}

// fields makes a request about deadlines of a hash's fields.
func (g *Generator) fields(k string) []string {
	some := func() []string {
		names := g.items(3)
		return append([]string{"FIELDS", strconv.Itoa(len(names))}, names...)
	}
	pairs := func() []string {
		n := 1 + g.rng.IntN(3)
		return append([]string{"FIELDS", strconv.Itoa(n)}, many(n, func() []string { return []string{g.item(), g.val()} })...)
	}
	lasts := func() []string {
		return g.words([]string{"EX", g.one("100", "5000")}, []string{"PX", g.one(later...)}, []string{"EXAT", g.one("4102444800", "1")},
			[]string{"PXAT", g.one("4102444800000", "1")})
	}
	when := g.maybe(g.one("NX", "XX", "GT", "LT"))
	switch g.rng.IntN(12) {
	case 0, 1:
		return join([]string{"HPEXPIRE", k, g.one("100000", "5000000", "0")}, when, some())
	case 2:
		return join([]string{"HEXPIRE", k, g.one("100", "5000", "0")}, when, some())
	case 3:
		return join([]string{"HEXPIREAT", k, g.one("4102444800", "4102444900", "1")}, when, some())
	case 4:
		return join([]string{"HPEXPIREAT", k, g.one("4102444800000", "4102444900000", "1")}, when, some())
	case 5, 6:
		return join([]string{g.one("HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME"), k}, some())
	case 7:
		return join([]string{"HPERSIST", k}, some())
	case 8:
		return join([]string{"HGETEX", k}, g.words(nil, []string{"PERSIST"}, lasts()), some())
	case 9, 10:
		return join([]string{"HSETEX", k}, g.maybe(g.one("FNX", "FXX")), g.words(nil, []string{"KEEPTTL"}, lasts()), pairs())
	}
	return join([]string{"HGETDEL", k}, some())
}

// library is a function that runs the command in its arguments, and one that only reads.
const library = `#!lua name=lib
redis.register_function('call', function(keys, args) return redis.call(unpack(args)) end)
redis.register_function{function_name='look', callback=function(keys, args) return redis.call(unpack(args)) end, flags={'no-writes'}}`

// prepared has the sequence begin with what many requests want to be there.
func (g *Generator) prepared() (ops []Op) {
	if g.Server == 0 {
		return nil
	}
	if g.rng.IntN(2) == 0 {
		ops = append(ops, Op{Conn: 1, Args: []string{"FUNCTION", "LOAD", library}})
	}
	for _, k := range typedKeys[command.GroupStream] {
		if g.rng.IntN(2) == 0 {
			ops = append(ops, Op{Conn: 1, Args: []string{"XGROUP", "CREATE", k, "g", "0", "MKSTREAM"}})
		}
	}
	return ops
}

// beside makes a request that is not about one value: of connections, scripts, channels,
// and what asks about the server.
func (g *Generator) beside() []string {
	inner := []string{"GET", g.stringKey()}
	for range 3 {
		if args := g.tuned(); g.known(args) {
			inner = args
			break
		}
	}
	switch g.rng.IntN(33) {
	case 30:
		return join([]string{"BITOP", g.one("AND", "OR", "XOR", "NOT"), g.one(stringKeys...), g.one(stringKeys...)},
			g.maybe(g.one(stringKeys...)))
	case 31:
		return []string{"MEMORY", "USAGE", g.key()}
	case 32:
		k := g.typed(command.GroupStream)
		return g.words([]string{"XINFO", "STREAM", k}, []string{"XINFO", "STREAM", k, "FULL"}, []string{"XINFO", "GROUPS", k},
			[]string{"XINFO", "CONSUMERS", k, "g"}, []string{"XPENDING", k, "g", "-", "+", "10"},
			[]string{"XPENDING", k, "g", "IDLE", "0", "-", "+", "10", "c1"}, []string{"XGROUP", "SETID", k, "g", "0"})
	case 0:
		return join([]string{"PING"}, g.maybe(g.val()))
	case 1:
		return []string{"ECHO", g.val()}
	case 2:
		return g.words([]string{"CLIENT", "SETNAME", g.one("one", "two", "", "a b")}, []string{"CLIENT", "GETNAME"},
			[]string{"CLIENT", "NO-TOUCH", g.one("ON", "OFF", "x")},
			[]string{"CLIENT", "NO-EVICT", g.one("ON", "OFF", "x")}, []string{"CLIENT", "TRACKINGINFO"}, []string{"CLIENT", "GETREDIR"},
			[]string{"CLIENT", "SETINFO", g.one("LIB-NAME", "LIB-VER", "x"), g.one("a", "a b")},
			[]string{"CLIENT", "CACHING", g.one("YES", "NO")}, []string{"CLIENT", "UNPAUSE"}, []string{"CLIENT", "UNBLOCK", "1000000"})
	case 3, 4:
		return []string{g.one("PUBLISH", "SPUBLISH"), g.one("ch1", "ch2"), g.val()}
	case 5:
		return g.words([]string{"PUBSUB", "NUMSUB", "ch1", "ch2"}, []string{"PUBSUB", "SHARDNUMSUB", "ch1"}, []string{"PUBSUB", "NUMPAT"},
			[]string{"PUBSUB", "CHANNELS", g.one("ch1", "x", "ch?")}, []string{"PUBSUB", "SHARDCHANNELS"})
	case 6, 7:
		return join([]string{"COMMAND", g.one("GETKEYS", "GETKEYSANDFLAGS")}, g.container())
	case 8:
		return g.words([]string{"SCRIPT", "LOAD", callOf}, []string{"SCRIPT", "EXISTS", callSHA, "x"},
			[]string{"SCRIPT", "SHOW", g.one(callSHA, "x")}, []string{"SCRIPT", "FLUSH"}, []string{"SCRIPT", "FLUSH", g.one("SYNC", "ASYNC", "x")},
			[]string{"SCRIPT", "KILL"})
	case 9:
		return join([]string{g.one("EVALSHA", "EVALSHA_RO"), callSHA, "0"}, inner)
	case 11:
		return join([]string{"EVAL_RO", callOf, "0"}, inner)
	case 13, 14:
		return join([]string{"FUNCTION", "LOAD"}, g.maybe("REPLACE"), []string{library})
	case 15:
		return join([]string{g.one("FCALL", "FCALL", "FCALL_RO"), g.one("call", "look", "none"), "0"}, inner)
	case 17:
		return g.words([]string{"FUNCTION", "DELETE", g.one("lib", "x")}, []string{"FUNCTION", "LIST"}, []string{"FUNCTION", "DUMP"},
			[]string{"FUNCTION", "LIST", "LIBRARYNAME", "l*"}, []string{"FUNCTION", "KILL"}, []string{"FUNCTION", "FLUSH"},
			[]string{"FUNCTION", "RESTORE", g.Library, g.one("FLUSH", "APPEND", "REPLACE")})
	case 10, 12, 16, 18:
		return g.rare()
	case 19:
		return g.words([]string{"HELLO", g.one("4", "x", "1")}, []string{"AUTH", "x"}, []string{"AUTH", "default", "x"},
			[]string{"ACL", "WHOAMI"}, []string{"ACL", "USERS"}, []string{"ACL", "DRYRUN", "default", "GET", "a"})
	case 20, 21, 22, 23:
		if len(g.Payloads) == 0 {
			return nil
		}
		return join([]string{g.one("RESTORE", "RESTORE", "RESTORE", "RESTORE-ASKING"), g.key(), g.one("0", g.soon(), "-1"), g.one(g.Payloads...)},
			g.maybe("REPLACE"), g.maybe("ABSTTL"), g.maybe(g.words([]string{"IDLETIME", "5"}, []string{"FREQ", "5"})...))
	case 24:
		return []string{"DUMP", g.key()}
	case 25:
		return g.words([]string{"CONFIG", "GET", g.one("maxmemory", "hz", "appendonly", "nothing", "proto-max-bulk-len")},
			[]string{"CONFIG", "SET", "nothing", "x"}, []string{"CONFIG", "SET", "maxmemory", "x"}, []string{"CONFIG", "RESETSTAT"},
			[]string{"SLOWLOG", "RESET"}, []string{"LATENCY", "RESET"}, []string{"MEMORY", "PURGE"}, []string{"ASKING"}, []string{"READONLY"},
			[]string{"READWRITE"}, []string{"CLUSTER", "INFO"}, []string{"LATENCY", "LATEST"}, []string{"COMMAND", "INFO", "nothing"},
			[]string{"MODULE", "LIST"},
			[]string{"REPLICAOF", "NO", "ONE"})
	case 26:
		return join([]string{g.one("SORT", "SORT_RO"),
			g.one(g.typed(command.GroupList), g.typed(command.GroupSet), g.typed(command.GroupSortedSet))},
			g.maybe("BY", "nosort"), g.maybe("GET", g.one("#", "a", "{t}*", "h*->a")), g.maybe("ALPHA"), g.maybe("LIMIT", "0", "2"), g.maybe("DESC"))
	case 27:
		return g.words([]string{"RESET"}, []string{"UNWATCH"}, []string{"DBSIZE"}, []string{"FLUSHDB", g.one("SYNC", "ASYNC", "x")},
			[]string{"FLUSHALL"},
			[]string{"SWAPDB", "1", "2"}, []string{"SWAPDB", "x", "99"}, []string{"SELECT", "x"})
	case 28:
		return g.words([]string{"LCS", g.stringKey(), g.stringKey()}, []string{"LCS", g.stringKey(), g.stringKey(), "IDX", "WITHMATCHLEN"},
			[]string{"LCS", g.stringKey(), g.stringKey(), "LEN"})
	}
	return join([]string{g.one("BITFIELD", "BITFIELD_RO"), g.stringKey(), "GET", g.one("u8", "i5", "u63", "i64", "u64"),
		g.one("0", "#2", "100", "-1")})
}

// rare makes a request of a command whose replies have differed in arguments that clients hardly send.
func (g *Generator) rare() []string {
	switch g.rng.IntN(10) {
	case 0, 1:
		replicas, timeout := g.waiting()
		return []string{"WAIT", replicas, timeout}
	case 2:
		replicas, timeout := g.waiting()
		return []string{"WAITAOF", g.one("0", "0", "1", "2", "-1", "x"), replicas, timeout}
	case 3, 4:
		return join([]string{"BITPOS", g.stringKey(), g.one("0", "1", "1", "2", "x")},
			[]string{g.one("0", "1", "-1", "100", "x"), g.one("-1", "3", "0", "-100", "x"), g.one("BIT", "byte", "hello", ""),
				g.one("hello2", "BIT")}[:g.rng.IntN(5)])
	case 5:
		return join([]string{"EVAL_RO", g.one("return redis.call('get', KEYS[1])", "return redis.call('strlen', KEYS[#KEYS])",
			"return #KEYS", "return redis.call('set', KEYS[1], 'x')")},
			g.words([]string{"1", g.key()}, []string{"2", g.key(), g.key()}, []string{"2", g.key()}, []string{"-1"}, []string{"x"}))
	case 6:
		return join([]string{"LATENCY", g.one("HISTORY", "RESET", "GRAPH")}, many(1+g.rng.IntN(2), func() []string {
			return []string{g.one("expire-cycle", "command", "fast-command", "nothing")}
		}))
	case 7:
		return join([]string{"CLIENT", "PAUSE", g.one("0", "0", "-1", "x", "1.5")}, g.maybe(g.one("WRITE", "all", "x")))
	case 8:
		return g.words([]string{"CLIENT", "LIST", "TYPE", "x"}, []string{"CLIENT", "LIST", "ID", g.one("x", "-1", "0")},
			[]string{"CLIENT", "KILL", g.one("ID", "TYPE", "USER", "ADDR", "x"), g.one("999999", "x", "-1", "127.0.0.1:1")},
			[]string{"CLIENT", "KILL", g.one("127.0.0.1:1", "x")},
			[]string{"CLIENT", "UNBLOCK", g.one("999999", "x"), g.one("ERROR", "timeout", "x")})
	}
	return g.words([]string{"SLOWLOG", "GET", g.one("0", "-2", "x")}, []string{"ACL", "GETUSER", "x"},
		[]string{"ACL", "DELUSER", g.one("x", "default")}, []string{"ACL", "LOG", g.one("0", "-1", "x", "reset")},
		[]string{"ACL", "DRYRUN", g.one("default", "x"), g.one("GET", "SET", "nothing"), g.key()})
}

// waiting returns how many replicas a request waits for, and for how long. There are no replicas, so only the shortest times may pass.
func (g *Generator) waiting() (replicas, timeout string) {
	if g.rng.IntN(4) == 0 {
		return g.one("1", "2", "9223372036854775807"), g.one("1", "5")
	}
	return g.one("0", "0", "-1", "-9223372036854775808", "x"), g.one("0", "1", "100000", "9223372036854775", "9223372036854776",
		"9223372036854775807", "9223372036854775808", "-1", "1.5", "x")
}
