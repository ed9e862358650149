package modeltest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// Op is a request on a connection, or a wait.
type Op struct {
	Conn int // from 1; connection 2 speaks RESP3
	Args []string
	Wait time.Duration
	// Blocks: the reply may come later. Nothing else is sent on the connection
	// before it has.
	Blocks bool
	// Damaged: the request may be wrong in several ways, and either may be
	// complained of.
	Damaged bool
	// Hangup: the connection closes, even if a request waits on it.
	Hangup bool
}

// Connections of a sequence; the second one speaks RESP3. Those above plain are
// for requests that block.
const (
	plain       = 3
	connections = 5
)

// Steps shows a sequence as the steps of a transcript.
func Steps(ops []Op) []transcript.Step {
	steps := []transcript.Step{{Kind: transcript.Request, Conn: 2, Args: []string{"HELLO", "3"}, Reply: []string{"..."}}}
	for _, o := range ops {
		if o.Wait > 0 {
			steps = append(steps, transcript.Step{Kind: transcript.Wait, Wait: o.Wait})
		} else {
			steps = append(steps, transcript.Step{Kind: transcript.Request, Conn: o.Conn, Args: o.Args})
		}
	}
	return steps
}

// Generator makes random sequences. Pools are small, so that commands meet on
// the same keys.
type Generator struct {
	// Own allows the options that redis-server does not have.
	Own bool
	// Server is the server that gets the same requests; 0 is Redis 7.0.
	Server compat.Servers
	// Payloads are the payloads for RESTORE.
	Payloads []string
	// Library is the payload for FUNCTION RESTORE.
	Library string

	damaged bool // the last request was
	seed    uint64
	step    uint64
	rng     *rand.Rand      // of the step: see next
	specs   []*command.Spec // whose grammar is used
	has     func(name string) bool
}

// NewGenerator returns a generator that uses those of a table's commands that
// both ends have.
func NewGenerator(seed uint64, table *command.Table, both func(name string) bool) *Generator {
	g := &Generator{seed: seed, has: both}
	g.next()
	for id := range table.Len() {
		s := table.Spec(id)
		if s.Run == nil || notSent[s.Name] != "" || !both(s.Name) || s.Has(command.Admin) || s.Has(command.Blocking) {
			continue
		}
		switch s.Group {
		case command.GroupGeneric, command.GroupString, command.GroupBitmap, command.GroupHash, command.GroupList, command.GroupSet,
			command.GroupSortedSet, command.GroupStream, command.GroupHyperLogLog, command.GroupGeo:
			g.specs = append(g.specs, s)
		}
	}
	return g
}

var (
	keys = []string{"a", "b", "c", "{t}1", "{t}2", "bits", "h1", "l1", "l2", "s1", "s2", "z1", "z2", "x1", "{t}h", "{t}l", "{t}s", "{t}z",
		"{t}x", "p1", "p2", "g1"}
	// stringKeys are the keys that most requests for strings use.
	stringKeys = keys[:6]
	vals       = []string{"", "0", "1", "-7", "41", "9223372036854775807", "3.25", "-0", "1e3", "007", "x", "hello", "hello world",
		strings.Repeat("m", 44), strings.Repeat("n", 45), strings.Repeat("long ", 50), "\x00\xff\r\n"}
	pools = command.Pools{
		Keys: keys, Strings: append(vals, items...), Patterns: []string{"*", "a", "[ab]", "{t}?", "?", "none"},
		Ints:    []int64{0, 1, 2, 3, 7, 8, 31, 100, -1, -2, -100, 1000},
		Doubles: []float64{0, 1, -1.5, 3.25, 1e10, 0.1},
		Named: map[string][]string{
			"seconds":                {"100", "5000", "0", "-1", "9223372036854775807", "1"},
			"milliseconds":           {"1", "5", "20", "100000", "5000000", "0", "-1"},
			"unix-time-seconds":      {"1", "4102444800", "33177117420", "-5"},
			"unix-time-milliseconds": {"1", "4102444800000", "33177117420000"},
			"destination-db":         {"0", "1", "2", "17"}, "db": {"0", "1", "2"}, "index1": {"0", "1", "2"}, "index2": {"0", "1", "2"},
		},
	}
)

