package instance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/transport"
)

// The timed work of a master, in virtual time. Connections are within the process, and hold 64 KiB in each direction.

// bubbled is a master in virtual time.
type bubbled struct {
	t   *testing.T
	ln  *memnet.Listener
	svc *session.Service
}

// inBubble runs f with a master. Its files, if it has any, are on fs.
func inBubble(t *testing.T, fs *crashfs.FS, options []string, f func(b *bubbled)) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := config.Load(append([]string{"--repl-diskless-sync-delay", "0"}, options...), nil)
		if err != nil {
			t.Fatal(err)
		}
		hooks := &session.Hooks{}
		db := engine.Open(engine.Options{Hooks: hooks, Shards: 4})
		svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, hooks)
		if err != nil {
			t.Fatal(err)
		}
		o := session.FileOptions{}
		if fs != nil {
			o.FS, o.Dir = fs, "/data"
			fs.SetTime(time.Now().UnixMilli())
			if err := fs.MkdirAll(o.Dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := svc.OpenFiles(o); err != nil {
			t.Fatal(err)
		}
		if err := svc.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ln := memnet.Listen("master")
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- transport.ServeSessions(ctx, ln,
				transport.Options{NewSession: func(c transport.Conn) transport.Session { return svc.NewSession(c) },
					Portable: true})
		}()
		defer func() { // a failed test must end its bubble as well
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			svc.Close()
			_ = svc.Keeper().Close()
			db.Close()
		}()
		f(&bubbled{t, ln, svc})
	})
}

func (b *bubbled) connect() client {
	b.t.Helper()
	nc, err := b.ln.DialContext(b.t.Context(), "", "")
	if err != nil {
		b.t.Fatal(err)
	}
	return client{b.t, nc, bufio.NewReader(nc)}
}

// replica connects as a replica with some capabilities.
func (b *bubbled) replica(capa ...string) client {
	c := b.connect()
	for _, word := range capa {
		c.must("REPLCONF", "capa", word)
	}
	return c
}

// load writes n incompressible values of 1000 bytes.
func (b *bubbled) load(c client, n int) {
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 1000)
	for i := range n {
		for k := range value {
			value[k] = byte(rng.Uint32())
		}
		c.must("SET", "key"+strconv.Itoa(i), string(value))
	}
}

// passes advances the time, and waits until all servers are idle.
func passes(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// asks sends PSYNC ? -1, and reads the bytes before the snapshot.
func asks(t *testing.T, c client) {
	t.Helper()
	c.send("PSYNC", "?", "-1")
	if got := line(t, c); !strings.HasPrefix(got, "+FULLRESYNC") {
		t.Fatalf("got %q", got)
	}
}

// takes reads a snapshot of either form.
func takes(t *testing.T, c client) {
	t.Helper()
	head := line(t, c)
	mark, unknown := strings.CutPrefix(head, "$EOF:")
	if !unknown {
		n, err := strconv.Atoi(head[1:])
		if err != nil {
			t.Fatalf("got %q", head)
		}
		if _, err := io.CopyN(io.Discard, c.r, int64(n)); err != nil {
			t.Fatal(err)
		}
		return
	}
	var last []byte
	for string(last) != mark {
		b, err := c.r.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		if last = append(last, b); len(last) > len(mark) {
			last = last[1:]
		}
	}
}

// forms are the directives for each way of sending a snapshot.
var forms = map[string][]string{
	"diskless":       {"--repl-timeout", "60"},
	"through a file": {"--repl-timeout", "60", "--repl-diskless-sync", "no"},
}

// INFO counts the bytes sent to replicas: the snapshot and the stream.
func TestBytesSentToReplicasAreCounted(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, options, func(b *bubbled) {
				c := b.connect()
				b.load(c, 20)
				r := b.replica("eof", "ebb")
				asks(t, r)
				takes(t, r)
				r.send("REPLCONF", "ACK", field(c, "replication", "master_repl_offset"))
				passes(1)
				number := func(section, name string) int64 {
					n, err := strconv.ParseInt(field(c, section, name), 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					return n
				}
				snapshot := number("stats", "total_net_repl_output_bytes")
				if snapshot < 20*1000 || snapshot > 30*1000 {
					t.Errorf("with a snapshot of 20 values of 1000 bytes INFO counts %d", snapshot)
				}
				before := number("replication", "master_repl_offset")
				c.must("SET", "k", strings.Repeat("v", 5000))
				passes(1)
				stream := number("replication", "master_repl_offset") - before
				if sent := number("stats", "total_net_repl_output_bytes") - snapshot; stream < 5000 || sent != stream {
					t.Errorf("the stream is %d bytes longer, and INFO counts %d", stream, sent)
				}
				r.Conn.Close()
			})
		})
	}
}

