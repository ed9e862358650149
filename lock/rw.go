package lock

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// RW is a read-write lock: several readers share it, or one writer holds it. On every backend
// waiting calls are served in FIFO order: readers that come after a writer wait behind it, so
// that a stream of readers cannot keep the writer out.
type RW struct{ object }

// NewRW returns the read-write lock of that name. On ebb it is the same lock as New's. NewRW
// sends nothing to the backend. Errors: ebb.ErrArgument.
func NewRW(c *conn.Conn, name string, opts ...Options) (*RW, error) {
	l := &RW{}
	if err := l.init(c, "lock: read-write lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *RW) acquirer(shared bool) locking.Acquirer {
	l.logFirstUse(l)
	if l.c.Capabilities().Native {
		if shared {
			return sharedLock{&l.native}
		}
		return &l.native
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
	return l.tryAcquire(ctx, l.acquirer(false))
}

// Acquire waits for the exclusive lock, as Lock.Acquire does. ctx bounds the life of the lease.
func (l *RW) Acquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.acquirer(false), wait)
}

// TryShare tries once to acquire the shared lock. It returns ErrTaken if another owner holds
// the exclusive lock, or waits for the lock.
func (l *RW) TryShare(ctx context.Context) (*Lease, error) {
	return l.tryAcquire(ctx, l.acquirer(true))
}

// Share waits for the shared lock, as Lock.Acquire does. ctx bounds the life of the lease.
func (l *RW) Share(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.acquirer(true), wait)
}

// String describes the lock.
func (l *RW) String() string { return l.describe(l.leases(), "LOCK.ACQUIRE") }
