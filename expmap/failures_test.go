package expmap

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/expiries"
)

// bubble runs a test in virtual time, on a backend that can be made to fail.
func bubble(t *testing.T, test func(ctx context.Context, b *ebbtest.Backend)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t.Context(), ebbtest.Run(t)) })
}

func TestAFamilyIsSweptAlsoOnASlowNetwork(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		f, err := NewFamily[string, int](b.Conn, "carts")
		must(t, err)
		f.force = modeZset
		must(t, f.Map("ann").Set(ctx, "ever", 1, 0))
		must(t, f.Map("ann").Set(ctx, "tea", 1, time.Minute))
		b.SetLatency(20 * time.Millisecond)
		watching, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- f.Watch(watching) }()
		time.Sleep(time.Minute + time.Second)
		if h := b.Data.Hash("{carts}:ann"); len(h) != 1 {
			t.Error(h)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestTheIndexOfAFamilyEndsByItself(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		f, err := NewFamily[string, int](b.Conn, "carts")
		must(t, err)
		f.force = modeZset
		must(t, f.Map("ann").Set(ctx, "tea", 1, time.Minute))
		if d := b.Data.TTL("{carts}::next"); d != expiries.Keep+time.Minute {
			t.Error(d)
		}
		time.Sleep(expiries.Keep + time.Minute + time.Second)
		if keys := b.Data.Keys(); len(keys) != 0 {
			t.Error(keys)
		}
	})
}

func TestWhatATTLFindsOverIsToldAndEnds(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeZset, Options[string, int]{Events: true})
		must(t, m.Set(ctx, "k", 1, time.Minute))
		time.Sleep(time.Minute + time.Millisecond)
		if _, ok, err := m.TTL(ctx, "k"); ok || err != nil {
			t.Error(ok, err)
		}
		if n, d := len(b.Data.Stream("{m}:expired")), b.Data.TTL("{m}:expired"); n != 1 || d != expiries.Keep {
			t.Errorf("%d events, kept for %v", n, d)
		}
	})
}

func TestALongValueIsLeftOutOfItsExpiry(t *testing.T) {
	for _, lay := range []mode{modeAuto, modeZset} {
		bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
			m := open(t, b.Conn, "m", lay, Options[string, string]{Events: true})
			must(t, m.Set(ctx, "long", strings.Repeat("x", valueBytes+1), time.Second))
			must(t, m.Set(ctx, "longest", strings.Repeat("x", valueBytes), time.Second))
			hearing, stop := context.WithCancel(ctx)
			told := map[string]int{}
			err := m.OnExpired(hearing, "l", func(_ context.Context, e Expired[string, string]) error {
				if told[e.Key] = len(e.Value); e.HasValue != (e.Key == "longest") {
					t.Error(e.Key, e.HasValue)
				}
				if len(told) == 2 {
					stop()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) || told["long"] != 0 || told["longest"] != valueBytes {
				t.Error(told, err)
			}
		})
	}
}

func TestALoadersOwnTimeoutIsEachCallersInItsProcess(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeAuto, Options[string, int]{})
		var calls atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := m.GetOrLoad(ctx, "k", time.Hour, func(ctx context.Context, _ string) (int, error) {
					calls.Add(1)
					ctx, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					<-ctx.Done()
					return 0, ctx.Err()
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls.Load() != 1 {
			t.Error(calls.Load(), "loaders ran")
		}
	})
}

func TestALoadThatCannotBeKeptMakesWay(t *testing.T) {
	for _, lost := range []string{"SET", "EVALSHA"} {
		bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
			m := open(t, b.Conn, "m", modeAuto, Options[string, int]{LoadLease: time.Hour})
			var once atomic.Bool
			b.Intercept(func(cmd []string) error {
				if cmd[0] != lost || !once.CompareAndSwap(false, true) {
					return nil
				}
				if lost == "SET" {
					return ebbtest.ErrLost // the marker is set, but the caller cannot know
				}
				return ebbtest.ErrCut
			})
			_, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 1, nil })
			if !errors.Is(err, ebb.ErrUnavailable) {
				t.Error(lost, err)
			}
			if b.Data.Exists("{m}:load:k") {
				t.Error(lost, "the marker is there")
			}
			start := time.Now()
			v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 2, nil })
			if v != 2 || err != nil || time.Since(start) > time.Second {
				t.Error(lost, v, err, time.Since(start))
			}
		})
	}
}