func TestAReplicaThatStopsReadingItsSnapshotIsGivenUp(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, options, func(b *bubbled) {
				c := b.connect()
				b.load(c, 300)
				stuck := b.replica("eof", "ebb")
				asks(t, stuck)
				synctest.Wait() // the snapshot is under way, but the replica does not read
				next := b.replica("eof", "ebb")
				if name == "through a file" { // it does not delay the next snapshot
					asks(t, next)
					takes(t, next)
				} else {
					next.send("PSYNC", "?", "-1")
				}
				passes(58)
				if got := field(c, "replication", "slave0"); !strings.Contains(got, "state=send_bulk") {
					t.Errorf("after 58 s the replica is %q", got)
				}
				passes(4)
				if got := field(c, "replication", "slave0"); name == "diskless" && strings.Contains(got, "port=0,state=wait") {
					t.Errorf("after 62 s the next replica is %q", got)
				}
				if name == "diskless" {
					if got := line(t, next); !strings.HasPrefix(got, "+FULLRESYNC") {
						t.Fatalf("got %q", got)
					}
					takes(t, next)
				}
				if got := field(c, "replication", "connected_slaves"); name == "diskless" && got != "1" {
					t.Errorf("after 62 s there are %s replicas", got)
				}
				stuck.Conn.Close()
			})
		})
	}
}

func TestAReplicaThatReadsSlowlyIsKept(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, options, func(b *bubbled) {
				c := b.connect()
				b.load(c, 400)
				slow := b.replica("eof", "ebb")
				asks(t, slow)
				for range 5 { // 5 times 50 seconds for 240 KiB
					passes(50)
					if _, err := io.CopyN(io.Discard, slow.r, 3*writePiece/2); err != nil {
						t.Fatal(err)
					}
				}
				if got := field(c, "replication", "slave0"); !strings.Contains(got, "state=send_bulk") {
					t.Errorf("the replica is %q", got)
				}
				passes(65)
				if got := field(c, "replication", "connected_slaves"); got != "0" {
					t.Errorf("there are %s replicas although nothing was read for 65 s", got)
				}
			})
		})
	}
}

// writePiece is the progress that a master expects within the timeout, see command.writePiece.
const writePiece = 32 << 10

func TestAReplicaThatLoadsIsKeptWhileItSaysSo(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, options, func(b *bubbled) {
				c := b.connect()
				b.load(c, 20)
				loads := b.replica("eof", "ebb")
				asks(t, loads)
				takes(t, loads)
				for range 10 {
					passes(30)
					_, _ = loads.Write([]byte("\n"))
				}
				synctest.Wait()
				if got := field(c, "replication", "connected_slaves"); got != "1" {
					t.Fatalf("after five minutes of loading there are %s replicas", got)
				}
				loads.send("REPLCONF", "ACK", "0")
				synctest.Wait()
				if got := field(c, "replication", "slave0"); !strings.Contains(got, "state=online") {
					t.Errorf("the replica is %q", got)
				}
				passes(58)
				if got := field(c, "replication", "connected_slaves"); got != "1" {
					t.Errorf("after 58 s of silence there are %s replicas", got)
				}
				passes(5)
				if got := field(c, "replication", "connected_slaves"); got != "0" {
					t.Errorf("after 63 s of silence there are %s replicas", got)
				}

				silent := b.replica("eof", "ebb")
				asks(t, silent)
				takes(t, silent)
				passes(65)
				if got := field(c, "replication", "connected_slaves"); got != "0" {
					t.Errorf("there are %s replicas although nothing was heard for 65 s", got)
				}
			})
		})
	}
}

