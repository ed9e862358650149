package instance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// An otherServer is a server of another project that replicates ebb, and that ebb replicates.
type otherServer struct {
	name, program string
	options       []string
}

func (p otherServer) start(t *testing.T, options ...string) (addr string) {
	t.Helper()
	return realserver.Start(t, p.program, slices.Concat([]string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"},
		p.options, options)...)
}

// peers are the oldest and the newest servers that the guide to replication names.
var peers = []otherServer{
	{"Redis 7.0", realserver.Redis7, nil},
	{"Redis 8.0", realserver.Redis8, nil},
	{"Valkey 9.1", realserver.Valkey9, nil},
}

// otherMasters returns the peers, once for each way in which they send their data.
func otherMasters() (all []otherServer) {
	for _, p := range peers {
		all = append(all, otherServer{p.name + ", diskless", p.program, []string{"--repl-diskless-sync", "yes", "--rdbcompression", "yes"}},
			otherServer{p.name + ", by a file", p.program, []string{"--repl-diskless-sync", "no", "--rdbcompression", "no"}})
	}
	return append(all, otherServer{"Redis 8.0, with its channel", realserver.Redis8, []string{"--repl-rdb-channel", "yes"}},
		otherServer{"Valkey 9.1, with two channels", realserver.Valkey9, []string{"--dual-channel-replication-enabled", "yes"}})
}

