package unique_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/unique"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { backends.Main(m) }

func newCounter(t *testing.T, c *ebb.Conn, name string, o ...unique.Options) *unique.Counter {
	t.Helper()
	u, err := unique.New(c, name, o...)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func add(t *testing.T, ctx context.Context, u *unique.Counter, items ...string) {
	t.Helper()
	if err := u.Add(ctx, items...); err != nil {
		t.Fatal(err)
	}
}

func items(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("item-", from+i)
	}
	return all
}

// is fails unless n is want, as far as five standard deviations of 0.81 % go; small
// counts are exact but for a collision.
func is(t *testing.T, n int64, err error, want int) {
	t.Helper()
	if err != nil || math.Abs(float64(n)-float64(want)) > 5*0.0081*float64(want)+1 {
		t.Errorf("%d, want about %d: %v", n, want, err)
	}
}

func TestEachItemCountsOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{})
		n, err := u.Count(ctx)
		is(t, n, err, 0)
		add(t, ctx, u)
		add(t, ctx, u, items(0, 100)...)
		add(t, ctx, u, items(50, 100)...)
		n, err = u.Count(ctx)
		is(t, n, err, 150)
		add(t, ctx, u, items(0, 5_000)...)
		n, err = u.Count(ctx)
		is(t, n, err, 5_000)
		if err := u.Delete(ctx); err != nil {
			t.Error(err)
		}
		n, err = u.Count(ctx)
		is(t, n, err, 0)
	})
}

func TestTheErrorIsAbout81HundredthsOfAPercent(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sum, rounds := 0.0, 40
	for r := range rounds {
		u := newCounter(t, c, fmt.Sprint("u", r), unique.Options{})
		const n = 6_000
		add(t, t.Context(), u, items(r*n, n)...)
		got, err := u.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e := float64(got)/n - 1
		sum += e * e
	}
	rms := 100 * math.Sqrt(sum/float64(rounds))
	t.Logf("root mean square of the error: %.2f %%", rms)
	if rms > 1.2 || rms < 0.4 { // the items are the same every time
		t.Error(rms)
	}
}

func TestTheLastMinutes(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: time.Hour, Bucket: time.Minute})
		for m := range 70 { // one new each minute, and one user that is always there
			add(t, ctx, u, fmt.Sprint("m", m), "regular")
			for _, last := range []int{1, 10, 60} {
				n, err := u.CountLast(ctx, time.Duration(last)*time.Minute)
				low, high := min(m+1, last)+1, min(m+1, last+1)+1
				if err != nil || n < int64(low)-1 || n > int64(high)+1 {
					t.Errorf("minute %d, last %d: %d, want %d to %d: %v", m, last, n, low, high, err)
				}
			}
			b.Pass(time.Minute)
		}
		n, err := u.Count(ctx)
		is(t, n, err, 71)
		b.Pass(62 * time.Minute)
		if left, err := b.DBSize(ctx); left != 1 || err != nil {
			t.Error("keys left:", left, err)
		}
		n, err = u.CountLast(ctx, time.Hour)
		is(t, n, err, 0)
	})
}

func TestNothingOfTheSpanIsLeftOut(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: time.Hour, Bucket: time.Minute})
		add(t, ctx, u, "early") // as the first of its bucket
		b.Pass(50 * time.Second)
		add(t, ctx, u, "late")
		b.Pass(time.Hour)
		if n, err := u.CountLast(ctx, time.Hour); n < 1 || err != nil {
			t.Error("late", n, err)
		}
		b.Pass(2*time.Hour + 30*time.Second) // amid a bucket
		for _, d := range []time.Duration{time.Millisecond, time.Minute, 10 * time.Minute, time.Hour} {
			add(t, ctx, u, fmt.Sprint(d))
			b.Pass(d)
			if n, err := u.CountLast(ctx, d); n < 1 || err != nil {
				t.Error(d, n, err)
			}
			b.Pass(2 * time.Hour)
		}
	})
}

func TestTheLastMomentsOnAnyBackend(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: 400 * time.Millisecond, Bucket: 20 * time.Millisecond, TTL: time.Hour})
		other := newCounter(t, b.Open(), b.Name("u"), unique.Options{Window: 400 * time.Millisecond, Bucket: 20 * time.Millisecond})
		add(t, ctx, u, items(0, 50)...)
		add(t, ctx, other, items(25, 50)...)
		if n, err := u.CountLast(ctx, 400*time.Millisecond); err != nil || n > 77 || b.Virtual() && n < 73 {
			t.Error(n, err)
		}
		b.Until("they are too long ago", func() bool {
			n, err := other.CountLast(ctx, 100*time.Millisecond)
			return n == 0 && err == nil
		})
		n, err := u.Count(ctx)
		is(t, n, err, 75)
		if ttl, err := b.TTL(ctx, b.Name("u")); ttl <= 0 || ttl > time.Hour || err != nil {
			t.Error(ttl, err)
		}
	})
}

