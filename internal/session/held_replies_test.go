package session_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// always is a service whose files sync when the test requests it.
func always(t *testing.T) *session.Service {
	s := services.Start(t)
	s.DB.NeedLog(1)
	s.DB.Log().SetAlways(true)
	return s
}

func TestRepliesWaitForTheSync(t *testing.T) {
	s := always(t)
	log := s.DB.Log()
	writer, reader := services.Dial(t, s, "tcp", "127.0.0.1:1"), services.Dial(t, s, "tcp", "127.0.0.1:2")
	other := services.Dial(t, s, "tcp", "127.0.0.1:3")

	if out, v := other.Step(services.Request("PING")); out != "+PONG\r\n" || v != reactor.Continue {
		t.Fatalf("PING waits for nothing: %q, %v", out, v)
	}
	if out, v := writer.Step(services.Request("SET", "k", "v")); out != "" || v != reactor.Park {
		t.Fatalf("SET: %q, %v before the sync", out, v)
	}
	if out, v := reader.Step(services.Request("GET", "k")); out != "" || v != reactor.Park {
		t.Fatalf("GET of a value that is not synced: %q, %v", out, v)
	}
	mark := log.End()
	log.SetSynced(mark - 1)
	if out, v := writer.Step(nil); out != "" || v != reactor.Park {
		t.Fatalf("SET: %q, %v before its last byte is synced", out, v)
	}
	log.SetSynced(mark)
	writer.Wait()
	reader.Wait()
	if out, v := writer.Step(nil); out != "+OK\r\n" || v != reactor.Continue {
		t.Fatalf("SET: %q, %v", out, v)
	}
	if out, _ := reader.Step(nil); out != "$1\r\nv\r\n" {
		t.Fatalf("GET: %q", out)
	}
	if out, _ := reader.Step(services.Request("GET", "k")); out != "$1\r\nv\r\n" {
		t.Fatalf("GET of a synced value: %q", out)
	}
}