// peerWrites has every write command of the peers at least once. A line is a request; @ is a prefix of keys that
// share a slot. A server gets the lines whose command it knows; >9.1 before a line excludes servers before Valkey
// 9.1, which know the command but not the option.
const peerWrites = `
SET @s v
APPEND @s tail
SETRANGE @s 3 abc
INCR @n
DECR @n
INCRBY @n 5
DECRBY @n 2
INCRBYFLOAT @f 1.25
GETSET @s w
GETEX @s PX 90000000
GETEX @s PERSIST
GETEX @s EXAT 33177117420
SETEX @se 90000 v
PSETEX @pse 90000000 v
SETNX @nx v
MSET @m1 1 @m2 2 @m5 5
MSETNX @m3 3 @m4 4
SET @gd x
GETDEL @gd
SET @s2 v EXAT 33177117420
SET @s2 w KEEPTTL
SET @s2 x GET
SET @s3 v PX 25
SET @s3 v NX PX 30
SET @xx v XX
SETBIT @bits 77 1
BITFIELD @bits SET u8 0 200 INCRBY u8 8 3
BITOP NOT @bits2 @bits
BITOP AND @bits3 @bits @bits2
EXPIRE @s 90000
EXPIRE @s 80000 LT
EXPIRE @s 100000 GT
EXPIRE @s 1 NX
PEXPIRE @m1 90000000
EXPIREAT @m2 33177117420
PEXPIREAT @m3 33177117420123
PERSIST @m3
PEXPIREAT @m4 1
EXPIRE @m5 -1
EXPIRE @nx 25
COPY @s @copy
COPY @s @copy DB 2 REPLACE
RENAME @copy @renamed
SET @rn v
RENAMENX @rn @rn2
SET @mv v
MOVE @mv 2
DEL @bits3
SET @u v
UNLINK @u @nosuch
LPUSH @l a b c d e f
RPUSH @l 1 2 3 4 5 6 7 8
LPUSHX @l x
RPUSHX @l y
LINSERT @l BEFORE c b2
LSET @l 0 zero
LTRIM @l 0 -2
LREM @l 1 b2
LPOP @l
LPOP @l 2
RPOP @l
RPOPLPUSH @l @l2
LMOVE @l @l2 LEFT RIGHT
LMPOP 2 @nosuch @l LEFT COUNT 1
BLPOP @l 1
BRPOP @l 1
BRPOPLPUSH @l @l2 1
BLMOVE @l @l2 LEFT LEFT 1
BLMPOP 1 1 @l RIGHT COUNT 1
RPUSH @l 3 1 2
SORT @l ALPHA DESC STORE @sorted
SADD @set a b c 1 2 3
SADD @ints 1 2 3 4000000000
SADD @set2 c d 3 4
SREM @set a
SMOVE @set @set2 b
SPOP @ints
SPOP @set2 2
SDIFFSTORE @sd @set @set2
SINTERSTORE @si @set @set
SUNIONSTORE @su @set @set2 @ints
ZADD @z 1 a 2.5 b 3 c 4 d 5 e 6 f 7 g 8 h 9 i
ZADD @z GT CH 11 a 1 b
ZADD @z NX 1 j
ZADD @z INCR 1.5 a
ZINCRBY @z 0.1 c
ZREM @z d
ZADD @lex 0 a 0 b 0 c 0 d
ZDIFFSTORE @zd 2 @z @lex
ZINTERSTORE @zi 2 @z @lex WEIGHTS 2 3
ZUNIONSTORE @zu 2 @z @lex AGGREGATE MAX
ZRANGESTORE @zr @z 1 3
ZPOPMIN @z
ZPOPMAX @z 2
BZPOPMIN @z 1
BZPOPMAX @z 1
ZMPOP 1 @z MIN COUNT 1
BZMPOP 1 1 @z MAX COUNT 1
ZREMRANGEBYLEX @lex [a [b
ZREMRANGEBYRANK @zu 0 0
ZREMRANGEBYSCORE @zu 0 2
GEOADD @geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEORADIUS @geo 15 37 200 km STORE @near
GEORADIUSBYMEMBER @geo Palermo 200 km STOREDIST @dist
GEOSEARCHSTORE @found @geo FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST
HSET @h f v g w h x n 1
HMSET @h i 1 j 2
HSETNX @h k 3
HINCRBY @h n 5
HINCRBYFLOAT @h n 0.5
HDEL @h g
PFADD @hll a b c
PFADD @hll2 c d
PFMERGE @hll3 @hll @hll2
PFDEBUG TODENSE @hll
PFCOUNT @hll2
XADD @x 1-1 f v
XADD @x 1-2 f w
XADD @x 2-1 g y
XADD @x * f now
XADD @x NOMKSTREAM MAXLEN ~ 1000 * f now
XGROUP CREATE @x grp 0
XGROUP CREATE @x gone 0 ENTRIESREAD 1
XGROUP CREATECONSUMER @x grp idle
XGROUP CREATECONSUMER @x grp gone
XREADGROUP GROUP grp alice COUNT 3 STREAMS @x >
XREADGROUP GROUP grp gone NOACK COUNT 1 STREAMS @x >
XACK @x grp 1-1
XCLAIM @x grp bob 0 1-2
XAUTOCLAIM @x grp carol 0 2-1
XGROUP DELCONSUMER @x grp gone
XGROUP SETID @x gone 1-2
XGROUP DESTROY @x gone
XDEL @x 1-1
XSETID @x 99999999999999-1
XTRIM @x MAXLEN 3
EVAL redis.call('HSET',KEYS[1],'at',redis.call('TIME')[1]);redis.call('SET',KEYS[2],math.random(),'PX',90000000) 2 @eh @es
EVAL redis.call('SADD',KEYS[1],1,2,3,'x');for\ti=1,3\tdo\tredis.call('SPOP',KEYS[1])\tend 1 @esp
MULTI
SET @tx v PX 90000000
SPOP @su
SELECT 2
INCR @tx2
SELECT 0
RPUSH @txl a
EXEC
PUBLISH channel message
SPUBLISH channel message
SELECT 3
SET @three v
SWAPDB 3 4
SELECT 5
SET @five v
FLUSHDB
SELECT 0
HSET @hx a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10 k 11 l 12
HEXPIRE @hx 90000 FIELDS 1 a
HEXPIRE @hx 80000 XX FIELDS 1 a
HEXPIRE @hx 95000 GT FIELDS 2 a b
HPEXPIRE @hx 90000000 NX FIELDS 2 a c
HPEXPIRE @hx 25 FIELDS 1 l
HEXPIREAT @hx 33177117420 FIELDS 1 d
HPEXPIREAT @hx 33177117420123 LT FIELDS 1 e
HPEXPIREAT @hx 1 FIELDS 1 f
HPERSIST @hx FIELDS 1 d
HGETEX @hx EX 90000 FIELDS 1 g
HGETEX @hx PXAT 33177117420123 FIELDS 2 g h
HGETEX @hx PERSIST FIELDS 1 h
HGETEX @hx PX 25 FIELDS 1 k
HGETDEL @hx FIELDS 2 i nosuch
HSETEX @hx EX 90000 FIELDS 2 j 1 m 2
HSETEX @hx KEEPTTL FIELDS 1 j 2
HSETEX @hx FNX PXAT 33177117420123 FIELDS 1 o 1
HSETEX @hx FXX PX 90000000 FIELDS 1 o 2
HSETEX @hx EXAT 1 FIELDS 1 m 3
HSETEX @hx PX 25 FIELDS 2 p 1 q 2
HSETEX @hy EX 90000 FIELDS 1 only v
HSET @hx e overwritten
HINCRBY @hx a 4
HINCRBYFLOAT @hx b 0.25
HSETNX @hx r 1
HSET @hz f v
HPEXPIRE @hz 25 FIELDS 1 f
>9.1 HSETEX @hx NX EX 90000 FIELDS 1 s 2
>9.1 HSETEX @hx XX EX 90000 FIELDS 1 s 2
COPY @hx @hx2
RENAME @hx2 @hx3
MOVE @hx3 2
SADD @kept a
SET @if v
>9.1 SET @if w IFEQ v
>9.1 SET @if w IFEQ v GET PX 90000000
DELIFEQ @if nosuch
SET @if2 v
DELIFEQ @if2 v
MSETEX 2 @ma 1 @mb 2 EX 90000
MSETEX 2 @mc 1 @md 2 NX PXAT 33177117420123
MSETEX 2 @mc 3 @md 4 XX KEEPTTL
MSETEX 1 @ma 9 PX 25
`

