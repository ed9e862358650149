package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// Job is a job that was delivered: the caller's, for the queue's Lease. Settle it
// with Ack, Nack, Fail or Bury; if its lease ends before, it is delivered again. Its
// methods are safe for concurrent use. The error of each has ErrLost in its chain if
// the job is not the caller's any more; after any other error that is unknown, and
// the method may be called again.
type Job[T any] struct {
	ID    string
	Value T
	// Deliveries is how often the job was delivered, this time included.
	Deliveries int
	// Token is greater than that of every earlier lease of the queue: a fence for
	// what the job writes.
	Token int64
	// Due is when the job fell due, by the backend's clock.
	Due time.Time

	q       *Queue[T]
	raw     raw
	settled atomic.Bool
}

// Ack says that the job is done: it is removed. Calling it again does nothing.
func (j *Job[T]) Ack(ctx context.Context) error {
	return j.settle("ack", func() (bool, error) { return j.q.store().ack(ctx, j.ID, j.Token) })
}

// Nack gives the job back, to be delivered again after a delay; or, if that was its
// last delivery, makes it a dead letter.
func (j *Job[T]) Nack(ctx context.Context, delay time.Duration) error {
	return j.nack(ctx, delay, "given back")
}

// Fail does the work of Nack with the queue's Backoff, and with the reason that a dead letter
// shows. If cause has ErrPermanent in its chain, it does the work of Bury instead.
func (j *Job[T]) Fail(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrPermanent) {
		return j.Bury(ctx, cause.Error())
	}
	return j.nack(ctx, j.q.o.Backoff(j.Deliveries), fmt.Sprint(cause))
}

func (j *Job[T]) nack(ctx context.Context, delay time.Duration, reason string) error {
	return j.settle("nack", func() (bool, error) {
		return j.q.store().nack(ctx, &j.raw, max(kit.Millis(delay), 0), reason)
	})
}

// Bury makes the job a dead letter at once.
func (j *Job[T]) Bury(ctx context.Context, reason string) error {
	return j.settle("bury", func() (bool, error) { return j.q.store().bury(ctx, &j.raw, reason) })
}

// Extend makes the lease end in d from now, which may be earlier than before.
func (j *Job[T]) Extend(ctx context.Context, d time.Duration) error {
	ok, err := j.q.store().extend(ctx, j.ID, j.Token, max(kit.Millis(d), 1))
	return j.outcome("extend", ok, err)
}

// settle ends the lease, once.
func (j *Job[T]) settle(what string, do func() (bool, error)) error {
	if j.settled.Load() {
		return nil
	}
	ok, err := do()
	if err == nil && ok {
		j.settled.Store(true)
	}
	return j.outcome(what, ok, err)
}

func (j *Job[T]) outcome(what string, ok bool, err error) error {
	if err == nil && !ok {
		err = ErrLost
	}
	if err != nil {
		return j.q.failed(fmt.Sprintf("%s job %q", what, j.ID), err)
	}
	return nil
}
