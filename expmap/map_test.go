package expmap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/layouts"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// each runs a test on each kind of backend, in each layout that it can have.
func each(t *testing.T, test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	for _, lay := range modes {
		on := backends.On(backends.Each) // for each kind, mode as-it-is covers the layouts that are left out
		switch lay {
		case modeFields:
			on = backends.Virtual
		case modeZset:
			on = func(t *testing.T, test func(t *testing.T, b *backends.Backend)) {
				backends.Except(t, []string{"file", "ebb2", "ebb3", "redis", "ebb-scripts", "sentinel", "cluster"}, test)
			}
		}
		as(t, on, lay, test)
	}
}

// virtually runs a test as each does, in virtual time alone.
func virtually(t *testing.T, test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	for _, lay := range modes {
		as(t, backends.Virtual, lay, test)
	}
}

var modes = []mode{modeAuto, modeFields, modeZset, modeLayout}

func as(t *testing.T, on backends.On, lay mode, test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	t.Run([]string{"as-it-is", "native", "fields", "zset", "redisson"}[lay], func(t *testing.T) {
		on(t, func(t *testing.T, b *backends.Backend) { test(t, b, lay) })
	})
}

// newRedisson makes a map as redisson.NewMapCache does.
func newRedisson[K comparable, V any](c *ebb.Conn, name string, opts ...Options[K, V]) (*Map[K, V], error) {
	o := opts[0]
	o.Layout = (*Layout)(layouts.MapCache)
	return New(c, name, o)
}

func open[K comparable, V any](t *testing.T, c *ebb.Conn, name string, lay mode, o Options[K, V]) *Map[K, V] {
	t.Helper()
	create := New[K, V]
	if lay == modeLayout {
		create = newRedisson[K, V]
	}
	m, err := create(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	if lay == modeFields || lay == modeZset {
		m.force = lay
	}
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// has fails the test unless every read shows exactly the entries want.
func has(t *testing.T, ctx context.Context, m *Map[string, int], want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for e, err := range m.All(ctx) {
		must(t, err)
		got[e.Key] = e.Value
	}
	if !maps.Equal(got, want) {
		t.Errorf("All: %v, want %v", got, want)
	}
	keys := map[string]bool{}
	for k, err := range m.Keys(ctx) {
		must(t, err)
		keys[k] = true
	}
	if len(keys) != len(want) {
		t.Errorf("Keys: %v, want those of %v", keys, want)
	}
	if n, err := m.Len(ctx); err != nil || int(n) != len(want) {
		t.Errorf("Len: %d %v, want %d", n, err, len(want))
	}
	for k, v := range want {
		if x, ok, err := m.Get(ctx, k); x != v || !ok || err != nil {
			t.Errorf("Get %s: %v %v %v, want %v", k, x, ok, err, v)
		}
	}
}

func TestEntriesExpireOneByOne(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{})
		must(t, m.Set(ctx, "short", 1, time.Minute))
		must(t, m.Set(ctx, "long", 2, time.Hour))
		must(t, m.Set(ctx, "ever", 3, 0))
		has(t, ctx, m, map[string]int{"short": 1, "long": 2, "ever": 3})
		must(t, m.Set(ctx, "short", 1, 20*time.Millisecond))
		b.Pass(50 * time.Millisecond)
		has(t, ctx, m, map[string]int{"long": 2, "ever": 3})
		if _, ok, err := m.Get(ctx, "short"); ok || err != nil {
			t.Error("short is there", err)
		}
		many, err := m.GetMany(ctx, "short", "long", "ever", "nothing")
		if err != nil || !maps.Equal(many, map[string]int{"long": 2, "ever": 3}) {
			t.Error(many, err)
		}
		must(t, m.Set(ctx, "gone", 1, time.Millisecond))
		b.Pass(5 * time.Millisecond) // no read has found it expired
		if n, err := m.Remove(ctx, "short", "ever", "nothing", "gone"); n != 1 || err != nil {
			t.Error("deleted", n, err)
		}
		has(t, ctx, m, map[string]int{"long": 2})
		must(t, m.Clear(ctx))
		has(t, ctx, m, map[string]int{})
	})
}

