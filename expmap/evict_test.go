package expmap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/expirytest"
)

func TestAFullMapEvictsTheLeastRecentlyUsedEntry(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{MaxLen: 3, Eviction: LRU})
		for i, k := range []string{"a", "b", "c"} {
			must(t, m.Set(ctx, k, i, time.Hour))
		}
		_, _, err := m.Get(ctx, "a")
		must(t, err)
		_, err = m.Increment(ctx, "b", 5, 0)
		must(t, err)
		must(t, m.Set(ctx, "d", 4, 0)) // evicts c
		_, _, err = m.Get(ctx, "none") // a miss does not count as use
		must(t, err)
		_, err = m.CompareAndSwap(ctx, "a", 0, 7)
		must(t, err)
		if did, err := m.SetNX(ctx, "e", 5, time.Hour); !did || err != nil { // evicts b
			t.Error(did, err)
		}
		has(t, ctx, m, map[string]int{"a": 7, "d": 4, "e": 5})
		_, err = m.GetMany(ctx, "d", "a")
		must(t, err)
		if n, err := m.Increment(ctx, "f", 6, time.Hour); n != 6 || err != nil { // evicts e
			t.Error(n, err)
		}
		if n, err := m.Remove(ctx, "d"); n != 1 || err != nil {
			t.Error(n, err)
		}
		must(t, m.Set(ctx, "g", 7, 20*time.Millisecond))
		b.Pass(50 * time.Millisecond)
		must(t, m.Set(ctx, "h", 8, time.Hour)) // the expired entry frees its place
		has(t, ctx, m, map[string]int{"a": 7, "f": 6, "h": 8})
		must(t, m.Clear(ctx))
		for i := range 20 {
			must(t, m.Set(ctx, fmt.Sprint(i), i, time.Hour))
		}
		has(t, ctx, m, map[string]int{"17": 17, "18": 18, "19": 19})
		must(t, m.Delete(ctx))
		if n, err := b.Exists(ctx, append([]string{m.key}, m.extra[:]...)...); n != 0 || err != nil {
			t.Error("something is left:", n, err)
		}
	})
}

func TestAFullMapEvictsTheLeastFrequentlyUsedEntry(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{MaxLen: 3, Eviction: LFU})
		must(t, m.SetMany(ctx, map[string]int{"a": 1, "b": 2, "c": 3}, time.Hour))
		_, err := m.GetMany(ctx, "a", "b", "b")
		must(t, err)
		must(t, m.Set(ctx, "d", 4, time.Hour)) // evicts c
		must(t, m.Set(ctx, "e", 5, time.Hour)) // evicts d, whose count is 1
		must(t, m.Set(ctx, "e", 5, time.Hour))
		must(t, m.Set(ctx, "e", 5, time.Hour))
		must(t, m.Set(ctx, "c", 6, time.Hour)) // evicts a; the count of c starts from zero
		must(t, m.Set(ctx, "d", 7, time.Hour))
		has(t, ctx, m, map[string]int{"b": 2, "e": 5, "d": 7})
	})
}

func TestManyNewEntriesEvictOthersOnly(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		for _, e := range []Eviction{LRU, LFU} {
			m := open(t, b.Conn, b.Name(e.String()), lay, Options[string, int]{MaxLen: 4, Eviction: e})
			for i, k := range []string{"a", "b", "c", "d"} {
				must(t, m.Set(ctx, k, i, time.Hour))
			}
			must(t, m.SetMany(ctx, map[string]int{"a": 7, "x": 8, "y": 9}, time.Hour)) // a stays, although it would be the next to be evicted
			has(t, ctx, m, map[string]int{"a": 7, "d": 3, "x": 8, "y": 9})
			if err := m.SetMany(ctx, map[string]int{"1": 1, "2": 2, "3": 3, "4": 4, "5": 5}, time.Hour); !errors.Is(err, ErrFull) {
				t.Error("more than MaxLen:", err)
			}
			has(t, ctx, m, map[string]int{"a": 7, "d": 3, "x": 8, "y": 9})
		}
	})
}