// next begins a step of a sequence. Each step has numbers of its own, so that a command that one step draws does not change the
// steps after it.
func (g *Generator) next() {
	g.step++
	g.rng = rand.New(rand.NewPCG(g.seed, g.step))
}

func (g *Generator) key() string { return keys[g.rng.IntN(len(keys))] }

// stringKey returns a key for commands of strings.
func (g *Generator) stringKey() string {
	if g.rng.IntN(12) == 0 {
		return g.key()
	}
	return g.one(stringKeys...)
}
func (g *Generator) val() string { return vals[g.rng.IntN(len(vals))] }

func (g *Generator) one(of ...string) string { return of[g.rng.IntN(len(of))] }

func (g *Generator) words(of ...[]string) []string { return of[g.rng.IntN(len(of))] }

// soonest is the longest time in ms that passes during a sequence.
const soonest = 30

// soon returns a time in ms that passes during the sequence, or one that does not.
func (g *Generator) soon() string {
	if g.rng.IntN(3) == 0 {
		return strconv.Itoa(1 + g.rng.IntN(soonest))
	}
	return strconv.Itoa(100_000 + g.rng.IntN(10)*1000)
}

// Sequence makes n operations.
func (g *Generator) Sequence(n int) []Op {
	ops := g.prepared()
	for len(ops) < n {
		g.next()
		switch g.rng.IntN(26) {
		case 3:
			if g.Server == 0 {
				ops = append(ops, g.op(g.conn()))
			} else { // the connection that always speaks RESP3
				ops = append(ops, Op{Conn: 2, Args: []string{g.one("SUBSCRIBE", "UNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "PSUBSCRIBE",
					"PUNSUBSCRIBE"), g.one(channels...)}})
			}
		case 2:
			ops = append(ops, Op{Conn: plain + 1 + g.rng.IntN(connections-plain), Args: g.blocking(), Blocks: true})
		case 0:
			ops = append(ops, Op{Wait: time.Duration(5+g.rng.IntN(30)) * time.Millisecond})
		case 1:
			ops = append(ops, g.transaction()...)
		default:
			ops = append(ops, g.op(g.conn()))
		}
	}
	return ops
}

func (g *Generator) conn() int { return 1 + g.rng.IntN(plain) }

// op makes a request for a connection.
func (g *Generator) op(conn int) Op {
	args := g.request()
	for conn == 2 && strings.EqualFold(args[0], "RESET") {
		args = g.request() // it subscribes, and must go on to speak RESP3
	}
	if g.rng.IntN(12) == 0 && g.has("eval") {
		args = append([]string{"EVAL", callOf, "0"}, args...)
	}
	return Op{Conn: conn, Args: args, Damaged: g.damaged}
}

// callOf is a script that runs the command in its arguments.
const callOf = "return redis.call(unpack(ARGV))"

// callSHA is the digest of callOf.
const callSHA = "3c44b7a40779a5c68a6e3920550ff76660a813aa"

// request returns the command that an operation is about: of a script of callOf
// the one that it calls.
func request(args []string) []string {
	if len(args) > 3 && args[2] == "0" && (args[1] == callOf || args[1] == callSHA || args[1] == "call" || args[1] == "look") {
		return args[3:]
	}
	return args
}

