package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
)

// PushOptions configures one job. The zero value adds a job that is due at once.
type PushOptions struct {
	// ID identifies the job, for instance for Cancel. A queue has at most one job with an id.
	// Default: a new id.
	ID string
	// Delay is the time from now until the job falls due.
	Delay time.Duration
	// At is the instant at which the job falls due, by the backend's clock. Use it instead of
	// Delay.
	At time.Time
	// Priority is 0 to 9. Of the jobs that are due, the queue delivers the highest first.
	Priority int
	// TTL is the time after which a due job that no consumer took is dropped. 0: never.
	TTL time.Duration
	// Unique is the time for which the queue refuses another job with the same ID, even after this job was
	// settled. Without an ID, the job's ID is derived from its value: the queue then refuses another job with
	// the same value, whatever its Headers and Timeout. 0: no time.
	Unique time.Duration
	// Replace replaces a waiting job with the same ID, whatever Unique and MaxLen say: a job that is pushed
	// again and again with a Delay runs once, when the Delay has passed since the last push. If a consumer has
	// the job with the ID, the push returns ErrDuplicate. Replace needs an ID.
	Replace bool
	// Headers are delivered with the job: Job.Headers. A job with headers has an envelope in front of its
	// payload, which clients that do not use this package see. At most 64 KB, in UTF-8.
	Headers map[string]string
	// Timeout is the time after which the context of a function of Run ends, with the cause ErrTimeout, at each
	// delivery. 0: the Timeout of the consumer's Options.
	Timeout time.Duration
}

// Item is one job for PushMany.
type Item[T any] struct {
	Value T
	PushOptions
}

// pushItem is a job to add. Either delay or at is set.
type pushItem struct {
	id        string // "": the server makes one
	generated bool   // this package made the id
	payload   string
	delay     int64
	at        int64 // 0: see delay
	priority  int
	ttl       int64
	unique    int64
	replace   bool
	forget    bool // the outcome of an earlier job with the id is removed
}

// pushResult is the result of the push of one job.
type pushResult struct {
	id    string
	state pushState
}

type pushState int

const (
	added pushState = iota
	duplicate
	full
)

const (
	// maxYear is the last year in which a job may fall due.
	maxYear = 9999
	// maxPush is the number of jobs in a round trip: a script that adds 500 takes a server some ms.
	maxPush = 500
	// minRoomPause and maxRoomPause bound the pauses between the attempts of a push that waits for room (Block).
	minRoomPause, maxRoomPause = 2 * time.Millisecond, 100 * time.Millisecond
)

