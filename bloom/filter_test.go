package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { backends.Main(m) }

// both runs a test with ebb's own filters, where there are any, and with scripts
// elsewhere. Of ebb's backends the one in virtual time runs the scripts too: they have
// the same engine, and the same Lua.
func both(t *testing.T, test func(t *testing.T, b *backends.Backend, filter func(name string, o bloom.Options[int]) *bloom.Filter[int])) {
	t.Helper()
	on(t, backends.Each, test)
}

// virtually is both in virtual time alone.
func virtually(t *testing.T, test func(t *testing.T, b *backends.Backend,
	filter func(name string, o bloom.Options[int]) *bloom.Filter[int])) {
	t.Helper()
	on(t, backends.Virtual, test)
}

func on(t *testing.T, kinds backends.On, test func(t *testing.T, b *backends.Backend,
	filter func(name string, o bloom.Options[int]) *bloom.Filter[int])) {
	t.Helper()
	kinds(t, func(t *testing.T, b *backends.Backend) {
		for _, scripts := range []bool{false, true} {
			if scripts == b.Native() && !(scripts && b.Virtual()) {
				continue
			}
			test(t, b, func(name string, o bloom.Options[int]) *bloom.Filter[int] {
				t.Helper()
				f, err := bloom.New(b.Conn, b.Name(fmt.Sprintf("%s/%v", name, scripts)), o)
				if err != nil {
					t.Fatal(err)
				}
				if scripts {
					f.ForceScripts()
				}
				return f
			})
		}
	})
}

func numbers(from, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = from + i
	}
	return all
}

func addAll(t *testing.T, ctx context.Context, f *bloom.Filter[int], values []int) (isNew int) {
	t.Helper()
	all, err := f.AddMany(ctx, values...)
	if err != nil || len(all) != len(values) {
		t.Fatal(len(all), err)
	}
	for _, yes := range all {
		if yes {
			isNew++
		}
	}
	return isNew
}

func found(t *testing.T, ctx context.Context, f *bloom.Filter[int], values []int) (n int) {
	t.Helper()
	all, err := f.ContainsMany(ctx, values...)
	if err != nil || len(all) != len(values) {
		t.Fatal(len(all), err)
	}
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}

func TestWhatWasAddedIsFound(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		for _, o := range []bloom.Options[int]{
			{Capacity: 30}, {Capacity: 1000, Fixed: true, Error: 0.001}, {Capacity: 100, Window: time.Hour},
			{Capacity: 1, Expansion: 3}, {Capacity: 20, Window: time.Hour, Generations: 1},
		} {
			f := filter(fmt.Sprint(o), o)
			if n := found(t, ctx, f, numbers(0, 10)); n != 0 {
				t.Error(f, "an empty filter finds", n)
			}
			isNew := addAll(t, ctx, f, numbers(0, 100))
			if n := found(t, ctx, f, numbers(0, 100)); n != 100 {
				t.Error(f, "finds only", n)
			}
			if again := addAll(t, ctx, f, numbers(0, 100)); again != 0 {
				t.Error(f, "finds new again", again)
			}
			if n, err := f.Count(ctx); n != int64(isNew) || n < 93 || err != nil {
				t.Error(f, "counts", n, "of", isNew, err)
			}
			if err := f.Delete(ctx); err != nil {
				t.Error(err)
			}
			if n, err := f.Count(ctx); n != 0 || err != nil {
				t.Error(n, err)
			}
			if n := found(t, ctx, f, numbers(0, 100)); n != 0 {
				t.Error(f, "is deleted and finds", n)
			}
		}
	})
}

// atMost is the bound of what chance explains, four standard deviations above.
func atMost(p float64, samples int) int {
	n := p * float64(samples)
	return int(n + 4*math.Sqrt(n) + 1)
}