// transaction is WATCH, something in between, MULTI, commands, and EXEC, with
// now and then one of them missing.
func (g *Generator) transaction() (ops []Op) {
	conn, other := g.conn(), g.conn()
	add := func(conn int, args ...string) { ops = append(ops, Op{Conn: conn, Args: args}) }
	if g.rng.IntN(2) == 0 {
		add(conn, "WATCH", g.key(), g.key())
		if g.rng.IntN(2) == 0 {
			ops = append(ops, g.op(other))
		}
		switch g.rng.IntN(6) {
		case 0:
			add(conn, "UNWATCH")
		case 1:
			ops = append(ops, Op{Wait: 40 * time.Millisecond})
		}
	}
	if g.rng.IntN(12) > 0 {
		add(conn, "MULTI")
	}
	for range g.rng.IntN(5) {
		ops = append(ops, g.queueable(conn))
		if g.rng.IntN(4) == 0 {
			ops = append(ops, g.queueable(other))
		}
	}
	if g.rng.IntN(8) == 0 {
		add(conn, "DISCARD")
	} else {
		add(conn, "EXEC")
	}
	return ops
}

// queueable is op without what Redis 7.0 answers wrongly in a transaction (see the
// difference push-in-transaction).
func (g *Generator) queueable(conn int) Op {
	o := g.op(conn)
	for g.server() == compat.Redis7 && strings.Contains(request(o.Args)[0], "PUBLISH") {
		o = g.op(conn)
	}
	return o
}

// request makes a request that both ends know.
func (g *Generator) request() []string {
	for {
		var args []string
		g.damaged = false
		switch {
		case len(g.specs) > 0 && g.rng.IntN(4) == 0:
			args = g.fromGrammar()
		case g.Server != 0 && g.rng.IntN(8) == 0:
			args = g.beside()
		case g.rng.IntN(5) > 1:
			args = g.container()
		default:
			args = g.tuned()
		}
		if args != nil && g.known(args) {
			return args
		}
	}
}

func (g *Generator) server() compat.Servers {
	if g.Server == 0 {
		return compat.Redis7
	}
	return g.Server
}

func (g *Generator) known(args []string) bool {
	if len(args) > 2 && args[1] != lexKey && args[2] != lexKey &&
		slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BYLEX") }) {
		return false
	}
	if name := strings.ToUpper(args[0]); (name == "ZRANK" || name == "ZREVRANK") && len(args) > 3 && !compat.Newer.Has(g.server()) {
		return false // WITHSCORE, since 7.2
	}
	if name := strings.ToUpper(args[0]); (name == "TTL" || name == "PTTL" || name == "PERSIST") && len(args) > 2 {
		return g.Own // of an item
	}
	if strings.HasPrefix(strings.ToUpper(args[0]), "SORT") &&
		slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BY") }) {
		return false // what compares equal is in no order
	}
	if strings.EqualFold(args[0], "SORT") && compat.Newer.Has(g.server()) &&
		slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "STORE") }) {
		return slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "ALPHA") }) // see number-words
	}
	if head := strings.ToLower(args[0]); slices.Contains(withSub, head) && !g.has(head+"|"+strings.ToLower(args[1])) {
		return false
	}
	if name := strings.ToUpper(args[0]); name == "HSETEX" && !g.Own &&
		slices.ContainsFunc(args[2:], func(a string) bool { return strings.EqualFold(a, "MAXLEN") }) {
		return false // of a hash
	}
	return g.has(strings.ToLower(args[0])) && (g.Own || !slices.ContainsFunc(args[1:], func(a string) bool {
		servers, listed := wordsOf[strings.ToUpper(a)]
		return listed && !servers.Has(g.server())
	}))
}

// withSub are the commands of which one of two servers may lack some subcommands.
var withSub = []string{"client", "script", "function", "pubsub", "command"}

// fromGrammar makes a request from a spec, now and then a damaged one.
func (g *Generator) fromGrammar() []string {
	s, rng := command.Pick(g.rng, g.specs)
	from := &pools
	if g.Server != 0 && s.Group == command.GroupHash {
		from = fieldPools()
	}
	raw := command.Generate(rng, s, from)
	if g.damaged = rng.IntN(6) == 0; g.damaged {
		raw = command.Damage(rng, raw, 1+strings.Count(s.Name, "|"))
	}
	args := make([]string, len(raw))
	for i, a := range raw {
		args[i] = string(a)
	}
	return args
}

