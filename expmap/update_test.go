package expmap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestManyEntriesAreSetTogetherOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		for _, jitter := range []int{0, 10} {
			m := open(t, b.Conn, b.Name(fmt.Sprint("m", jitter)), lay, Options[string, int]{MaxLen: 3, Jitter: jitter})
			must(t, m.Set(ctx, "a", 0, 0))
			must(t, m.SetMany(ctx, map[string]int{"a": 1, "b": 2, "c": 3}, time.Hour))
			has(t, ctx, m, map[string]int{"a": 1, "b": 2, "c": 3})
			for _, k := range []string{"a", "b", "c"} {
				if d, ok, err := m.TTL(ctx, k); !ok || err != nil || d < 59*time.Minute || d > 66*time.Minute {
					t.Error(k, d, ok, err)
				}
			}
			if err := m.SetMany(ctx, map[string]int{"a": 7, "d": 8}, time.Hour); !errors.Is(err, ErrFull) {
				t.Error("a full map:", err)
			}
			has(t, ctx, m, map[string]int{"a": 1, "b": 2, "c": 3})
			must(t, m.SetMany(ctx, map[string]int{"a": 4, "b": 5}, 0))
			if d, ok, err := m.TTL(ctx, "a"); d != ebb.Forever || !ok || err != nil {
				t.Error(d, ok, err)
			}
			must(t, m.SetMany(ctx, nil, time.Hour))
			if err := m.SetMany(ctx, map[string]int{"a": 9}, -1); !errors.Is(err, ebb.ErrArgument) {
				t.Error(err)
			}
			has(t, ctx, m, map[string]int{"a": 4, "b": 5, "c": 3})
		}
	})
}

func TestJitterIsDrawnForEachEntryOfMany(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		m := open(t, b.Conn, b.Name("m"), lay, Options[int, int]{Jitter: 50})
		many := map[int]int{}
		for i := range 20 {
			many[i] = i
		}
		must(t, m.SetMany(t.Context(), many, 10*time.Hour))
		seen := map[time.Duration]bool{}
		for i := range many {
			d, _, err := m.TTL(t.Context(), i)
			must(t, err)
			seen[d] = true
		}
		if len(seen) < 2 {
			t.Error("all deadlines are alike:", seen)
		}
	})
}

func TestAnEntryIsSwappedIfItIsTheOldOne(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		for _, idle := range []time.Duration{0, 30 * time.Minute} {
			m := open(t, b.Conn, b.Name(fmt.Sprint("m", idle)), lay, Options[string, int]{IdleTTL: idle})
			swap := func(old, new int, want bool) {
				t.Helper()
				if did, err := m.CompareAndSwap(ctx, "k", old, new); did != want || err != nil {
					t.Errorf("%d to %d: %v %v, want %v", old, new, did, err, want)
				}
			}
			swap(0, 1, false) // there is no entry
			must(t, m.Set(ctx, "k", 1, 20*time.Minute))
			swap(2, 3, false)
			swap(1, 2, true)
			swap(1, 3, false)
			has(t, ctx, m, map[string]int{"k": 2})
			if d, ok, err := m.TTL(ctx, "k"); !ok || err != nil || d < 19*time.Minute || d > 20*time.Minute {
				t.Error("the deadline has changed:", d, ok, err)
			}
			if did, err := m.CompareAndDelete(ctx, "k", 1); did || err != nil {
				t.Error(did, err)
			}
			if did, err := m.CompareAndDelete(ctx, "k", 2); !did || err != nil {
				t.Error(did, err)
			}
			has(t, ctx, m, map[string]int{})
			must(t, m.Set(ctx, "k", 1, 20*time.Millisecond))
			b.Pass(50 * time.Millisecond)
			swap(1, 2, false)
		}
	})
}

func TestASwapCountsAsUseAndKeepsTheDeadline(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := t.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{IdleTTL: 10 * time.Minute})
		must(t, m.SetMany(ctx, map[string]int{"k": 0, "n": 0}, 25*time.Minute))
		for i := range 3 {
			b.Pass(8 * time.Minute)
			if did, err := m.CompareAndSwap(ctx, "k", i, i+1); !did || err != nil {
				t.Fatal(did, err)
			}
			if n, err := m.Increment(ctx, "n", 1, time.Hour); n != int64(i+1) || err != nil {
				t.Fatal(n, err)
			}
		}
		for _, k := range []string{"k", "n"} {
			if d, ok, err := m.TTL(ctx, k); d != time.Minute || !ok || err != nil {
				t.Error(k, d, ok, err)
			}
		}
		last := time.Minute
		if lay == modeLayout {
			last -= time.Millisecond
		}
		b.Pass(last) // their last millisecond
		if did, err := m.CompareAndSwap(ctx, "k", 3, 4); !did || err != nil {
			t.Error(did, err)
		}
		if n, err := m.Increment(ctx, "n", 1, time.Hour); n != 4 || err != nil {
			t.Error(n, err)
		}
		b.Pass(time.Millisecond)
		has(t, ctx, m, map[string]int{})
	})
}