func TestTheRateAskedIsTheRateGot(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		const samples = 1000
		for _, o := range []bloom.Options[int]{
			{Capacity: 700, Error: 0.05, Fixed: true}, {Capacity: 100, Error: 0.05}, {Capacity: 500, Error: 0.05, Window: time.Hour, Generations: 2},
		} {
			f := filter(fmt.Sprint(o), o)
			addAll(t, ctx, f, numbers(0, 700))
			n := found(t, ctx, f, numbers(1_000_000, samples))
			t.Logf("%v: %.2f %% of %d", f, 100*float64(n)/samples, samples)
			if n > atMost(0.05, samples) {
				t.Error(f, "finds by mistake", n, "of", samples)
			}
		}
	})
}

func TestTheShapeKeepsItsRate(t *testing.T) { // without a backend, so with many samples
	for _, p := range []float64{0.3, 0.05, 0.01} {
		for _, n := range []int64{10, 100, 10_000} {
			m, k := bloom.Shape(n, p)
			const samples = 20_000
			hits, filters := 0, int(max(1, 4_000/n))
			for filter := range filters {
				set := make([]bool, m)
				for i := range n {
					for _, at := range bloom.Places(fmt.Sprint(filter, "in", i), m, k) {
						set[at] = true
					}
				}
				for i := range samples / filters {
					all := true
					for _, at := range bloom.Places(fmt.Sprint(filter, "out", i), m, k) {
						all = all && set[at]
					}
					if all {
						hits++
					}
				}
			}
			if hits > atMost(p, samples) {
				t.Errorf("%d values at %v: %v", n, p, float64(hits)/samples)
			}
			if m > 2000 && float64(hits) < 0.7*p*samples {
				t.Errorf("%d values at %v: only %v, a waste of memory", n, p, float64(hits)/samples)
			}
		}
	}
}

func TestTheRateHoldsAcrossGenerations(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("spread", bloom.Options[int]{Capacity: 480, Error: 0.2, Window: 8 * time.Hour})
		for i := range 12 {
			addAll(t, ctx, f, numbers(60*i, 60))
			b.Pass(time.Hour)
		}
		const samples = 1000
		if n := found(t, ctx, f, numbers(1_000_000, samples)); n > atMost(0.2, samples) {
			t.Error(f, "finds by mistake", n, "of", samples)
		}
		if n := found(t, ctx, f, numbers(240, 480)); n != 480 {
			t.Error(n)
		}
	})
}

func TestWhatIsLeftOfAnotherFilterIsNotFound(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		f, err := bloom.New(b.Conn, b.Name("left"), bloom.Options[int]{Capacity: 10})
		if err != nil {
			t.Fatal(err)
		}
		f.ForceScripts()
		for _, layer := range []string{"1", "2", "3"} {
			if err := b.Set(ctx, "{"+b.Name("left")+"}:0:"+layer, strings.Repeat("\xff", 2000)); err != nil {
				t.Fatal(err)
			}
		}
		addAll(t, ctx, f, numbers(0, 60))
		if n := found(t, ctx, f, numbers(1000, 100)); n > atMost(0.01, 100) {
			t.Error(n, "of 100 are found by mistake")
		}
	})
}

