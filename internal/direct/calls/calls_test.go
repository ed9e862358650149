package calls

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// Replies that wait for a sync or for a group are held by sessions.
func TestHeldRepliesAreADetour(t *testing.T) {
	s := services.Start(t)
	d := New(s, 0)
	defer d.Close()
	for name, hold := range map[string]func(on bool){"appendfsync always": s.DB.Log().SetAlways, "a group": s.DB.Log().SetGroup} {
		hold(true)
		if got := services.DirectStates(d, direct.Elsewhere); got != nil {
			t.Errorf("%s: %v are not Elsewhere", name, got)
		}
		hold(false)
		if got := services.DirectStates(d, direct.Done); got != nil {
			t.Errorf("after %s: %v are not Done", name, got)
		}
	}
}

// A server of a cluster checks slots.
func TestAClusterIsADetour(t *testing.T) {
	s := services.Start(t, "--cluster-enabled", "yes")
	d := New(s, 0)
	defer d.Close()
	if got := services.DirectStates(d, direct.Elsewhere); got != nil {
		t.Errorf("%v are not Elsewhere", got)
	}
}

// Beside a script that runs, calls return at once, and the command replies BUSY when the script is overdue.
func TestARunningScriptIsADetour(t *testing.T) {
	s := services.At(t, nil)
	c := s.NewSession(nil)
	defer c.Closed(nil)
	d := New(s, 0)
	defer d.Close()
	other := s.NewSession(nil)
	defer other.Closed(nil)
	ended := make(chan string)
	go func() { ended <- services.Ask(c, "EVAL", "while true do end", "0").Str }()
	for !s.ScriptRuns() {
		runtime.Gosched()
	}
	if got := services.DirectStates(d, direct.Elsewhere); got != nil {
		t.Errorf("%v are not Elsewhere", got)
	}
	if v := services.Ask(other, "SCRIPT", "KILL"); v.Str != "OK" {
		t.Error(v)
	}
	if text := <-ended; !strings.HasPrefix(text, string(session.ErrScriptKilled)) {
		t.Errorf("got %q", text)
	}
	if got := services.DirectStates(d, direct.Done); got != nil {
		t.Errorf("after the script: %v are not Done", got)
	}
}

// A service that renames a command has no direct calls: they would answer under a name that the administrator took away.
func TestARenamedCommandHasNoDirectCalls(t *testing.T) {
	for _, name := range []string{"get", "dq.add"} {
		s := services.Start(t, "--rename-command", name, "secret")
		if New(s, 0) != nil {
			t.Errorf("%s is renamed, and there are direct calls", name)
		}
	}
}

// A panic within a direct call reaches the caller and the log. The shard is unlocked, and the next call works.
func TestAPanicOfADirectCallGoesToTheCaller(t *testing.T) {
	s := services.Start(t)
	d := New(s, 0)
	defer d.Close()
	key := []byte("boom")
	for n := 1; n <= 3; n++ {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the caller does not hear of it")
				}
			}()
			d.change(direct.KindSet, key, func(tx *engine.Tx) (bool, error) {
				if _, _, err := tx.Set(key, []byte("half"), engine.SetOptions{}, nil); err != nil {
					t.Error(err)
				}
				panic("boom")
			})
		}()
		if got, text := s.Panics(); got != int64(n) || !strings.Contains(text, "calls_test.go") {
			t.Errorf("%d panics in the log, want %d; the last: %s", got, n, text)
		}
	}
	if state := d.Set("boom", "whole", direct.SetOptions{}); state != direct.Done {
		t.Error("Set:", state)
	}
	if val, state := d.Get("boom"); val != "whole" || state != direct.Done {
		t.Error("Get:", val, state)
	}
}