func TestARefusedSetManyEvictsNothing(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{MaxLen: 3, Eviction: LRU})
		must(t, m.SetMany(ctx, map[string]int{"a": 1, "b": 2, "c": 3}, time.Hour))
		// The three new entries alone would fit, but not together with the entry that the call replaces.
		if err := m.SetMany(ctx, map[string]int{"a": 7, "x": 8, "y": 9, "z": 10}, time.Hour); !errors.Is(err, ErrFull) {
			t.Errorf("four entries for a map of three: %v, want ErrFull", err)
		}
		has(t, ctx, m, map[string]int{"a": 1, "b": 2, "c": 3})
		if n := m.Figures().Evicted; n != 0 {
			t.Errorf("Figures count %d evictions, want 0", n)
		}
	})
}

func TestFiguresCountTheEvictionsOfThisProcess(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		o := Options[string, int]{MaxLen: 3, Eviction: LRU}
		m, other := open(t, b.Conn, name, lay, o), open(t, b.Open(), name, lay, o)
		must(t, other.SetMany(ctx, map[string]int{"a": 1, "b": 2, "c": 3}, time.Hour))
		evicted := func(after string, want int64) {
			t.Helper()
			if n := m.Figures().Evicted; n != want {
				t.Errorf("after %s %d entries were evicted, want %d", after, n, want)
			}
		}
		must(t, m.Set(ctx, "a", 4, time.Hour))
		evicted("a replacement", 0)
		must(t, m.Set(ctx, "d", 4, time.Hour))
		evicted("Set", 1)
		must(t, m.SetMany(ctx, map[string]int{"d": 5, "e": 5, "f": 6}, time.Hour))
		evicted("SetMany", 3)
		if did, err := m.SetNX(ctx, "d", 7, time.Hour); did || err != nil {
			t.Error(did, err)
		}
		evicted("a SetNX that did nothing", 3)
		if did, err := m.SetNX(ctx, "g", 7, time.Hour); !did || err != nil {
			t.Error(did, err)
		}
		evicted("SetNX", 4)
		if n, err := m.Increment(ctx, "h", 8, time.Hour); n != 8 || err != nil {
			t.Error(n, err)
		}
		evicted("Increment", 5)
		if v, err := m.GetOrLoad(ctx, "i", time.Hour, func(context.Context, string) (int, error) { return 9, nil }); v != 9 || err != nil {
			t.Error(v, err)
		}
		evicted("GetOrLoad", 6)
		if n, err := m.Remove(ctx, "i"); n != 1 || err != nil {
			t.Error(n, err)
		}
		must(t, m.Set(ctx, "j", 10, time.Hour))
		evicted("Remove and Set", 6)
		if n := other.Figures().Evicted; n != 0 {
			t.Errorf("the other program has evicted %d entries, want 0", n)
		}
		must(t, other.Set(ctx, "k", 1, time.Hour))
		evicted("the Set of another program", 6)
		if n := other.Figures().Evicted; n != 1 {
			t.Errorf("the other program has evicted %d entries, want 1", n)
		}
	})
}

func TestAMapShrinksToALowerLimitWriteByWrite(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		if lay == modeLayout {
			return // the server holds the limit
		}
		ctx, name := b.Context(), b.Name("m")
		many := map[int]int{}
		for i := range 250 {
			many[i] = i
		}
		must(t, open(t, b.Conn, name, lay, Options[int, int]{MaxLen: 250, Eviction: LRU}).SetMany(ctx, many, time.Hour))
		m := open(t, b.Conn, name, lay, Options[int, int]{MaxLen: 10, Eviction: LRU})
		for i, want := range []int64{150, 50, 10, 10} {
			must(t, m.Set(ctx, 1000+i, 1, time.Hour))
			if n, err := m.Len(ctx); n != want || err != nil {
				t.Errorf("after %d new entries: %d %v, want %d", i+1, n, err, want)
			}
			if n := m.Figures().Evicted; n != 250+int64(i)+1-want {
				t.Errorf("after %d new entries %d are evicted, want %d", i+1, n, 250+int64(i)+1-want)
			}
		}
	})
}

func TestEntriesOfBeforeTheEvictionAreEvictedToo(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := t.Context()
		o := Options[string, int]{}
		old := open(t, b.Conn, "m", lay, o)
		must(t, old.SetMany(ctx, map[string]int{"a": 1, "b": 2, "c": 3}, time.Hour))
		m := open(t, b.Conn, "m", lay, Options[string, int]{MaxLen: 3, Eviction: LRU})
		for i := range 5 {
			must(t, m.Set(ctx, fmt.Sprint(i), i, time.Hour))
			if n, err := m.Len(ctx); n != 3 || err != nil {
				t.Error(n, err)
			}
		}
	})
}