// notReplicated are write commands that are missing from peerWrites, with the reasons.
var notReplicated = map[string]string{
	"restore": "special", "restore-asking": "special", "migrate": "special", "function|load": "special", "function|delete": "special",
	"function|restore": "special", "function|flush": "special", "flushall": "special", // see specialWrites
	"cluster|flushslot": "of clusters alone",
	"vadd":              "vector sets are not known: the link ends by name", "vrem": "as vadd", "vsetattr": "as vadd",
}

// commandsOf returns a server's commands, with subcommands as "a|b", and whether they write.
func commandsOf(c client) map[string]bool {
	all := map[string]bool{}
	var note func(v resp.Value)
	note = func(v resp.Value) {
		all[v.Elems[0].Str] = slices.ContainsFunc(v.Elems[2].Elems, func(f resp.Value) bool { return f.Str == "write" })
		if len(v.Elems) > 9 {
			for _, sub := range v.Elems[9].Elems {
				note(sub)
			}
		}
	}
	for _, v := range c.must("COMMAND").Elems {
		note(v)
	}
	return all
}

// linesFor returns the requests of peerWrites that a server supports.
func linesFor(c client) (all [][]string) {
	has := commandsOf(c)
	newest := strings.Contains(c.must("INFO", "server").Str, "valkey_version:9")
	for line := range strings.Lines(peerWrites) {
		line, only := strings.CutPrefix(strings.TrimSpace(line), ">9.1 ")
		words := strings.Split(line, " ")
		if _, ok := has[strings.ToLower(words[0])]; line == "" || !ok || only && !newest {
			continue
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], `\t`, "\t")
		}
		all = append(all, words)
	}
	return all
}