func TestTheBacklogIsKeptForItsTime(t *testing.T) {
	inBubble(t, nil, []string{"--repl-backlog-ttl", "100", "--repl-ping-replica-period", "1000", "--repl-diskless-sync",
		"no"}, func(b *bubbled) {
		c := b.connect()
		r := b.replica("ebb", "psync2")
		id, offset := afterFullSync(t, r)
		leave := func() {
			_ = r.Close()
			synctest.Wait()
			c.must("SET", "k", "v")
		}
		again := func() string {
			r = b.replica("ebb", "psync2")
			r.send("PSYNC", id, strconv.FormatInt(offset+1, 10))
			return line(t, r)
		}
		leave()
		passes(97)
		if got := again(); got != "+CONTINUE "+id {
			t.Errorf("after 97 s PSYNC says %q", got)
		}
		passes(10) // the time starts again when a replica leaves
		leave()
		passes(97)
		if got := field(c, "replication", "repl_backlog_active"); got != "1" {
			t.Errorf("after 97 s repl_backlog_active:%s", got)
		}
		passes(5)
		if got := field(c, "replication", "repl_backlog_active"); got != "0" {
			t.Errorf("after 102 s repl_backlog_active:%s", got)
		}
		if got := field(c, "replication", "master_replid"); got == id {
			t.Error("a write now is in no stream, and the stream has the same name")
		}
		if got := again(); !strings.HasPrefix(got, "+FULLRESYNC") || strings.Contains(got, id) {
			t.Errorf("after 102 s PSYNC says %q", got)
		}
	})
}

// Under appendfsync always a replica receives only synced writes.
func TestNothingIsSentBeforeItIsSynced(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, fs, []string{"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync", "no", "--repl-ping-replica-period",
		"1000"}, func(b *bubbled) {
		c, other := b.connect(), b.connect()
		r := b.replica("ebb")
		_, _ = afterFullSync(t, r)
		fs.SetSyncTime(10 * time.Second)
		c.send("SET", "k", "v")
		synctest.Wait()
		other.send("PUBLISH", "news", "hello")
		passes(9)
		quiet := func(what string) {
			t.Helper()
			_ = r.SetReadDeadline(time.Now().Add(time.Millisecond))
			if got, err := r.r.Peek(1); err == nil {
				t.Errorf("%s the replica has got %q", what, got)
			}
			_ = r.SetReadDeadline(time.Time{})
		}
		quiet("before the sync")
		passes(2)
		if got := c.read().Str; got != "OK" {
			t.Errorf("SET says %q", got)
		}
		_ = other.read() // of PUBLISH
		expectBytes(t, r.r, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
		expectBytes(t, r.r, "*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$5\r\nhello\r\n")

		// A snapshot ends only after its cut is synced.
		c.send("SET", "k", "w")
		synctest.Wait()
		late := b.replica("ebb")
		late.send("PSYNC", "?", "-1")
		passes(8)
		if got := field(other, "replication", "slave1"); strings.Contains(got, "online") || strings.Contains(got, "send_bulk") {
			t.Errorf("before the sync the new replica is %q", got)
		}
		passes(5)
		if got := field(other, "replication", "slave1"); !strings.Contains(got, "online") {
			t.Errorf("after the sync the new replica is %q", got)
		}

		fs.SetSyncTime(0)
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: fmt.Errorf("the disk is gone")})
		expectBytes(t, r.r, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nw\r\n")
		c.send("SET", "k", "x")
		passes(1)
		quiet("after a sync that failed")
		_ = late.Close()
	})
}

func TestAReplicaThatComesDuringAFileGetsIt(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, fs, []string{"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync", "no", "--repl-ping-replica-period",
		"1000"}, func(b *bubbled) {
		c := b.connect()
		c.must("SET", "k", "v")
		fs.SetSyncTime(10 * time.Second) // the snapshot waits for the sync
		c.send("SET", "k", "w")
		synctest.Wait()
		first := b.replica("ebb")
		asks(t, first)
		passes(1)
		second, plain := b.replica("ebb"), b.replica()
		asks(t, second) // the master replies at once if the stream continues
		plain.send("PSYNC", "?", "-1")
		other := b.connect()
		other.send("SET", "k", "x")
		passes(30)
		for _, r := range []client{first, second} {
			takes(t, r)
			expectBytes(t, r.r, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nx\r\n")
		}
		if got := line(t, plain); !strings.HasPrefix(got, "+FULLRESYNC") {
			t.Errorf("got %q", got)
		}
	})
}
