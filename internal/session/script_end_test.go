package session

import (
	"context"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
)

// scriptService returns a service, a session, and a function that closes both.
func scriptService(t *testing.T) (*engine.DB, *Service, *Session) {
	t.Helper()
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks, RecordEffects: true})
	t.Cleanup(db.Close)
	svc, err := NewService(Options{DB: db, Table: testTable}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	c := svc.NewSession(nil)
	t.Cleanup(func() { c.Closed(nil) })
	return db, svc, c
}

// runs waits until a long script runs; if none does, the time limit of the test ends it.
func runs(svc *Service) {
	for svc.running.Load() == nil {
	}
}

func TestAScriptThatHasWrittenEndsWithTheServiceAndIsNotLogged(t *testing.T) {
	for _, requests := range [][]string{
		{"EVAL", "redis.call('SET', 'k', 'half') while true do end", "0"},
		{"EVAL", "while true do redis.call('SET', 'k', 'half') end", "0"},
		{"EVAL", "while true do pcall(redis.call, 'SET', 'k', 'half') end", "0"},
	} {
		db, svc, c := scriptService(t)
		ended := make(chan string)
		ask := func(args ...string) string {
			var words [][]byte
			for _, a := range args {
				words = append(words, []byte(a))
			}
			return c.Do(words...).Str
		}
		ask("SET", "before", "v")
		go func() {
			ask("MULTI")
			ask("SET", "also", "half")
			ask(requests...)
			ask("SET", "also", "rest")
			v := c.Do([]byte("EXEC"))
			ended <- v.Elems[1].Str
		}()
		runs(svc)
		svc.Close()
		if text := <-ended; !strings.HasPrefix(text, string(errScriptEnded)) {
			t.Errorf("%q: got %q", requests[1], text)
		}
		for _, e := range db.Drain() {
			if string(e.Args[1]) != "before" {
				t.Errorf("%q: logged %q", requests[1], e.Args)
			}
		}
	}
}

func TestAScriptEndsWithTheContextOfItsCaller(t *testing.T) {
	_, svc, c := scriptService(t)
	defer svc.Close()
	for _, script := range []string{
		"while true do end",
		"while true do pcall(redis.call, 'GET', 'k') end",
		"return string.find(string.rep('a', 5000), string.rep('a*', 5000) .. 'b')",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			runs(svc)
			cancel()
		}()
		if _, err := c.DoContext(ctx, []byte("EVAL"), []byte(script), []byte("0")); err != context.Canceled {
			t.Errorf("%q: got %v", script, err)
		}
		if v, err := c.DoContext(t.Context(), []byte("EVAL"), []byte("return 7"), []byte("0")); err != nil || v.Int != 7 {
			t.Errorf("after %q: %v, %v", script, v, err)
		}
	}
}

// A call that waits for another session's script ends with its context too.
func TestAWaiterForAScriptLeavesWithTheContext(t *testing.T) {
	_, svc, c := scriptService(t)
	defer svc.Close()
	other := svc.NewSession(nil)
	defer other.Closed(nil)
	ended := make(chan string)
	go func() { ended <- c.Do([]byte("EVAL"), []byte("while true do end"), []byte("0")).Str }()
	runs(svc)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.DoContext(ctx, []byte("GET"), []byte("k")); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if v := other.Do([]byte("SCRIPT"), []byte("KILL")); v.Str != "OK" {
		t.Error(v)
	}
	if text := <-ended; !strings.HasPrefix(text, string(ErrScriptKilled)) {
		t.Errorf("got %q", text)
	}
}

func TestAScriptEndsWithItsConn(t *testing.T) {
	_, svc, c := scriptService(t)
	defer svc.Close()
	quit := make(chan struct{})
	c.LeaveOn(quit)
	go func() {
		runs(svc)
		close(quit)
	}()
	if _, err := c.DoContext(t.Context(), []byte("EVAL"), []byte("while true do end"), []byte("0")); err != engine.ErrClosed {
		t.Errorf("got %v", err)
	}
}

// The compilation of a long text takes long; it is visible and can be ended like a running script.
func TestTheCompilationOfALongScriptIsKilled(t *testing.T) {
	_, svc, c := scriptService(t)
	defer svc.Close()
	other := svc.NewSession(nil)
	defer other.Closed(nil)
	go func() {
		runs(svc)
		other.Do([]byte("SCRIPT"), []byte("KILL"))
	}()
	v := c.Do([]byte("EVAL"), []byte(strings.Repeat("x = 1 ", 2<<20)), []byte("0"))
	if !strings.HasPrefix(v.Str, string(ErrScriptKilled)) {
		t.Errorf("got %.100q", v.Str)
	}
	if v := c.Do([]byte("EVAL"), []byte(strings.Repeat("x = 1 ", 5<<20)), []byte("0")); v.Str != "ERR Error compiling script (new "+
		"function): not enough memory" {
		t.Errorf("got %.100q", v.Str)
	}
}