func TestALoadsMarkerIsNoMapOfItsFamily(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		f, err := NewFamily[string, int](b.Conn, "f")
		must(t, err)
		must(t, f.Map("a:load:k").Set(ctx, "x", 1, 0))
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		v, err := f.Map("a").GetOrLoad(short, "k", time.Hour, func(context.Context, string) (int, error) {
			if !b.Data.Exists("{f}::load:a:k") {
				t.Error("there is no marker")
			}
			return 1, nil
		})
		if v != 1 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestAMapThatCannotBeSaysSo(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		f, err := NewFamily[string, int](b.Conn, "f", Options[string, int]{Events: true})
		must(t, err)
		m := f.Map(":x")
		for name, err := range map[string]error{
			"watch":  m.Watch(ctx),
			"listen": m.OnExpired(ctx, "l", nil),
			"clear":  m.Clear(ctx),
		} {
			if !errors.Is(err, ebb.ErrArgument) {
				t.Error(name, err)
			}
		}
	})
}

func TestClearTellsOfAllThatWereOver(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeZset, Options[int, int]{Events: true})
		const n = expiries.AtOnce + 200
		for i := range n {
			must(t, m.Set(ctx, i, i, time.Minute))
		}
		must(t, m.Set(ctx, n, n, time.Hour))
		time.Sleep(time.Minute + time.Millisecond)
		must(t, m.Clear(ctx))
		if told := len(b.Data.Stream("{m}:expired")); told != n || b.Data.Exists("m") {
			t.Errorf("%d of %d were told", told, n)
		}
	})
}

func TestWhatIsOverTwiceCountsOnce(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeLayout, Options[int, int]{IdleTTL: time.Minute})
		for i := range 10 * expiries.OnTheWay { // more than these calls remove
			must(t, m.Set(ctx, i, i, time.Minute))
		}
		must(t, m.Set(ctx, -2, 0, time.Second)) // it only expires, and is not read before
		must(t, m.Set(ctx, -1, 0, 0))
		for range 3 {
			time.Sleep(30 * time.Second)
			if _, ok, err := m.Get(ctx, -1); !ok || err != nil {
				t.Error(ok, err)
			}
		}
		if n, err := m.Len(ctx); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestACallAfterALoaderDoesNotLoad(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeAuto, Options[string, int]{})
		b.Intercept(func(cmd []string) error {
			if cmd[0] == "SET" { // another program has set it between the read and the marker
				b.Data.Do("HSET", "m", "k", 7)
			}
			return nil
		})
		v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) {
			t.Error("it loads")
			return 1, nil
		})
		if v != 7 || err != nil || b.Data.Exists("{m}:load:k") {
			t.Error(v, err)
		}
	})
}

func TestACallWithTimeLoadsAfterOneWithout(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		m := open(t, b.Conn, "m", modeAuto, Options[string, int]{})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := m.GetOrLoad(short, "k", time.Hour, func(ctx context.Context, _ string) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		time.Sleep(time.Millisecond)
		v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 2, nil })
		if v != 2 || err != nil {
			t.Error(v, err)
		}
		wg.Wait()
	})
}

// server is a server of which only the capabilities are known.
type server struct {
	conn.Driver
	caps ebb.Capabilities
}

func (s server) Capabilities() ebb.Capabilities { return s.caps }

func TestTheLayoutIsWhatTheServerCanDo(t *testing.T) {
	for _, c := range []struct {
		caps   ebb.Capabilities
		idle   time.Duration
		events bool
		want   mode
	}{
		{ebb.Capabilities{Native: true, HashFieldTTL: true}, 0, true, modeNative},
		{ebb.Capabilities{Native: true, HashFieldTTL: true}, time.Minute, true, modeFields},
		{ebb.Capabilities{HashFieldTTL: true}, 0, false, modeFields},
		{ebb.Capabilities{HashFieldTTL: true}, 0, true, modeZset}, // no server reports expirations there
		{ebb.Capabilities{}, time.Minute, false, modeZset},
	} {
		m, err := New(ebb.Use(server{caps: c.caps}), "m", Options[string, int]{IdleTTL: c.idle, Events: c.events})
		must(t, err)
		if got := m.mode(); got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
	}
}

func TestAFamilyForgetsNamesWithoutDeadlines(t *testing.T) {
	bubble(t, func(ctx context.Context, b *ebbtest.Backend) {
		f, err := NewFamily[string, int](b.Conn, "carts")
		must(t, err)
		f.force = modeZset
		must(t, f.Map("ann").Set(ctx, "tea", 1, time.Minute))
		must(t, f.Map("bob").Set(ctx, "tea", 1, time.Minute))
		_, err = f.Map("ann").Remove(ctx, "tea")
		must(t, err)
		if s := b.Data.SortedSet("{carts}::next"); len(s) != 1 || s["bob"] == 0 {
			t.Error(s)
		}
	})
}
