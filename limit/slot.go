package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Slot is a slot that Concurrency has leased to the caller. Its methods are safe for concurrent
// use.
type Slot struct {
	q          *Concurrency
	key, owner string
	token      int64

	ctx       context.Context
	cancel    context.CancelCauseFunc
	expiry    *time.Timer               // ends ctx when the lease is no longer certain
	requested atomic.Pointer[stopwatch] // since the last granted request was sent
	done      chan struct{}             // closed when renewLoop has returned

	releasing  sync.Mutex // one release at a time; guards the fields below
	released   bool       // the backend has replied to a release
	unanswered bool       // a release was sent and had no reply
	err        error      // the error of the release that had a reply
}

// Token returns the slot's fencing token, which is greater than the token of every earlier slot of the key. A
// resource can refuse work under a smaller token than it has already seen.
func (s *Slot) Token() int64 { return s.token }

// Context returns the context for the work under the slot. It ends when the slot is released,
// when the context of Acquire ends, and when the lease may be over: at the latest a tenth of
// the lease before its end, counted from the last request for it. Then its cause is ErrLost.
//
// After a pause of the process Done may be closed some time later than that; Err looks at the clock.
func (s *Slot) Context() context.Context { return slotContext{s.ctx, s} }

// slotContext is a slot's context whose Err looks at the clock.
type slotContext struct {
	context.Context
	s *Slot
}

func (c slotContext) Err() error {
	if c.Context.Err() == nil && c.s.requested.Load().elapsed() >= c.s.certainFor() {
		c.s.cancel(ErrLost)
	}
	return c.Context.Err()
}

// Valid reports whether the slot is certain to be held at this moment, by the local monotonic clock, even
// just after a pause of the process. It sends nothing.
func (s *Slot) Valid() bool { return s.Context().Err() == nil }

// Until returns the local time up to which the slot is certain to be held, if it is not renewed before; the zero Time if it is
// over. Each renewal moves it.
func (s *Slot) Until() time.Time {
	if !s.Valid() {
		return time.Time{}
	}
	return s.requested.Load().when(s.certainFor())
}

// Release gives the slot back. It returns ErrLost if the slot was lost before; further calls
// return the same. Any other error is ebb.ErrUnavailable: the backend did not reply. Call
// Release again then, or let the lease end.
//
// The end of ctx does not end Release at once, so that deferred calls do their work. It tries
// until the backend replies, for at most 3 seconds and at most 1 second beyond the end of ctx.
func (s *Slot) Release(ctx context.Context) error {
	s.cancel(context.Canceled)
	err := s.release(ctx)
	if err == nil || errors.Is(err, ErrLost) {
		t := time.NewTimer(kit.GraceAfterEnd)
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C: // a renewal hangs; the backend refuses it, because the slot is released
		}
	}
	return err
}

// lifetime returns the context that bounds the life of a slot.
func (s *Slot) lifetime(ctx context.Context) context.Context {
	if s.q.opt.UntilRelease {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// startLease begins to count a lease, just before the request for it.
func (s *Slot) startLease(ctx context.Context) {
	if s.expiry != nil {
		s.expiry.Stop()
		s.cancel(context.Canceled)
	}
	s.ctx, s.cancel = context.WithCancelCause(s.lifetime(ctx))
	requested := startWatch()
	s.expiry = s.expireLater()
	s.requested.Store(&requested)
}

// certainFor returns the time for which a lease is certain, counted from its request.
func (s *Slot) certainFor() time.Duration { return s.q.opt.Lease - s.q.opt.Lease/10 }

// expireLater returns a timer that ends the context when a lease that is requested now is no longer certain.
func (s *Slot) expireLater() *time.Timer {
	cancel := s.cancel
	return time.AfterFunc(s.certainFor(), func() { cancel(ErrLost) })
}

// renewLoop renews the slot until its context ends. If the caller's context has ended, it releases the slot.
func (s *Slot) renewLoop(ctx context.Context) {
	defer close(s.done)
	lease := s.q.opt.Lease
	pause := lease / 3
	for kit.Sleep(s.ctx, pause) == nil {
		err := s.renew(s.ctx)
		switch {
		case err == nil:
			pause = lease / 3
			continue
		case errors.Is(err, ErrLost):
			s.cancel(ErrLost)
		case s.ctx.Err() == nil:
			s.q.opt.Logger.Warn("limit: a slot could not be renewed, trying again", "limit", s.q.name, "error", err)
		}
		pause = lease / 10
	}
	s.expiry.Stop()
	if cause := context.Cause(s.ctx); errors.Is(cause, ErrLost) {
		s.q.opt.Logger.Warn("limit: a slot is lost", "limit", s.q.name)
	}
	if ctx.Err() != nil {
		_ = s.release(ctx) // Release tries again
	}
}

// renew requests another lease, and counts it from before the request.
func (s *Slot) renew(ctx context.Context) error {
	lease := s.q.opt.Lease
	requested, expiry := startWatch(), s.expireLater()
	bounded, cancel := context.WithTimeout(ctx, lease/3)
	defer cancel()
	held, err := s.send(bounded, true)
	switch {
	case err != nil:
		expiry.Stop()
		if kit.Overdue(ctx, bounded, err) {
			err = kit.NoReply(lease / 3)
		}
		return err
	case !held:
		expiry.Stop()
		return ErrLost
	}
	s.expiry.Stop()
	s.expiry = expiry
	s.requested.Store(&requested)
	return nil
}

// release releases the slot, and sends the request again until the backend has replied.
func (s *Slot) release(ctx context.Context) error {
	s.releasing.Lock()
	defer s.releasing.Unlock()
	if s.released {
		return s.err
	}
	held := false
	err := kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) (err error) {
		held, err = s.send(ctx, false)
		s.unanswered = s.unanswered || err != nil
		return err
	})
	s.released = err == nil
	if err == nil && !held && !s.unanswered {
		err = ErrLost
	}
	if err != nil {
		err = fmt.Errorf("limit: concurrency %q: release %q: %w", s.q.name, s.key, err)
	}
	s.err = err
	return err
}

// takeBack releases the slot that a failed Acquire may have got. If it fails too, the lease expires.
func (s *Slot) takeBack(ctx context.Context, failed error) {
	_ = kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error {
		_, err := s.send(ctx, false)
		return err
	})
}

// send sends a renewal or a release, and reports whether the slot was held.
func (s *Slot) send(ctx context.Context, renew bool) (bool, error) {
	var v conn.Value
	var err error
	lease := s.q.opt.Lease
	switch native := s.q.native(); {
	case native && renew:
		v, err = s.q.c.Do(ctx, "SEM.RENEW", s.key, s.owner, lease.Milliseconds())
		if refused, ok := errors.AsType[conn.ReplyError](err); ok && refused.Code() == "LOST" {
			return false, nil
		}
	case native:
		v, err = s.q.c.Do(ctx, "SEM.RELEASE", s.key, s.owner)
	case renew:
		v, err = s.q.c.Script(ctx, slotRenew, s.keys()[:2], s.owner, lease.Microseconds())
	default:
		v, err = s.q.c.Script(ctx, slotRelease, s.keys(), s.owner, s.q.wakeups.Name)
	}
	return v.Int == 1, err
}
