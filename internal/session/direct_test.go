package session

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/engine"
)

// directStates makes one call of each kind, and returns the kinds whose state is not want.
func directStates(d *Direct, want direct.State) (differ []string) {
	set := d.Set("k", "v", direct.SetOptions{})
	_, get := d.Get("k")
	_, appendGet := d.AppendGet(nil, "k")
	hset := d.HSet("h", "f", "v", direct.FieldOptions{})
	_, hget := d.HGet("h", "f")
	_, take := d.Take("l", "", &direct.TakeOptions{Limit: 1000, Period: 1e6}, 1, false)
	token, acquire := d.Acquire("lock", "o", 1000, false, false)
	renew := d.Renew("lock", "o", token, 1000)
	release := d.Release("lock", "o", token)
	_, push := d.Push("q", direct.Job{ID: "j", Replace: true})
	for kind, state := range map[string]direct.State{"Get": get, "AppendGet": appendGet, "Set": set, "HSet": hset, "HGet": hget, "Take": take,
		"Acquire": acquire, "Renew": renew, "Release": release, "Push": push} {
		if state != want {
			differ = append(differ, kind)
		}
	}
	return differ
}

// While a gate is closed, no call is direct, whatever the gate refuses.
func TestAClosedGateIsADetour(t *testing.T) {
	s := gated(t)
	d := s.NewDirect(0)
	defer d.Close()
	for _, g := range []gate{gateLoading, gateReadOnly, gateStale, gateDisk, gateNoReplicas, gateGroup} {
		if got := directStates(d, direct.Done); got != nil {
			t.Errorf("before gate %b: %v are not Done", g, got)
		}
		s.gates.set(g, true)
		if got := directStates(d, direct.Elsewhere); got != nil {
			t.Errorf("gate %b: %v are not Elsewhere", g, got)
		}
		s.gates.set(g, false)
	}
}

// Replies that wait for a sync or for a group are held by sessions.
func TestHeldRepliesAreADetour(t *testing.T) {
	s := gated(t)
	d := s.NewDirect(0)
	defer d.Close()
	for name, hold := range map[string]func(on bool){"appendfsync always": s.DB.Log().SetAlways, "a group": s.DB.Log().SetGroup} {
		hold(true)
		if got := directStates(d, direct.Elsewhere); got != nil {
			t.Errorf("%s: %v are not Elsewhere", name, got)
		}
		hold(false)
		if got := directStates(d, direct.Done); got != nil {
			t.Errorf("after %s: %v are not Done", name, got)
		}
	}
}

// A server of a cluster checks slots.
func TestAClusterIsADetour(t *testing.T) {
	s, _ := serviceWith(t, "--cluster-enabled", "yes")
	d := s.NewDirect(0)
	defer d.Close()
	if got := directStates(d, direct.Elsewhere); got != nil {
		t.Errorf("%v are not Elsewhere", got)
	}
}

// Beside a script that runs, calls return at once, and the command replies BUSY when the script is overdue.
func TestARunningScriptIsADetour(t *testing.T) {
	_, s, c := scriptService(t)
	defer s.Close()
	d := s.NewDirect(0)
	defer d.Close()
	other := s.NewSession(nil)
	defer other.Closed(nil)
	ended := make(chan string)
	go func() { ended <- c.Do(bytesOf("EVAL", "while true do end", "0")...).Str }()
	runs(s)
	if got := directStates(d, direct.Elsewhere); got != nil {
		t.Errorf("%v are not Elsewhere", got)
	}
	if v := other.Do(bytesOf("SCRIPT", "KILL")...); v.Str != "OK" {
		t.Error(v)
	}
	if text := <-ended; !strings.HasPrefix(text, string(ErrScriptKilled)) {
		t.Errorf("got %q", text)
	}
	if got := directStates(d, direct.Done); got != nil {
		t.Errorf("after the script: %v are not Done", got)
	}
}

// A service that renames a command has no direct calls: they would answer under a name that the administrator took away.
func TestARenamedCommandHasNoDirectCalls(t *testing.T) {
	for _, name := range []string{"get", "dq.add"} {
		s, _ := serviceWith(t, "--rename-command", name, "secret")
		if s.NewDirect(0) != nil {
			t.Errorf("%s is renamed, and there are direct calls", name)
		}
	}
}

// A panic within a direct call reaches the caller and the log. The shard is unlocked, and the next call works.
func TestAPanicOfADirectCallGoesToTheCaller(t *testing.T) {
	s := gated(t)
	d := s.NewDirect(0)
	defer d.Close()
	key := []byte("boom")
	for n := 1; n <= 3; n++ {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the caller does not hear of it")
				}
			}()
			d.change(directSet, key, func(tx *engine.Tx) (bool, error) {
				if _, _, err := tx.Set(key, []byte("half"), engine.SetOptions{}, nil); err != nil {
					t.Error(err)
				}
				panic("boom")
			})
		}()
		if got, text := s.Panics(); got != int64(n) || !strings.Contains(text, "direct_test.go") {
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
