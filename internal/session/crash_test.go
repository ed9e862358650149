package session

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// explode makes a command panic, after it has written, if its first key is "boom".
func explode(t *testing.T, s *Service, name string, when func(*command.Ctx) bool) {
	t.Helper()
	spec := s.Table().LookupFull(name)
	run := spec.Run
	spec.Run = func(c *command.Ctx) error {
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

func boom(c *command.Ctx) bool { return len(c.Args) > 1 && string(c.Args[1]) == "boom" }

// crashConn is a connection of a network loop; the test plays the loop.
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
		in = append(in, wire.AppendCommand(nil, strings.Split(l, "|")...)...)
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

// A panic in a handler ends only the connection of its client: the shards are free, the log keeps the effects
// so far, and replicas must request all data.
func TestAPanicEndsOneConnection(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		when  func(*command.Ctx) bool
		first func(*Service) func(*Session)
		lines []string
	}{
		"on the loop":       {spec: "append", when: boom, lines: []string{"SET|a|1", "APPEND|boom|x"}},
		"in the background": {spec: "sort", when: boom, lines: []string{"SORT|boom"}},
		"in EXEC":           {spec: "append", when: boom, lines: []string{"MULTI", "SET|boom|1", "APPEND|boom|x", "EXEC"}},
		"in a script": {spec: "append", when: boom,
			lines: []string{"EVAL|redis.call('set',KEYS[1],'1') return redis.call('append',KEYS[1],'x')|1|boom"}},
		"in pcall": {spec: "append", when: boom, lines: []string{"EVAL|return redis.pcall('append',KEYS[1],'x')|1|boom"}},
		"that is served": {spec: "blpop", when: func(c *command.Ctx) bool { return c.Waited() }, lines: []string{"BLPOP|boom|0"},
			first: func(s *Service) func(*Session) {
				return func(*Session) {
					x := s.NewSession(nil)
					defer x.Closed(nil)
					if v := x.Do(words("RPUSH boom e")...); v.Int != 1 {
						t.Errorf("RPUSH replied %v; want 1", v)
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
			for range 3 { // whatever state a coroutine or a loop has kept
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

// A command with wrong arguments does not get those of the previous command.
func TestAReplicaRunsACommandWithItsOwnArguments(t *testing.T) {
	s := gated(t)
	a := (*replHost)(s).NewApplier(nil).(*streamApplier)
	defer a.Close()
	a.c.ctx.Args = words("LMPOP 1 other LEFT")
	var seen [][]byte
	spec := s.Table().LookupFull("lmpop")
	run := spec.Run
	defer func() { spec.Run = run }()
	spec.Run = func(c *command.Ctx) error {
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

// The parser of the stream returns the arguments of each command in the same memory.
func TestAReplicaLocksTheKeysOfEachCommand(t *testing.T) {
	s := gated(t)
	a := (*replHost)(s).NewApplier(nil).(*streamApplier)
	defer a.Close()
	args := make([][]byte, 6)
	lock := func(text string) {
		copy(args, words(text))
		q, err := a.Resolve(args)
		if err == nil {
			err = a.Lock(q)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lock("ZUNIONSTORE d 1 a WEIGHTS 2")
	a.c.tx.Unlock()
	lock("ZUNIONSTORE d 3 a b c")
	defer a.c.tx.Unlock()
	for _, key := range words("d a b c") {
		if !a.c.tx.Holds(key) {
			t.Errorf("the shard of %s is not locked", key)
		}
	}
}

func TestThePanicOfACommandIsOneLineOfTheLog(t *testing.T) {
	svc, _ := serviceWith(t)
	svc.logPanic("a\r\nrole:slave\xff", nil, 1)
	if _, last := svc.Panics(); !strings.HasPrefix(last, "panic: a__role:slave_\ngoroutine ") {
		t.Errorf("%.80q", last)
	}
}
