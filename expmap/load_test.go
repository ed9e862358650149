package expmap

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestOneLoaderPerKey(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		var calls atomic.Int64
		loader := func(ctx context.Context, key string) (int, error) {
			calls.Add(1)
			timer := time.NewTimer(20 * time.Millisecond)
			defer timer.Stop()
			<-timer.C
			return len(key), nil
		}
		var wg sync.WaitGroup
		for range 3 { // programs
			m := open(t, b.Open(), name, lay, Options[string, int]{IdleTTL: time.Hour})
			for range 5 {
				wg.Go(func() {
					if v, err := m.GetOrLoad(ctx, "four", time.Hour, loader); v != 4 || err != nil {
						t.Error(v, err)
					}
				})
			}
		}
		wg.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d loaders ran", n)
		}
		m := open(t, b.Conn, name, lay, Options[string, int]{IdleTTL: time.Hour})
		if d, ok, err := m.TTL(ctx, "four"); !ok || err != nil || d < time.Minute {
			t.Error(d, ok, err)
		}
		if v, err := b.Exists(ctx, "{"+name+"}:load:four"); v != 0 || err != nil {
			t.Error("the marker is there:", v, err)
		}
	})
}

func TestAFailedLoadIsEachCallersOwn(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{})
		sour := errors.New("sour")
		if _, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 0, sour }); !errors.Is(err, sour) {
			t.Error(err)
		}
		if v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 1, nil }); v != 1 || err != nil {
			t.Error(v, err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = m.GetOrLoad(ctx, "p", time.Hour, func(context.Context, string) (int, error) { panic("oh") })
		}()
		if v, err := m.GetOrLoad(ctx, "p", time.Hour, func(context.Context, string) (int, error) { return 2, nil }); v != 2 || err != nil {
			t.Error("after a panic:", v, err)
		}
	})
}

func TestADeadLoadersPlaceIsTaken(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		// Another program sets the marker and dies.
		must(t, b.SetTTL(ctx, "{"+name+"}:load:k", "other", 50*time.Millisecond))
		m := open(t, b.Conn, name, lay, Options[string, int]{})
		if v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) { return 1, nil }); v != 1 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestALoadThatLostItsPlaceIsNotKept(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		m := open(t, b.Conn, name, lay, Options[string, int]{})
		v, err := m.GetOrLoad(ctx, "k", time.Hour, func(ctx context.Context, _ string) (int, error) {
			_, err := b.Del(ctx, "{"+name+"}:load:k")
			return 1, err
		})
		if v != 1 || err != nil {
			t.Error(v, err)
		}
		if _, ok, err := m.Get(ctx, "k"); ok || err != nil {
			t.Error("it was kept", err)
		}
	})
}

func TestASlowLoaderKeepsItsPlace(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		var calls atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			m := open(t, b.Conn, "m", lay, Options[string, int]{LoadLease: time.Second})
			wg.Go(func() {
				v, err := m.GetOrLoad(ctx, "k", time.Hour, func(context.Context, string) (int, error) {
					calls.Add(1)
					b.Pass(time.Minute)
					return 1, nil
				})
				if v != 1 || err != nil {
					t.Error(v, err)
				}
			})
		}
		wg.Wait()
		if calls.Load() != 1 {
			t.Error(calls.Load())
		}
	})
}

func TestAWaiterForALoaderEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("m")
		must(t, b.SetTTL(ctx, "{"+name+"}:load:k", "other", time.Hour))
		m := open(t, b.Conn, name, lay, Options[string, int]{})
		loader := func(context.Context, string) (int, error) { return 1, nil }
		short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := m.GetOrLoad(short, "k", time.Hour, loader); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // a caller with time left waits on, even for a second leader
			if v, err := m.GetOrLoad(ctx, "k", time.Hour, loader); v != 1 || err != nil {
				t.Error(v, err)
			}
		})
		<-short.Done()
		_, err := b.Del(ctx, "{"+name+"}:load:k")
		must(t, err)
		wg.Wait()
	})
}
