package instance

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// refusedInside makes a replica with files follow a master, whose stream is before and then a transaction that is
// refused at its end. It returns the replica, without a master, and a function that ends it.
func refusedInside(t *testing.T, dir string, before, transaction []string) (in *Instance, c client, end func()) {
	t.Helper()
	stream := commands(before...) + commands("MULTI") + commands(transaction...) + commands("EXEC", "SET late 1")
	s := newScripted(t, full(50, snapshot(t, "new"), ""), "+CONTINUE\r\n"+stream)
	in, end = startIn(t, dir, "--appendonly", "yes", "--enable-debug-command", "yes")
	c = dialTCP(t, in.Addrs()[0].String())
	host, port, _ := net.SplitHostPort(s.Addr().String())
	c.must("REPLICAOF", host, port)
	linked(t, c)
	tier.Eventually(t, "the stream goes into files", in.svc.Keeper().AppendOnly)
	c.must("CLIENT", "KILL", "TYPE", "master")
	tier.Eventually(t, "the transaction is refused", func() bool { return c.field("replica_refused_commands") == "1" })
	return in, c, end
}

// valuesOf returns the values in a server's databases 0 and 1, and whether each has a deadline.
func valuesOf(c client) string {
	c.t.Helper()
	all := ""
	for _, db := range []string{"0", "1"} {
		c.must("SELECT", db)
		keys := strings.Split(strings.Trim(sortedText(c.must("KEYS", "*")), `"`), `" "`)
		for _, k := range keys {
			kind := c.must("TYPE", k).Str
			all += fmt.Sprintf("%s %s %s %s until %d\n", db, k, c.must("OBJECT", "ENCODING", k).Str,
				valueText(kind, c.must(valueRequest(kind, k)...)), c.must("PEXPIRETIME", k).Int)
		}
	}
	c.must("SELECT", "0")
	return all
}

// A replica applies a master's transaction completely or not at all. If it refuses a command, it takes back the
// commands before it, in memory and in files.
func TestARefusedTransactionLeavesNothing(t *testing.T) {
	before := []string{"SELECT 0", "SET s old", "SET n 7", "SET raw a", "APPEND raw b", "HSET h f v g w", "RPUSH l a b", "SADD set 1 2",
		"SADD words x y", "ZADD z 1 a",
		"SET t v PXAT 33177117420123", "SET gone v", "HSET timed f v g w", "HPEXPIREAT timed 33177117420123 FIELDS 1 f",
		"SELECT 1", "SET s one", "SELECT 0"}
	transaction := []string{"SET s new", "INCR n", "APPEND raw c", "HSET h f changed x y", "PEXPIREAT h 33177117420000", "LPUSH l c",
		"SADD set word", "SREM words x", "ZADD z 2 a 3 b",
		"PERSIST t", "DEL gone", "SET gone again", "RPUSH fresh a", "HDEL timed f", "RENAME words set", "DEL z",
		"MOVE n 1", "COPY l s DB 1 REPLACE", "COPY l far REPLACE DB 1", "SELECT 1", "DEL s", "SET other v", "SELECT 0", "SET s newer"}
	for _, refused := range []string{"INCR s", "SET s v NOSUCHOPTION", "LPUSH h a"} {
		dir := t.TempDir()
		_, c, end := refusedInside(t, dir, before, append(slices.Clone(transaction), refused))
		want := `0 gone embstr "v" until -1
0 h listpack ["f" "v"] ["g" "w"] until -1
0 l listpack ["a" "b"] until -1
0 n int "7" until -1
0 new embstr "v" until -1
0 raw raw "ab" until -1
0 s embstr "old" until -1
0 set intset "1" "2" until -1
0 t embstr "v" until 33177117420123
0 timed listpack ["f" "v"] ["g" "w"] until -1
0 words listpack "x" "y" until -1
0 z listpack ["a" "1"] until -1
1 s embstr "one" until -1
`
		if got := valuesOf(c); got != want {
			t.Errorf("%s: the replica holds\n%s, want\n%s", refused, got, want)
		}
		if v := c.must("HPEXPIRETIME", "timed", "FIELDS", "2", "f", "g"); text(v) != "[33177117420123 -1]" {
			t.Errorf("the deadlines of the fields are %s", text(v))
		}
		if last := c.field("replica_refused_last"); strings.Contains(last, "taken back") {
			t.Errorf("%s: INFO says %q", refused, last)
		}
		c.must("REPLICAOF", "NO", "ONE")
		c.must("SET", "last", "v")
		end()
		c, end = startedAgain(t, dir)
		if got := strings.Replace(valuesOf(c), "0 last embstr \"v\" until -1\n", "", 1); got != want {
			t.Errorf("%s: after a start the replica holds\n%s, want\n%s", refused, got, want)
		}
		end()
	}
}

func startedAgain(t *testing.T, dir string) (c client, end func()) {
	t.Helper()
	in, end := startIn(t, dir, "--appendonly", "yes", "--enable-debug-command", "yes")
	return dialTCP(t, in.Addrs()[0].String()), end
}