func TestAnEntryLivesToTheMillisecond(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, last := b.Context(), time.Minute
		if lay == modeLayout {
			last -= time.Millisecond // it is expired in the millisecond of its deadline
		}
		m := open(t, b.Conn, "m", lay, Options[string, int]{})
		must(t, m.Set(ctx, "k", 1, time.Minute))
		b.Pass(last)
		has(t, ctx, m, map[string]int{"k": 1})
		if _, ok, err := m.Get(ctx, "k"); !ok || err != nil {
			t.Error("gone too early", err)
		}
		b.Pass(time.Millisecond)
		has(t, ctx, m, map[string]int{})
		if _, ok, err := m.Get(ctx, "k"); ok || err != nil {
			t.Error("still there", err)
		}
	})
}

func TestDeadlinesAreReadAndChanged(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{})
		ttl := func(key string, least, most time.Duration) {
			t.Helper()
			if d, ok, err := m.TTL(ctx, key); !ok || err != nil || d < least || d > most {
				t.Errorf("TTL %s: %v %v %v, want %v to %v", key, d, ok, err, least, most)
			}
		}
		must(t, m.Set(ctx, "k", 1, time.Hour))
		ttl("k", time.Hour-time.Minute, time.Hour)
		if did, err := m.Expire(ctx, "k", 2*time.Hour); !did || err != nil {
			t.Error(did, err)
		}
		ttl("k", 2*time.Hour-time.Minute, 2*time.Hour)
		if did, err := m.Persist(ctx, "k"); !did || err != nil {
			t.Error(did, err)
		}
		ttl("k", ebb.Forever, ebb.Forever)
		if did, err := m.Persist(ctx, "k"); did || err != nil {
			t.Error(did, err)
		}
		if did, err := m.Expire(ctx, "nothing", time.Hour); did || err != nil {
			t.Error(did, err)
		}
		if _, ok, err := m.TTL(ctx, "nothing"); ok || err != nil {
			t.Error(ok, err)
		}
		must(t, m.Set(ctx, "k", 2, time.Hour)) // writing sets the new time
		ttl("k", time.Hour-time.Minute, time.Hour)
		must(t, m.Set(ctx, "k", 3, 0))
		ttl("k", ebb.Forever, ebb.Forever)
		if _, err := m.Expire(ctx, "k", 0); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		if did, err := m.SetNX(ctx, "k", 4, time.Hour); did || err != nil {
			t.Error(did, err)
		}
		if did, err := m.SetNX(ctx, "new", 5, time.Hour); !did || err != nil {
			t.Error(did, err)
		}
		has(t, ctx, m, map[string]int{"k": 3, "new": 5})
	})
}

func TestUseKeepsAnIdleEntryAlive(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, "m", lay, Options[string, int]{IdleTTL: 10 * time.Minute})
		must(t, m.Set(ctx, "used", 1, 0))
		must(t, m.Set(ctx, "idle", 2, 0))
		must(t, m.Set(ctx, "ends", 3, 25*time.Minute))
		for range 3 {
			b.Pass(8 * time.Minute)
			all, err := m.GetMany(ctx, "used", "ends")
			if len(all) != 2 || err != nil {
				t.Fatal(all, err)
			}
		}
		if d, ok, err := m.TTL(ctx, "ends"); d != time.Minute || !ok || err != nil {
			t.Error("use prolongs life beyond its end:", d, ok, err)
		}
		if d, ok, err := m.TTL(ctx, "used"); d != 10*time.Minute || !ok || err != nil {
			t.Error(d, ok, err)
		}
		if n, err := m.Len(ctx); n != 2 || err != nil {
			t.Error(n, err)
		}
		b.Pass(time.Second)
		if did, err := m.Expire(ctx, "used", time.Hour); !did || err != nil {
			t.Error(did, err)
		}
		if d, ok, err := m.TTL(ctx, "used"); d != 10*time.Minute || !ok || err != nil {
			t.Error("writing a time counted as use:", d, ok, err)
		}
		if did, err := m.Expire(ctx, "used", 3*time.Minute); !did || err != nil {
			t.Error(did, err)
		}
		if did, err := m.Persist(ctx, "ends"); !did || err != nil {
			t.Error(did, err)
		}
		b.Pass(3*time.Minute + time.Millisecond)
		has(t, ctx, m, map[string]int{"ends": 3})
		b.Pass(10*time.Minute + time.Millisecond)
		has(t, ctx, m, map[string]int{})
	})
}

