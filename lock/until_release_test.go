package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

// helper acquires a lock with a context of its own, as programs do to bound a wait.
func helper(ctx context.Context, l *lock.Lock) (*lock.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.Acquire(ctx, 0)
}

func TestTheContextOfAcquireIsTheLifeOfALeaseUnlessItLivesUntilRelease(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, until := range []bool{false, true} {
			l, err := lock.New(b.Conn, "l", lock.Options{TTL: 30 * time.Second, UntilRelease: until})
			if err != nil {
				t.Fatal(err)
			}
			lease, err := helper(b.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			b.Pass(5 * time.Minute)
			if alive := lease.Context().Err() == nil; alive != until {
				t.Errorf("UntilRelease %v: alive %v", until, alive)
			}
			other, err := l.TryAcquire(b.Context())
			if free := err == nil; free == until {
				t.Errorf("UntilRelease %v: free for others %v: %v", until, free, err)
			}
			if other != nil {
				if err := other.Release(b.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := lease.Release(b.Context()); until != (err == nil) || !until && !errors.Is(err, lock.ErrLost) {
				t.Errorf("UntilRelease %v: %v", until, err)
			}
		}
	})
}

// After a pause of the process the timers of leases fire some time later than the first look at their common context.
func TestLocksOfSeveralThatRanOutInAPauseSaySoBeforeTheirTimers(t *testing.T) {
	const ttl = time.Hour // no timer fires during the test
	for n := range 6 {
		lost, until := n/2, n%2 == 1
		c, err := embed.Open(t.Context(), "mem://")
		must(t, err)
		var locks []*lock.Lock
		for _, name := range []string{"a", "b", "c"} {
			l, err := lock.New(c, name, lock.Options{TTL: ttl, UntilRelease: until})
			must(t, err)
			locks = append(locks, l)
		}
		many, err := lock.Multi(locks...)
		must(t, err)
		leases, err := many.TryAcquire(t.Context())
		must(t, err)
		leases.Pause(lost, ttl/2)
		must(t, leases.Context().Err())
		leases.Pause(lost, ttl/2)
		if leases.Context().Err() == nil || !errors.Is(context.Cause(leases.Context()), lock.ErrLost) {
			t.Errorf("lock %d is lost, UntilRelease %v: %v", lost, until, context.Cause(leases.Context()))
		}
		_ = leases.Release(t.Context())
		must(t, c.Close())
	}
}

func TestLocksOfSeveralEndTogetherAlsoUntilRelease(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		var both []*lock.Lock
		for _, name := range []string{"a", "b"} {
			l, err := lock.New(b.Conn, name, lock.Options{UntilRelease: true})
			if err != nil {
				t.Fatal(err)
			}
			both = append(both, l)
		}
		m, err := lock.Multi(both...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		all, err := m.Acquire(ctx, 0)
		cancel()
		if err != nil || all.Context().Err() != nil {
			t.Fatal(err, all.Context().Err())
		}
		if err := both[0].Delete(b.Context()); err != nil {
			t.Fatal(err)
		}
		b.Pass(time.Minute)
		if cause := context.Cause(all.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Error(cause)
		}
		if err := all.Release(b.Context()); !errors.Is(err, lock.ErrLost) {
			t.Error(err)
		}
	})
}
