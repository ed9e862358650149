package lock_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestSeveralLocksAreTakenTogetherOrNotAtAll(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		l := func(name string) *lock.Lock { return newLock(t, b.Conn, b.Name(name), 20*time.Second) }
		both, err := lock.Multi(l("b"), l("a"))
		must(t, err)
		held, err := l("b").TryAcquire(ctx)
		must(t, err)
		if _, err := both.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("one of them is taken: %v", err)
		}
		if _, err := both.Acquire(ctx, 20*time.Millisecond); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("one of them is taken: %v", err)
		}
		a, err := l("a").TryAcquire(ctx) // no lock is still held
		must(t, err)
		must(t, a.Release(ctx))
		must(t, held.Release(ctx))
		leases, err := both.Acquire(ctx, time.Second)
		must(t, err)
		for _, name := range []string{"a", "b"} {
			if _, err := l(name).TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
				t.Errorf("%s is not taken: %v", name, err)
			}
			if leases.Token(b.Name(name)) == 0 {
				t.Errorf("no token of %s", name)
			}
		}
		must(t, leases.Release(ctx))
		if leases.Context().Err() == nil {
			t.Error("the context outlives the leases")
		}
		if _, err := lock.Multi(l("a"), l("b"), l("a")); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("twice the same: %v", err)
		}
	})
}

func TestTakersOfSeveralLocksNeverWaitInACircle(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		names := []string{"a", "b", "c"}
		var wg sync.WaitGroup
		var holders [3]atomic.Int32
		for i := range 6 {
			wg.Go(func() {
				one, two := (i+1)%3, i%3
				m, err := lock.Multi(newLock(t, b.Conn, b.Name(names[one]), 20*time.Second), newLock(t, b.Conn, b.Name(names[two]), 20*time.Second))
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					leases, err := m.Acquire(ctx, 0)
					if err != nil {
						t.Error(err)
						return
					}
					if holders[one].Add(1) != 1 || holders[two].Add(1) != 1 {
						t.Error("two holders")
					}
					holders[one].Add(-1)
					holders[two].Add(-1)
					if err := leases.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}
