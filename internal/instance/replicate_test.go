package instance

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// startMaster serves an empty engine on a port of 127.0.0.1 until the test ends.
func startMaster(t *testing.T, options ...string) *Instance {
	t.Helper()
	return startOnPort(t, append([]string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"}, options...)...)
}

// noPings turns PING off for masters whose stream is compared byte by byte.
var noPings = []string{"--repl-ping-replica-period", "3600"}

func unusedPort(t *testing.T) int { return realserver.FreePort(t) }

func connect(t *testing.T, addr string) client {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(deadline(t))
	return client{t, c, bufio.NewReader(c)}
}

func deadline(t *testing.T) time.Time {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	d, _ := ctx.Deadline()
	return d
}

// redisReplica starts a redis-server 7.0 that replicates addr, and returns it with a connection.
func redisReplica(t *testing.T, addr string, options ...string) (*realserver.Process, client) {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	p := realserver.NewProcess(t, "redis-server", append([]string{"--save", "", "--enable-debug-command", "yes", "--repl-diskless-sync-delay",
		"0", "--replicaof", host + " " + port}, options...)...)
	p.Start()
	return p, connect(t, p.Addr())
}

// everyType writes values of every type of redis-server and of ebb.
func everyType(c client, n int) {
	tag := strconv.Itoa(n)
	for _, line := range []string{
		"SET s%s v PX 100000000", "SET big%s " + strings.Repeat("x", 100000), "SETBIT bits%s 77 1", "INCRBY n%s 7",
		"RPUSH l%s a b c", "SADD set%s 1 2 3", "SADD words%s x y z", "ZADD z%s 1 a 2.5 b", "HSET h%s f v g w",
		"XADD x%s 1-1 f v", "XGROUP CREATE x%s g 0", "PFADD hll%s a b c", "GEOADD geo%s 13.3 38.1 Palermo",
		"BF.ADD bloom%s a", "RL.TAKE limit%s 10 1000", "ZADDEX zx%s EX 1000 MEMBERS 1 1 a", "HPEXPIRE h%s 1000000 FIELDS 1 f",
		"RENAME bloom%s n%s", "SELECT 3", "SET three%s 3", "SELECT 0",
	} {
		c.ask(strings.Fields(strings.ReplaceAll(line, "%s", tag))...)
	}
}

// follows waits until n replicas have the whole stream.
func follows(t *testing.T, c client, n int) {
	t.Helper()
	for until := time.Now().Add(patience); ; {
		if c.ask("WAIT", strconv.Itoa(n), "500").Int >= int64(n) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the replica does not follow:\n%s", c.ask("INFO", "replication").Str)
		}
	}
}

func field(c client, section, name string) string {
	_, after, _ := strings.Cut(c.ask("INFO", section).Str, "\n"+name+":")
	v, _, _ := strings.Cut(after, "\r\n")
	return v
}

// samePlainData compares the keys of everyType on two servers.
func samePlainData(t *testing.T, a, b client, n int) {
	t.Helper()
	for i := range n {
		for _, name := range []string{"s", "big", "bits", "n", "l", "set", "words", "z", "h", "x", "hll", "geo", "zx", "bloom", "limit"} {
			key := name + strconv.Itoa(i)
			if name == "n" { // a key of ebb's own types has replaced it
				if got := b.ask("EXISTS", key).Int; got != 0 {
					t.Errorf("the replica still has %s", key)
				}
				continue
			}
			x, y := a.ask("DEBUG", "DIGEST-VALUE", key), b.ask("DEBUG", "DIGEST-VALUE", key)
			own := name == "bloom" || name == "limit"
			timed := name == "h" || name == "zx" // deadlines of items make these values differ in time
			switch {
			case own && b.ask("EXISTS", key).Int != 0:
				t.Errorf("the replica has %s", key)
			case timed && b.ask("EXISTS", key).Int != 1:
				t.Errorf("the replica does not have %s", key)
			case !own && !timed && fmt.Sprint(x) != fmt.Sprint(y):
				t.Errorf("%s differs: %v, %v", key, x, y)
			}
		}
		if got := b.ask("HGETALL", "h"+strconv.Itoa(i)); len(got.Elems) != 4 {
			t.Errorf("the hash is %v", got)
		}
	}
	tier.Eventually(t, "the offsets are equal", func() bool { // a PING may be on its way
		return field(a, "replication", "master_repl_offset") == field(b, "replication", "master_repl_offset")
	})
}

func TestRedisReplicatesEbb(t *testing.T) {
	for name, options := range map[string][2][]string{
		"from sockets":             {},
		"from sockets into memory": {nil, {"--repl-diskless-load", "swapdb"}},
		"from a file":              {{"--repl-diskless-sync", "no"}},
		"with a password":          {{"--requirepass", "secret"}, {"--masterauth", "secret"}},
		"with one event loop":      {{"--io-loops", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := startMaster(t, options[0]...)
			c := connect(t, in.Addrs()[0].String())
			if strings.Contains(name, "password") {
				c.ask("AUTH", "secret")
			}
			everyType(c, 0)
			p, r := redisReplica(t, in.Addrs()[0].String(), options[1]...)
			follows(t, c, 1)
			everyType(c, 1)
			follows(t, c, 1)
			samePlainData(t, c, r, 2)

			c.ask("CLIENT", "KILL", "TYPE", "replica")
			everyType(c, 2)
			follows(t, c, 1)
			samePlainData(t, c, r, 3)
			if got := field(c, "stats", "sync_full") + field(c, "stats", "sync_partial_ok"); got != "11" {
				t.Errorf("full and partial synchronisations: %s, want 1 and 1", got)
			}
			if log, _ := os.ReadFile(p.Log()); bytes.Contains(log, []byte("CRITICAL")) {
				t.Errorf("the replica says: %s", log)
			}
			role := c.ask("ROLE")
			if len(role.Elems) != 3 || len(role.Elems[2].Elems) != 1 || role.Elems[2].Elems[0].Elems[1].Str != strconv.Itoa(p.Port) {
				t.Errorf("ROLE says %v", role)
			}
			if got := c.ask("CLIENT", "LIST", "TYPE", "replica").Str; !strings.Contains(got, "flags=S ") {
				t.Errorf("CLIENT LIST says %q", got)
			}
		})
	}
}

func TestReplicasOfReplicasAreAtTheSameOffset(t *testing.T) {
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	everyType(c, 0)
	p, first := redisReplica(t, in.Addrs()[0].String())
	follows(t, c, 1)
	_, second := redisReplica(t, p.Addr())
	until := time.Now().Add(patience)
	for field(second, "replication", "master_link_status") != "up" && time.Now().Before(until) {
		follows(t, c, 1)
	}
	everyType(c, 1)
	follows(t, c, 1)
	for field(second, "replication", "master_repl_offset") != field(c, "replication", "master_repl_offset") && time.Now().Before(until) {
		follows(t, c, 1)
	}
	samePlainData(t, c, first, 2)
	samePlainData(t, first, second, 2)
}

func TestReplicasThatComeTogetherShareASnapshot(t *testing.T) {
	in := startMaster(t, "--repl-diskless-sync-delay", "100", "--repl-diskless-sync-max-replicas", "2")
	c := connect(t, in.Addrs()[0].String())
	everyType(c, 0)
	_, a := redisReplica(t, in.Addrs()[0].String())
	_, b := redisReplica(t, in.Addrs()[0].String()) // the second replica ends the delay
	follows(t, c, 2)
	samePlainData(t, c, a, 1)
	samePlainData(t, c, b, 1)
	c.ask("CONFIG", "SET", "min-replicas-to-write", "3")
	if got := c.ask("SET", "k", "v").Str; !strings.HasPrefix(got, "NOREPLICAS") {
		t.Errorf("with two replicas of three: %q", got)
	}
	c.ask("CONFIG", "SET", "min-replicas-to-write", "2")
	if got := c.ask("SET", "k", "v").Str; got != "OK" {
		t.Errorf("with two replicas of two: %q", got)
	}
}

func TestAReplicaThatWasAwayForTooLongStartsAnew(t *testing.T) {
	in := startMaster(t, "--repl-backlog-size", "16384")
	c := connect(t, in.Addrs()[0].String())
	_, r := redisReplica(t, in.Addrs()[0].String())
	follows(t, c, 1)
	r.ask("REPLICAOF", "127.0.0.1", "1") // an address without a server
	for range 20 {
		c.ask("SET", "big", strings.Repeat("x", 100000))
	}
	everyType(c, 0)
	host, port, _ := net.SplitHostPort(in.Addrs()[0].String())
	r.ask("REPLICAOF", host, port)
	follows(t, c, 1)
	samePlainData(t, c, r, 1)
	if got := field(c, "stats", "sync_full"); got != "2" {
		t.Errorf("%s full synchronisations, want 2", got)
	}
}

func TestRedisCLIFetchesASnapshot(t *testing.T) {
	realserver.Program(t, "redis-cli")
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	everyType(c, 0)
	host, port, _ := net.SplitHostPort(in.Addrs()[0].String())
	path := t.TempDir() + "/dump.rdb"
	if out, err := realserver.CommandContext(t.Context(), "redis-cli", "-h", host, "-p", port, "--rdb", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := realserver.CommandContext(t.Context(), "redis-check-rdb", path).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("RDB looks OK")) {
		t.Errorf("%v: %s", err, out)
	}
}

// raw sends the lines of a replica's handshake.
func raw(t *testing.T, in *Instance, lines ...string) client {
	t.Helper()
	c := connect(t, in.Addrs()[0].String())
	for _, l := range lines {
		if v := c.ask(strings.Fields(l)...); v.Str != "OK" {
			t.Fatalf("%s: %v", l, v)
		}
	}
	return c
}

func line(t *testing.T, c client) string {
	t.Helper()
	for {
		l, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if l = strings.TrimRight(l, "\r\n"); l != "" { // the master sends newlines as keep-alive
			return l
		}
	}
}

// afterFullSync reads a snapshot, and returns the stream's name and the offset after it.
func afterFullSync(t *testing.T, c client) (id string, offset int64) {
	t.Helper()
	c.send("PSYNC", "?", "-1")
	f := strings.Fields(line(t, c))
	if len(f) != 3 || f[0] != "+FULLRESYNC" {
		t.Fatalf("got %q", f)
	}
	offset, _ = strconv.ParseInt(f[2], 10, 64)
	n, err := strconv.Atoi(strings.TrimPrefix(line(t, c), "$"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c.r, int64(n)); err != nil {
		t.Fatal(err)
	}
	return f[1], offset
}

func expectBytes(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func TestEbbReplicasGetOurOwnCommands(t *testing.T) {
	in := startMaster(t, noPings...)
	c := connect(t, in.Addrs()[0].String())
	ours := raw(t, in, "REPLCONF capa ebb")
	plain := raw(t, in)
	_, _ = afterFullSync(t, ours)
	id, offset := afterFullSync(t, plain)
	follows(t, c, 0)
	c.ask("BF.RESERVE", "b", "0.01", "100")
	want := "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*6\r\n$10\r\nBF.RESERVE\r\n"
	expectBytes(t, ours.r, want)
	expectBytes(t, plain.r, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$4\r\nPING\r\n$")

	// The stream continues at the same offset, under the same replication id.
	_ = plain.Close()
	again := raw(t, in, "REPLCONF capa psync2")
	again.send("PSYNC", id, strconv.FormatInt(offset+1, 10))
	if got := line(t, again); got != "+CONTINUE "+id {
		t.Errorf("got %q", got)
	}
	expectBytes(t, again.r, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$4\r\nPING\r\n$")
	stranger := raw(t, in)
	stranger.send("PSYNC", strings.Repeat("0", 40), strconv.FormatInt(offset+1, 10))
	if got := line(t, stranger); !strings.HasPrefix(got, "+FULLRESYNC") {
		t.Errorf("got %q", got)
	}
	inside := raw(t, in) // a stream that begins within a command cannot be translated
	inside.send("PSYNC", id, strconv.FormatInt(offset+3, 10))
	if got := line(t, inside); !strings.HasPrefix(got, "+FULLRESYNC") {
		t.Errorf("got %q", got)
	}
}

func TestWaitCountsAcknowledgements(t *testing.T) {
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	r := raw(t, in, "REPLCONF capa ebb", "REPLCONF listening-port 1234")
	_, offset := afterFullSync(t, r)
	c.ask("SET", "k", "v")
	if got := c.ask("WAIT", "1", "20").Int; got != 0 {
		t.Errorf("WAIT says %d before anything was acknowledged", got)
	}
	c.send("WAIT", "1", "0")
	var until string
	for !strings.Contains(until, "GETACK") {
		until += line(t, r)
	}
	end := field(connect(t, in.Addrs()[0].String()), "replication", "master_repl_offset")
	r.send("REPLCONF", "ACK", end)
	if got := c.read().Int; got != 1 {
		t.Errorf("WAIT says %d", got)
	}
	if got := c.ask("WAITAOF", "0", "1", "20"); got.Elems[0].Int != 0 || got.Elems[1].Int != 0 {
		t.Errorf("WAITAOF replied %v, and no replica has synced", got)
	}
	c.send("WAITAOF", "0", "1", "0")
	r.send("REPLCONF", "ACK", end, "FACK", strconv.FormatInt(offset+100000, 10))
	if got := c.read(); got.Elems[1].Int != 1 {
		t.Errorf("WAITAOF says %v", got)
	}
	for _, args := range [][]string{{"MULTI"}, {"WAIT", "2", "0"}} {
		c.ask(args...)
	}
	if got := c.ask("EXEC"); got.Elems[0].Int != 0 && got.Elems[0].Int != 1 {
		t.Errorf("in a transaction WAIT says %v", got)
	}
	if got := field(c, "replication", "slave0"); !strings.HasPrefix(got, "ip=127.0.0.1,port=1234,state=online,offset="+end) {
		t.Errorf("INFO says %q", got)
	}
}

func TestAReplicaThatLagsTooFarIsGivenUp(t *testing.T) {
	t.Parallel() // the test mostly waits
	in := startMaster(t, "--client-output-buffer-limit", "replica 1mb 0 0", "--repl-backlog-size", "16384")
	c := connect(t, in.Addrs()[0].String())
	r := raw(t, in, "REPLCONF capa ebb")
	_, _ = afterFullSync(t, r)
	for range 400 {
		c.ask("SET", "k", strings.Repeat("x", 100000)) // r does not read it
	}
	for until := time.Now().Add(patience); field(c, "replication", "connected_slaves") != "0"; {
		if time.Now().After(until) {
			t.Fatalf("the replica is still there:\n%s", c.ask("INFO", "replication").Str)
		}
		c.ask("WAIT", "1", "50")
	}
}

func TestSyncEndsWithTheServer(t *testing.T) {
	in := startMaster(t, "--repl-diskless-sync-delay", "1000")
	waits := raw(t, in, "REPLCONF capa eof")
	waits.send("PSYNC", "?", "-1") // the delay of its snapshot is a quarter of an hour
	c := connect(t, in.Addrs()[0].String())
	for field(c, "replication", "connected_slaves") != "1" {
		c.ask("PING")
	}
}