// Values that are too large to copy for each transaction are not taken back. INFO names the key, and the replica
// rewrites its files, so the next start loads the data that was in memory.
func TestWhatCannotBeTakenBackIsNamed(t *testing.T) {
	pairs := make([]string, 0, 2000)
	for i := range 1000 {
		pairs = append(pairs, fmt.Sprint("f", i), "v")
	}
	dir := t.TempDir()
	in, c, end := refusedInside(t, dir, []string{"SELECT 0", "HSET large " + strings.Join(pairs, " "), "SET s old"},
		[]string{"SET s new", "HSET large f1 changed", "LPUSH s a"})
	if last := c.field("replica_refused_last"); !strings.Contains(last, `may have changed "large", and could not be taken back`) {
		t.Errorf("INFO says %q", last)
	}
	c.must("REPLICAOF", "NO", "ONE")
	if v := c.must("HSET", "large", "f1", "by a client", "new", "v"); v.Kind != resp.KindInt {
		t.Error(v)
	}
	tier.Eventually(t, "the files are made again", in.svc.Keeper().AppendOnly)
	held := c.must("DEBUG", "DIGEST").Str
	end()
	c, end = startedAgain(t, dir)
	defer end()
	if now := c.must("DEBUG", "DIGEST").Str; now != held {
		t.Errorf("the digest was %s, and is %s after a start", held, now)
	}
}

// A script writes keys that it does not name, and may fail after a write. The replica cannot take that back, and INFO
// says so.
func TestAScriptInARefusedTransactionIsNamed(t *testing.T) {
	const writes, fails = `EVAL redis.call('SET','hidden','v') 0`, `EVAL redis.call('SET','hidden','v')error('no') 0`
	for _, transaction := range [][]string{{writes, "LPUSH s a"}, {"PUBLISH ch m", fails}} {
		dir := t.TempDir()
		in, c, end := refusedInside(t, dir, []string{"SELECT 0", "SET s old"}, transaction)
		if last := c.field("replica_refused_last"); !strings.Contains(last, "may have changed all keys, and could not be taken back") {
			t.Errorf("%q: INFO says %q", transaction, last)
		}
		c.must("REPLICAOF", "NO", "ONE")
		tier.Eventually(t, "the files are made again", in.svc.Keeper().AppendOnly)
		held := valuesOf(c)
		end()
		c, end = startedAgain(t, dir)
		if now := valuesOf(c); now != held {
			t.Errorf("%q: the server held\n%s, and after a start\n%s", transaction, held, now)
		}
		end()
	}
}

// A replica whose clock is behind or ahead of its master's has the master's data: it keeps keys that have expired on
// the master's clock only, and shows a key that it hid too early when the master extends it.
func TestAReplicasClockMayDiffer(t *testing.T) {
	s := newScripted(t) // ends after the replica
	in := startMaster(t)
	c := dialTCP(t, in.Addrs()[0].String())
	now := in.svc.DB.Clock().Micros() / 1000
	ahead, behind := now+400, now-400 // the time on the master's clock
	stream := fmt.Sprintf("SELECT 0;SET ahead v PXAT %d;HSET h f v g w;HPEXPIREAT h %[1]d FIELDS 1 f;XADD x %[1]d-1 f v;XGROUP CREATE x g "+
		"0;XCLAIM x g c 0 %[1]d-1 TIME %[1]d RETRYCOUNT 3 FORCE JUSTID LASTID %[1]d-1;"+
		"XADD x %[1]d-2 f v;SET n 7 PXAT %[2]d;HSET k f 7 g w;HPEXPIREAT k %[2]d FIELDS 1 f;RPUSH l a;PEXPIREAT l %[2]d", ahead, behind)
	dies := "DEL ahead;HDEL h f;INCR n;PERSIST n;HINCRBY k f 1;HPERSIST k FIELDS 1 f;RPUSH l b;PEXPIREAT l 33177117420123"
	s.say(full(50, snapshot(t, "new"), commands(strings.Split(stream, ";")...)), "+CONTINUE\r\n"+commands(strings.Split(dies, ";")...))
	followScripted(c, s)
	tier.Eventually(t, "the first part is applied", func() bool {
		return c.field("slave_repl_offset") == fmt.Sprint(50+len(commands(strings.Split(stream, ";")...))) && c.must("XLEN", "x").Int == 2
	})
	if v := c.must("MGET", "n", "new"); text(v) != `[nil "v"]` { // the key ahead may be hidden or not: its deadline is near
		t.Errorf("n and new are %s", text(v))
	}
	if v := c.must("XINFO", "STREAM", "x", "FULL"); !strings.Contains(text(v), fmt.Sprintf(`["%d-1" %[1]d 3]`, ahead)) {
		t.Errorf("the pending entry is not the master's: %s", text(v))
	}
	c.must("CLIENT", "KILL", "TYPE", "master")
	tier.Eventually(t, "the second part is applied", func() bool {
		return c.must("LRANGE", "l", "0", "-1").String() != "" && len(c.must("LRANGE", "l", "0", "-1").Elems) == 2
	})
	for request, want := range map[string]string{"GET ahead": "nil", "HGETALL h": `["g" "w"]`, "GET n": `"8"`,
		"HMGET k f g": `["8" "w"]`, "PTTL n": "-1"} {
		if v := c.must(strings.Fields(request)...); text(v) != want {
			t.Errorf("%s: %s, want %s", request, text(v), want)
		}
	}
	nothingRefused(t, c)
}