// pipelined sends requests and returns their replies. It returns errors, because c.t must not be used in a goroutine.
func (c client) pipelined(requests [][]string) (replies []resp.Value, err error) {
	const limit = 200
	for part := range slices.Chunk(requests, limit) {
		var b []byte
		for _, r := range part {
			b = wire.AppendCommand(b, r...)
		}
		if _, err := c.Write(b); err != nil {
			return nil, err
		}
		for _, r := range part {
			v, err := wire.ReadValue(c.r)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", r, err)
			}
			replies = append(replies, v)
		}
	}
	return replies, nil
}

// writeAll sends all lines with a prefix of keys. It returns an error if one is refused.
func (c client) writeAll(lines [][]string, prefix string) error {
	requests := make([][]string, len(lines))
	for i, line := range lines {
		words := slices.Clone(line)
		for j := range words {
			words[j] = strings.Replace(words[j], "@", "{"+prefix+"}", 1)
		}
		requests[i] = words
	}
	replies, err := c.pipelined(requests)
	for i, v := range replies {
		if v.Kind == resp.KindError {
			return fmt.Errorf("%q: %s", requests[i], v.Str)
		}
	}
	return err
}

const peerLibrary = "#!lua name=peers\nredis.register_function('count', function(keys) redis.call('INCR', keys[1]) return " +
	"redis.call('SPOP', keys[2]) end)"

// specialWrites makes the writes whose requests contain replies. elsewhere is a server that keys are sent to.
func specialWrites(c client, elsewhere, prefix string) {
	c.t.Helper()
	for _, key := range []string{"s", "h", "z", "x", "l", "set", "hll", "hx"} {
		key = "{" + prefix + "}" + key
		payload := c.must("DUMP", key)
		if payload.IsNull() {
			continue // hx on servers whose fields have no deadlines
		}
		c.must("RESTORE", key+":r", "90000000", payload.Str, "REPLACE")
		c.must("RESTORE", key+":r2", "33177117420123", payload.Str, "ABSTTL", "REPLACE")
		c.must("RESTORE-ASKING", key+":r3", "0", payload.Str, "REPLACE", "IDLETIME", "5")
	}
	host, port, _ := net.SplitHostPort(elsewhere)
	c.must("SET", prefix+"away", "v")
	c.must("MIGRATE", host, port, prefix+"away", "0", "5000", "REPLACE")
	c.must("FUNCTION", "LOAD", "REPLACE", peerLibrary)
	c.must("SADD", prefix+"members", "a", "b", "c")
	c.must("FCALL", "count", "2", prefix+"calls", prefix+"members")
	libraries := c.must("FUNCTION", "DUMP").Str
	c.must("FUNCTION", "DELETE", "peers")
	c.must("FUNCTION", "RESTORE", libraries, "REPLACE")
	c.must("FUNCTION", "FLUSH")
	c.must("FUNCTION", "LOAD", peerLibrary)
}

// keyspaceOf returns all keys of a server with values and deadlines, one text for each key of each database. items
// includes deadlines of hash fields.
func keyspaceOf(c client, items bool) map[string]string {
	c.t.Helper()
	all := map[string]string{"functions": sortedText(c.must("FUNCTION", "LIST", "WITHCODE"))}
	defer c.must("SELECT", "0")
	for line := range strings.Lines(c.must("INFO", "keyspace").Str) {
		db, _, ok := strings.Cut(strings.TrimPrefix(line, "db"), ":")
		if !ok {
			continue
		}
		c.must("SELECT", db)
		keys := c.must("KEYS", "*").Elems
		var ask [][]string
		for _, k := range keys {
			ask = append(ask, []string{"TYPE", k.Str}, []string{"PEXPIRETIME", k.Str})
		}
		facts := c.all(ask)
		ask = ask[:0]
		for i, k := range keys {
			ask = append(ask, valueRequest(facts[2*i].Str, k.Str))
		}
		for i, v := range c.all(ask) {
			kind := facts[2*i].Str
			text := fmt.Sprintf("%s until %d: %s", kind, facts[2*i+1].Int, valueText(kind, v))
			if kind == "hash" && items && len(v.Elems) > 0 {
				text += c.fieldDeadlines(keys[i].Str, v)
			}
			all[db+" "+keys[i].Str] = text
		}
	}
	return all
}

