package replication_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// newServer returns a server without connections.
func newServer(t *testing.T) *session.Service {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); db.Close() })
	return s
}

// ask returns the reply to a request.
func ask(s *session.Service, line string) resp.Value {
	x := s.NewSession(nil)
	defer x.Closed(nil)
	var args [][]byte
	for w := range strings.FieldsSeq(line) {
		args = append(args, []byte(w))
	}
	return x.Do(args...)
}

// A link that the service no longer uses changes nothing, whatever it has received: the client of REPLICAOF has its
// reply.
func TestALinkThatWasReplacedDoesNothing(t *testing.T) {
	s := newServer(t)
	l := replication.NewTestLink(s.Replication())
	defer l.Stop()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, stream := range []string{
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n",
		"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nm\r\n",
		"*1\r\n$7\r\nUNKNOWN\r\n",
		"*1\r\n$8\r\nFLUSHALL\r\n",
		"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n*1\r\n$4\r\nEXEC\r\n",
	} {
		f := l.Stream(a)
		used, err := f.Apply([]byte(stream))
		if used != 0 || !errors.Is(err, replication.ErrReplaced) || s.DB.Log().End() != 0 || f.Begun() {
			t.Errorf("%q: %d, %v; the stream is at %d", stream, used, err, s.DB.Log().End())
		}
		f.Close()
	}
	if v := ask(s, "DBSIZE"); v.Int != 0 {
		t.Errorf("there are %d keys", v.Int)
	}
}

// A SELECT of a database that the replica does not have ends the link, and changes nothing:
// the commands behind it would change another database.
func TestADatabaseThatIsNotConfiguredEndsTheLink(t *testing.T) {
	s := newServer(t)
	l := replication.NewTestLink(s.Replication())
	defer l.Stop()
	l.Follow()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	const want = "master selected database \"16\" but only 16 are configured; set `databases` to the master's value"
	for _, stream := range []string{
		"*2\r\n$6\r\nSELECT\r\n$2\r\n16\r\n",
		"*1\r\n$5\r\nMULTI\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n16\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$4\r\nEXEC\r\n",
	} {
		f := l.Stream(a)
		used, err := f.Apply([]byte(stream))
		if used != 0 || err == nil || err.Error() != want || s.DB.Log().End() != 0 || f.Begun() {
			t.Errorf("%q: %d, %v; the stream is at %d", stream, used, err, s.DB.Log().End())
		}
		f.Close()
	}
	if v := ask(s, "DBSIZE"); v.Int != 0 {
		t.Errorf("there are %d keys", v.Int)
	}
}

// explode makes APPEND panic on the key boom after it has written.
func explode(t *testing.T, s *session.Service) {
	spec := s.Table().LookupFull("append")
	run := spec.Run
	spec.Run = func(c *command.Ctx) error {
		if len(c.Args) < 2 || string(c.Args[1]) != "boom" {
			return run(c)
		}
		if _, _, err := c.Tx.Set([]byte("boom"), []byte("half"), engine.SetOptions{}, nil); err != nil {
			t.Error(err)
		}
		panic("boom")
	}
	t.Cleanup(func() { spec.Run = run })
}

// A command that this replica cannot run as the master did ends the link. INFO and the log name it, it is in no
// stream, and the replica asks for all data again. The process continues.
func TestACommandThatAReplicaCannotDoEndsTheLink(t *testing.T) {
	for _, c := range []struct{ name, stream, why string }{
		{"unknown", "NOSUCH|k", "unknown command"},
		{"the wrong type", "LPUSH|string|e", "WRONGTYPE"},
		{"wrong arguments", "LMPOP|x|k|LEFT", ""},
		{"wrong arguments behind others", "SET|a|b|PX|1|KEEPTTL", ""},
		{"an administrator's", "SHUTDOWN", "administrators"},
		{"EXEC alone", "EXEC", "MULTI"},
		{"in a transaction", "MULTI\nSET|a|1\nLPUSH|string|e\nEXEC", "WRONGTYPE"},
		{"unknown in a transaction", "MULTI\nSET|a|1\nNOSUCH|k\nEXEC", "unknown command"},
		{"an instant ahead", "RL.TAKE|r|1|1000|NOW|9223372036854775807", "out of range"},
		{"a token ahead", "LOCK.ACQUIRE|k|me|1000|TOKEN|9223372036854775807|NOW|1700000000000000", "out of range"},
		{"a panic", "APPEND|boom|x", "panic: boom"},
		{"a panic in a transaction", "MULTI\nSET|a|1\nAPPEND|boom|x\nEXEC", "panic: boom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			explode(t, s)
			l := replication.NewTestLink(s.Replication())
			defer l.Stop()
			l.Follow()
			a, b := net.Pipe()
			defer a.Close()
			go func() {
				defer b.Close()
				for _, line := range strings.Split("SELECT|0\nSET|string|v\n"+c.stream+"\nSET|string|later", "\n") {
					if _, err := b.Write(wire.AppendCommand(nil, strings.Split(line, "|")...)); err != nil {
						return
					}
				}
			}()
			id, _, _ := s.Replication().Names()
			f := l.Stream(a)
			defer f.Close()
			err := f.Run()
			offset, why, ok := replication.Refusal(err)
			if !ok || !strings.Contains(why, c.why) {
				t.Fatalf("the link ends with %v", err)
			}
			begun := []byte("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$6\r\nstring\r\n$1\r\nv\r\n")
			if end := s.DB.Log().End(); end != int64(len(begun)) || offset != end {
				t.Errorf("the stream is at %d, and the command is said to be at %d", end, offset)
			}
			if now, _, _ := s.Replication().Names(); now == id {
				t.Error("the next link goes on where this one ended")
			}
			for i, want := range []int{1, 2} {
				if wait, ok := l.NoteRefusal(err); !ok || wait != replication.RetryAfter*time.Duration(want) {
					t.Errorf("attempt %d is %v later", i, wait)
				}
			}
			if v := ask(s, "GET string"); v.Str != "v" {
				t.Errorf("string is %v", v)
			}
			info := ask(s, "INFO replication").Str
			if !strings.Contains(info, "replica_refused_commands:1\r\n") || !strings.Contains(info, "replica_refused_last:offset=") {
				t.Errorf("INFO says %s", info)
			}
		})
	}
}
