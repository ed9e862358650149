package locking_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/lock"
)

// After a pause of the process the timers of a lease fire some time later than the first look at it.
func TestALeaseThatRanOutInAPauseSaysSoBeforeItsTimer(t *testing.T) {
	const ttl = time.Hour // no timer fires during the test
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, over := range map[string]func(l *lock.Lease) bool{
		"Err":   func(l *lock.Lease) bool { return l.Context().Err() != nil },
		"Valid": func(l *lock.Lease) bool { return !l.Valid() },
		"Until": func(l *lock.Lease) bool { return l.Until().IsZero() },
	} {
		l, err := lock.Acquire(ctx, c, name, ttl)
		if err != nil {
			t.Fatal(err)
		}
		pause := func() { (*locking.Lease)(l).Pause(ttl / 2) }
		pause()
		if left := time.Until(l.Until()); over(l) || left > ttl/2 || left < ttl/2-2*locking.Margin(ttl) {
			t.Errorf("%s: the lease is over after half of it, or certain for %v", name, left)
		}
		if err := l.Renew(ctx); err != nil {
			t.Fatal(err)
		}
		if pause(); over(l) {
			t.Errorf("%s: the lease is over although it was renewed", name)
		}
		if pause(); !over(l) {
			t.Errorf("%s: the lease is not over", name)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("%s: the cause is %v", name, cause)
		}
		if err := l.Renew(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s: a renewal: %v", name, err)
		}
		_ = l.Release(ctx)
	}
}
