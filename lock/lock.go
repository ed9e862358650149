package lock

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Lock is a lock with one holder at a time, over all programs that use the same name on
// the same backend. It is safe for concurrent use, has no goroutine of its own, and
// needs no Close.
type Lock struct {
	object
	fair bool
}

// New returns the lock of that name. Waiters are served in order where the backend is ebb;
// elsewhere the first to ask after a release has it: see NewFair. It does not touch the
// network. It fails with ebb.ErrArgument.
func New(c *conn.Conn, name string, opts ...Options) (*Lock, error) {
	l := &Lock{}
	if err := l.make(c, "lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

// NewFair returns a lock that waiting calls acquire in FIFO order, on every backend. On servers without LOCK.ACQUIRE it keeps its own line, in other keys than
// New: use one or the other for a name.
func NewFair(c *conn.Conn, name string, opts ...Options) (*Lock, error) {
	l := &Lock{fair: true}
	if err := l.make(c, "fair lock", name, opts); err != nil {
		return nil, err
	}
	return l, nil
}

// Acquire waits for the lock name until ctx ends, and holds it under a lease of ttl:
//
//	lease, err := lock.Acquire(ctx, c, "report", 30*time.Second)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	return write(lease.Context(), lease.Token())
//
// ctx bounds the wait, and it is the life of the lease: see Lease. Do not give it a
// deadline for the wait, nor cancel it before the work is done: New, and Lock.Acquire with
// a wait, or with Options.UntilRelease, are for that.
//
// Where the backend does not answer, Acquire returns up to a second after ctx has ended: it
// gives back what a request whose reply was lost may have been granted.
func Acquire(ctx context.Context, c *conn.Conn, name string, ttl time.Duration) (*Lease, error) {
	l, err := New(c, name, Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx, 0)
}

func (l *Lock) claim() claim {
	l.first(l)
	switch {
	case l.c.Capabilities().Native:
		return nativeLock{o: &l.object}
	case l.fair:
		return scriptLine{c: l.c, name: l.name, ttl: kit.Millis(l.opts.TTL), limit: 1, n: 1, keys: l.keys}
	}
	return scriptLock{&l.object}
}

// TryAcquire asks for the lock once: ErrTaken if it is held, or others wait for it.
// It costs one request, and so does its release. ctx is the life of the lease, not only
// of the call: see Lease.
func (l *Lock) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.try(ctx, l.claim(), l.owner())
}

// Acquire waits for the lock for at most wait, or as long as the context lasts if
// wait is 0. It fails with ErrTaken when the wait is over, and with the context's
// error. A backend that does not answer is asked until then, and is named in the
// error, with ebb.ErrUnavailable. A caller that gives up leaves no place in the line, and no
// lease: where the backend does not answer, that takes up to a second more.
//
// ctx is the life of the lease, not only of the call, unless Options.UntilRelease is set:
// when it ends, Lease.Context and the renewals end. Bound the wait by wait, not by a
// context that is cancelled when the function that acquires returns.
func (l *Lock) Acquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.claim(), l.owner(), wait)
}

// String says how the lock runs: `lock "report" (lease 30s, renewed every 10s;
// LOCK.ACQUIRE of ebb)`.
func (l *Lock) String() string { return l.describe(l.leases(), "LOCK.ACQUIRE") }

// Name returns the name of the lock, which is its key at the backend.
func (l *Lock) Name() string { return l.name }

// Later is a delay queue, as queue.Queue is one.
type Later[T any] interface {
	// PushLater adds a job that falls due after delay.
	PushLater(ctx context.Context, job T, delay time.Duration) error
}

// RunLater asks for the lock once. If it is taken, the job is handed to a queue, where
// it falls due after Options.Later, and the error is ErrLater: the worker of the
// queue asks again then. So no call waits, and no work is lost:
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

// LaterFunc makes a Later of a function.
type LaterFunc[T any] func(ctx context.Context, job T, delay time.Duration) error

// PushLater calls the function.
func (f LaterFunc[T]) PushLater(ctx context.Context, job T, delay time.Duration) error {
	return f(ctx, job, delay)
}