func TestAClockThatGoesBackForgetsNothing(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		f, err := bloom.New(b.Conn, b.Name("back"), bloom.Options[int]{Window: time.Hour, Generations: 4, Error: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		f.ForceScripts()
		addAll(t, ctx, f, numbers(0, 10))
		for slot := range 5 { // the same slot, a window and a generation ahead
			if v, err := b.Do(ctx, "HEXISTS", b.Name("back"), fmt.Sprint("j", slot)); err != nil {
				t.Fatal(err)
			} else if v.Int == 1 {
				if _, err := b.Do(ctx, "HINCRBY", b.Name("back"), fmt.Sprint("j", slot), 5); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := addAll(t, ctx, f, numbers(5, 10)); n != 5 {
			t.Error(n, "are new, of 5")
		}
		if n := found(t, ctx, f, numbers(0, 15)); n != 15 {
			t.Error(n, "are found, of 15")
		}
	})
}

func TestAFixedFilterIsFull(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("fixed", bloom.Options[int]{Capacity: 100, Error: 0.001, Fixed: true})
		all, err := f.AddMany(ctx, numbers(0, 150)...)
		if !errors.Is(err, bloom.ErrFull) || len(all) != 150 || !all[0] || all[149] {
			t.Error(len(all), err)
		}
		if n := found(t, ctx, f, numbers(0, 90)); n != 90 {
			t.Error(n)
		}
		if yes, err := f.Add(ctx, 0); yes || err != nil {
			t.Error("one that is in:", yes, err)
		}
		if yes, err := f.Add(ctx, 1000); yes || !errors.Is(err, bloom.ErrFull) {
			t.Error(yes, err)
		}
		if n, err := f.Count(ctx); n != 100 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestValuesAgeByTheWindow(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("ages", bloom.Options[int]{Capacity: 100, Error: 1e-6, Window: time.Hour, Generations: 4})
		for at := range 22 { // minutes, 7 at a time
			addAll(t, ctx, f, []int{at})
			if isNew, err := f.Add(ctx, -1); isNew != (at == 0) || err != nil { // is renewed, and so never forgotten
				t.Fatal(at, isNew, err)
			}
			all, err := f.ContainsMany(ctx, numbers(0, at+1)...)
			if err != nil {
				t.Fatal(err)
			}
			for v, yes := range all {
				age := time.Duration(at-v) * 7 * time.Minute
				switch {
				case age <= time.Hour && !yes:
					t.Fatal("forgotten after", age)
				case age > time.Hour+15*time.Minute && yes:
					t.Fatal("still there after", age)
				}
			}
			if yes, err := f.Contains(ctx, -1); !yes || err != nil {
				t.Fatal("a renewed value is forgotten", err)
			}
			if n, err := f.Count(ctx); n > 13 || n < min(int64(at), 9) || err != nil {
				t.Fatal(at, "counts", n, err)
			}
			b.Pass(7 * time.Minute)
		}
		b.Pass(2 * time.Hour)
		if n, err := f.Count(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestAnAgeingFilterLeavesNothingBehind(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("gone", bloom.Options[int]{Capacity: 10, Window: 40 * time.Millisecond, Generations: 2})
		addAll(t, ctx, f, numbers(0, 100))
		b.Until("one is forgotten", func() bool { return found(t, ctx, f, numbers(0, 1)) == 0 })
		b.Until("all are", func() bool { return found(t, ctx, f, numbers(0, 100)) == 0 })
		if b.Native() {
			return // the filter stays
		}
		b.Until("the keys are gone", func() bool {
			n := 0
			for _, err := range b.Scan(ctx, "*gone/true*") {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			return n == 0
		})
	})
}

func TestAFilterStaysAsItWasMade(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		one := filter("same", bloom.Options[int]{Capacity: 100, Fixed: true, Error: 0.001})
		two := filter("same", bloom.Options[int]{Capacity: 7000, Window: time.Hour})
		addAll(t, ctx, one, numbers(0, 60))
		if n := found(t, ctx, two, numbers(0, 60)); n != 60 {
			t.Error(n)
		}
		if _, err := two.AddMany(ctx, numbers(60, 60)...); !errors.Is(err, bloom.ErrFull) {
			t.Error(err)
		}
	})
}

// A layer that no string has room for is not made, and earlier values stay found.
func TestAFilterThatCannotGrowIsFull(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		f, err := bloom.New(b.Conn, b.Name("huge"), bloom.Options[int]{Capacity: 300_000, Expansion: 32768})
		if err != nil {
			t.Fatal(err)
		}
		f.ForceScripts()
		if _, err := f.Add(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Do(ctx, "HSET", b.Name("huge"), "n0", 300_000); err != nil { // as if the filter had this many bits
			t.Fatal(err)
		}
		if yes, err := f.Add(ctx, 2); yes || !errors.Is(err, bloom.ErrFull) {
			t.Error(yes, err)
		}
		if yes, err := f.Contains(ctx, 1); !yes || err != nil {
			t.Error(yes, err)
		}
		if yes, err := f.Contains(ctx, 2); yes || err != nil {
			t.Error(yes, err)
		}
		if err := f.Delete(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestDeleteLeavesNothingThatItHasNotSeen(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		filter := func(o bloom.Options[int]) *bloom.Filter[int] {
			f, err := bloom.New(b.Conn, b.Name("del"), o)
			if err != nil {
				t.Fatal(err)
			}
			f.ForceScripts()
			return f
		}
		addAll(t, ctx, filter(bloom.Options[int]{Capacity: 10}), numbers(0, 100)) // four layers
		if err := filter(bloom.Options[int]{Capacity: 3, Window: time.Hour}).Delete(ctx); err != nil {
			t.Error(err)
		}
		for key, err := range b.Scan(ctx, "*"+b.Name("del")+"*") {
			t.Error("is left:", key, err)
		}
	})
}

func TestManyAddAtOnce(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("many", bloom.Options[int]{Capacity: 10, Error: 1e-6})
		var mu sync.Mutex
		var wg sync.WaitGroup
		isNew := 0
		for range 4 { // the same values, each new once
			wg.Go(func() {
				for i := range 10 {
					n := addAll(t, ctx, f, numbers(10*i, 10))
					mu.Lock()
					isNew += n
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if isNew != 100 {
			t.Error(isNew, "were new, of 100")
		}
		if n := found(t, ctx, f, numbers(0, 100)); n != 100 {
			t.Error(n)
		}
	})
}

func TestAFilterOutlivesAFault(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx := b.Context()
		f := filter("fault", bloom.Options[int]{Capacity: 100})
		addAll(t, ctx, f, numbers(0, 100))
		if !b.Fault() {
			return
		}
		b.Until("it adds again", func() bool { _, err := f.Add(ctx, 100); return err == nil })
		if n := found(t, ctx, f, numbers(0, 101)); n != 101 {
			t.Error(n)
		}
	})
}

func TestCallsEndWithTheContext(t *testing.T) {
	both(t, func(t *testing.T, b *backends.Backend, filter func(string, bloom.Options[int]) *bloom.Filter[int]) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		f := filter("ctx", bloom.Options[int]{})
		if _, err := f.Add(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := f.Contains(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := f.Count(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The model of a filter is a set: with this rate it is one.
func TestAFilterIsASet(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	draw.Check(t, func(t *rapid.T) {
		n++
		ctx := context.Background()
		o := bloom.Options[string]{Error: 1e-12, Capacity: int64(rapid.IntRange(1, 5).Draw(t, "capacity")),
			Expansion: rapid.IntRange(1, 3).Draw(t, "expansion")}
		f, err := bloom.New(c, fmt.Sprint("model", n), o)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "scripts") {
			f.ForceScripts()
		}
		model := map[string]bool{}
		value := rapid.StringN(0, 3, -1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				v := value.Draw(t, "v")
				isNew, err := f.Add(ctx, v)
				if err != nil || isNew == model[v] {
					t.Fatal(v, isNew, err)
				}
				model[v] = true
			},
			"contains": func(t *rapid.T) {
				v := value.Draw(t, "v")
				if yes, err := f.Contains(ctx, v); err != nil || yes != model[v] {
					t.Fatal(v, yes, err)
				}
			},
			"": func(t *rapid.T) {
				if n, err := f.Count(ctx); n != int64(len(model)) || err != nil {
					t.Fatal(n, len(model), err)
				}
			},
		})
		if err := f.Delete(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []bloom.Options[int]{
		{Capacity: -1}, {Error: 1}, {Error: -0.1}, {Error: 1e-13}, {Expansion: -1}, {Fixed: true, Expansion: 2}, {Window: -1},
		{Generations: 3}, {Window: time.Hour, Generations: 65}, {Window: time.Millisecond, Generations: 2}, {Capacity: 1 << 31},
		{Capacity: 1 << 30, Error: 1e-9},
	} {
		if _, err := bloom.New(nil, "x", o); !errors.Is(err, ebb.ErrArgument) {
			t.Error(o, err)
		}
	}
}