func (c client) all(requests [][]string) []resp.Value {
	c.t.Helper()
	v, err := c.pipelined(requests)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func valueRequest(kind, key string) []string {
	switch kind {
	case "string":
		return []string{"GET", key}
	case "list":
		return []string{"LRANGE", key, "0", "-1"}
	case "set":
		return []string{"SMEMBERS", key}
	case "zset":
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	case "hash":
		return []string{"HGETALL", key}
	case "stream":
		return []string{"XINFO", "STREAM", key, "FULL", "COUNT", "0"}
	}
	return []string{"TYPE", key}
}

func valueText(kind string, v resp.Value) string {
	switch kind {
	case "set":
		return sortedText(v)
	case "hash":
		pairs := []string{}
		for p := range slices.Chunk(v.Elems, 2) {
			pairs = append(pairs, text(resp.Value{Elems: p}))
		}
		slices.Sort(pairs)
		return strings.Join(pairs, " ")
	case "stream":
		return streamText(v)
	case "zset": // servers write the same score differently
		for i := 1; i < len(v.Elems); i += 2 {
			score, _ := strconv.ParseFloat(v.Elems[i].Str, 64)
			v.Elems[i].Str = strconv.FormatFloat(score, 'g', -1, 64)
		}
	}
	return text(v)
}

// streamText returns XINFO STREAM FULL without the numbers that differ between servers: nodes, and the times at which
// consumers were seen.
func streamText(v resp.Value) string {
	said := ""
	for p := range slices.Chunk(v.Elems, 2) {
		switch name := p[0].Str; name {
		case "length", "last-generated-id", "max-deleted-entry-id", "entries-added", "entries":
			said += name + " " + text(p[1]) + " "
		case "groups":
			for _, g := range p[1].Elems {
				for q := range slices.Chunk(g.Elems, 2) {
					switch q[0].Str {
					case "name", "last-delivered-id", "entries-read", "pel":
						said += q[0].Str + " " + text(q[1]) + " "
					case "consumers":
						names := []string{}
						for _, consumer := range q[1].Elems {
							names = append(names, text(consumer.Elems[1]))
						}
						slices.Sort(names)
						said += fmt.Sprint(names)
					}
				}
			}
		}
	}
	return said
}

// text returns a value as one line.
func text(v resp.Value) string {
	switch {
	case v.Elems != nil:
		parts := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case v.IsNull():
		return "nil"
	case v.Kind == resp.KindInt:
		return strconv.FormatInt(v.Int, 10)
	}
	return strconv.Quote(v.Str)
}

func sortedText(v resp.Value) string {
	parts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		parts[i] = text(e)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// fieldDeadlines returns the deadline of each field of a hash.
func (c client) fieldDeadlines(key string, all resp.Value) string {
	c.t.Helper()
	request := []string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(all.Elems) / 2)}
	names := []string{}
	for p := range slices.Chunk(all.Elems, 2) {
		names = append(names, p[0].Str)
	}
	slices.Sort(names)
	return " fields until " + text(c.ask(append(request, names...)...))
}

