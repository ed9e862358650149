package queue

import (
	"context"
	"time"
)

// Dead is a dead letter: a job that reached MaxDeliveries or was buried. It is kept until
// Redrive or Discard.
type Dead[T any] struct {
	ID string
	// Value is the zero value if Err is not nil: the codec could not decode it.
	Value T
	Err   error
	// Headers are the headers of the push. It is nil if there are none.
	Headers map[string]string
	// Deliveries is the number of times that the job was delivered.
	Deliveries int
	// Reason is the reason that the last consumer gave, or a text that the job's lease ended.
	Reason string
	// Died is the instant at which the job became a dead letter, by the backend's clock.
	Died time.Time
}

// storedLetter is a dead letter in the form of the backend; due is the instant at which it died.
type storedLetter struct {
	storedJob
	reason string
}

// DeadLetters returns up to n dead letters, the oldest first. It does not return the ones that other programs
// have taken out of ebb's queue {name}:dead with DQ.POP.
func (q *Queue[T]) DeadLetters(ctx context.Context, n int) ([]Dead[T], error) {
	return q.DeadLettersAfter(ctx, "", n)
}

// DeadLettersAfter returns up to n dead letters behind the one with the id, so that a program can read page
// by page; "" starts at the first. If the last one would have an empty ID, which DQ.ADD can make, it returns
// one more. It costs two round trips on ebb, and one on other servers; O(log n). Errors: ErrNoJob if the dead
// letter with the id no longer exists.
func (q *Queue[T]) DeadLettersAfter(ctx context.Context, id string, n int) ([]Dead[T], error) {
	if n <= 0 {
		return nil, nil
	}
	found, err := q.store().dead(ctx, n, id)
	if last := len(found) - 1; err == nil && last == n-1 && found[last].id == "" {
		found, err = q.store().dead(ctx, n+1, id)
	}
	if err != nil {
		return nil, q.failed("dead letters", err)
	}
	letters := make([]Dead[T], len(found))
	for i, d := range found {
		v, e, err := q.decodePayload(d.payload)
		letters[i] = Dead[T]{ID: d.id, Value: v, Err: err, Headers: e.Headers, Deliveries: int(d.deliveries + e.Before),
			Reason: d.reason, Died: time.UnixMilli(d.due)}
	}
	return letters, nil
}

// Redrive adds dead letters to the queue again, as new jobs that are due at once, without
// priority and TTL, and returns their number. A dead letter whose id is in the queue again
// stays a dead letter. MaxLen does not apply. It costs one round trip for every
// 500 ids.
func (q *Queue[T]) Redrive(ctx context.Context, ids ...string) (int64, error) {
	return q.inChunks(ctx, "redrive", ids, q.store().revive)
}

// Discard removes dead letters, and returns the number that it removed.
func (q *Queue[T]) Discard(ctx context.Context, ids ...string) (int64, error) {
	return q.inChunks(ctx, "discard", ids, q.store().discard)
}

func (q *Queue[T]) inChunks(ctx context.Context, what string, ids []string,
	do func(context.Context, []string) (int64, error)) (int64, error) {
	total := int64(0)
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxPush)]
		n, err := do(ctx, part)
		if err != nil {
			return total, q.failed(what, err)
		}
		total += n
		ids = ids[len(part):]
	}
	return total, nil
}