func TestMerge(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		var all []*unique.Counter
		for i, name := range []string{"a", "b", "c"} {
			u := newCounter(t, b.Conn, b.Name(name), unique.Options{TTL: time.Hour})
			add(t, ctx, u, items(100*i, 200)...)
			all = append(all, u)
		}
		sum := newCounter(t, b.Conn, b.Name("sum"), unique.Options{TTL: time.Hour})
		none := newCounter(t, b.Conn, b.Name("none"), unique.Options{})
		for range 2 { // again changes nothing
			if err := sum.Merge(ctx, append(all, none)...); err != nil {
				t.Fatal(err)
			}
			n, err := sum.Count(ctx)
			is(t, n, err, 400)
		}
		n, err := all[0].Count(ctx)
		is(t, n, err, 200)
		if ttl, err := b.TTL(ctx, b.Name("sum")); ttl <= 0 || err != nil {
			t.Error(ttl, err)
		}
	})
}

func TestMergeTakesCountersOfOtherConnections(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		c, err := ebb.Open(ctx, "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		there, here := newCounter(t, c, b.Name("u"), unique.Options{}), newCounter(t, b.Conn, b.Name("u"))
		add(t, ctx, there, items(0, 30)...)
		add(t, ctx, here, items(20, 30)...)
		if err := here.Merge(ctx, there); err != nil {
			t.Fatal(err)
		}
		n, err := here.Count(ctx)
		is(t, n, err, 50)
		for key, err := range b.Scan(ctx, "*"+b.Name("u")+"*copy*") {
			t.Error("is left:", key, err)
		}
	})
}

func TestManyAddAtOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: time.Minute, Bucket: 500 * time.Millisecond})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 20 {
					if err := u.Add(ctx, items(100*w+10*i, 20)...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		n, err := u.CountLast(ctx, time.Minute)
		is(t, n, err, 510)
		n, err = u.Count(ctx)
		is(t, n, err, 510)
	})
}

func TestCountsOutliveAFault(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: time.Hour})
		add(t, ctx, u, items(0, 100)...)
		if !b.Fault() {
			return
		}
		b.Until("it adds again", func() bool { return u.Add(ctx, "x") == nil })
		n, err := u.CountLast(ctx, time.Hour)
		is(t, n, err, 101)
	})
}

func TestCallsEndWithTheContext(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: time.Hour})
		if err := u.Add(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := u.CountLast(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := u.Count(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The model of a counter is a set; of few items it is exact.
func TestACounterIsASet(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	round := 0
	draw.Check(t, func(t *rapid.T) {
		round++
		ctx := context.Background()
		u, err := unique.New(c, fmt.Sprint("model", round), unique.Options{Window: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		model := map[string]bool{}
		for _, x := range rapid.SliceOf(rapid.StringN(1, 2, -1)).Draw(t, "items") {
			if err := u.Add(ctx, x); err != nil {
				t.Fatal(err)
			}
			model[x] = true
		}
		n, err := u.Count(ctx)
		last, err2 := u.CountLast(ctx, time.Hour)
		if n != last || math.Abs(float64(n)-float64(len(model))) > 1 || err != nil || err2 != nil {
			t.Fatal(n, last, len(model), err, err2)
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []unique.Options{
		{Window: -1}, {Bucket: time.Second}, {TTL: -1}, {Window: time.Second, Bucket: time.Minute}, {Window: time.Hour, Bucket: time.Second},
		{Window: time.Second, Bucket: time.Millisecond + 1},
	} {
		if _, err := unique.New(new(ebb.Conn), "x", o); !errors.Is(err, ebb.ErrArgument) {
			t.Error(o, err)
		}
	}
	u, err := unique.New(new(ebb.Conn), "x", unique.Options{Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{0, 2 * time.Hour} {
		if _, err := u.CountLast(t.Context(), d); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
}

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	visitors, err := unique.New(c, "visitors", unique.Options{Window: time.Hour})
	if err != nil {
		panic(err)
	}
	fmt.Println(visitors.Add(ctx, "ann", "bob", "ann"))
	fmt.Println(visitors.Count(ctx))
	fmt.Println(visitors.CountLast(ctx, 10*time.Minute))
	// Output:
	// <nil>
	// 2 <nil>
	// 2 <nil>
}

func TestAWindowMayBeAsLongAsAnySpan(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		u := newCounter(t, b.Conn, b.Name("u"), unique.Options{Window: math.MaxInt64})
		add(t, b.Context(), u, "ann")
		n, err := u.CountLast(b.Context(), time.Hour)
		is(t, n, err, 1)
	})
}