// sameKeyspaces waits until two idle servers have the same data.
func sameKeyspaces(t *testing.T, a, b client, items bool) {
	t.Helper()
	var x, y map[string]string
	defer func() {
		if maps.Equal(x, y) {
			return
		}
		shown := 0
		for _, k := range slices.Sorted(maps.Keys(merged(x, y))) {
			if x[k] != y[k] && shown < 20 {
				shown++
				t.Errorf("%q:\n%s\n%s", k, x[k], y[k])
			}
		}
	}()
	tier.Eventually(t, "both hold the same", func() bool {
		x, y = keyspaceOf(a, items), keyspaceOf(b, items)
		return maps.Equal(x, y)
	})
	if len(x) < 50 {
		t.Errorf("there are %d keys: nothing was compared", len(x))
	}
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// churn are requests that may be repeated during a synchronisation.
var churn = [][]string{{"INCR", "@n"}, {"SET", "@s", "v", "PX", "30"}, {"LPUSH", "@l", "a", "b"}, {"LTRIM", "@l", "0", "9"},
	{"HINCRBY", "@h", "f", "1"}, {"SADD", "@set", "a", "b", "c"}, {"SPOP", "@set"}, {"ZADD", "@z", "INCR", "1", "a"},
	{"XADD", "@x", "MAXLEN", "5", "*", "f", "v"}, {"EXPIRE", "@h", "1000"}}

// writer writes to a server until it is stopped.
type writer struct {
	stop chan struct{}
	done chan error
}

func startWriter(c client, lines [][]string) *writer {
	w := &writer{make(chan struct{}), make(chan error, 1)}
	go func() {
		for i := 0; ; i++ {
			select {
			case <-w.stop:
				w.done <- nil
				return
			default:
			}
			err := error(nil)
			if i < 24 {
				err = c.writeAll(lines, fmt.Sprint("writer", i))
			} else { // no more keys, so that the comparison is quick
				err = c.writeAll(churn, fmt.Sprint("churn", i%20))
			}
			if err != nil {
				w.done <- err
				return
			}
		}
	}()
	return w
}

func (w *writer) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
}

// nothingRefused checks that a replica has refused no command of its master.
func nothingRefused(t *testing.T, replica client) {
	t.Helper()
	if n, last := replica.field("replica_refused_commands"), replica.field("replica_refused_last"); n != "0" || last != "" {
		t.Errorf("%s commands were refused, the last: %s", n, last)
	}
}

// startLogged serves an empty engine that logs to log.
func startLogged(t *testing.T, log io.Writer, options ...string) (addr string) {
	t.Helper()
	cfg, err := config.Load(append([]string{"--port", strconv.Itoa(unusedPort(t)), "--bind", "127.0.0.1"}, options...), nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutDown(t, in) })
	return in.Addrs()[0].String()
}

// largeTimed creates a hash that no snapshot writes in one piece.
const largeTimed = `
for i = 1, 20000 do redis.call('HSET', KEYS[1], 'field' .. i, string.rep('v', i % 50)) end
redis.call('HPEXPIRE', KEYS[1], 90000000, 'FIELDS', 3, 'field1', 'field777', 'field20000')`

