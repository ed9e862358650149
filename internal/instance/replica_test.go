package instance

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// scripted is a master that sends answers of the test's choice: it greets each connection of a replica, and answers
// PSYNC with the next answer, unchanged. If there is none, the replica waits.
type scripted struct {
	net.Listener
	acks chan int64 // the newest offset that the replica has acknowledged
	says chan string
	said sync.Map // the REPLCONF commands of replicas, as lines
}

func newScripted(t *testing.T, answers ...string) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{Listener: ln, acks: make(chan int64, 1), says: make(chan string, 100)}
	s.say(answers...)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for answer := range s.says {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.serve(c, answer)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		close(s.says)
		<-over
	})
	return s
}

// say adds answers to PSYNC.
func (s *scripted) say(answers ...string) {
	for _, a := range answers {
		s.says <- a
	}
}

// serve serves one replica until the replica closes the connection. After an answer that ends in "close", serve
// closes it.
func (s *scripted) serve(c net.Conn, answer string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		for b, err := r.Peek(1); err == nil && b[0] == '\n'; b, err = r.Peek(1) {
			_, _ = r.Discard(1) // a newline: the replica loads
		}
		v, err := wire.ReadValue(r)
		if err != nil || len(v.Elems) == 0 {
			return
		}
		switch strings.ToUpper(v.Elems[0].Str) {
		case "PING":
			_, _ = c.Write([]byte("+PONG\r\n"))
		case "PSYNC":
			text, hangUp := strings.CutSuffix(answer, "close")
			_, _ = c.Write([]byte(text))
			if hangUp {
				return
			}
		default:
			if strings.EqualFold(v.Elems[1].Str, "ACK") {
				n, _ := strconv.ParseInt(v.Elems[2].Str, 10, 64)
				select {
				case <-s.acks:
				default:
				}
				s.acks <- n
				continue
			}
			words := make([]string, len(v.Elems))
			for i, e := range v.Elems {
				words[i] = e.Str
			}
			s.said.Store(strings.ToLower(strings.Join(words, " ")), true)
			_, _ = c.Write([]byte("+OK\r\n"))
		}
	}
}

