package expset

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/expiries"
)

// bubble runs a test in virtual time with a family that runs on scripts, on a backend that can be made to
// fail.
func bubble(t *testing.T, o Options[string], test func(ctx context.Context, b *ebbtest.Backend, f *Family[string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		f, err := NewFamily(b.Conn, "orders", o)
		must(t, err)
		f.scripts = true
		test(t.Context(), b, f)
	})
}

func TestAFamilyIsSweptAlsoOnASlowNetwork(t *testing.T) {
	bubble(t, Options[string]{}, func(ctx context.Context, b *ebbtest.Backend, f *Family[string]) {
		did(t, 1)(f.Set("ann").Add(ctx, 0, "ever"))
		did(t, 1)(f.Set("ann").Add(ctx, time.Minute, "o-1"))
		b.SetLatency(20 * time.Millisecond)
		watching, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- f.Watch(watching) }()
		time.Sleep(30 * time.Second)
		b.Restart() // the family must survive the restart
		time.Sleep(31 * time.Second)
		if s := b.Data.SortedSet("{orders}:ann"); len(s) != 1 {
			t.Error(s)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestTheKeysOfAFamilyEndByThemselves(t *testing.T) {
	for _, events := range []bool{false, true} {
		bubble(t, Options[string]{Events: events}, func(ctx context.Context, b *ebbtest.Backend, f *Family[string]) {
			did(t, 1)(f.Set("ann").Add(ctx, time.Minute, "o-1"))
			stays := time.Minute + time.Millisecond
			if events {
				stays += expiries.Keep
			}
			if d := b.Data.TTL("{orders}:ann"); d != stays {
				t.Errorf("%v, want %v", d, stays)
			}
			if d := b.Data.TTL("{orders}::next"); d != expiries.Keep+time.Minute {
				t.Error(d)
			}
			if !events {
				return
			}
			time.Sleep(time.Minute + time.Millisecond)
			if _, ok, err := f.Set("ann").TTL(ctx, "o-1"); ok || err != nil {
				t.Error(ok, err)
			}
			if n, d := len(b.Data.Stream("{orders}::expired")), b.Data.TTL("{orders}::expired"); n != 1 || d != expiries.Keep {
				t.Errorf("%d events, kept for %v", n, d)
			}
		})
	}
}

func TestASetThatCannotBeSaysSo(t *testing.T) {
	bubble(t, Options[string]{Events: true}, func(ctx context.Context, _ *ebbtest.Backend, f *Family[string]) {
		s := f.Set(":x")
		for name, err := range map[string]error{
			"watch":  s.Watch(ctx),
			"listen": s.OnExpired(ctx, "l", nil),
			"clear":  s.Clear(ctx),
		} {
			if !errors.Is(err, ebb.ErrArgument) {
				t.Error(name, err)
			}
		}
	})
}

func TestClearTellsOfAllThatWereOver(t *testing.T) {
	bubble(t, Options[string]{Events: true}, func(ctx context.Context, b *ebbtest.Backend, f *Family[string]) {
		var all []string
		for i := range expiries.AtOnce + 200 {
			all = append(all, fmt.Sprint(i))
		}
		s := f.Set("ann")
		did(t, int64(len(all)))(s.Add(ctx, time.Minute, all...))
		did(t, 1)(s.Add(ctx, time.Hour, "alive"))
		time.Sleep(time.Minute + time.Millisecond)
		must(t, s.Clear(ctx))
		if told := len(b.Data.Stream("{orders}::expired")); told != len(all) || b.Data.Exists("{orders}:ann") {
			t.Errorf("%d of %d were told", told, len(all))
		}
	})
}

func TestAFamilyForgetsNamesWithoutDeadlines(t *testing.T) {
	bubble(t, Options[string]{}, func(ctx context.Context, b *ebbtest.Backend, f *Family[string]) {
		did(t, 1)(f.Set("ann").Add(ctx, time.Minute, "o-1"))
		did(t, 1)(f.Set("bob").Add(ctx, time.Minute, "o-1"))
		did(t, 1)(f.Set("ann").Remove(ctx, "o-1"))
		if s := b.Data.SortedSet("{orders}::next"); len(s) != 1 || s["bob"] == 0 {
			t.Error(s)
		}
	})
}