func TestOfManySwapsEachSucceedsOnce(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{})
		const callers, each = 4, 10
		must(t, m.Set(ctx, "k", 0, time.Hour))
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for done := 0; done < each; {
					n, _, err := m.Get(ctx, "k")
					if err != nil {
						t.Error(err)
						return
					}
					did, err := m.CompareAndSwap(ctx, "k", n, n+1)
					if err != nil {
						t.Error(err)
						return
					}
					if did {
						done++
					}
				}
			})
		}
		wg.Wait()
		has(t, ctx, m, map[string]int{"k": callers * each})
	})
}

func TestNumbersAreAddedTo(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		for _, idle := range []time.Duration{0, time.Hour} {
			m := open(t, b.Conn, b.Name(fmt.Sprint("m", idle)), lay, Options[string, string]{IdleTTL: idle, MaxLen: 4})
			add := func(key string, delta, want int64, wantErr error) {
				t.Helper()
				if n, err := m.Increment(ctx, key, delta, 30*time.Minute); n != want || !errors.Is(err, wantErr) {
					t.Errorf("%s + %d: %d %v, want %d %v", key, delta, n, err, want, wantErr)
				}
			}
			float := func(key string, delta, want float64, wantErr error) {
				t.Helper()
				if n, err := m.IncrementFloat(ctx, key, delta, 30*time.Minute); n != want || !errors.Is(err, wantErr) {
					t.Errorf("%s + %v: %v %v, want %v %v", key, delta, n, err, want, wantErr)
				}
			}
			ttl := func(key string, most time.Duration) {
				t.Helper()
				if d, ok, err := m.TTL(ctx, key); !ok || err != nil || d > most || d < most-time.Minute {
					t.Errorf("TTL %s: %v %v %v, want about %v", key, d, ok, err, most)
				}
			}
			add("n", 3, 3, nil) // creates an entry
			ttl("n", 30*time.Minute)
			if did, err := m.Expire(ctx, "n", 20*time.Minute); !did || err != nil {
				t.Error(did, err)
			}
			add("n", -5, -2, nil)
			float("n", 0.5, -1.5, nil)
			ttl("n", 20*time.Minute)
			add("n", 1, 0, ErrNotNumber) // the value has a fraction
			float("f", 2.5, 2.5, nil)
			float("f", 1e-3, 2.501, nil)
			must(t, m.Set(ctx, "n", fmt.Sprint(math.MaxInt64-1), 10*time.Minute))
			add("n", 1, math.MaxInt64, nil)
			add("n", 1, 0, ErrOverflow)
			must(t, m.Set(ctx, "f", "1.7e308", 10*time.Minute))
			float("f", 1.7e308, 0, ErrOverflow)
			must(t, m.Set(ctx, "t", "ann", 10*time.Minute))
			add("t", 1, 0, ErrNotNumber)
			float("t", 1, 0, ErrNotNumber)
			for _, key := range []string{"n", "t", "f"} {
				ttl(key, 10*time.Minute) // even after a refusal
			}
			float("t", math.NaN(), 0, ebb.ErrArgument)
			add("last", 1, 1, nil)
			add("one more", 1, 0, ErrFull)
			all, err := m.GetMany(ctx, "n", "t", "f", "last", "one more")
			if want := map[string]string{"n": fmt.Sprint(math.MaxInt64), "t": "ann", "f": "1.7e308", "last": "1"}; err != nil ||
				!maps.Equal(all, want) {
				t.Error(all, err)
			}
			must(t, m.Set(ctx, "last", "1", 20*time.Millisecond))
			b.Pass(50 * time.Millisecond)
			add("last", 1, 1, nil) // an expired entry starts again
			ttl("last", 30*time.Minute)
		}
	})
}

func TestAnUnreadableValueIsAMissIfTheOptionsSaySo(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		old := open(t, b.Conn, name, lay, Options[string, string]{})
		must(t, old.SetMany(ctx, map[string]string{"bad": "ann", "good": "1"}, time.Hour))
		strict := open(t, b.Conn, name, lay, Options[string, int]{})
		if _, _, err := strict.Get(ctx, "bad"); !errors.Is(err, ebb.ErrValue) {
			t.Error(err)
		}
		if _, err := strict.GetMany(ctx, "bad"); !errors.Is(err, ebb.ErrValue) {
			t.Error(err)
		}
		m := open(t, b.Conn, name, lay, Options[string, int]{SkipUnreadable: true})
		if v, ok, err := m.Get(ctx, "bad"); v != 0 || ok || err != nil {
			t.Error(v, ok, err)
		}
		if all, err := m.GetMany(ctx, "bad", "good", "none"); err != nil || !maps.Equal(all, map[string]int{"good": 1}) {
			t.Error(all, err)
		}
		seen := 0
		for e, err := range m.All(ctx) {
			if must(t, err); e.Key != "good" {
				t.Error(e)
			}
			seen++
		}
		if want := (Figures{Hits: 1, Misses: 3, Unreadable: 3}); seen != 1 || m.Figures() != want {
			t.Errorf("%d, %+v, want %+v", seen, m.Figures(), want)
		}
		v, err := m.GetOrLoad(ctx, "bad", time.Hour, func(context.Context, string) (int, error) { return 2, nil })
		if v != 2 || err != nil {
			t.Error(v, err)
		}
		has(t, ctx, m, map[string]int{"bad": 2, "good": 1})
	})
}
