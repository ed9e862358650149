package lock

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// RW is a lock that several readers share, or one writer holds alone. Waiters are served in
// FIFO order, on every backend: readers that come after a writer wait behind it,
// so that it is not kept out by a stream of them.
type RW struct{ object }

// NewRW returns the read-write lock of that name. On ebb it is the same lock as New's.
// It does not touch the network, and fails with ebb.ErrArgument.
func NewRW(c *conn.Conn, name string, opts ...Options) (*RW, error) {
	l := &RW{}
	if err := l.make(c, "read-write lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *RW) claim(shared bool) claim {
	l.first(l)
	if l.c.Capabilities().Native {
		return nativeLock{o: &l.object, shared: shared}
	}
	n := int64(allPermits)
	if shared {
		n = 1
	}
	return scriptLine{c: l.c, name: l.name, ttl: kit.Millis(l.opts.TTL), limit: allPermits, n: n, keys: l.keys}
}

// TryAcquire tries once to acquire the exclusive lock. It returns ErrTaken if another
// owner holds the lock, or waits for it.
func (l *RW) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.try(ctx, l.claim(false), l.owner())
}

// Acquire waits to have the lock alone, as Lock.Acquire does: ctx is the life of the
// lease.
func (l *RW) Acquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.claim(false), l.owner(), wait)
}

// TryShare asks once to share the lock; ErrTaken if another owner has it alone, or waits.
func (l *RW) TryShare(ctx context.Context) (*Lease, error) {
	return l.try(ctx, l.claim(true), l.owner())
}

// Share waits to share the lock, as Lock.Acquire does: ctx is the life of the lease.
func (l *RW) Share(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.claim(true), l.owner(), wait)
}

// String says how the lock runs.
func (l *RW) String() string { return l.describe(l.leases(), "LOCK.ACQUIRE") }