func TestTheUsesGoWithTheirEntries(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := t.Context()
		m := open(t, b.Conn, "m", lay, Options[int, int]{MaxLen: 100, Eviction: LRU})
		for i := range 50 {
			must(t, m.Set(ctx, i, i, time.Minute))
		}
		if did, err := m.Expire(ctx, 7, time.Hour); !did || err != nil {
			t.Error(did, err)
		}
		b.Pass(2 * time.Minute)
		if _, ok, err := m.Get(ctx, 7); !ok || err != nil {
			t.Error(ok, err)
		}
		used := m.extra[3]
		if lay == modeLayout {
			used = m.extra[2]
		}
		if v, err := b.Do(ctx, "ZCARD", used); v.Int != 1 || err != nil {
			t.Error("uses:", v, err)
		}
		b.Pass(2 * time.Hour)
		if _, err := m.Len(ctx); err != nil {
			t.Error(err)
		}
		if n, err := b.Exists(ctx, used); n != 0 || err != nil {
			t.Error("the uses are there:", n, err)
		}
	})
}

func TestTheLimitIsSharedWithJava(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		name := strings.NewReplacer("/", ":").Replace(b.Name("m"))
		used, options := "redisson__map_cache__last_access__set:{"+name+"}", "{"+name+"}:redisson_options"
		m := open(t, b.Conn, name, modeLayout, Options[string, int]{MaxLen: 2, Eviction: LFU})
		must(t, m.Set(ctx, "a", 1, time.Hour))
		if v, err := b.Do(ctx, "HMGET", options, "max-size", "mode"); err != nil || len(v.Elems) != 2 || v.Elems[0].Str != "2" ||
			v.Elems[1].Str != "LFU" {
			t.Error("the options:", v, err)
		}
		_, _, err := m.Get(ctx, "a")
		must(t, err)
		if v, err := b.Do(ctx, "ZSCORE", used, "a"); v.String() != "2" || err != nil {
			t.Error("uses of a:", v, err)
		}
		must(t, m.Delete(ctx))

		// Java has set a size and a mode: a program without an eviction observes them.
		must(t, second(b.Do(ctx, "HSET", options, "max-size", 2, "mode", "LRU")))
		plain := open(t, b.Conn, name, modeLayout, Options[string, int]{})
		now, err := b.Do(ctx, "TIME")
		must(t, err)
		for i, k := range []string{"a", "b", "c"} {
			must(t, plain.Set(ctx, k, i, time.Hour))
		}
		has(t, ctx, plain, map[string]int{"b": 1, "c": 2})
		v, err := b.Do(ctx, "ZSCORE", used, "c")
		if at, bad := v.AsFloat(); err != nil || bad != nil || at < 1000*float64(must1(now.Elems[0].AsInt())) {
			t.Error("a use is a time in ms:", v, err)
		}
		// A program with its own MaxLen observes them too: the lower limit, 1, applies.
		small := open(t, b.Conn, name, modeLayout, Options[string, int]{MaxLen: 1})
		if err := small.Set(ctx, "d", 1, time.Hour); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		must(t, m.Set(ctx, "e", 1, time.Hour)) // Java has set the mode
		if v, err := b.Do(ctx, "HGET", options, "mode"); v.Str != "LRU" || err != nil {
			t.Error(v, err)
		}
	})
}

func second(_ ebb.Value, err error) error { return err }

func must1(n int64, _ error) int64 { return n }

