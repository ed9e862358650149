package command

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/resp"
)

// explode has a command panic, after it has written, where its first key is "boom".
func explode(t *testing.T, s *Service, name string, when func(*Ctx) bool) {
	t.Helper()
	spec := s.Table().LookupFull(name)
	run := spec.Run
	spec.Run = func(c *Ctx) error {
		if !when(c) {
			return run(c)
		}
		if _, _, err := c.Tx.Set([]byte("boom"), []byte("half"), engine.SetOptions{}, nil); err != nil {
			t.Error(err)
		}
		panic("boom")
	}
	t.Cleanup(func() { spec.Run = run })
}

func boom(c *Ctx) bool { return len(c.Args) > 1 && string(c.Args[1]) == "boom" }

// crashConn is a connection of a network loop that a test plays.
type crashConn struct {
	net.Conn
	woken chan struct{}
}

func (c *crashConn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}
func (c *crashConn) Kill(error)           {}
func (c *crashConn) LocalAddr() string    { return "127.0.0.1:1" }
func (c *crashConn) RemoteAddr() string   { return "127.0.0.1:2" }
func (c *crashConn) Network() string      { return "tcp" }
func (c *crashConn) FD() int              { return -1 }
func (c *crashConn) Loop() int            { return 0 }
func (c *crashConn) Buffered() (int, int) { return 0, 0 }

// ends sends requests on a new connection, and returns the last verdict.
func ends(s *Service, first func(*Session), lines ...string) reactor.Verdict {
	c := &crashConn{woken: make(chan struct{}, 1)}
	x := s.NewSession(c)
	defer x.Closed(io.EOF)
	var in []byte
	for _, l := range lines {
		in = append(in, resp.AppendCommand(nil, strings.Split(l, "|")...)...)
	}
	var v reactor.Verdict
	for {
		n, _, verdict := x.Serve(in, nil)
		if in, v = in[n:], verdict; v != reactor.Park {
			return v
		}
		if first != nil {
			first(x)
			first = nil
		}
		<-c.woken
	}
}

