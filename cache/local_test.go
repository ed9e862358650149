package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/backends"
)

// keeps waits until Get of k finds a local value.
func keeps(t *testing.T, b *backends.Backend, x *Cache[string, string], load Loader[string, string]) {
	t.Helper()
	b.Until("a local value", func() bool {
		before := x.Figures().Local
		_, err := x.Get(b.Context(), "k", load)
		return err == nil && x.Figures().Local > before
	})
}

func TestALocalValueGoesWhenItChanges(t *testing.T) {
	each(t, Options[string, string]{Fresh: time.Hour, TTL: 2 * time.Hour, Local: 10}, func(t *testing.T, b *backends.Backend,
		x *Cache[string, string]) {
		if b.Kind == "ebb-scripts" {
			return // there are no reports of changes: a value is kept for a tenth of an hour
		}
		ctx, y := b.Context(), open(t, b.Open(), x.name, Options[string, string]{Fresh: time.Hour, TTL: 2 * time.Hour})
		y.scripts = x.scripts
		defer y.Close()
		var calls atomic.Int64
		load := loads("loaded", &calls)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		becomes := func(value string) {
			t.Helper()
			b.Until(value, func() bool {
				v, err := x.Get(ctx, "k", load)
				must(err)
				return v == value
			})
			keeps(t, b, x, load)
			want(t, x, value, load)
		}
		must(y.Set(ctx, "k", "1"))
		becomes("1")
		must(y.Set(ctx, "k", "2"))
		becomes("2")
		must(y.Delete(ctx, "k"))
		becomes("loaded")
		must(y.Set(ctx, "k", "3"))
		becomes("3")
		must(y.Stale(ctx, "k"))
		becomes("loaded")
		// A process reads its own writes at once.
		for _, v := range []string{"4", "5"} {
			must(x.Set(ctx, "k", v))
			want(t, x, v, load)
			keeps(t, b, x, load)
		}
		must(x.Delete(ctx, "k"))
		want(t, x, "loaded", load)
		if calls.Load() != 3 {
			t.Error(calls.Load(), "loads, want 3")
		}
	})
}

func TestALocalValueIsFreshToTheMillisecond(t *testing.T) {
	virtually(t, Options[string, string]{Fresh: time.Minute, TTL: time.Hour, Local: 10}, func(t *testing.T, b *backends.Backend,
		x *Cache[string, string]) {
		var calls atomic.Int64
		load := loads("new", &calls)
		if err := x.Set(context.Background(), "k", "old"); err != nil {
			t.Fatal(err)
		}
		keeps(t, b, x, load)
		began, kept := time.Now(), x.Figures().Local
		for time.Since(began) < 59*time.Second {
			b.Pass(time.Second)
			want(t, x, "old", load)
		}
		if f := x.Figures(); f.Local-kept != 59 || f.Stale != 0 {
			t.Errorf("%+v", f)
		}
		b.Pass(2 * time.Second)
		want(t, x, "old", load) // the stale value is not local, and another value is loaded
		b.Until("the load", func() bool { return x.Figures().Loads == 1 && calls.Load() == 1 })
		b.Pass(time.Millisecond)
		want(t, x, "new", load)
		if f := x.Figures(); f.Stale != 1 {
			t.Errorf("%+v", f)
		}
	})
}

func TestWithoutReportsALocalValueIsKeptForATenthOfFresh(t *testing.T) {
	virtually(t, Options[string, string]{}, func(t *testing.T, b *backends.Backend, _ *Cache[string, string]) {
		ctx := b.Context()
		o := Options[string, string]{Fresh: 100 * time.Second, TTL: time.Hour, Local: 10}
		x := open(t, b.Hidden(), "unreported", o)
		defer x.Close()
		y := open(t, b.Hidden(), "unreported", Options[string, string]{Fresh: o.Fresh, TTL: o.TTL})
		defer y.Close()
		if err := y.Set(ctx, "k", "1"); err != nil {
			t.Fatal(err)
		}
		keeps(t, b, x, loads("loaded", new(atomic.Int64)))
		if err := y.Set(ctx, "k", "2"); err != nil {
			t.Fatal(err)
		}
		want(t, x, "1", loads("loaded", new(atomic.Int64)))
		b.Pass(10 * time.Second)
		want(t, x, "2", loads("loaded", new(atomic.Int64)))
	})
}
