package lock

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// Semaphore has a number of permits, which calls take under leases: the permits of a holder that died are
// returned when its lease ends. On every backend waiting calls get permits in FIFO order, even calls for
// several permits.
type Semaphore struct {
	object
	permits int64
}

// NewSemaphore returns the semaphore of that name with the given total number of permits. If programs name
// different numbers, each call is checked against its own number; permits count as taken for all of them.
// NewSemaphore sends nothing to the backend. Errors: ebb.ErrArgument.
func NewSemaphore(c *conn.Conn, name string, permits int64, opts ...Options) (*Semaphore, error) {
	s := &Semaphore{permits: permits}
	if err := s.init(c, "lock: semaphore", name, opts); err != nil {
		return nil, err
	}
	if permits < 1 || permits > math.MaxInt32 {
		return nil, s.argument("it has %d permits; it must have from 1 to %d", permits, math.MaxInt32)
	}
	return s, nil
}

func (s *Semaphore) acquirer(n int64) (locking.Acquirer, error) {
	if n < 1 || n > s.permits {
		return nil, s.argument("the call requests %d permits; it may request from 1 to %d", n, s.permits)
	}
	s.logFirstUse(s)
	ttl := kit.Millis(s.opts.TTL)
	if s.c.Capabilities().Native {
		return nativeSem{c: s.c, name: s.name, ttl: ttl, limit: s.permits, n: n}, nil
	}
	return scriptLine{c: s.c, name: s.name, ttl: ttl, limit: s.permits, n: n, keys: s.keys}, nil
}

// TryAcquire tries once to take n permits, all or none. It returns ErrTaken if fewer are free,
// or if other calls wait. One lease covers all of them.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64) (*Lease, error) {
	acq, err := s.acquirer(n)
	if err != nil {
		return nil, err
	}
	return s.tryAcquire(ctx, acq)
}

// Acquire waits for n permits, as Lock.Acquire does. ctx bounds the life of the lease.
func (s *Semaphore) Acquire(ctx context.Context, n int64, wait time.Duration) (*Lease, error) {
	acq, err := s.acquirer(n)
	if err != nil {
		return nil, err
	}
	return s.acquire(ctx, acq, wait)
}

// String describes the semaphore.
func (s *Semaphore) String() string {
	return s.describe(fmt.Sprintf("%d permits, %s", s.permits, s.leases()), "SEM.ACQUIRE")
}