// tuned makes a request of the kind that finds faults.
func (g *Generator) tuned() []string {
	k := g.stringKey()
	switch g.rng.IntN(34) {
	case 0, 1:
		return []string{"SET", k, g.val()}
	case 2, 3:
		return []string{"SET", k, g.val(), "PX", g.soon()}
	case 4:
		return []string{"SET", k, g.val(), "KEEPTTL"}
	case 5:
		return []string{"SET", k, g.val(), g.one("NX", "XX"), "GET", "EX", "100"}
	case 6:
		return append([]string{"SET", k, g.val()}, g.words([]string{"EXAT", "1"}, []string{"EXAT", "4102444800"}, []string{"PXAT", "1"},
			[]string{"PXAT", "4102444800000"})...)
	case 7, 8:
		return []string{"GET", k}
	case 9:
		return []string{g.one("INCR", "DECR"), k}
	case 10:
		return []string{g.one("INCRBY", "DECRBY"), k, g.one("1", "-3", "9223372036854775807", "x")}
	case 11:
		return []string{"INCRBYFLOAT", k, g.one("0.1", "-2.5", "1e3", "x")}
	case 12:
		return []string{"APPEND", k, g.val()}
	case 13:
		return []string{"SETRANGE", k, g.one("0", "3", "70", "70000"), g.one("z", "zz", "")}
	case 14:
		return []string{"GETRANGE", k, g.one("0", "-3", "2"), g.one("-1", "5", "100000")}
	case 15:
		return []string{g.one("PEXPIRE", "EXPIRE"), g.key(), g.one("100", "100000", "5000", "0", "-1")}
	case 16:
		return []string{"PEXPIRE", g.key(), g.soon(), g.one("NX", "XX", "GT", "LT")}
	case 17:
		return []string{"PEXPIREAT", g.key(), g.one("1", "4102444800000", "4102444900000"), g.one("NX", "XX", "GT", "LT")}
	case 18:
		return []string{"EXPIREAT", g.key(), g.one("1", "4102444800")}
	case 19:
		return []string{g.one("PERSIST", "TYPE", "STRLEN", "DUMPLESS", "TOUCH"), g.key()}
	case 20:
		return []string{g.one("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), g.key()}
	case 21:
		return []string{g.one("DEL", "UNLINK", "EXISTS", "TOUCH"), g.key(), g.key()}
	case 22:
		return []string{g.one("RENAME", "RENAMENX"), g.key(), g.key()}
	case 23:
		return []string{"COPY", g.key(), g.key(), g.one("REPLACE", "DB"), "1"}[:3+g.rng.IntN(3)]
	case 24:
		return []string{"MOVE", g.key(), g.one("0", "1", "2")}
	case 25:
		return []string{"SELECT", g.one("0", "0", "0", "1", "2")}
	case 26:
		return []string{"GETEX", k, g.one("PERSIST", "PX", "PXAT"), g.soon()}[:3+g.rng.IntN(2)]
	case 27:
		return []string{g.one("GETDEL", "GETEX"), k}
	case 28:
		return []string{g.one("MSET", "MSETNX"), k, g.val(), g.key(), g.val()}
	case 29:
		return []string{"MGET", k, g.key(), g.key()}
	case 30:
		return []string{"SETBIT", g.one("bits", k), g.one("0", "7", "100"), g.one("0", "1")}
	case 31:
		return []string{"OBJECT", "ENCODING", g.key()}
	case 32:
		switch g.rng.IntN(8) {
		case 0:
			return []string{"FLUSHDB"}
		case 1:
			return []string{"SWAPDB", "0", g.one("1", "2")}
		}
		return []string{"BITCOUNT", k}
	}
	return []string{"KEYS", g.one("*", "a*", "{t}*")}
}
