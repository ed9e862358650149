package expmap

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// reported reports whether the backend reports changes, so that local values are coherent.
func reported(b *backends.Backend) bool { return b.Kind != "ebb-scripts" }

// tracks waits until m keeps local values.
func tracks(b *backends.Backend, m *Map[string, int]) {
	b.Until("local values", func() bool {
		_, _, _ = m.Get(b.Context(), "k")
		n, ok := m.near.Len()
		return n > 0 && (ok || !reported(b))
	})
}

func TestALocalValueGoesWhenAnotherProgramChangesIt(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		other := open(t, b.Open(), name, lay, Options[string, int]{})
		m := open(t, b.Conn, name, lay, Options[string, int]{Local: 10})
		defer m.Close()
		must(t, other.Set(ctx, "k", 0, time.Hour))
		tracks(b, m)
		before := m.Figures()
		for range 5 {
			if v, ok, err := m.Get(ctx, "k"); v != 0 || !ok || err != nil {
				t.Error(v, ok, err)
			}
		}
		if f := m.Figures(); f.Local-before.Local != 5 || f.Hits-before.Hits != 5 {
			t.Errorf("%+v, and before %+v", f, before)
		}
		stale := 0
		for i := 1; i <= 50; i++ {
			must(t, other.Set(ctx, "k", i, time.Hour))
			if !reported(b) {
				b.Until("the new value", func() bool { v, _, _ := m.Get(ctx, "k"); return v == i })
				break
			}
			b.Until("the report", func() bool { n, _ := m.near.Len(); return n == 0 })
			if v, ok, err := m.Get(ctx, "k"); v != i {
				stale++
				t.Error(v, ok, err, "want", i)
			}
		}
		t.Log("stale reads after a report:", stale)
	})
}

func TestAProgramReadsWhatItHasWritten(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Local: 10})
		defer m.Close()
		must(t, m.Set(ctx, "k", 0, time.Hour))
		tracks(b, m)
		want := 0
		for i, write := range []func() error{
			func() error { want = 1; return m.Set(ctx, "k", 1, time.Hour) },
			func() error { want = 2; return m.SetMany(ctx, map[string]int{"k": 2}, time.Hour) },
			func() error { want = 3; _, err := m.CompareAndSwap(ctx, "k", 2, 3); return err },
			func() error { want = 4; _, err := m.Increment(ctx, "k", 1, 0); return err },
			func() error { want = 0; _, err := m.Remove(ctx, "k"); return err },
			func() error { want = 5; _, err := m.SetNX(ctx, "k", 5, time.Hour); return err },
			func() error { want = 0; return m.Clear(ctx) },
			func() error {
				want = 6
				_, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 6, nil })
				return err
			},
			func() error { want = 0; _, err := m.CompareAndDelete(ctx, "k", 6); return err },
		} {
			_, _, err := m.Get(ctx, "k")
			must(t, err)
			must(t, write())
			if v, ok, err := m.Get(ctx, "k"); v != want || ok != (want != 0) || err != nil {
				t.Errorf("write %d: %v %v %v, want %v", i, v, ok, err, want)
			}
		}
	})
}

func TestFiguresCountLocalValuesThatGaveWay(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Local: 2})
		defer m.Close()
		must(t, m.SetMany(ctx, map[string]int{"k": 1, "l": 2, "m": 3}, time.Hour))
		tracks(b, m)
		must(t, m.Set(ctx, "m", 4, time.Hour)) // a change is not an eviction
		if n := m.Figures().LocalEvicted; n != 0 {
			t.Errorf("%d local values were evicted, want 0", n)
		}
		b.Until("a local value gave way", func() bool {
			for _, k := range []string{"k", "l", "m"} {
				_, _, err := m.Get(ctx, k)
				must(t, err)
			}
			return m.Figures().LocalEvicted > 0
		})
		if n := m.Figures().Evicted; n != 0 {
			t.Errorf("%d entries were evicted, want 0", n)
		}
	})
}