// replicated makes replica follow the master at an address while the master is written to. It cuts the link and
// empties the master, and compares both each time.
func replicated(t *testing.T, at string, master, replica client, items bool) {
	t.Helper()
	lines, elsewhere := linesFor(master), startNode(t)
	master.must("EVAL", fill, "0")
	if err := master.writeAll(lines, "before"); err != nil {
		t.Fatal(err)
	}
	specialWrites(master, elsewhere, "before")
	replica.must("SET", "old", "goes")
	if !master.must("COMMAND", "INFO", "hexpire").Elems[0].IsNull() {
		master.must("EVAL", largeTimed, "1", "large:timed")
	}

	w := startWriter(dialTCP(t, at), lines)
	follow(t, replica, at)
	w.end(t)
	sameKeyspaces(t, master, replica, items)

	full, partial := master.field("sync_full"), master.field("sync_partial_ok")
	master.must("CLIENT", "KILL", "TYPE", "replica")
	if err := master.writeAll(lines, "after a cut"); err != nil {
		t.Fatal(err)
	}
	specialWrites(master, elsewhere, "after a cut")
	linked(t, replica)
	sameKeyspaces(t, master, replica, items)
	if now, ok := master.field("sync_full"), master.field("sync_partial_ok"); now != full || ok == partial {
		t.Errorf("after the cut %s full and %s partial synchronisations, before it %s and %s", now, ok, full, partial)
	}

	master.must("FLUSHALL")
	if err := master.writeAll(lines, "after FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	sameKeyspaces(t, master, replica, items)
}

// A replica of each server has its master's data, even during writes and after a cut: it applies every write command
// as the master did.
func TestEachPeerIsReplicatedExactly(t *testing.T) {
	for _, p := range otherMasters() {
		t.Run(p.name, func(t *testing.T) {
			at := p.start(t)
			master, replica := dialTCP(t, at), dialTCP(t, startNode(t))
			replicated(t, at, master, replica, p.program != realserver.Redis7)
			nothingRefused(t, replica)
		})
	}
}

// Each server replicates ebb as far as it supports ebb's data. Redis 7.0 gets hash fields without their deadlines,
// and HDEL when these pass.
func TestEachPeerReplicatesEbb(t *testing.T) {
	for _, p := range append(slices.Clone(peers), otherMasters()[2*len(peers):]...) {
		t.Run(p.name, func(t *testing.T) {
			at := startNode(t)
			replicated(t, at, dialTCP(t, at), dialTCP(t, p.start(t)), p.program != realserver.Redis7)
		})
	}
}

// Every write command of a peer is in peerWrites or in notReplicated.
func TestEveryWriteOfThePeersIsTried(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			c := dialTCP(t, p.start(t))
			tried := map[string]bool{}
			for _, line := range linesFor(c) {
				tried[strings.ToLower(line[0])] = true
				if len(line) > 1 {
					tried[strings.ToLower(line[0]+"|"+line[1])] = true
				}
			}
			for name, writes := range commandsOf(c) {
				if name = strings.ToLower(name); writes && !tried[name] && notReplicated[name] == "" {
					t.Errorf("%s is not tried", name)
				}
			}
		})
	}
}

// The roles are exchanged with each server and back, without a snapshot after the first. Both have the same data each
// time, with deadlines of hash fields if both support them.
func TestRolesAreExchangedAndBack(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			at, ourAt, items := p.start(t), startNode(t), p.program != realserver.Redis7
			other, ours := dialTCP(t, at), dialTCP(t, ourAt)
			lines := linesFor(other)
			writes := func(c client, prefix string) {
				t.Helper()
				if err := c.writeAll(lines, prefix); err != nil {
					t.Fatal(err)
				}
				specialWrites(c, startNode(t), prefix)
			}
			writes(other, "first")
			follow(t, ours, at)
			sameKeyspaces(t, other, ours, items)

			handOver(t, other, ours, ourAt)
			if items { // otherwise the other server would keep fields that ebb loses
				lines = linesFor(ours)
			}
			writes(ours, "second")
			if items { // the fields that the other server had before
				for _, request := range []string{"HPERSIST {first}hx FIELDS 1 a", "HPEXPIRE {first}hx 77000000 FIELDS 1 b", "HSET {first}hx j again",
					"HPEXPIRE {first}hx 1 FIELDS 1 g"} {
					ours.must(strings.Fields(request)...)
				}
			}
			sameKeyspaces(t, ours, other, items)

			handOver(t, ours, other, at)
			lines = linesFor(other)
			writes(other, "third")
			sameKeyspaces(t, other, ours, items)
			if a, b := other.field("sync_full"), ours.field("sync_full"); a != "1" || b != "0" {
				t.Errorf("full synchronisations: %s by the other server, want 1, and %s by ours, want 0", a, b)
			}

			ours.must("REPLICAOF", "NO", "ONE")
			if items {
				lines = linesFor(ours)
			}
			writes(ours, "alone")
			follow(t, other, ourAt)
			sameKeyspaces(t, ours, other, items)
			other.must("REPLICAOF", "NO", "ONE")
			lines = linesFor(other)
			writes(other, "fourth")
			follow(t, ours, at)
			sameKeyspaces(t, other, ours, items)
			nothingRefused(t, ours)
		})
	}
}

