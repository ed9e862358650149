package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// Many is a group of locks that are acquired together.
type Many struct{ locks []*Lock }

// Multi returns several locks as one: a call acquires all or none. Calls acquire the locks in
// the order of their names, so they never deadlock. Multi returns ebb.ErrArgument without
// locks, and if two have the same name.
//
// Each lock costs a round trip. Two calls with different orders could each hold some locks and
// wait for the others; with one order the call that gets the first lock gets the rest. A script
// that acquires all in one step would need one server and one hash slot, and could not wait in
// the queues of the other locks.
func Multi(locks ...*Lock) (*Many, error) {
	if len(locks) == 0 || slices.Contains(locks, nil) {
		return nil, fmt.Errorf("lock: Multi: %w: it got %d locks; it needs one or more, and none may be nil", conn.ErrArgument, len(locks))
	}
	sorted := slices.Clone(locks)
	slices.SortFunc(sorted, func(a, b *Lock) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.c.Driver().String(), b.c.Driver().String()))
	})
	for i, l := range sorted[1:] {
		if before := sorted[i]; l.name == before.name && (l.c == before.c || l.c.Driver().String() == before.c.Driver().String()) {
			return nil, fmt.Errorf("lock: Multi: %w: it got lock %q twice; it takes each lock once", conn.ErrArgument, l.name)
		}
	}
	return &Many{sorted}, nil
}

// TryAcquire tries once to acquire each lock. It returns ErrTaken if another owner holds one of
// them, and then holds none.
func (m *Many) TryAcquire(ctx context.Context) (*Leases, error) {
	return m.acquireEach(ctx, func(ctx context.Context, l *Lock) (*Lease, error) { return l.TryAcquire(ctx) })
}

// Acquire waits for all locks, for at most wait in total, or until the context ends if wait is
// 0. It acquires them in the order of their names, and holds the earlier ones while it waits
// for a later one. ctx bounds the life of the leases: see Lock.Acquire.
func (m *Many) Acquire(ctx context.Context, wait time.Duration) (*Leases, error) {
	began := locking.Now()
	return m.acquireEach(ctx, func(ctx context.Context, l *Lock) (*Lease, error) {
		if wait == 0 {
			return l.Acquire(ctx, 0)
		}
		left := wait - began.Elapsed()
		if wait > 0 && left <= 0 {
			return l.TryAcquire(ctx)
		}
		return l.Acquire(ctx, left)
	})
}

// acquireEach acquires one lock after the other. The context of each ends with the leases before it.
func (m *Many) acquireEach(ctx context.Context, take func(context.Context, *Lock) (*Lease, error)) (*Leases, error) {
	all := &Leases{ctx: ctx}
	for _, l := range m.locks {
		lease, err := take(all.ctx, l)
		if err != nil {
			if cause := context.Cause(all.ctx); ctx.Err() == nil && cause != nil {
				err = cause // an earlier lease was lost meanwhile
			}
			return nil, errors.Join(err, all.Release(ctx))
		}
		all.leases, all.ctx = append(all.leases, lease), all.joinContext(lease)
	}
	return all, nil
}

// String lists the locks in the order in which they are acquired.
func (m *Many) String() string {
	names := make([]string, len(m.locks))
	for i, l := range m.locks {
		names[i] = l.String()
	}
	return strings.Join(names, " and ")
}

// Leases is the set of leases that Many has acquired together.
type Leases struct {
	leases []*Lease
	ctx    context.Context // ends with the first of the leases that ends
}

// joinContext returns a context that ends with the leases so far and with one more lease. A lease's context
// is a child of the context that acquired it, unless the lease lives until Release.
func (l *Leases) joinContext(lease *Lease) context.Context {
	if !lease.lease().Object().UntilRelease {
		return joinedContext{lease.Context(), l.ctx, lease, func(error) {}}
	}
	before := l.ctx
	if len(l.leases) == 0 {
		before = context.WithoutCancel(before) // it bounds the acquisition alone
	}
	ctx, end := context.WithCancelCause(before)
	context.AfterFunc(lease.Context(), func() { end(context.Cause(lease.Context())) })
	return joinedContext{ctx, before, lease, end}
}

// joinedContext is the context of several leases. Its Err looks at the clock for each of them.
type joinedContext struct {
	context.Context
	before context.Context // the context of the earlier leases
	lease  *Lease
	end    context.CancelCauseFunc // ends the context, unless it is the lease's own
}

func (c joinedContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	_ = c.before.Err() // if before has ended, this call ends c
	if work := c.lease.Context(); work.Err() != nil {
		c.end(context.Cause(work))
	}
	return c.Context.Err()
}

// Context returns a context that ends as soon as one of the leases does.
func (l *Leases) Context() context.Context { return l.ctx }

// Token returns the fencing token of the lock of that name; 0 if there is no such lock.
func (l *Leases) Token(name string) int64 {
	for _, lease := range l.leases {
		if o := lease.lease().Object(); kit.Given(o.Conn, o.Name) == name {
			return lease.Token()
		}
	}
	return 0
}

// Release releases all leases, the last first, and returns their errors joined.
func (l *Leases) Release(ctx context.Context) error {
	var errs []error
	for _, lease := range slices.Backward(l.leases) {
		errs = append(errs, lease.Release(ctx))
	}
	return errors.Join(errs...)
}