// snapshot returns an RDB file with one key.
func snapshot(t *testing.T, key string) string {
	t.Helper()
	var b strings.Builder
	w := rdb.NewWriter(&b, rdb.WriterOptions{Checksum: true})
	w.Header(10)
	var e rdb.Encoder
	e.Reset(nil)
	e.Key = []byte(key)
	e.Record(0, -1, -1)
	e.String([]byte("v"))
	w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const streamID = "0123456789abcdef0123456789abcdef01234567"

// full returns the answer of a master that sends a snapshot and then a stream.
func full(offset int, file, stream string) string {
	return fmt.Sprintf("+FULLRESYNC %s %d\r\n$%d\r\n%s%s", streamID, offset, len(file), file, stream)
}

// replicaOfScripted starts a server that has a key, and makes it follow the scripted master.
func replicaOfScripted(t *testing.T, s *scripted, options ...string) client {
	t.Helper()
	c := dialTCP(t, startNode(t, options...))
	c.must("SET", "old", "v")
	followScripted(c, s)
	return c
}

// followScripted makes a server follow the scripted master.
func followScripted(c client, s *scripted) {
	host, port, _ := net.SplitHostPort(s.Addr().String())
	c.must("REPLICAOF", host, port)
}

func TestDataIsKeptUntilTheNewHasArrived(t *testing.T) {
	t.Parallel() // the test mostly waits
	file := snapshot(t, "new")
	s := newScripted(t, full(100, file, "")[:len(full(100, file, ""))-9]+"close")
	c := replicaOfScripted(t, s)
	tier.Eventually(t, "the half snapshot has come", func() bool {
		return c.field("master_link_status") == "down" && c.field("total_net_repl_input_bytes") != "0"
	})
	if v := c.must("GET", "old"); v.Str != "v" {
		t.Errorf("after half a snapshot the old key is %v", v)
	}
	s.say(full(100, file, ""))
	linked(t, c)
	if v := c.must("KEYS", "*"); len(v.Elems) != 1 || v.Elems[0].Str != "new" {
		t.Errorf("after the snapshot the keys are %v", v)
	}
	if at := c.field("master_repl_offset"); at != "100" {
		t.Errorf("the offset is %s", at)
	}
}

// An invalid snapshot leaves an empty server empty, and the server does not report the master's offset.
func TestAWrongSnapshotLeavesNothing(t *testing.T) {
	t.Parallel() // the test mostly waits
	file := snapshot(t, "new")
	wrong := file[:len(file)-12] + "XXXX" + file[len(file)-8:]
	for _, how := range []string{"disabled", "on-empty-db", "swapdb"} {
		s := newScripted(t, full(1000, wrong, "")+"close", full(1000, file, ""))
		c := dialTCP(t, startNode(t, "--repl-diskless-load", how))
		followScripted(c, s)
		tier.Eventually(t, "it has failed", func() bool { return c.field("master_sync_last_error") != "" })
		if at := c.field("master_repl_offset"); at != "0" && at != "1000" {
			t.Errorf("%s: the offset is %s", how, at)
		}
		linked(t, c)
		if v := c.must("GET", "new"); v.Str != "v" {
			t.Errorf("%s: the new key is %v", how, v)
		}
	}
}

// Each byte of the stream counts in the offset: commands for replicas only, too, and a transaction as a whole.
func TestEveryByteOfTheStreamCounts(t *testing.T) {
	command := func(words ...string) string {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		return string(wire.AppendCommand(nil, args...))
	}
	stream := command("SELECT", "2") + command("SET", "k", "v") + "\n" + command("PING") +
		command("MULTI") + command("SET", "a", "1") + command("SELECT", "1") + command("SET", "a", "2") + command("EXEC") +
		command("SET", "b", "3") + command("PUBLISH", "channel", "message") + command("REPLCONF", "GETACK", "*")
	s := newScripted(t, full(50, snapshot(t, "new"), stream+command("MULTI")+command("SET", "half", "1")))
	c := replicaOfScripted(t, s)
	want := int64(50 + len(stream))
	tier.Eventually(t, fmt.Sprintf("all is acknowledged: %d", want), func() bool { return <-s.acks == want })
	if at := c.field("slave_repl_offset"); at != fmt.Sprint(want) {
		t.Errorf("the offset is %s, want %d", at, want)
	}
	if n := c.field("replica_refused_commands"); n != "0" {
		t.Errorf("%s commands were refused: %s", n, c.field("replica_refused_last"))
	}
	for _, x := range []struct{ db, key, value string }{{"2", "k", "v"}, {"2", "a", "1"}, {"1", "a", "2"}, {"1", "b", "3"},
		{"1", "half", ""}, {"2", "half", ""}} {
		c.must("SELECT", x.db)
		if v := c.must("GET", x.key); v.Str != x.value {
			t.Errorf("%s in database %s is %q, want %q", x.key, x.db, v.Str, x.value)
		}
	}
}

// Writes of clients to a writable replica are not in its stream.
func TestWritesToAReplicaAreItsOwn(t *testing.T) {
	s := newScripted(t, full(50, snapshot(t, "new"), ""))
	c := replicaOfScripted(t, s, "--replica-read-only", "no")
	linked(t, c)
	c.must("SET", "mine", "v")
	c.must("FLUSHALL")
	if at := c.field("slave_repl_offset"); at != "50" {
		t.Errorf("after own writes the offset is %s", at)
	}
	c.must("REPLICAOF", "NO", "ONE")
	c.must("SET", "mine", "v")
	if at := c.field("master_repl_offset"); at == "50" {
		t.Error("a master's writes are not in its stream")
	}
}

func TestResetstatForgetsWhatReplicationHasCounted(t *testing.T) {
	t.Parallel()
	addr := startNode(t)
	master, replica := dialTCP(t, addr), dialTCP(t, startNode(t))
	host, port, _ := net.SplitHostPort(addr)
	replica.must("REPLICAOF", host, port)
	linked(t, replica)
	master.must("SET", "k", strings.Repeat("v", 1<<20))
	caughtUp(t, master, replica)
	for c, field := range map[client]string{master: "total_net_repl_output_bytes", replica: "total_net_repl_input_bytes"} {
		count := func() int {
			n, err := strconv.Atoi(c.field(field))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := count(); n < 1<<20 {
			t.Errorf("%s is %d after a value of 1 MiB", field, n)
		}
		c.must("CONFIG", "RESETSTAT")
		if n := count(); n > 1<<16 { // a PING may have arrived
			t.Errorf("%s is %d after CONFIG RESETSTAT", field, n)
		}
	}
	if n := master.field("sync_full"); n != "0" {
		t.Errorf("sync_full is %s after CONFIG RESETSTAT", n)
	}
}

// INFO shows the error, because `ebb migrate` and monitoring systems do not read the log.
func TestInfoSaysWhyALinkDoesNotComeUp(t *testing.T) {
	t.Parallel() // the test mostly waits
	addr := startNode(t, "--requirepass", "secret")
	replica := dialTCP(t, startNode(t))
	host, port, _ := net.SplitHostPort(addr)
	why := func() string { return replica.field("master_link_last_error") }
	replica.must("CONFIG", "SET", "tls-replication", "yes")
	replica.must("REPLICAOF", host, port)
	tier.Eventually(t, "TLS is the reason", func() bool { return strings.Contains(why(), "tls-ca-cert-file") })
	replica.must("CONFIG", "SET", "tls-replication", "no")
	replica.must("CONFIG", "SET", "masterauth", "wrong")
	tier.Eventually(t, "the login is the reason", func() bool { return strings.Contains(why(), "WRONGPASS") })
	replica.must("CONFIG", "SET", "masterauth", "secret")
	linked(t, replica)
	if got := why(); got != "" {
		t.Errorf("while the link is up: %q", got)
	}
}