// handOver exchanges the roles of a master and its replica at an address.
func handOver(t *testing.T, master, replica client, at string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(at)
	tier.Eventually(t, "the master knows where the replica is",
		func() bool { return strings.Contains(master.field("slave0"), "port="+port+",state=online") })
	master.must("FAILOVER", "TO", host, port)
	tier.Eventually(t, "the roles are exchanged", func() bool {
		return replica.field("role") == "master" && master.field("role") == "slave" && master.field("master_link_status") == "up"
	})
}

// A command that ebb does not know ends the link, whichever server sends it. INFO and the log name it, nothing after
// it is applied, and a full synchronisation follows.
func TestEachPeerIsToldOnWhenItSendsWhatIsNotKnown(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			var log logged
			at := p.start(t)
			master, replica := dialTCP(t, at), dialTCP(t, startLogged(t, &log))
			master.must("SET", "before", "v")
			follow(t, replica, at)
			for i, words := range [][]string{{"NOSUCH", "k", "v"}, {"SET", "k", "v", "NOSUCHOPTION"}, {"FUNCTION", "NOSUCH"}, {"INCR", "before"}} {
				caughtUpTo(t, master, replica)
				full := master.field("sync_full")
				master.must(append([]string{"DEBUG", "REPLICATE"}, words...)...)
				master.must("SET", fmt.Sprint("after", i), "v")
				tier.Eventually(t, "the command is refused", func() bool { return replica.field("replica_refused_commands") == strconv.Itoa(i+1) })
				if last := replica.field("replica_refused_last"); !strings.Contains(last, strconv.Quote(words[0])+" "+strconv.Quote(words[1])) {
					t.Errorf("%q: INFO says %q", words, last)
				}
				if !log.has(`a command of the master was refused`) || !log.has(words[len(words)-1]) {
					t.Errorf("%q is not in the log", words)
				}
				if i > 0 { // the link requests all data by itself, after a growing pause
					replica.must("REPLICAOF", "NO", "ONE")
					follow(t, replica, at)
				}
				tier.Eventually(t, "all data has come", func() bool {
					return master.field("sync_full") != full && replica.ask("GET", fmt.Sprint("after", i)).Str == "v"
				})
			}
		})
	}
}

// caughtUpTo waits until a replica has its master's offset.
func caughtUpTo(t *testing.T, master, replica client) {
	t.Helper()
	tier.Eventually(t, "the offsets are equal", func() bool {
		return replica.field("master_link_status") == "up" && master.field("master_repl_offset") == replica.field("slave_repl_offset")
	})
}

// ebb does not support vector sets of Redis 8: the command ends the link, and the full synchronisation after it fails
// with the type's name, before any data is dropped.
func TestVectorSetsAreRefusedByName(t *testing.T) {
	at := otherServer{"", realserver.Redis8, nil}.start(t)
	master, replica := dialTCP(t, at), dialTCP(t, startNode(t))
	master.must("SET", "k", "v")
	follow(t, replica, at)
	master.must("VADD", "vectors", "VALUES", "2", "1", "1", "a")
	tier.Eventually(t, "VADD is refused", func() bool { return strings.Contains(replica.field("replica_refused_last"), `"VADD" "vectors"`) })
	tier.Eventually(t, "the synchronisation fails", func() bool {
		return strings.Contains(replica.field("master_sync_last_error"), "vectorset")
	})
	if why := replica.field("master_sync_last_error"); !strings.Contains(why, "is kept") || replica.must("GET", "k").Str != "v" {
		t.Errorf("k is %v; INFO says %q", replica.must("GET", "k"), why)
	}
}