func TestServedCommandsAndMessagesWaitForTheSync(t *testing.T) {
	s := always(t)
	log := s.DB.Log()
	popper, pusher := services.Dial(t, s, "tcp", "127.0.0.1:1"), services.Dial(t, s, "tcp", "127.0.0.1:2")
	listener := services.Dial(t, s, "tcp", "127.0.0.1:3")
	if got := listener.Send("CONFIG", "SET", "notify-keyspace-events", "Kl"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	listener.Send("SUBSCRIBE", "__keyspace@0__:q")
	if _, v := popper.Step(services.Request("BLPOP", "q", "0")); v != reactor.Park {
		t.Fatal("BLPOP does not wait")
	}
	if out, v := pusher.Step(services.Request("RPUSH", "q", "x")); out != "" || v != reactor.Park {
		t.Fatalf("RPUSH: %q, %v before the sync", out, v)
	}
	popper.Wait() // it was served
	if out, v := popper.Step(nil); out != "" || v != reactor.Park {
		t.Fatalf("BLPOP: %q, %v before the sync", out, v)
	}
	listener.Wait()
	if out := string(listener.Session.TakePushes(nil)); out != "" {
		t.Fatalf("event before the sync: %q", out)
	}
	s.DB.Barrier()
	log.SetSynced(log.End())
	popper.Wait()
	for out := ""; out == ""; {
		if out, _ = popper.Step(nil); out == "" {
			popper.Wait()
		} else if out != "*2\r\n$1\r\nq\r\n$1\r\nx\r\n" {
			t.Fatalf("BLPOP: %q", out)
		}
	}
	for out := ""; out == ""; {
		if out = string(listener.Session.TakePushes(nil)); out == "" {
			listener.Wait()
		} else if !strings.Contains(out, "rpush") {
			t.Fatalf("event: %q", out)
		}
	}
}

// A message that follows a write of its batch may reveal the write; any other message waits for nothing.
func TestAMessageBehindAWriteOfItsBatchWaitsForTheSync(t *testing.T) {
	s := always(t)
	log := s.DB.Log()
	writer, listener := services.Dial(t, s, "tcp", "127.0.0.1:1"), services.Dial(t, s, "tcp", "127.0.0.1:2")
	listener.Send("SUBSCRIBE", "news")
	pipeline := append(services.Request("SET", "k", "v"), services.Request("PUBLISH", "news", "of k")...)
	if out, v := writer.Step(pipeline); out != "" || v != reactor.Park {
		t.Fatalf("%q, %v before the sync", out, v)
	}
	listener.Wait()
	if out := string(listener.Session.TakePushes(nil)); out != "" {
		t.Fatalf("message before the sync: %q", out)
	}
	s.DB.Barrier()
	log.SetSynced(log.End())
	for out := ""; out == ""; {
		if out = string(listener.Session.TakePushes(nil)); out == "" {
			listener.Wait()
		} else if !strings.Contains(out, "of k") {
			t.Fatalf("message: %q", out)
		}
	}
	writer.Wait()
	if out, _ := writer.Step(nil); out != "+OK\r\n:1\r\n" {
		t.Fatalf("the writer got %q", out)
	}
	if out, _ := writer.Step(services.Request("PUBLISH", "news", "of nothing")); out != ":1\r\n" {
		t.Fatalf("PUBLISH alone: %q", out)
	}
	listener.Wait()
	if out := string(listener.Session.TakePushes(nil)); !strings.Contains(out, "of nothing") {
		t.Fatalf("a message of its own: %q", out)
	}
}

func TestAFailureOfTheFilesEndsTheWait(t *testing.T) {
	s := always(t)
	p := services.Dial(t, s, "tcp", "127.0.0.1:1")
	p.Step(services.Request("SET", "k", "v"))
	s.DB.Log().Fail(errors.New("no space left on device"))
	p.Wait()
	if out, v := p.Step(nil); !strings.HasPrefix(out, "-MISCONF Errors writing to the AOF file: no space left on device") ||
		v != reactor.Close {
		t.Fatalf("%q, %v", out, v)
	}
	// Reads continue, and so do commands that do not concern data.
	q := services.Dial(t, s, "tcp", "127.0.0.1:2")
	if out, _ := q.Step(services.Request("GET", "k")); out != "$1\r\nv\r\n" {
		t.Errorf("a read: %q", out)
	}
	if out, _ := q.Step(services.Request("DBSIZE")); out != ":1\r\n" {
		t.Errorf("a read of all shards: %q", out)
	}

	c := s.NewSession(nil)
	defer c.Closed(nil)
	if _, err := c.DoContext(t.Context(), []byte("SET"), []byte("k"), []byte("w")); !errors.Is(err, session.ErrNotDurable) {
		t.Errorf("embedded: %v", err)
	}
	s.DB.Log().Fail(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.DoContext(ctx, []byte("SET"), []byte("k"), []byte("w")); !errors.Is(err, context.Canceled) {
		t.Errorf("embedded, given up: %v", err)
	}
	s.DB.Log().SetSynced(s.DB.Log().End())
	if v, err := c.DoContext(t.Context(), []byte("GET"), []byte("k")); err != nil || v.Str != "w" {
		t.Errorf("embedded: %v, %v", v, err)
	}
}

func TestAFailureThatIsOverLeavesNoClientWaiting(t *testing.T) {
	s := always(t)
	log := s.DB.Log()
	p := services.Dial(t, s, "tcp", "127.0.0.1:1")
	p.Step(services.Request("SET", "k", "v"))
	log.Fail(errors.New("no space left on device"))
	log.Fail(nil)
	p.Wait() // for the failure; when the client checks there is none
	if out, v := p.Step(nil); out != "" || v != reactor.Park {
		t.Fatalf("%q, %v before the sync", out, v)
	}
	log.SetSynced(log.End())
	p.Wait()
	if out, v := p.Step(nil); out != "+OK\r\n" || v != reactor.Continue {
		t.Fatalf("%q, %v", out, v)
	}
}

// looped is a service with one network loop, whose files are on fs, and two connections to it. Its syncs have
// been fast.
func looped(t *testing.T) (s *session.Service, fs *crashfs.FS, writer, reader *services.Peer) {
	t.Helper()
	cfg, err := config.Load(nil, nil)
	services.Must(t, err)
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0)), Hooks: &hooks})
	s, err = session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg, Loops: 1}, &hooks)
	services.Must(t, err)
	s.DB.NeedLog(1)
	fs = crashfs.New(1)
	files, err := oplog.OpenFiles(fs, "/data/appendonlydir", "a.aof")
	services.Must(t, err)
	a := oplog.NewAppender(db.Log(), files, oplog.AppenderOptions{Policy: oplog.Always})
	x, err := a.Start(db.Log().Cut())
	services.Must(t, err)
	services.Must(t, x.Wait(t.Context()))
	t.Cleanup(func() { _ = a.Close(); s.Close(); db.Close() })
	var peers [2]*services.Peer
	for i := range peers {
		p := services.ConnectOnLoop(s)
		t.Cleanup(func() { p.Session.Closed(nil) })
		peers[i] = p
	}
	for !db.Log().BeginBatch() { // syncs are not fast enough yet, or the machine is slow
		if _, v := peers[0].Step(services.Request("SET", "before", "x")); v == reactor.Park {
			peers[0].Wait()
			peers[0].Step(nil)
		}
	}
	db.Log().EndBatch()
	s.Settle(0) // the loop calls this
	return s, fs, peers[0], peers[1]
}

