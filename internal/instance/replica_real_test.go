package instance

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// These tests replicate between servers on TCP: ebb, and redis-server if it is installed.

// startNode serves an empty engine on a TCP port until the test ends, and returns its address.
func startNode(t *testing.T, options ...string) (addr string) {
	t.Helper()
	return startMaster(t, options...).Addrs()[0].String()
}

// startRedis runs a redis-server that starts snapshots without a delay.
func startRedis(t *testing.T, options ...string) (addr string) {
	t.Helper()
	return realserver.Start(t, "redis-server", append([]string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"},
		options...)...)
}

func dialTCP(t *testing.T, addr string) client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

// must sends a command that the server must not refuse, and returns the reply.
func (c client) must(args ...string) resp.Value {
	c.t.Helper()
	v := c.ask(args...)
	if v.Kind == resp.KindError {
		c.t.Fatalf("%q: %s", args, v.Str)
	}
	return v
}

// field returns the value of a line of INFO.
func (c client) field(name string) string {
	c.t.Helper()
	for line := range strings.Lines(c.must("INFO", "everything").Str) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// follow makes a server the replica of another.
func follow(t *testing.T, replica client, master string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(master)
	replica.must("REPLICAOF", host, port)
	linked(t, replica)
}

func linked(t *testing.T, replica client) {
	t.Helper()
	tier.Eventually(t, "the link is up", func() bool { return replica.field("master_link_status") == "up" })
}

// caughtUp waits until the replica has its master's offset and data. The master may need a moment to remove keys that
// have just expired.
func caughtUp(t *testing.T, master, replica client) {
	t.Helper()
	var want, got string
	defer func() {
		if want != got {
			t.Errorf("the master's data is %s, the replica's %s\n%s\n%s", want, got, master.must("INFO", "keyspace").Str,
				replica.must("INFO", "keyspace").Str)
		}
	}()
	tier.Eventually(t, "offsets and data are equal", func() bool {
		if replica.field("master_link_status") != "up" || master.field("master_repl_offset") != replica.field("master_repl_offset") {
			return false
		}
		want, got = master.must("DEBUG", "DIGEST").Str, replica.must("DEBUG", "DIGEST").Str
		return want == got
	})
	if n := replica.field("replica_refused_commands"); n != "" && n != "0" {
		t.Errorf("%s commands of the master were refused", n)
	}
}

// fill writes values of all of Redis's types, large and small.
const fill = `
for i = 1, 600 do
  redis.call('SET', 'str:' .. i, 'value' .. i)
  redis.call('HSET', 'hash', i, i)
  redis.call('SADD', 'set', i, 'm' .. i)
  redis.call('ZADD', 'zset', i * 1.5, 'm' .. i)
  redis.call('RPUSH', 'list', 'e' .. i)
  redis.call('XADD', 'stream', '*', 'f', i)
  redis.call('PFADD', 'hll', i)
  redis.call('SETBIT', 'bits', i * 3, 1)
  redis.call('GEOADD', 'geo', i / 10, i / 20, 'p' .. i)
end
redis.pcall('XGROUP', 'CREATE', 'stream', 'g', '0')
redis.call('XREADGROUP', 'GROUP', 'g', 'c1', 'COUNT', 10, 'STREAMS', 'stream', '>')
redis.call('HSET', 'small:hash', 'a', 1) redis.call('SADD', 'small:set', 1, 2) redis.call('ZADD', 'small:zset', 1, 'a')
redis.call('RPUSH', 'small:list', 1, 2, 3)
redis.call('SET', 'volatile', 'v', 'PX', 1000000)
redis.call('SELECT', 3) redis.call('SET', 'elsewhere', 'v')
return 1`

// changes are commands whose effects differ from the commands sent.
var changes = [][]string{
	{"EVAL", fill, "0"},
	{"SPOP", "set", "20"}, {"EXPIRE", "small:list", "1000"}, {"INCRBYFLOAT", "float", "1.5"}, {"HINCRBYFLOAT", "hash", "f", "0.25"},
	{"GETEX", "str:1", "PX", "100000"}, {"GETDEL", "str:2"}, {"SET", "short", "v", "PX", "20"}, {"COPY", "zset", "zset2"},
	{"RENAME", "small:zset", "z3"}, {"MOVE", "small:set", "2"}, {"SWAPDB", "4", "5"}, {"SORT", "list", "ALPHA", "STORE", "sorted"},
	{"ZUNIONSTORE", "zu", "2", "zset", "zset2"}, {"BITOP", "NOT", "bits2", "bits"},
	{"GEORADIUS", "geo", "1", "1", "1000", "km", "STORE", "near"}, {"XADD", "stream", "MAXLEN", "~", "100", "*", "a", "b"},
	{"XAUTOCLAIM", "stream", "g", "c2", "0", "0", "COUNT", "3"}, {"XREADGROUP", "GROUP", "g", "c3", "COUNT", "4", "STREAMS", "stream", ">"},
	{"LMPOP", "1", "list", "LEFT", "COUNT", "5"}, {"ZMPOP", "1", "zset", "MIN", "COUNT", "5"}, {"PFCOUNT", "hll"}, {"PFMERGE", "hll2", "hll"},
	{"FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return redis.call('INCR', 'calls') end)"},
	{"FCALL", "f", "0"}, {"MULTI"}, {"SET", "inside", "1"}, {"INCR", "inside"}, {"EXEC"}, {"PUBLISH", "channel", "message"},
	{"SETRANGE", "str:3", "10", "abc"},
}

func change(c client) {
	c.t.Helper()
	for _, args := range changes {
		c.must(args...)
	}
}

// A replica of redis-server has its master's data at the same offset, however the snapshot and the stream are sent.
func TestAReplicaOfRedisHoldsWhatItsMasterHolds(t *testing.T) {
	for _, diskless := range []string{"yes", "no"} {
		t.Run("diskless "+diskless, func(t *testing.T) {
			at := startRedis(t, "--repl-diskless-sync", diskless)
			master, replica := dialTCP(t, at), dialTCP(t, startNode(t))
			change(master)
			replica.must("SET", "old", "goes")
			follow(t, replica, at)
			caughtUp(t, master, replica)
			change(master)
			caughtUp(t, master, replica)
			if v := replica.must("FUNCTION", "LIST"); len(v.Elems) != 1 {
				t.Errorf("the libraries of functions are %v", v)
			}
		})
	}
}

// After a cut the stream continues without a snapshot. If the master's stream has a new name, a snapshot is needed.
func TestAStreamGoesOnAfterACut(t *testing.T) {
	at := startRedis(t)
	master, replica := dialTCP(t, at), dialTCP(t, startNode(t))
	follow(t, replica, at)
	full := master.field("sync_full")
	for i := range 5 {
		if i%2 == 0 {
			master.must("CLIENT", "KILL", "TYPE", "replica")
		} else {
			replica.must("CLIENT", "KILL", "TYPE", "master")
		}
		change(master)
		caughtUp(t, master, replica)
	}
	if now := master.field("sync_full"); now != full {
		t.Errorf("there were %s full synchronisations, %s of them before the first cut", now, full)
	}
	master.must("DEBUG", "CHANGE-REPL-ID")
	master.must("CLIENT", "KILL", "TYPE", "replica")
	change(master)
	caughtUp(t, master, replica)
	if now := master.field("sync_full"); now == full {
		t.Error("a stream with another name went on")
	}
}

// A replica of a replica has the master's data, whichever server is between. When that server is promoted, its
// replica continues under the new name.
func TestAChainOfReplicasSurvivesAPromotion(t *testing.T) {
	at := startRedis(t)
	middleAt := startNode(t)
	master, middle, last := dialTCP(t, at), dialTCP(t, middleAt), dialTCP(t, startNode(t))
	follow(t, middle, at)
	follow(t, last, middleAt)
	change(master)
	caughtUp(t, master, middle)
	caughtUp(t, master, last)

	old, full := middle.field("master_replid"), middle.field("sync_full")
	middle.must("REPLICAOF", "NO", "ONE")
	change(middle)
	caughtUp(t, middle, last)
	if middle.field("master_replid2") != old || middle.field("master_replid") == old {
		t.Errorf("after the promotion the names are %s and %s; before, %s", middle.field("master_replid"), middle.field("master_replid2"), old)
	}
	tier.Eventually(t, "the last one has the new name", func() bool { return last.field("master_replid") == middle.field("master_replid") })
	if now := middle.field("sync_full"); now != full {
		t.Errorf("the last one needed a full synchronisation: %s, %s before", now, full)
	}

	// The old master becomes a replica. A redis-server needs a snapshot then, because it does not know the new name,
	// unless it has written nothing.
	host, port, _ := net.SplitHostPort(middleAt)
	master.must("REPLICAOF", host, port)
	linked(t, master)
	caughtUp(t, middle, master)
}

// A hand-over loses no acknowledged write, needs no snapshot, and makes the old master a replica of the new one.
func TestFailoverHandsOver(t *testing.T) {
	firstAt, secondAt := startNode(t), startNode(t)
	first, second := dialTCP(t, firstAt), dialTCP(t, secondAt)
	follow(t, second, firstAt)
	written := make(chan int)
	go func() { written <- increments(dialTCP(t, firstAt)) }()
	tier.Eventually(t, "there are writes", func() bool { return first.ask("GET", "n").Str > "100" })
	first.must("FAILOVER")
	n := <-written
	tier.Eventually(t, "the roles are exchanged", func() bool {
		return second.field("role") == "master" && first.field("role") == "slave" && first.field("master_link_status") == "up" &&
			first.field("master_failover_state") == "no-failover"
	})
	if got := second.must("GET", "n").Str; got != fmt.Sprint(n) {
		t.Errorf("%d increments were acknowledged; the new master has %s", n, got)
	}
	second.must("INCR", "n")
	caughtUp(t, second, first)
	if full := second.field("sync_full"); full != "0" {
		t.Errorf("the hand-over took %s full synchronisations", full)
	}
}

// increments increments n until the server refuses, and returns the number of increments.
func increments(c client) (n int) {
	for c.ask("INCR", "n").Kind != resp.KindError {
		n++
	}
	return n
}

// Each token of the new master is greater than all tokens of the old one, even if the last of those were not
// replicated.
func TestTokensGrowOverAPromotion(t *testing.T) {
	firstAt := startNode(t)
	first, second := dialTCP(t, firstAt), dialTCP(t, startNode(t))
	before := first.must("LOCK.ACQUIRE", "report", "w1", "60000")
	follow(t, second, firstAt)
	second.must("REPLICAOF", "NO", "ONE")
	lost := first.must("LOCK.ACQUIRE", "unheard-of", "w1", "60000")
	second.must("LOCK.RELEASE", "report", "w1", fmt.Sprint(before.Int))
	after := second.must("LOCK.ACQUIRE", "report", "w2", "60000")
	if after.Int <= lost.Int || after.Int < before.Int+60e6 {
		t.Errorf("tokens: %d before the promotion, %d unheard of, %d after it", before.Int, lost.Int, after.Int)
	}
}
