package instance

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Replication while one side stops, stalls, or sends invalid data.

// A master that has restarted from an RDB file keeps the stream for its old replicas: they continue and miss nothing.
func TestReplicasOfARestartedMasterMissNothing(t *testing.T) {
	t.Parallel() // the test mostly waits
	options := []string{"--dir", t.TempDir(), "--appendonly", "no", "--save", "3600 1", "--bind", "127.0.0.1", "--port",
		fmt.Sprint(unusedPort(t)), "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes"}
	start := func() *Instance {
		cfg, err := config.Load(options, nil)
		if err != nil {
			t.Fatal(err)
		}
		in, err := Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	in := start()
	at := in.Addrs()[0].String()
	replica := dialTCP(t, startNode(t))
	follow(t, replica, at)
	c := dialTCP(t, at)
	c.must("SELECT", "3")
	c.must("SET", "before", "v")
	caughtUp(t, c, replica)
	if err := in.Prepare(t.Context(), session.ShutdownOptions{}); err != nil {
		t.Fatal(err)
	}
	shutDown(t, in)

	in = start()
	defer func() { shutDown(t, in) }()
	c = dialTCP(t, at)
	c.must("SET", "early", "v") // before the replica reconnects
	linked(t, replica)
	c.must("SET", "late", "v")
	caughtUp(t, c, replica)
	for _, key := range []string{"early", "late"} {
		if v := replica.must("GET", key); v.Str != "v" {
			t.Errorf("the replica does not have %q", key)
		}
	}
	if full := c.field("sync_full"); full != "0" {
		t.Errorf("%s full synchronisations", full)
	}
}

// The master closes the connection of a replica that stops reading its snapshot. Meanwhile that replica does not
// delay replicas whose snapshots are sent through files.
func TestAReplicaThatDoesNotTakeItsSnapshotIsGivenUp(t *testing.T) {
	t.Parallel() // the test mostly waits
	for _, diskless := range []string{"yes", "no"} {
		in := startMaster(t, "--repl-timeout", "2", "--repl-diskless-sync", diskless, "--dir", t.TempDir(), "--appendonly",
			"no", "--rdbcompression", "no")
		c := connect(t, in.Addrs()[0].String())
		for i := range 40 {
			c.ask("SET", fmt.Sprint("k", i), strings.Repeat("x", 1<<20))
		}
		r := raw(t, in, "REPLCONF capa eof capa ebb")
		r.send("PSYNC", "?", "-1") // the client reads nothing
		tier.Eventually(t, "the snapshot is on its way", func() bool {
			info := c.ask("INFO", "everything").Str
			return strings.Contains(info, "state=send_bulk") ||
				strings.Contains(info, "sync_full:1\r") && strings.Contains(info, "connected_slaves:0\r") // given up already
		})
		if diskless == "no" {
			if v := c.ask("SAVE"); v.Str != "OK" {
				t.Errorf("SAVE waits for a slow replica: %v", v)
			}
		}
		tier.Eventually(t, "it is given up", func() bool { return field(c, "replication", "connected_slaves") == "0" })
	}
}

// Invalid data of a master ends the link, and has no other effect. After a refused command the replica requests all
// data.
func TestAMasterThatLiesEndsTheLink(t *testing.T) {
	t.Parallel() // the test mostly waits
	const later = "*2\r\n$3\r\nDEL\r\n$3\r\nnew\r\n"
	file := snapshot(t, "new")
	lies := []string{
		"   \r\n",
		"+FULLRESYNC " + streamID + " -1\r\n",
		"+FULLRESYNC x 0\r\n",
		"+CONTINUE\r\n*1\r\n$9223372036854775807\r\nx",
		"+CONTINUE\r\n*2147483648\r\n",
		full(0, file, "*2\r\n$3\r\nDEL\r\n$9223372036854775805\r\nx"),
	}
	for i := range lies {
		lies[i] += "close"
	}
	refused := []string{ // the replica closes the connection
		full(0, file, "*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n"+later),
		full(0, file, "*1\r\n$5\r\nMULTI\r\n*3\r\n$9\r\nREPLICAOF\r\n$2\r\nNO\r\n$3\r\nONE\r\n*1\r\n$4\r\nEXEC\r\n"+later),
	}
	s := newScripted(t, append(append(lies, refused...), full(7, file, ""))...)
	c := replicaOfScripted(t, s)
	tier.Eventually(t, "it has got to the last answer", func() bool {
		return c.field("master_link_status") == "up" && c.field("slave_repl_offset") == "7"
	})
	if v := c.must("GET", "new"); v.Str != "v" {
		t.Errorf("the master's key is %v", v)
	}
	if got := c.field("replica_refused_commands"); got != "2" {
		t.Errorf("%s commands were refused, want SHUTDOWN and REPLICAOF; the last: %s", got, c.field("replica_refused_last"))
	}
}

// A client's long script delays the stream, but no part of the stream is lost.
func TestAScriptOnAReplicaLosesNothingOfTheStream(t *testing.T) {
	at := startNode(t, noPings...)
	replicaAt := startNode(t, "--busy-reply-threshold", "50")
	master, replica := dialTCP(t, at), dialTCP(t, replicaAt)
	follow(t, replica, at)
	master.must("SET", "first", "v") // its SELECT locks all shards anyway
	caughtUp(t, master, replica)
	script := dialTCP(t, replicaAt)
	script.send("EVAL", "while true do end", "0")
	tier.Eventually(t, "the script is overdue", func() bool { return strings.HasPrefix(replica.ask("GET", "k1").Str, "BUSY") })
	master.must("SET", "a", "v")
	master.must("MULTI")
	master.must("INCR", "b")
	master.must("INCR", "c")
	master.must("EXEC")
	if v := master.must("WAIT", "1", "300"); v.Int != 0 { // the bytes have arrived meanwhile
		t.Fatal("the write is applied while the script runs")
	}
	replica.must("SCRIPT", "KILL")
	if v := script.read(); v.Err() == nil {
		t.Fatalf("the script: %v", v)
	}
	caughtUp(t, master, replica)
	if n := replica.field("replica_refused_commands"); n != "0" {
		t.Errorf("%s commands of the master were refused", n)
	}
	if v := replica.must("DBSIZE"); v.Int != 4 {
		t.Errorf("there are %d keys", v.Int)
	}
}

// The stream of a promoted replica begins with a SELECT: the old master, which becomes a replica, may have no
// selected database, because it has sent a snapshot last.
func TestAPromotedReplicaSelectsItsDatabase(t *testing.T) {
	firstAt, secondAt := startNode(t), startNode(t)
	first, second, third := dialTCP(t, firstAt), dialTCP(t, secondAt), dialTCP(t, startNode(t))
	follow(t, second, firstAt)
	first.must("SELECT", "3")
	first.must("SET", "k", "v")
	caughtUp(t, first, second)
	follow(t, third, firstAt) // triggers the snapshot
	caughtUp(t, first, second)

	second.must("REPLICAOF", "NO", "ONE")
	second.must("SELECT", "3")
	second.must("SET", "new", "v")
	host, port, _ := net.SplitHostPort(secondAt)
	first.must("REPLICAOF", host, port)
	linked(t, first)
	caughtUp(t, second, first)
	if v := first.must("GET", "new"); v.Str != "v" || first.field("sync_full") != "2" {
		t.Errorf("the old master has %v; it has made %s snapshots", v, first.field("sync_full"))
	}
	if n := second.field("sync_full"); n != "0" {
		t.Errorf("the old master needed %s full synchronisations", n)
	}
}

// A replica acknowledges exactly the bytes that it has applied.
func TestAReplicaAcknowledgesWhatItHasDone(t *testing.T) {
	t.Parallel() // the test mostly waits
	stream := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	const getAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"
	open := "*1\r\n$5\r\nMULTI\r\n" + stream // incomplete before its EXEC
	s := newScripted(t, full(100, snapshot(t, "new"), stream+getAck+open))
	c := replicaOfScripted(t, s)
	want := int64(100 + len(stream+getAck))
	tier.Eventually(t, "the command is done", func() bool { return c.ask("GET", "k").Str == "v" })
	tier.Eventually(t, "it is acknowledged", func() bool {
		got := <-s.acks
		if got > want {
			t.Fatalf("%d is acknowledged, of %d that are done", got, want)
		}
		return got == want
	})
	if got := <-s.acks; got != want { // a second later
		t.Errorf("%d is acknowledged, of %d that are done", got, want)
	}
}

// A replica that has taken over agrees again if asked again: the old master, which has lost the reply, would
// otherwise act as a master too.
func TestAHandOverMayBeAskedForAgain(t *testing.T) {
	firstAt, secondAt := startNode(t, noPings...), startNode(t)
	first, second := dialTCP(t, firstAt), dialTCP(t, secondAt)
	follow(t, second, firstAt)
	first.must("SET", "k", "v")
	caughtUp(t, first, second)
	id, next := first.field("master_replid"), 0
	if _, err := fmt.Sscan(second.field("slave_repl_offset"), &next); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := dialTCP(t, secondAt)
		c.must("REPLCONF", "capa", "psync2", "capa", "ebb")
		c.send("PSYNC", id, fmt.Sprint(next+1), "FAILOVER")
		if got := line(t, c); !strings.HasPrefix(got, "+CONTINUE ") {
			t.Errorf("got %q", got)
		}
	}
	if v := second.ask("PSYNC", streamID, "1", "FAILOVER"); v.Err() == nil {
		t.Errorf("a stranger got %v", v)
	}
}

