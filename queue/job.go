package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// Job is a delivered job. The caller has it for the queue's Lease, and settles it with Ack,
// Nack, Fail or Bury; if the lease ends before, the job is delivered again. The methods are
// safe for concurrent use. Their error has ErrLost in its chain if the caller no longer has the
// job. After any other error the caller cannot know that, and may call the method again.
type Job[T any] struct {
	ID    string
	Value T
	// Headers are the headers of the push. It is nil if there are none.
	Headers map[string]string
	// Deliveries is the number of times that the job was delivered, including this one.
	Deliveries int
	// Token is the fencing token. It is greater than the token of every earlier lease of the
	// queue, so that a resource can refuse writes of an earlier consumer.
	Token int64
	// Due is the instant at which the job fell due, by the backend's clock.
	Due time.Time

	timeout time.Duration
	result  []byte
	q       *Queue[T]
	stored  storedJob
	settled atomic.Bool
}

// Ack acknowledges the job, which the queue then removes; with Options.Keep, Queue.Status still reports it
// for that time. Further calls do nothing.
func (j *Job[T]) Ack(ctx context.Context) error {
	return j.settle("ack", func() (bool, error) {
		if keep := j.q.o.Keep; keep > 0 {
			return j.q.store().note(ctx, &j.stored, (&report{Result: j.result}).text(), kit.Millis(keep), true)
		}
		return j.q.store().ack(ctx, j.ID, j.Token)
	})
}

// Nack returns the job to the queue, which delivers it again after delay. If this was the last
// delivery that MaxDeliveries allows, the job becomes a dead letter.
func (j *Job[T]) Nack(ctx context.Context, delay time.Duration) error {
	return j.nack(ctx, delay, "given back")
}

// Fail does the work of Nack with the queue's Backoff, and stores cause as the reason that a
// dead letter shows. If cause has ErrPermanent in its chain, Fail does the work of Bury.
func (j *Job[T]) Fail(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrPermanent) {
		return j.Bury(ctx, cause.Error())
	}
	return j.nack(ctx, j.q.o.Backoff(j.Deliveries), fmt.Sprint(cause))
}

func (j *Job[T]) nack(ctx context.Context, delay time.Duration, reason string) error {
	// Postpone has reset the count at the backend.
	if most := j.q.o.MaxDeliveries; most > 0 && j.Deliveries >= most && j.stored.deliveries < int64(most) {
		return j.Bury(ctx, reason)
	}
	return j.settle("nack", func() (bool, error) {
		return j.q.store().nack(ctx, &j.stored, max(kit.Millis(delay), 0), reason)
	})
}

// Bury makes the job a dead letter at once.
func (j *Job[T]) Bury(ctx context.Context, reason string) error {
	r := j.stored
	if e, value := unwrap(r.payload); e.Before > 0 { // the dead letter has the count; the job of a Redrive begins with 0
		e.Before = 0
		payload, err := e.wrap(value)
		if err != nil {
			return j.q.failed("bury", err)
		}
		r.payload, r.deliveries = string(payload), int64(j.Deliveries)
	}
	return j.settle("bury", func() (bool, error) { return j.q.store().bury(ctx, &r, reason) })
}

// Extend makes the lease end after d from now, which may be earlier than before.
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
	if err == nil && ok && !j.settled.Swap(true) {
		j.q.counts.settled(what)
	}
	return j.outcome(what, ok, err)
}

func (j *Job[T]) outcome(what string, ok bool, err error) error {
	if err == nil && !ok {
		j.q.counts.lost.Add(1)
		err = ErrLost
	}
	if err != nil {
		return j.q.failed(fmt.Sprintf("%s job %q", what, j.ID), err)
	}
	return nil
}