// Push adds a job and returns its id. If the error is nil, the backend has the job. ErrFull, ErrDuplicate and
// ebb.ErrArgument mean that it does not. After any other error it may have the job: push it again with the
// same ID and with a Unique that is longer than the program's retries, and treat ErrDuplicate as success.
// With the ID alone, a job that was done meanwhile would be done again. With Block, if the context ended
// while Push waited for room, ErrFull is in the chain of the error too. Push costs one round trip.
func (q *Queue[T]) Push(ctx context.Context, v T, opts ...PushOptions) (string, error) {
	item := Item[T]{Value: v}
	var err error
	if item.PushOptions, err = kit.Option(opts); err != nil {
		return "", q.failed("push", err)
	}
	p, err := q.prepare(ctx, &item)
	if err != nil {
		return "", q.failed("push", err)
	}
	switch id, state := q.pushDirect(ctx, &p); state {
	case direct.Done:
		q.counts.pushed.Add(1)
		return id, nil
	case direct.Absent:
		return q.duplicate(&p)
	}
	ids, err := q.pushAll(ctx, []pushItem{p})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// duplicate returns the result of a push of a job that the queue did not add.
func (q *Queue[T]) duplicate(p *pushItem) (id string, err error) {
	if p.generated { // an earlier attempt of this call has added it
		q.counts.pushed.Add(1)
		return p.id, nil
	}
	q.counts.duplicates.Add(1)
	return "", q.failed("push "+p.name(), ErrDuplicate)
}

// calls returns the direct calls of an embedded engine; nil if there are none. Requests to such an engine are
// never sent twice.
func (q *Queue[T]) calls() direct.Calls {
	if q.scripted {
		return nil
	}
	return direct.Of(q.c)
}

// pushDirect adds a job by a direct call of the embedded engine, and returns its id.
func (q *Queue[T]) pushDirect(ctx context.Context, p *pushItem) (id string, _ direct.State) {
	d := q.calls()
	if d == nil || q.o.Overflow == DropOldest || p.forget || ctx.Err() != nil {
		return "", direct.Elsewhere
	}
	q.logFirstUse()
	return d.Push(q.name, direct.Job{ID: p.id, Payload: p.payload, Delay: p.delay, At: p.at, MaxLen: q.o.MaxLen, Priority: p.priority,
		Expire: p.ttl, Unique: p.unique, Replace: p.replace})
}

// PushLater pushes a job with a delay, and returns no id. Package lock uses this form to push
// work to a queue.
func (q *Queue[T]) PushLater(ctx context.Context, v T, delay time.Duration) error {
	_, err := q.Push(ctx, v, PushOptions{Delay: delay})
	return err
}

// PushMany adds jobs in their order, each as Push would, in one round trip for every 500. It returns their
// ids, "" for jobs that were not added, and the joined errors of those jobs. If an error has neither ErrFull
// nor ErrDuplicate in its chain, the jobs without an id in its group of 500 may have been added.
func (q *Queue[T]) PushMany(ctx context.Context, items []Item[T]) ([]string, error) {
	todo := make([]pushItem, len(items))
	for i := range items {
		var err error
		if todo[i], err = q.prepare(ctx, &items[i]); err != nil {
			return nil, q.failed("push", err)
		}
	}
	return q.pushAll(ctx, todo)
}

// pushAll adds prepared jobs, as PushMany does.
func (q *Queue[T]) pushAll(ctx context.Context, todo []pushItem) ([]string, error) {
	ids := make([]string, len(todo))
	var errs []error
	for from := 0; from < len(todo); from += maxPush {
		part := todo[from:min(from+maxPush, len(todo))]
		more, err := q.pushPart(ctx, part, ids[from:from+len(part)])
		if errs = append(errs, more...); err != nil {
			return ids, errors.Join(append(errs, q.failed("push", err))...)
		}
	}
	return ids, errors.Join(errs...)
}

// prepare checks and encodes a job.
func (q *Queue[T]) prepare(ctx context.Context, it *Item[T]) (p pushItem, err error) {
	switch {
	case it.Delay < 0:
		err = fmt.Errorf("%w: Delay is %v, which is negative", conn.ErrArgument, it.Delay)
	case it.Delay > 0 && !it.At.IsZero():
		err = fmt.Errorf("%w: Delay and At exclude each other", conn.ErrArgument)
	case !it.At.IsZero() && (it.At.UnixMilli() <= 0 || it.At.Year() > maxYear):
		err = fmt.Errorf("%w: At is %v; it must be after 1970 and before %d", conn.ErrArgument, it.At, maxYear+1)
	case it.Priority < 0 || it.Priority > maxPriority:
		err = fmt.Errorf("%w: Priority is %d; it must be from 0 to %d", conn.ErrArgument, it.Priority, maxPriority)
	case it.TTL < 0:
		err = fmt.Errorf("%w: TTL is %v, which is negative", conn.ErrArgument, it.TTL)
	case it.Unique < 0:
		err = fmt.Errorf("%w: Unique is %v, which is negative", conn.ErrArgument, it.Unique)
	case it.Timeout < 0:
		err = fmt.Errorf("%w: Timeout is %v, which is negative", conn.ErrArgument, it.Timeout)
	case it.Replace && it.ID == "":
		err = fmt.Errorf("%w: Replace needs an ID", conn.ErrArgument)
	case it.ID == "*":
		err = fmt.Errorf("%w: \"*\" cannot be an ID; without an ID the queue makes one", conn.ErrArgument)
	}
	if err != nil {
		return p, err
	}
	p = pushItem{id: it.ID, delay: kit.Millis(it.Delay), priority: it.Priority, ttl: kit.Millis(it.TTL), unique: kit.Millis(it.Unique),
		replace: it.Replace}
	if !it.At.IsZero() {
		p.at = it.At.UnixMilli()
	}
	var extra map[string]string
	if q.o.Headers != nil {
		extra = maps.Clone(q.o.Headers(ctx))
	}
	if p.payload, err = q.encodePayload(it, extra); err != nil {
		return p, err
	}
	switch {
	case p.id == "" && p.unique == 0 && q.calls() == nil:
		p.id, p.generated = kit.ID(), true // a push that is sent twice adds one job
	case p.id == "" && p.unique > 0:
		_, value := unwrap(p.payload)
		p.id = valueID(value) // headers and the timeout may differ; the value does not
	}
	p.forget = q.o.Keep > 0 && p.id != "" && !p.generated
	return p, nil
}

// valueID returns the id of a job that is unique by its value.
func valueID(value []byte) string {
	sum := sha256.Sum256(value)
	return "value:" + hex.EncodeToString(sum[:16])
}

// pushPart adds jobs in one round trip. With Block it waits for room and adds the rest. errs are the errors
// of jobs that were not added.
func (q *Queue[T]) pushPart(ctx context.Context, items []pushItem, ids []string) (errs []error, err error) {
	at := make([]int, len(items)) // the indexes of the items in ids
	for i := range at {
		at[i] = i
	}
	for tries := 0; ; tries++ {
		results, err := q.store().push(ctx, items, q.o.MaxLen, q.o.Overflow == DropOldest)
		if err != nil {
			return errs, err // even if ctx has ended and the previous attempt was refused: the backend may have the jobs
		}
		left := 0
		for i, r := range results {
			switch {
			case r.state == added:
				q.counts.pushed.Add(1)
				ids[at[i]] = r.id
			case r.state == duplicate:
				id, err := q.duplicate(&items[i])
				if ids[at[i]] = id; err != nil {
					errs = append(errs, err)
				}
			case q.o.Overflow == Block:
				items[left], at[left] = items[i], at[i]
				left++
			default:
				q.counts.refused.Add(1)
				errs = append(errs, q.failed("push "+items[i].name(), fmt.Errorf("%w: it holds %d jobs", ErrFull, q.o.MaxLen)))
			}
		}
		if left == 0 {
			return errs, nil
		}
		items = items[:left]
		if kit.Sleep(ctx, kit.Backoff(minRoomPause, maxRoomPause, tries)) != nil {
			return errs, fmt.Errorf("%w: no room for %d more: %w", ErrFull, left, ctx.Err())
		}
	}
}

// name returns the name of a job in errors.
func (p *pushItem) name() string {
	if p.id == "" || p.generated {
		return "a job"
	}
	return fmt.Sprintf("%q", p.id)
}