func TestALoopSyncsWhatItsBatchWrote(t *testing.T) {
	s, fs, writer, reader := looped(t)
	if s.Settle(0) {
		t.Error("there is nothing to settle")
	}
	syncs := fs.Count(crashfs.OpSync)
	for i, p := range []*services.Peer{writer, reader} {
		if out, v := p.Step([][]byte{services.Request("SET", "k", "v"), services.Request("GET", "k")}[i]); out != "" || v != reactor.Park {
			t.Fatalf("%q, %v before the sync", out, v)
		}
	}
	if n := fs.Count(crashfs.OpSync) - syncs; n != 0 {
		t.Errorf("%d syncs before the end of the batch", n)
	}
	if !s.Settle(0) {
		t.Error("the log does not know of the batch")
	}
	writer.Wait()
	reader.Wait()
	for i, p := range []*services.Peer{writer, reader} {
		if out, v := p.Step(nil); out != []string{"+OK\r\n", "$1\r\nv\r\n"}[i] || v != reactor.Continue {
			t.Errorf("%q, %v after it", out, v)
		}
	}
	s.Settle(0)
	if n := fs.Count(crashfs.OpSync) - syncs; n != 1 {
		t.Errorf("%d syncs for a batch", n)
	}
}

func TestAFailedSyncAtTheEndOfABatchIsRefused(t *testing.T) {
	s, fs, writer, reader := looped(t)
	writer.Step(services.Request("SET", "k", "v"))
	reader.Step(services.Request("GET", "k"))
	fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
	s.Settle(0)
	writer.Wait()
	reader.Wait()
	if out, v := writer.Step(nil); !strings.HasPrefix(out, "-MISCONF Errors writing to the AOF file: ") || v != reactor.Close {
		t.Errorf("a write: %q, %v", out, v)
	}
	if out, v := reader.Step(nil); out != "$1\r\nv\r\n" || v != reactor.Continue {
		t.Errorf("a read: %q, %v", out, v)
	}
	s.Settle(0)
	if s.DB.Log().Failure() == nil {
		t.Error("the sync was tried again")
	}
}

// A read that finds a dead key removes it, which adds to the stream. It still counts as a read, and continues
// while the files fail.
func TestAReadThatRemovesWhatIsDeadTellsOfNoWrite(t *testing.T) {
	s := always(t)
	s.DB.SetActiveExpiry(false)
	p := services.Dial(t, s, "tcp", "127.0.0.1:1")
	p.Step(services.Request("SET", "k", "v", "PX", "1"))
	s.DB.Log().SetSynced(s.DB.Log().End())
	p.Wait()
	if out, _ := p.Step(nil); out != "+OK\r\n" {
		t.Fatal(out)
	}
	s.DB.Clock().(*clock.Manual).Advance(2 * time.Millisecond)
	s.DB.Log().Fail(errors.New("no space left on device"))
	before := s.DB.Log().End()
	if out, v := p.Step(services.Request("GET", "k")); out != "$-1\r\n" || v != reactor.Continue || s.DB.Log().End() == before {
		t.Errorf("%q, %v, %d bytes in the stream", out, v, s.DB.Log().End()-before)
	}
}