func TestAFullMapRefuses(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{MaxLen: 2})
		must(t, m.Set(ctx, "a", 1, time.Hour))
		must(t, m.Set(ctx, "b", 2, time.Hour))
		if err := m.Set(ctx, "c", 3, time.Hour); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if did, err := m.SetNX(ctx, "c", 3, time.Hour); did || !errors.Is(err, ErrFull) {
			t.Error(did, err)
		}
		must(t, m.Set(ctx, "b", 4, time.Hour)) // existing entries may be overwritten
		if did, err := m.SetNX(ctx, "b", 5, time.Hour); did || err != nil {
			t.Error(did, err)
		}
		v, err := m.GetOrLoad(ctx, "c", time.Hour, func(context.Context, string) (int, error) { return 7, nil })
		if v != 7 || err != nil {
			t.Error(v, err)
		}
		must(t, m.Set(ctx, "a", 1, 20*time.Millisecond))
		b.Pass(50 * time.Millisecond)
		must(t, m.Set(ctx, "c", 3, time.Hour)) // expired entries do not count
		has(t, ctx, m, map[string]int{"b": 4, "c": 3})
	})
}

func TestManyTogetherNeverPassTheLimit(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		const most, callers, tries = 10, 8, 10
		m := open(t, b.Conn, b.Name("m"), lay, Options[int, int]{MaxLen: most})
		var set, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for j := range tries {
					switch err := m.Set(ctx, i*tries+j, j, time.Hour); {
					case err == nil:
						set.Add(1)
					case errors.Is(err, ErrFull):
						refused.Add(1)
					default:
						t.Error(err)
					}
					if n, err := m.Len(ctx); n > most || err != nil {
						t.Error(n, err)
					}
				}
			})
		}
		wg.Wait()
		if set.Load() != most || refused.Load() != callers*tries-most {
			t.Errorf("%d set and %d refused, want %d and %d", set.Load(), refused.Load(), most, callers*tries-most)
		}
	})
}

func TestALargeMapIsIteratedWhole(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		const n = 250 // more than a page, and more than a packed hash holds
		m := open(t, b.Conn, b.Name("m"), lay, Options[int, string]{})
		for i := range n {
			must(t, m.Set(ctx, i, strconv.Itoa(i), time.Hour))
		}
		seen := map[int]string{}
		for e, err := range m.All(ctx) {
			must(t, err)
			seen[e.Key] = e.Value
		}
		if len(seen) != n || seen[n-1] != "249" {
			t.Error(len(seen), seen[n-1])
		}
		for range m.Keys(ctx) {
			break
		}
		if got, err := m.Len(ctx); got != n || err != nil {
			t.Error(got, err)
		}
	})
}

func TestValuesMayBeAnything(t *testing.T) {
	type pair struct{ A, B string }
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		for _, idle := range []time.Duration{0, time.Hour} {
			ctx := b.Context()
			m := open(t, b.Conn, b.Name(fmt.Sprint("bytes", idle)), lay, Options[string, []byte]{IdleTTL: idle})
			for _, v := range []string{"", "\x00\xff:\n", "17:x", "a\r\nb"} {
				must(t, m.Set(ctx, "\x00:*", []byte(v), time.Hour))
				if got, ok, err := m.Get(ctx, "\x00:*"); string(got) != v || !ok || err != nil {
					t.Errorf("%q %v %v, want %q", got, ok, err, v)
				}
			}
			p := open(t, b.Conn, b.Name(fmt.Sprint("pairs", idle)), lay, Options[pair, pair]{IdleTTL: idle})
			must(t, p.Set(ctx, pair{"a", "b"}, pair{"c", "d"}, 0))
			if got, ok, err := p.Get(ctx, pair{"a", "b"}); got != (pair{"c", "d"}) || !ok || err != nil {
				t.Error(got, ok, err)
			}
		}
	})
}

