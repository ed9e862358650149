package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
)

// Slot is a slot that Concurrency has given. Its methods are safe for concurrent use.
type Slot struct {
	q          *Concurrency
	key, owner string
	token      int64

	ctx    context.Context
	cancel context.CancelCauseFunc
	proof  *time.Timer // when it fires, the lease is not proven any more
	over   chan struct{}

	once sync.Once
	err  error // of the release
}

// Token is greater than that of every slot of the key that was given before: what is
// done under the slot can be refused where a greater one has been seen.
func (s *Slot) Token() int64 { return s.token }

// Context ends when the slot is released, when the context of Acquire ends, and when
// the lease cannot be proven any more: a tenth of it before its end at the latest, as
// measured from when it was last asked for. Its cause is ErrLost then. Do what the
// slot is for under this context.
func (s *Slot) Context() context.Context { return s.ctx }

// Release gives the slot back. It returns ErrLost if it was lost before, and an error
// with ebb.ErrUnavailable if it is not known whether the backend has heard it: then
// the slot is free when its lease ends. Calling it again does nothing, and returns the
// same. A ctx that has ended already is allowed up to a second.
func (s *Slot) Release(ctx context.Context) error {
	s.cancel(context.Canceled)
	select {
	case <-s.over:
	case <-ctx.Done(): // a renewal hangs: it renews nothing once the slot is given back
	}
	s.release(ctx)
	return s.err
}

// begin starts the time of a lease that is about to be asked for.
func (s *Slot) begin(ctx context.Context) {
	if s.proof != nil {
		s.proof.Stop()
		s.cancel(context.Canceled)
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.proof = s.prove()
}

// prove returns a timer that ends the slot when a lease of now is nearly over.
func (s *Slot) prove() *time.Timer {
	lease, cancel := s.q.opt.Lease, s.cancel
	return time.AfterFunc(lease-lease/10, func() { cancel(ErrLost) })
}

// keep renews the slot until its context ends. If that is because the caller's has
// ended it releases the slot.
func (s *Slot) keep(ctx context.Context) {
	defer close(s.over)
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
	s.proof.Stop()
	if cause := context.Cause(s.ctx); errors.Is(cause, ErrLost) {
		s.q.opt.Logger.Warn("limit: a slot is lost", "limit", s.q.name)
	}
	if ctx.Err() != nil {
		s.release(ctx)
	}
}

// renew asks for another lease, and takes its time from before it asks.
func (s *Slot) renew(ctx context.Context) error {
	lease := s.q.opt.Lease
	proof := s.prove()
	bounded, cancel := context.WithTimeout(ctx, lease/3)
	defer cancel()
	held, err := s.ask(bounded, true)
	switch {
	case err != nil:
		proof.Stop()
		if kit.Overdue(ctx, bounded, err) {
			err = fmt.Errorf("%w: no answer within %v", ebb.ErrUnavailable, lease/3)
		}
		return err
	case !held:
		proof.Stop()
		return ErrLost
	}
	s.proof.Stop()
	s.proof = proof
	return nil
}

// release releases once.
func (s *Slot) release(ctx context.Context) {
	s.once.Do(func() {
		// What has ended is the work; this is for those who wait.
		if ctx.Err() != nil {
			var cancel context.CancelFunc
			ctx, cancel = s.parting(ctx)
			defer cancel()
		}
		held, err := s.ask(ctx, false)
		if err == nil && !held {
			err = ErrLost
		}
		if err != nil {
			s.err = fmt.Errorf("concurrency limit %q: release %q: %w", s.q.name, s.key, err)
		}
	})
}

// parting is a context for a last word after ctx has ended.
func (s *Slot) parting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), min(time.Second, s.q.opt.Lease/3))
}

// giveUp takes back what a failed Acquire may have got.
func (s *Slot) giveUp(ctx context.Context) {
	ctx, cancel := s.parting(ctx)
	defer cancel()
	_, _ = s.ask(ctx, false) // else the lease ends
}

// ask renews or releases, and reports whether the slot was held.
func (s *Slot) ask(ctx context.Context, renew bool) (bool, error) {
	var v ebb.Value
	var err error
	lease := s.q.opt.Lease
	switch native := s.q.native(); {
	case native && renew:
		v, err = s.q.c.Do(ctx, "SEM.RENEW", s.key, s.owner, lease.Milliseconds())
		var refused ebb.ReplyError
		if errors.As(err, &refused) && refused.Code() == "LOST" {
			return false, nil
		}
	case native:
		v, err = s.q.c.Do(ctx, "SEM.RELEASE", s.key, s.owner)
	case renew:
		v, err = s.q.c.Script(ctx, slotRenew, s.keys()[:2], s.owner, lease.Microseconds())
	default:
		v, err = s.q.c.Script(ctx, slotRelease, s.keys(), s.owner, s.q.bells.channel)
	}
	return v.Int == 1, err
}
