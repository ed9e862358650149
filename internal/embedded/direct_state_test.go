package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/limit"
)

// Each state in which all calls go the way of their commands, and the end of the state.
func TestCallsGoElsewhereWhileThereIsMoreToDo(t *testing.T) {
	do := func(s *side, args ...any) func() {
		_, err := s.c.Do(ctx, args...)
		must(t, err)
		return func() {}
	}
	for name, begin := range map[string]func(s *side) (end func()){
		"MONITOR": func(s *side) func() { s.toggleMonitor(); return s.toggleMonitor },
		"HOTKEYS": func(s *side) func() {
			do(s, "HOTKEYS", "START", "METRICS", 1, "CPU")
			return func() { do(s, "HOTKEYS", "STOP") }
		},
		"slow log": func(s *side) func() {
			do(s, "CONFIG", "SET", "slowlog-log-slower-than", 999)
			return func() { do(s, "CONFIG", "SET", "slowlog-log-slower-than", 1000) }
		},
		"latency monitor": func(s *side) func() {
			do(s, "CONFIG", "SET", "latency-monitor-threshold", 1)
			return func() { do(s, "CONFIG", "SET", "latency-monitor-threshold", 0) }
		},
		"gate": func(s *side) func() {
			do(s, "CONFIG", "SET", "min-replicas-to-write", 1)
			return func() { do(s, "CONFIG", "SET", "min-replicas-to-write", 0) }
		},
		"appendfsync always": func(s *side) func() {
			s.svc.DB.Log().SetAlways(true)
			return func() { s.svc.DB.Log().SetAlways(false) }
		},
		"user": func(s *side) func() {
			do(s, "ACL", "SETUSER", "default", "-flushall")
			return func() { do(s, "ACL", "SETUSER", "default", "+flushall", "allcommands") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, clock.NewManual(transcript.Start), true)
			d := direct.Of(s.c)
			must(t, s.c.Set(ctx, "k", "v"))
			all := func() (states []direct.State) {
				_, get := d.Get("k")
				_, app := d.AppendGet(nil, "k")
				_, take := d.Take("l", "", &direct.TakeOptions{Limit: 9, Period: 1e6}, 1, false)
				_, acquire := d.Acquire("lock", "o", 1000, false, false)
				return append(states, get, app, d.Set("k", "v", direct.SetOptions{}), take, acquire)
			}
			want := func(state direct.State) {
				t.Helper()
				if got := all(); slices.ContainsFunc(got, func(x direct.State) bool { return x != state }) {
					t.Errorf("%v, want %v", got, state)
				}
			}
			want(direct.Done)
			end := begin(s)
			want(direct.Elsewhere)
			end()
			want(direct.Done)
		})
	}
}

// Calls by several goroutines beside states that come and go: each sees a value that was set.
func TestDirectCallsBesideTheirDetours(t *testing.T) {
	s := newSide(t, clock.NewSystem(), true)
	s.limits = nil
	l, err := limit.New(s.c, "api", limit.PerSecond(1000), limit.FailClosed)
	must(t, err)
	var calls sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		calls.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint("k", n%50)
				if err := s.c.SetTTL(ctx, key, strings.Repeat(key, 1+n%200), time.Minute); err != nil {
					t.Error(err)
				}
				if v, err := s.c.Get(ctx, key); err != nil || !strings.HasPrefix(v, key) || strings.ReplaceAll(v, key, "") != "" {
					t.Error(key, v, err)
				}
				if _, err := l.Allow(ctx, fmt.Sprint(g)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		stop := s.svc.Monitor(func(session.MonitorLine) {})
		must(t, call(s, "EVAL", "redis.call('SET', KEYS[1], KEYS[1]) return 1", 1, "k7"))
		stop()
		must(t, call(s, "CONFIG", "SET", "slowlog-log-slower-than", 0))
		must(t, call(s, "CONFIG", "SET", "slowlog-log-slower-than", 10_000))
		must(t, call(s, "INFO"))
	}
	close(stop)
	calls.Wait()
}

