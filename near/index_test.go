package near

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// each runs a test on each kind of backend, and with scripts also on ebb.
func each(t *testing.T, test func(t *testing.T, b *backends.Backend, x *Index)) {
	t.Helper()
	on(t, backends.Each, test)
}

// virtually is each in virtual time alone.
func virtually(t *testing.T, test func(t *testing.T, b *backends.Backend, x *Index)) {
	t.Helper()
	on(t, backends.Virtual, test)
}

func on(t *testing.T, kinds backends.On, test func(t *testing.T, b *backends.Backend, x *Index)) {
	t.Helper()
	for _, scripts := range []bool{false, true} {
		kinds := kinds
		if scripts {
			kinds = backends.Virtual // elsewhere that is how it is, or kind ebb-scripts has it
		}
		t.Run(map[bool]string{false: "as-it-is", true: "scripts"}[scripts], func(t *testing.T) {
			kinds(t, func(t *testing.T, b *backends.Backend) {
				x, err := New(b.Conn, b.Name("drivers"))
				must(t, err)
				x.scripts = scripts
				test(t, b, x)
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Three cities.
var (
	berlin  = Point{13.4050, 52.5200}
	hamburg = Point{9.9937, 53.5511}
	paris   = Point{2.3522, 48.8566}
)

func placeCities(t *testing.T, ctx context.Context, x *Index, ttl time.Duration) {
	t.Helper()
	must(t, x.Place(ctx, "Berlin", berlin.Lon, berlin.Lat, ttl))
	must(t, x.Place(ctx, "Hamburg", hamburg.Lon, hamburg.Lat, ttl))
	must(t, x.Place(ctx, "Paris", paris.Lon, paris.Lat, ttl))
}

func names(found []Found) (all []string) {
	for _, f := range found {
		all = append(all, f.Member)
	}
	return all
}

func TestWhatIsNearIsFoundNearestFirst(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx := b.Context()
		for _, ttl := range []time.Duration{time.Hour, 0} {
			placeCities(t, ctx, x, ttl)
			found, err := x.Within(ctx, 13, 52, 300*Kilometer)
			if err != nil || !slices.Equal(names(found), []string{"Berlin", "Hamburg"}) {
				t.Fatal(found, err)
			}
			if d := found[0].Distance; math.Abs(d.In(Kilometer)-64.0732) > 0.001 {
				t.Error(d)
			}
			if p := found[0].Point; math.Abs(p.Lon-berlin.Lon) > 1e-5 || math.Abs(p.Lat-berlin.Lat) > 1e-5 {
				t.Error(p)
			}
			found, err = x.Nearest(ctx, paris.Lon, paris.Lat, 2, 5000*Kilometer)
			if err != nil || !slices.Equal(names(found), []string{"Paris", "Hamburg"}) {
				t.Error(found, err)
			}
			found, err = x.WithinBox(ctx, 13, 52, 150*Kilometer, 150*Kilometer)
			if err != nil || !slices.Equal(names(found), []string{"Berlin"}) {
				t.Error(found, err)
			}
			found, err = x.WithinOf(ctx, "Hamburg", 300*Kilometer)
			if err != nil || !slices.Equal(names(found), []string{"Hamburg", "Berlin"}) {
				t.Error(found, err)
			}
			if d, ok, err := x.Distance(ctx, "Berlin", "Paris"); !ok || err != nil || math.Abs(d.In(Kilometer)-877.7111) > 0.001 {
				t.Error(d, ok, err)
			}
			if h, ok, err := x.Hash(ctx, "Berlin"); h != "u33dc0cppj0" || !ok || err != nil {
				t.Error(h, ok, err)
			}
			if p, ok, err := x.Position(ctx, "Paris"); !ok || err != nil || math.Abs(p.Lon-paris.Lon) > 1e-5 {
				t.Error(p, ok, err)
			}
		}
		if n, err := x.Remove(ctx, "Berlin", "nothing"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if _, ok, err := x.Position(ctx, "Berlin"); ok || err != nil {
			t.Error(ok, err)
		}
		if n, err := x.Len(ctx); n != 2 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestAMemberThatIsNotSeenIsForgotten(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx := b.Context()
		placeCities(t, ctx, x, 100*time.Millisecond)
		must(t, x.Place(ctx, "Paris", paris.Lon, paris.Lat, time.Hour)) // seen again
		must(t, x.Place(ctx, "Hamburg", hamburg.Lon, hamburg.Lat, 0))
		b.Pass(150 * time.Millisecond)
		found, err := x.Within(ctx, 13, 52, 1000*Kilometer)
		if err != nil || !slices.Equal(names(found), []string{"Hamburg", "Paris"}) {
			t.Error(found, err)
		}
		if _, ok, err := x.Position(ctx, "Berlin"); ok || err != nil {
			t.Error(ok, err)
		}
		if _, ok, err := x.Hash(ctx, "Berlin"); ok || err != nil {
			t.Error(ok, err)
		}
		if _, ok, err := x.Distance(ctx, "Berlin", "Paris"); ok || err != nil {
			t.Error(ok, err)
		}
		for _, member := range []string{"Berlin", ""} {
			if _, err := x.WithinOf(ctx, member, 20_000*Kilometer); !errors.Is(err, ErrNoMember) {
				t.Errorf("%q: %v", member, err)
			}
		}
		if _, ok, err := x.TTL(ctx, "Berlin"); ok || err != nil {
			t.Error(ok, err)
		}
		if d, ok, err := x.TTL(ctx, "Paris"); !ok || err != nil || d <= 50*time.Minute || d > time.Hour {
			t.Error(d, ok, err)
		}
		if d, ok, err := x.TTL(ctx, "Hamburg"); d != ebb.Forever || !ok || err != nil {
			t.Error(d, ok, err)
		}
		if n, err := x.Remove(ctx, "Berlin"); n != 0 || err != nil {
			t.Error(n, err)
		}
		if n, err := x.Remove(ctx, "Hamburg", "Paris"); n != 2 || err != nil {
			t.Error(n, err)
		}
		if _, err := x.WithinOf(ctx, "Berlin", Kilometer); !errors.Is(err, ErrNoMember) {
			t.Error("of an empty index:", err)
		}
	})
}

func TestAMemberLivesToTheMillisecond(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx := b.Context()
		placeCities(t, ctx, x, time.Minute)
		b.Pass(time.Minute)
		if n, err := x.Len(ctx); n != 3 || err != nil {
			t.Error(n, err)
		}
		if found, err := x.Within(ctx, 13, 52, 1000*Kilometer); len(found) != 3 || err != nil {
			t.Error(found, err)
		}
		b.Pass(time.Millisecond)
		if found, err := x.Within(ctx, 13, 52, 1000*Kilometer); len(found) != 0 || err != nil {
			t.Error(found, err)
		}
		b.Pass(time.Millisecond)
		if n, err := b.DBSize(ctx); n != 0 || err != nil {
			t.Error("something is left over", n, err)
		}
	})
}

func TestTheDeadTakeNoPlaceAmongTheNearest(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx := b.Context()
		for i := range 400 { // more than one script removes on its way
			must(t, x.Place(ctx, fmt.Sprint("dead", i), 13+float64(i)*1e-5, 52, time.Minute))
		}
		for i := range 5 {
			must(t, x.Place(ctx, fmt.Sprint("alive", i), 14+float64(i)*0.1, 52, time.Hour))
		}
		b.Pass(time.Minute + time.Millisecond)
		if found, err := x.WithinOf(ctx, "dead399", 1000*Kilometer); !errors.Is(err, ErrNoMember) {
			t.Error(len(found), err)
		}
		found, err := x.Nearest(ctx, 13, 52, 3, 1000*Kilometer)
		if err != nil || !slices.Equal(names(found), []string{"alive0", "alive1", "alive2"}) {
			t.Error(found, err)
		}
		if n, err := x.Len(ctx); n != 5 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestWatchRemovesTheDeadInTime(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx, cancel := context.WithCancel(b.Context())
		placeCities(t, ctx, x, time.Minute)
		must(t, x.Place(ctx, "Berlin", 13, 52, 0))
		done := make(chan error)
		go func() { done <- x.Watch(ctx) }()
		b.Pass(time.Minute + 2*time.Second)
		if n, err := b.Do(ctx, "ZCARD", x.name); n.Int != 1 || err != nil {
			t.Error(n, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	if _, err := New(c, ""); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	x, err := New(c, "x")
	must(t, err)
	for _, err := range []error{
		x.Place(t.Context(), "m", 181, 0, 0),
		x.Place(t.Context(), "m", 0, 86, 0),
		x.Place(t.Context(), "m", math.NaN(), 0, 0),
		x.Place(t.Context(), "m", 0, 0, -1),
		second(x.Within(t.Context(), 0, 0, 0)),
		second(x.WithinBox(t.Context(), 0, 0, 1, 0)),
		second(x.Nearest(t.Context(), 0, 0, 0, 1)),
		second(x.Search(t.Context(), Query{Radius: 1, Width: 1, Height: 1})),
	} {
		if !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
	if s := (870 * Meter).String() + ", " + (12.4 * Kilometer).String(); s != "870 m, 12.4 km" {
		t.Error(s)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Place(ended, "m", 0, 0, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func second(_ []Found, err error) error { return err }

func TestPlacesOutliveACrash(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, x *Index) {
		ctx := b.Context()
		placeCities(t, ctx, x, time.Hour)
		if !b.Fault() { // the scripts are forgotten too
			return
		}
		b.Until("all are there again", func() bool {
			n, err := x.Len(ctx)
			return n == 3 && err == nil
		})
		b.Until("and may move", func() bool { return x.Place(ctx, "Berlin", 13, 52, time.Hour) == nil })
	})
}

func TestWatchOutlivesALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		x, err := New(b.Conn, "drivers")
		must(t, err)
		x.scripts = true
		ctx, stop := context.WithCancel(t.Context())
		placeCities(t, ctx, x, time.Minute)
		must(t, x.Place(ctx, "Berlin", 13, 52, 0))
		done := make(chan error)
		go func() { done <- x.Watch(ctx) }()
		time.Sleep(30 * time.Second)
		b.Restart()
		time.Sleep(31 * time.Second)
		if s := b.Data.SortedSet("drivers"); len(s) != 1 {
			t.Error(s)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The first use of an index is logged, and the log's line describes it.
func TestTheFirstUseIsLogged(t *testing.T) {
	var log strings.Builder
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		x, err := New(b.Conn, b.Name("drivers"),
			Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		must(t, err)
		placeCities(t, t.Context(), x, time.Minute)
		if n := strings.Count(log.String(), "first use"); n != 1 || !strings.Contains(log.String(), x.name) {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}