func TestALocalValueLivesToItsDeadline(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		other := open(t, b.Open(), "m", lay, Options[string, int]{})
		m := open(t, b.Conn, "m", lay, Options[string, int]{Local: 10})
		must(t, other.Set(ctx, "k", 1, time.Minute))
		tracks(b, m)
		left, _, err := other.TTL(ctx, "k")
		must(t, err)
		b.Pass(left - time.Millisecond)
		before := m.Figures().Local
		if v, ok, err := m.Get(ctx, "k"); v != 1 || !ok || err != nil {
			t.Error(v, ok, err)
		}
		if m.Figures().Local != before+1 {
			t.Error("it was not kept")
		}
		b.Pass(2 * time.Millisecond)
		if v, ok, err := m.Get(ctx, "k"); ok || err != nil {
			t.Error(v, ok, err)
		}
		must(t, other.Set(ctx, "k", 1, time.Hour))
		tracks(b, m)
		if did, err := other.Expire(ctx, "k", 10*time.Millisecond); !did || err != nil {
			t.Error(did, err)
		}
		b.Pass(11 * time.Millisecond)
		if v, ok, err := m.Get(ctx, "k"); ok || err != nil {
			t.Error("after Expire:", v, ok, err)
		}
	})
}

func TestALostConnectionDropsAllLocalValues(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		switch b.Kind {
		case "ebb2", "ebb3", "redis", "redis8", "valkey9":
		default:
			return // there is no connection, or there are several servers
		}
		ctx, name := b.Context(), b.Name("m")
		conn := b.Open()
		other := open(t, conn, name, modeAuto, Options[string, int]{})
		m := open(t, b.Conn, name, modeAuto, Options[string, int]{Local: 10})
		defer m.Close()
		must(t, other.Set(ctx, "k", 0, time.Hour))
		tracks(b, m)
		for i := 1; i <= 5; i++ {
			// Each killed connection loses reports: the write comes before the next connection, or after it.
			if v, err := conn.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub"); err != nil || v.Int == 0 {
				t.Fatal("killed", v, err)
			}
			must(t, other.Set(ctx, "k", i, time.Hour))
			b.Until("the new value", func() bool {
				v, ok, err := m.Get(ctx, "k")
				if v < i-1 || !ok || err != nil {
					t.Error(v, ok, err)
				}
				return v == i
			})
			for range 100 {
				if v, _, err := m.Get(ctx, "k"); v != i || err != nil {
					t.Error("an old value again:", v, err)
				}
			}
			tracks(b, m)
		}
	})
}

func TestAFamilyForgetsTheMapThatChanged(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		if lay == modeLayout {
			return
		}
		ctx := b.Context()
		f, err := NewFamily[string, int](b.Conn, "carts", Options[string, int]{Local: 10})
		must(t, err)
		f.force = lay
		defer f.Close()
		for _, sub := range []string{"ann", "bob"} {
			must(t, f.Map(sub).Set(ctx, "k", 1, time.Hour))
			tracks(b, f.Map(sub))
		}
		b.Pass(time.Millisecond) // the report of this program's own write may arrive after its read
		for _, sub := range []string{"ann", "bob"} {
			_, _, err = f.Map(sub).Get(ctx, "k")
			must(t, err)
		}
		if n, _ := f.near.Len(); n != 2 {
			t.Fatal(n, "local values")
		}
		other, err := NewFamily[string, int](b.Open(), "carts", Options[string, int]{})
		must(t, err)
		other.force = lay
		if did, err := other.Map("ann").Expire(ctx, "k", time.Minute); !did || err != nil {
			t.Error(did, err)
		}
		b.Pass(time.Millisecond)
		if n, _ := f.near.Len(); n != 1 {
			t.Error(n, "local values")
		}
	})
}

func TestLocalNeedsReadsThatMayStayAway(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	for _, o := range []Options[string, int]{{Local: -1}, {Local: 1, IdleTTL: time.Hour}} {
		if _, err := New(c, "m", o); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
}
