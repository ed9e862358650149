package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// Lock is a lock with one holder at a time, over all programs that use the same name on the
// same backend. It is safe for concurrent use, has no goroutine of its own, and needs no Close.
type Lock struct {
	object
	fair bool
}

// New returns the lock of that name. On ebb, waiting calls acquire it in FIFO order. On other
// backends the first call that tries after a release gets it: see NewFair. New sends nothing to
// the backend. Errors: ebb.ErrArgument.
func New(c *conn.Conn, name string, opts ...Options) (*Lock, error) {
	l := &Lock{}
	if err := l.init(c, "lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

// NewFair returns a lock that waiting calls acquire in FIFO order, on every backend. On servers
// without LOCK.ACQUIRE it keeps a queue in keys that New does not use: use either New or
// NewFair for a name.
func NewFair(c *conn.Conn, name string, opts ...Options) (*Lock, error) {
	l := &Lock{fair: true}
	if err := l.init(c, "lock: fair lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

// Acquire waits for the lock name until ctx ends, and returns a lease of ttl:
//
//	lease, err := lock.Acquire(ctx, c, "report", 30*time.Second)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	return write(lease.Context(), lease.Token())
//
// ctx bounds the wait and the life of the lease: see Lease. Do not give it a deadline for the
// wait, nor cancel it before the work is done. Use New and Lock.Acquire with a wait, or
// Options.UntilRelease, for that.
//
// If the backend does not reply, Acquire returns up to a second after ctx has ended, because it
// first gives back a lease whose reply was lost.
func Acquire(ctx context.Context, c *conn.Conn, name string, ttl time.Duration) (*Lease, error) {
	full, err := kit.Name(c, "lock", name)
	if err != nil {
		return nil, err
	}
	ttl = cmp.Or(ttl, DefaultTTL)
	if direct.Of(c) != nil && ttl >= locking.MinTTL {
		b := &brief{nativeLock: nativeLock{c: c, name: full, ttl: ttl}}
		if b.held.AcquireOnce(ctx, c, ttl, b) {
			return (*Lease)(&b.held), nil
		}
	}
	l := &Lock{}
	if err := l.setup(c, "lock", full, Options{TTL: ttl}); err != nil {
		return nil, err
	}
	lease, err := l.core.Acquire(ctx, l.acquirer(), l.owner(), 0)
	return (*Lease)(lease), err
}

func (l *Lock) acquirer() locking.Acquirer {
	l.logFirstUse(l)
	switch {
	case l.c.Capabilities().Native:
		return &l.native
	case l.fair:
		return scriptLine{c: l.c, name: l.name, ttl: kit.Millis(l.opts.TTL), limit: 1, n: 1, keys: l.keys}
	}
	return scriptLock{&l.object}
}

// TryAcquire tries once to acquire the lock. It returns ErrTaken if another owner holds it or
// waits for it. It costs one request, and so does the release. ctx bounds the life of the
// lease, and not only the call: see Lease.
func (l *Lock) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.tryAcquire(ctx, l.acquirer())
}

// Acquire waits for the lock for at most wait, or until the context ends if wait is 0. It
// returns ErrTaken when the wait is over, and the context's error. If the backend does not
// reply, Acquire tries again until then, and its error contains ebb.ErrUnavailable. A call that
// gives up leaves no place in the queue and no lease; if the backend does not reply, that takes
// up to a second more.
//
// Unless Options.UntilRelease is set, ctx bounds the life of the lease, and not only the call:
// when it ends, Lease.Context and the renewals end. Bound the wait by wait, not by a context
// that is cancelled when the acquiring function returns.
func (l *Lock) Acquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.acquirer(), wait)
}

// String describes the lock: `lock "report" (lease 30s, renewed every 10s; LOCK.ACQUIRE of
// ebb)`.
func (l *Lock) String() string { return l.describe(l.leases(), "LOCK.ACQUIRE") }

// Name returns the name of the lock. With the prefix of the Conn it is the key at the backend.
func (l *Lock) Name() string { return kit.Given(l.c, l.name) }

// Later is a delay queue such as queue.Queue.
type Later[T any] interface {
	// PushLater adds a job that falls due after delay.
	PushLater(ctx context.Context, job T, delay time.Duration) error
}

// RunLater tries once to acquire the lock. If another owner holds it, RunLater pushes the job
// to a queue, where it falls due after Options.Later, and returns ErrLater; the worker of the
// queue tries again then. So no call waits, and no work is lost:
//
//	lease, err := lock.RunLater(ctx, l, jobs, job)
//	switch {
//	case errors.Is(err, lock.ErrLater):
//		return nil // it is in the queue
//	case err != nil:
//		return err
//	}
//	defer lease.Release(ctx)
func RunLater[T any](ctx context.Context, l *Lock, q Later[T], job T) (*Lease, error) {
	lease, err := l.TryAcquire(ctx)
	if !isTaken(err) {
		return lease, err
	}
	if err := q.PushLater(ctx, job, l.opts.Later); err != nil {
		return nil, l.wrap("hand over the work of", err)
	}
	return nil, l.wrap("acquire", ErrLater)
}

// LaterFunc turns a function into a Later.
type LaterFunc[T any] func(ctx context.Context, job T, delay time.Duration) error

// PushLater calls the function.
func (f LaterFunc[T]) PushLater(ctx context.Context, job T, delay time.Duration) error {
	return f(ctx, job, delay)
}