// The old name of a promoted replica's stream covers exactly the bytes up to the promotion.
func TestTheOldNameEndsAtThePromotion(t *testing.T) {
	firstAt, secondAt := startNode(t, noPings...), startNode(t)
	first, second := dialTCP(t, firstAt), dialTCP(t, secondAt)
	follow(t, second, firstAt)
	first.must("SET", "k", "v")
	caughtUp(t, first, second)
	end := 0
	if _, err := fmt.Sscan(first.field("master_repl_offset"), &end); err != nil {
		t.Fatal(err)
	}
	second.must("REPLICAOF", "NO", "ONE")
	second.must("SET", "more", "v")
	next := end + 1
	if got := second.field("second_repl_offset"); got != fmt.Sprint(next) {
		t.Errorf("second_repl_offset is %s, after %d bytes in common", got, end)
	}
	for offset, want := range map[int]string{next - 1: "+CONTINUE", next: "+CONTINUE", next + 1: "+FULLRESYNC"} {
		c := dialTCP(t, secondAt)
		c.must("REPLCONF", "capa", "psync2", "capa", "ebb")
		c.send("PSYNC", first.field("master_replid"), fmt.Sprint(offset))
		if got := line(t, c); !strings.HasPrefix(got, want) {
			t.Errorf("from %d on, after %d bytes in common: %q", offset, end, got)
		}
	}
}

// While a FAILOVER waits for a replica, nothing expires actively: otherwise the replica would never catch up.
func TestNothingExpiresDuringAFailover(t *testing.T) {
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	r := raw(t, in, "REPLCONF capa ebb")
	_, _ = afterFullSync(t, r) // it does not acknowledge
	c.must("EVAL", "for i = 1, 10000 do redis.call('SET', i, 'v', 'PX', i) end", "0")
	tier.Eventually(t, "keys expire", func() bool { return c.field("expired_keys") != "0" })
	c.must("FAILOVER")
	before, after := c.field("expired_keys"), ""
	now := func() (us int64) {
		v := c.must("TIME")
		s, _ := strconv.ParseInt(v.Elems[0].Str, 10, 64)
		us, _ = strconv.ParseInt(v.Elems[1].Str, 10, 64)
		return s*1e6 + us
	}
	from := now()
	tier.Eventually(t, "many more are due", func() bool { return now() > from+100_000 })
	if after = c.field("expired_keys"); after != before {
		t.Errorf("%s keys had expired, and %s have", before, after)
	}
	c.must("FAILOVER", "ABORT")
	tier.Eventually(t, "they expire", func() bool { return c.field("expired_keys") != after })
}