// A panic in a handler ends the connection that asked, and nothing else: the shards are
// free, the log has what was logged, and replicas are to ask for all data.
func TestAPanicEndsOneConnection(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		when  func(*Ctx) bool
		first func(*Service) func(*Session)
		lines []string
	}{
		"on the loop":     {spec: "append", when: boom, lines: []string{"SET|a|1", "APPEND|boom|x"}},
		"beside the loop": {spec: "sort", when: boom, lines: []string{"SORT|boom"}},
		"in EXEC":         {spec: "append", when: boom, lines: []string{"MULTI", "SET|boom|1", "APPEND|boom|x", "EXEC"}},
		"in a script":     {spec: "append", when: boom, lines: []string{"EVAL|redis.call('set',KEYS[1],'1') return redis.call('append',KEYS[1],'x')|1|boom"}},
		"in pcall":        {spec: "append", when: boom, lines: []string{"EVAL|return redis.pcall('append',KEYS[1],'x')|1|boom"}},
		"that is served": {spec: "blpop", when: func(c *Ctx) bool { return c.Waited() }, lines: []string{"BLPOP|boom|0"},
			first: func(s *Service) func(*Session) {
				return func(*Session) {
					x := s.NewSession(nil)
					defer x.Closed(nil)
					if v := x.Do(words("RPUSH boom e")...); v.Int != 1 {
						t.Errorf("who serves it hears %v", v)
					}
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := gated(t)
			s.DB.NeedLog(1)
			explode(t, s, c.spec, c.when)
			id, _, _ := s.repl.Names()
			var first func(*Session)
			if c.first != nil {
				first = c.first(s)
			}
			if v := ends(s, first, c.lines...); v != reactor.Close {
				t.Errorf("the connection goes on: %v", v)
			}
			if n, text := s.Panics(); n != 1 || !strings.Contains(text, "panic: boom") || !strings.Contains(text, "crash_test.go") {
				t.Errorf("%d panics, the last %q", n, text)
			}
			if now, _, _ := s.repl.Names(); now == id {
				t.Error("the stream has the same name")
			}
			x := s.NewSession(nil)
			defer x.Closed(nil)
			for range 3 { // whatever a strand, or a loop, has kept
				if v := x.Do(words("SET boom whole")...); v.Str != "OK" {
					t.Fatalf("the shard: %v", v)
				}
				if v := ends(s, nil, "EVAL|return redis.call('set',KEYS[1],'1')|1|other", "QUIT"); v != reactor.Close {
					t.Errorf("a script afterwards: %v", v)
				}
			}
			if err := s.DB.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An embedded caller gets the panic, and no shard stays locked.
func TestAPanicGoesToTheEmbeddedCaller(t *testing.T) {
	s := gated(t)
	explode(t, s, "append", boom)
	x := s.NewSession(nil)
	defer x.Closed(nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the caller does not hear of it")
			}
		}()
		x.Do(words("APPEND boom x")...)
	}()
	if v := x.Do(words("SET boom whole")...); v.Str != "OK" {
		t.Errorf("the next call: %v", v)
	}
}

// A log whose command panics is refused.
func TestAPanicRefusesTheLog(t *testing.T) {
	s := gated(t)
	explode(t, s, "append", boom)
	a := s.newApplier()
	defer a.Close()
	if err := a.Apply(words("APPEND boom x")); err == nil || !strings.Contains(err.Error(), "panic: boom") {
		t.Errorf("got %v", err)
	}
	if err := a.Apply(words("SET boom whole")); err != nil {
		t.Errorf("the next command: %v", err)
	}
}

// What a master sends and this replica cannot do as the master did ends the link, is
// named in INFO and in the log, stands in no stream, and all data is asked for again.
// Nothing of it ends the process.
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
			s := gated(t)
			explode(t, s, "append", boom)
			var id string
			l := newLink(s.repl, "127.0.0.1", 1)
			defer l.stop()
			s.repl.follows.Store(l)
			defer s.repl.follows.Store(nil)
			a, b := net.Pipe()
			defer a.Close()
			go func() {
				defer b.Close()
				for _, line := range strings.Split("SELECT|0\nSET|string|v\n"+c.stream+"\nSET|string|later", "\n") {
					if _, err := b.Write(resp.AppendCommand(nil, strings.Split(line, "|")...)); err != nil {
						return
					}
				}
			}()
			id, _, _ = s.repl.Names()
			f := newFollower(l, newMasterConn(l, a))
			defer f.close()
			err := f.runSafely()
			var refused *refusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.why, c.why) {
				t.Fatalf("the link ends with %v", err)
			}
			begun := []byte("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$6\r\nstring\r\n$1\r\nv\r\n")
			if end := s.DB.Log().End(); end != int64(len(begun)) || refused.offset != end {
				t.Errorf("the stream is at %d, and the command is said to be at %d", end, refused.offset)
			}
			if now, _, _ := s.repl.Names(); now == id {
				t.Error("the next link goes on where this one ended")
			}
			if !l.noteRefusal(err) || l.wait != retryAfter || !l.noteRefusal(err) || l.wait != 2*retryAfter {
				t.Errorf("the next attempt is %v later", l.wait)
			}
			x := s.NewSession(nil)
			defer x.Closed(nil)
			if v := x.Do(words("GET string")...); v.Str != "v" {
				t.Errorf("string is %v", v)
			}
			info := x.Do(words("INFO replication")...).Str
			if !strings.Contains(info, "replica_refused_commands:1\r\n") || !strings.Contains(info, "replica_refused_last:offset=") {
				t.Errorf("INFO says %s", info)
			}
		})
	}
}

// The arguments of the command before are not those of the one that has wrong ones.
func TestAReplicaRunsACommandWithItsOwnArguments(t *testing.T) {
	s := gated(t)
	a := (*replHost)(s).NewApplier(nil).(*streamApplier)
	defer a.Close()
	a.c.ctx.Args = words("LMPOP 1 other LEFT")
	var seen [][]byte
	spec := s.Table().LookupFull("lmpop")
	run := spec.Run
	defer func() { spec.Run = run }()
	spec.Run = func(c *Ctx) error {
		seen = c.Args
		return run(c)
	}
	c, err := a.Resolve(words("LMPOP x k LEFT"))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Lock(c); err == nil {
		t.Error("it was taken")
	}
	if len(seen) != 4 || !bytes.Equal(seen[2], []byte("k")) {
		t.Errorf("the handler saw %q", seen)
	}
}