// TestEvictionModel compares the entries that a map evicts with a list of uses, in every layout.
func TestEvictionModel(t *testing.T) {
	expirytest.Play(t, modes, func(t *rapid.T, b *ebbtest.Backend, name string, lay mode) map[string]func(*rapid.T) {
		o := Options[string, int]{MaxLen: rapid.Int64Range(1, 4).Draw(t, "maxlen"),
			Eviction: rapid.SampledFrom([]Eviction{LRU, LFU}).Draw(t, "eviction")}
		if rapid.Bool().Draw(t, "idles") {
			o.IdleTTL = 50 * time.Millisecond
		}
		create := New[string, int]
		if lay == modeLayout {
			create = newRedisson[string, int]
		}
		m, err := create(b.Conn, name, o)
		if err != nil {
			t.Fatal(err)
		}
		if lay == modeFields || lay == modeZset {
			m.force = lay
		}
		model := expirytest.Model[int]{Backend: b, Of: m, Delete: m.Remove, Idle: o.IdleTTL, Sharp: lay == modeLayout}
		w := &evicting{world: world{m: m, Model: model}, o: o}
		return w.Steps(map[string]func(*rapid.T){"set": w.set, "set many": w.setMany, "get": w.get, "add": w.add, "": w.compare})
	})
}

// evicting is a world that also records how often, and in which order, entries were used.
type evicting struct {
	world
	o     Options[string, int]
	order []string // the most recent use is last
	uses  map[string]int
	gone  int64 // evictions
}

func (w *evicting) use(k string) {
	w.order = append(slices.DeleteFunc(w.order, func(x string) bool { return x == k }), k)
	w.uses[k]++
}

// evict removes entries until n new ones have space, but none in keep.
func (w *evicting) evict(n int, keep ...string) {
	if w.uses == nil {
		w.uses = map[string]int{}
	}
	for _, k := range slices.Clone(w.order) { // entries that have expired or were removed
		if _, there := w.Get(k); !there {
			w.forget(k)
		}
	}
	for w.Len()+n > int(w.o.MaxLen) && n > 0 {
		first := ""
		for _, k := range w.order {
			if slices.Contains(keep, k) {
				continue
			}
			if first == "" || w.o.Eviction == LFU && (w.uses[k] < w.uses[first] || w.uses[k] == w.uses[first] && k < first) {
				first = k
			}
		}
		w.Drop(first)
		w.forget(first)
		w.gone++
	}
}

func (w *evicting) compare(t *rapid.T) {
	w.world.compare(t)
	if n := w.m.Figures().Evicted; n != w.gone {
		t.Fatalf("Figures count %d evictions, want %d", n, w.gone)
	}
}

func (w *evicting) forget(k string) {
	w.order = slices.DeleteFunc(w.order, func(x string) bool { return x == k })
	delete(w.uses, k)
}

func (w *evicting) set(t *rapid.T) {
	k, v, ttl := expirytest.Keys.Draw(t, "key"), rapid.IntRange(0, 99).Draw(t, "value"), expirytest.TTLs.Draw(t, "ttl")
	expirytest.Check(t, "set", true, true, w.m.Set(t.Context(), k, v, ttl))
	w.put(k, v, ttl)
}

func (w *evicting) put(k string, v int, ttl time.Duration) {
	if _, there := w.Get(k); there {
		w.evict(0)
	} else {
		w.evict(1)
	}
	w.Put(k, v, ttl)
	w.use(k)
}

// setMany sets two entries. The model of LRU would need their order, so one of them exists.
func (w *evicting) setMany(t *rapid.T) {
	k, old, v := expirytest.Keys.Draw(t, "key"), expirytest.Keys.Draw(t, "old"), rapid.IntRange(0, 99).Draw(t, "value")
	many := map[string]int{k: v, old: v}
	if len(many) > int(w.o.MaxLen) || w.o.Eviction == LRU && len(many) > 1 {
		return
	}
	expirytest.Check(t, "set many", true, true, w.m.SetMany(t.Context(), many, 0))
	fresh := 0
	for x := range many {
		if _, there := w.Get(x); !there {
			fresh++
		}
	}
	w.evict(fresh, k, old)
	for x := range many {
		w.Put(x, v, 0)
		w.use(x)
	}
}

func (w *evicting) add(t *rapid.T) {
	k := expirytest.Keys.Draw(t, "key")
	is, there := w.Get(k)
	sum, err := w.m.Increment(t.Context(), k, 1, 0)
	expirytest.Check(t, "increment", sum, int64(is)+1, err)
	if !there {
		w.put(k, int(sum), 0)
		return
	}
	w.evict(0)
	w.Change(k, int(sum))
	w.use(k)
}

func (w *evicting) get(t *rapid.T) {
	w.world.getAnd(t, func(k string) {
		w.evict(0)
		w.use(k)
	})
}
