package queue

import (
	"context"
	"time"
)

// Dead is a dead letter: a job that was delivered as often as it may be, or that was
// buried. It stays until it is redriven or discarded.
type Dead[T any] struct {
	ID string
	// Value is the zero value where Err is not nil: the codec could not read it.
	Value T
	Err   error
	// Deliveries is how often it was delivered.
	Deliveries int
	// Reason is what its last consumer said, or that its lease ended.
	Reason string
	// Died is when it became a dead letter, by the backend's clock.
	Died time.Time
}

// deadRaw is a dead letter as it is stored; due is when it died.
type deadRaw struct {
	raw
	reason string
}

// DeadLetters returns up to n dead letters, those first that died first. What other
// programs took out of ebb's queue {name}:dead with DQ.POP is not among them.
func (q *Queue[T]) DeadLetters(ctx context.Context, n int) ([]Dead[T], error) {
	if n <= 0 {
		return nil, nil
	}
	found, err := q.store().dead(ctx, n)
	if err != nil {
		return nil, q.failed("dead letters", err)
	}
	letters := make([]Dead[T], len(found))
	for i, d := range found {
		v, err := q.o.Codec.Decode([]byte(d.payload))
		letters[i] = Dead[T]{ID: d.id, Value: v, Err: err, Deliveries: int(d.deliveries), Reason: d.reason, Died: time.UnixMilli(d.due)}
	}
	return letters, nil
}

// Redrive adds dead letters to the queue again, as new jobs that are due at once,
// without priority and TTL, and returns how many. One whose id is in the queue again
// stays where it is. MaxLen does not hold for them. On ebb it looks at all dead
// letters.
func (q *Queue[T]) Redrive(ctx context.Context, ids ...string) (int64, error) {
	return q.inParts(ctx, "redrive", ids, q.store().revive)
}

// Discard removes dead letters and returns how many.
func (q *Queue[T]) Discard(ctx context.Context, ids ...string) (int64, error) {
	return q.inParts(ctx, "discard", ids, q.store().discard)
}

func (q *Queue[T]) inParts(ctx context.Context, what string, ids []string, do func(context.Context, []string) (int64, error)) (int64, error) {
	total := int64(0)
	for len(ids) > 0 {
		part := ids[:min(len(ids), pushAtOnce)]
		n, err := do(ctx, part)
		if err != nil {
			return total, q.failed(what, err)
		}
		total += n
		ids = ids[len(part):]
	}
	return total, nil
}