func TestJitterOnlyLengthens(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[int, int]{Jitter: 50})
		var all []time.Duration
		for i := range 20 {
			must(t, m.Set(ctx, i, i, 10*time.Hour))
			d, ok, err := m.TTL(ctx, i)
			if !ok || err != nil || d < 10*time.Hour-time.Minute || d > 15*time.Hour {
				t.Error(d, ok, err)
			}
			all = append(all, d)
		}
		if slices.Max(all)-slices.Min(all) < time.Minute {
			t.Error("all alike:", all)
		}
	})
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	for _, o := range []Options[string, int]{{IdleTTL: -1}, {MaxLen: -1}, {Jitter: 101}, {MaxEvents: -1}, {LoadLease: -1},
		{Eviction: LRU}, {Eviction: 3, MaxLen: 1}} {
		if _, err := New(c, "m", o); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
	if _, err := New[string, int](c, ""); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if _, err := newRedisson(c, "m", Options[string, int]{Events: true}); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	m, err := New[string, int](c, "m")
	must(t, err)
	if err := m.Set(t.Context(), "k", 1, -time.Second); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if err := m.OnExpired(t.Context(), "l", nil); !errors.Is(err, ErrNoEvents) {
		t.Error(err)
	}
	_, err = c.Do(t.Context(), "HSET", "m", "k", "no number")
	must(t, err)
	if _, _, err := m.Get(t.Context(), "k"); !errors.Is(err, ebb.ErrValue) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Set(ended, "k", 1, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestEachCallEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{})
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		for name, call := range map[string]func() error{
			"set":      func() error { return m.Set(ctx, "k", 1, time.Hour) },
			"setnx":    func() error { _, err := m.SetNX(ctx, "k", 1, time.Hour); return err },
			"get":      func() error { _, _, err := m.Get(ctx, "k"); return err },
			"get many": func() error { _, err := m.GetMany(ctx, "k"); return err },
			"delete":   func() error { _, err := m.Remove(ctx, "k"); return err },
			"set many": func() error { return m.SetMany(ctx, map[string]int{"k": 1}, time.Hour) },
			"swap":     func() error { _, err := m.CompareAndSwap(ctx, "k", 1, 2); return err },
			"swap del": func() error { _, err := m.CompareAndDelete(ctx, "k", 1); return err },
			"add":      func() error { _, err := m.Increment(ctx, "k", 1, time.Hour); return err },
			"add part": func() error { _, err := m.IncrementFloat(ctx, "k", 1, time.Hour); return err },
			"len":      func() error { _, err := m.Len(ctx); return err },
			"ttl":      func() error { _, _, err := m.TTL(ctx, "k"); return err },
			"expire":   func() error { _, err := m.Expire(ctx, "k", time.Hour); return err },
			"persist":  func() error { _, err := m.Persist(ctx, "k"); return err },
			"clear":    func() error { return m.Clear(ctx) },
			"watch":    func() error { return m.Watch(ctx) },
			"load": func() error {
				_, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 1, nil })
				return err
			},
			"all": func() error {
				for _, err := range m.All(ctx) {
					return err
				}
				return nil
			},
			"keys": func() error {
				for _, err := range m.Keys(ctx) {
					return err
				}
				return nil
			},
		} {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Error(name, err)
			}
		}
	})
}

func TestAMapSaysHowItRuns(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		m := open(t, b.Conn, "m", lay, Options[string, int]{})
		want := map[mode]string{modeFields: "HPEXPIRE in Lua scripts on ", modeZset: "Lua scripts and a sorted set of " +
			"deadlines on ", modeLayout: "Redisson's layout, Lua scripts on "}[lay]
		switch {
		case want != "":
		case b.Native():
			want = "HSETEX of ebb"
		case b.Capabilities().HashFieldTTL:
			want = "HPEXPIRE in Lua scripts on "
		default:
			want = "Lua scripts and a sorted set of deadlines on "
		}
		if s := m.String(); !strings.HasPrefix(s, `map "m" (`+want) {
			t.Errorf("%s, want %s", s, want)
		}
	})
}