func call(s *side, args ...any) error {
	_, err := s.c.Do(ctx, args...)
	return err
}

// After Close no direct call reaches the engine, which goes on for other Conns.
func TestCloseEndsDirectCalls(t *testing.T) {
	s := newSide(t, clock.NewSystem(), true)
	for range 20 {
		c := embedded.Lend(s.svc)
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				for {
					err := c.SetTTL(ctx, "k", "v", time.Minute)
					if err == nil {
						_, err = c.Get(ctx, "k")
					}
					if errors.Is(err, conn.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		must(t, c.Close())
		must(t, call(s, "DEL", "k"))
		if n, err := s.c.Exists(ctx, "k"); err != nil || n != 0 {
			t.Fatal("a closed Conn has written", n, err)
		}
		calls.Wait()
		if _, state := direct.Of(c).Get("k"); state != direct.Elsewhere {
			t.Error(state)
		}
	}
}

// A context that has ended ends the call, whichever its way.
func TestADirectCallLooksAtItsContext(t *testing.T) {
	s := newSide(t, clock.NewManual(transcript.Start), true)
	must(t, s.c.Set(ctx, "k", "v"))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, got := s.c.Get(ended, "k")
	_, appended := s.c.AppendGet(ended, nil, "k")
	_, allowed := s.limits[0].Allow(ended, "")
	for _, err := range []error{got, appended, s.c.Set(ended, "k", "w"), s.c.SetTTL(ended, "k", "w", time.Second), allowed} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if v, err := s.c.Get(ctx, "k"); v != "v" || err != nil {
		t.Error(v, err)
	}
}

// A limiter with a line refuses direct calls, as RL.TAKE does.
func TestADirectCallDoesNotOvertakeWaitingOnes(t *testing.T) {
	s := newSide(t, clock.NewSystem(), true)
	l, err := limit.New(s.c, "api", limit.Per(1, time.Hour), limit.FailClosed)
	must(t, err)
	r, err := l.Allow(ctx, "")
	must(t, err)
	if !r.Allowed {
		t.Fatal(r)
	}
	waiting, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { _ = l.Wait(waiting, "") })
	for { // until it waits
		if n, err := s.c.Do(ctx, "INFO", "clients"); err != nil || strings.Contains(n.String(), "blocked_clients:1") {
			must(t, err)
			break
		}
	}
	got, state := direct.Of(s.c).Take("api", "", &direct.TakeOptions{Limit: 5, Period: 1e6}, 1, false)
	if state != direct.Done || got.Allowed {
		t.Error(got, state)
	}
	cancel()
	wait.Wait()
}

// wrapper is a program's Driver that embeds the Conn that it wraps.
type wrapper struct{ *conn.Conn }

// A Conn over another Driver, and a view that waits, have no direct calls: these would pass by the Driver and the wait.
func TestAnotherDriverHasNoDirectCalls(t *testing.T) {
	s := newSide(t, clock.NewManual(transcript.Start), true)
	view, err := s.c.WithPrefix("shop:")
	must(t, err)
	if direct.Of(view) == nil {
		t.Error("a view with a prefix has none")
	}
	for name, c := range map[string]*conn.Conn{"plain": conn.New(plain{s.c.Driver()}), "Replicated": s.c.Replicated(1, time.Second),
		"prefix of Replicated": must1(t)(s.c.Replicated(1, time.Second).WithPrefix("shop:")),
	} {
		if direct.Of(c) != nil {
			t.Errorf("%s has direct calls", name)
		}
	}
	if h := direct.NewHandle(wrapper{s.c}); direct.Of(&h) != nil {
		t.Error("a Driver that embeds a Conn has direct calls")
	}
}

func must1(t *testing.T) func(c *conn.Conn, err error) *conn.Conn {
	return func(c *conn.Conn, err error) *conn.Conn {
		must(t, err)
		return c
	}
}
