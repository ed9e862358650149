package queue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

const (
	defaultLease      = 30 * time.Second
	defaultDeliveries = 16
	// minLease leaves time for the round trip of an extension.
	minLease = 10 * time.Millisecond
	// maxPriority is the highest priority of DQ.ADD.
	maxPriority = 9
	// maxDeliveries is the greatest number of deliveries that ebb counts.
	maxDeliveries = 1<<16 - 1
)

// Overflow selects what a push does when the queue holds MaxLen jobs.
type Overflow int

const (
	// Refuse returns ErrFull.
	Refuse Overflow = iota
	// Block waits until the queue has space, or until the context ends.
	Block
	// DropOldest removes the job that would be delivered next. If all jobs are leased, the push
	// returns ErrFull.
	DropOldest
)

// String returns the name of the constant; Overflow(7) for another number.
func (o Overflow) String() string {
	switch o {
	case Refuse:
		return "Refuse"
	case Block:
		return "Block"
	case DropOldest:
		return "DropOldest"
	}
	return fmt.Sprintf("Overflow(%d)", int(o))
}

// Options configures a queue. The zero value works.
type Options[T any] struct {
	// Lease is the time for which a consumer has a job, unless Run extends it. 0: 30 s.
	Lease time.Duration
	// MaxDeliveries is the number of deliveries after which a job becomes a dead letter. 0: 16;
	// negative: no limit.
	MaxDeliveries int
	// Backoff returns the pause after failed delivery n (1, 2, ...). nil: a random part, at least
	// half, of 1 s, 2 s, 4 s, ... up to 10 min.
	Backoff func(n int) time.Duration
	// MaxLen is the limit of jobs in the queue, leased jobs included. 0: no limit.
	MaxLen int64
	// Overflow selects what a push does at MaxLen. Default: Refuse.
	Overflow Overflow
	// Grace is the time for which functions of Run may continue after Run's context has ended,
	// before Run ends their contexts. 0: no time.
	Grace time.Duration
	// Timeout is the time after which the context of a function of Run ends, with the cause
	// ErrTimeout. PushOptions.Timeout overrides it. 0: no limit.
	Timeout time.Duration
	// Keep is the time for which Queue.Status reports a done job with its result, and the last Job.Progress of a
	// job. It costs a string key for each job. 0: no time.
	Keep time.Duration
	// Middleware wraps the function of Run; the first is the outermost.
	Middleware []Middleware[T]
	// Headers adds headers to the jobs of a Push, such as the caller's trace. PushOptions.Headers
	// override them. It must be safe for concurrent use. nil: none.
	Headers func(ctx context.Context) map[string]string
	// Codec encodes values. nil: ebb.CodecOf.
	Codec conn.Codec[T]
	// Logger receives the errors that no call returns. nil: no log.
	Logger *slog.Logger
}

// check sets the defaults, and returns an error with ebb.ErrArgument for wrong options.
func (o *Options[T]) check() (err error) {
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return err
	}
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.MaxDeliveries = cmp.Or(o.MaxDeliveries, defaultDeliveries)
	o.MaxDeliveries = max(o.MaxDeliveries, 0)
	if o.Backoff == nil {
		o.Backoff = func(n int) time.Duration { return kit.Backoff(time.Second, 10*time.Minute, n-1) }
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	switch {
	case o.Lease < minLease:
		return fmt.Errorf("%w: Lease is %v; it must be at least %v", conn.ErrArgument, o.Lease, minLease)
	case o.MaxDeliveries > maxDeliveries:
		return fmt.Errorf("%w: MaxDeliveries is %d; it must be at most %d, or negative for no limit",
			conn.ErrArgument, o.MaxDeliveries, maxDeliveries)
	case o.MaxLen < 0:
		return fmt.Errorf("%w: MaxLen is %d; it must be positive, or 0 for no limit", conn.ErrArgument, o.MaxLen)
	case o.Overflow < Refuse || o.Overflow > DropOldest:
		return fmt.Errorf("%w: Overflow is %v; it must be Refuse, Block or DropOldest", conn.ErrArgument, o.Overflow)
	case o.Overflow != Refuse && o.MaxLen == 0:
		return fmt.Errorf("%w: Overflow is %v, which needs a MaxLen", conn.ErrArgument, o.Overflow)
	case o.Timeout < 0:
		return fmt.Errorf("%w: Timeout is %v, which is negative", conn.ErrArgument, o.Timeout)
	case o.Keep < 0:
		return fmt.Errorf("%w: Keep is %v, which is negative", conn.ErrArgument, o.Keep)
	case o.Grace < 0:
		return fmt.Errorf("%w: Grace is %v, which is negative", conn.ErrArgument, o.Grace)
	}
	return nil
}

// Queue is a queue of jobs with values of type T. Its methods are safe for concurrent use. It
// holds no resource and need not be closed.
type Queue[T any] struct {
	c    *conn.Conn
	name string
	o    Options[T]

	text     bool // values are strings and have the default codec
	scripted bool // for tests: the queue uses scripts even on ebb

	logged     atomic.Bool // logFirstUse has run
	configured atomic.Bool // ebb has the queue's limits
	counts     counts
	wakeups    wake.Channel // for backends without commands that wait
}

// New returns the queue of that name. All programs that use the name share the queue; each program has its
// own limits and leases. New sends nothing to the backend. Errors: ebb.ErrArgument.
func New[T any](c *conn.Conn, name string, opts ...Options[T]) (*Queue[T], error) {
	name, o, err := kit.Make(c, "queue", name, opts)
	if err != nil {
		return nil, err
	}
	text := o.Codec == nil && isText[T]()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("queue %q: %w", name, err)
	}
	q := &Queue[T]{c: c, name: name, o: o, text: text}
	q.wakeups = wake.Channel{Conn: c, Name: kit.Key(name, "wake"), Wakes: wake.One}
	return q, nil
}

// Name returns the queue's name.
func (q *Queue[T]) Name() string { return kit.Given(q.c, q.name) }

// String describes the queue: by commands of ebb or by scripts.
func (q *Queue[T]) String() string {
	caps := q.c.Capabilities()
	how := fmt.Sprintf("Lua scripts on %s %s", caps.Server, caps.Version)
	if q.native() {
		how = "DQ.* of ebb"
	}
	most := "any number of deliveries"
	if n := q.o.MaxDeliveries; n > 0 {
		most = fmt.Sprintf("%d deliveries", n)
	}
	return fmt.Sprintf("queue %q (lease %v, %s; %s)", q.name, q.o.Lease, most, how)
}

func (q *Queue[T]) native() bool { return !q.scripted && q.c.Capabilities().Native }

// store is the backend of a queue: native or scripts. Times are in ms. Every method is one round trip, and
// atomic for all other clients.
type store interface {
	push(ctx context.Context, items []pushItem, maxLen int64, drop bool) ([]pushResult, error)
	// take returns the jobs that it took together with ebb.ErrNotReplicated, but not with any other error.
	take(ctx context.Context, count int, lease int64) (takeResult, error)
	// jobsOfReply returns the jobs in a reply to take.
	jobsOfReply(v conn.Value) []storedJob
	ack(ctx context.Context, id string, token int64) (bool, error)
	nack(ctx context.Context, r *storedJob, delay int64, reason string) (bool, error)
	extend(ctx context.Context, id string, token, lease int64) (bool, error)
	bury(ctx context.Context, r *storedJob, reason string) (bool, error)
	cancel(ctx context.Context, ids []string) (int64, error)
	info(ctx context.Context) (Info, error)
	// dead returns dead letters, the oldest first, behind the one with the id after.
	dead(ctx context.Context, n int, after string) ([]storedLetter, error)
	revive(ctx context.Context, ids []string) (int64, error)
	discard(ctx context.Context, ids []string) (int64, error)
	// schedule stores a schedule and returns its next occurrence.
	schedule(ctx context.Context, s *cron.Schedule) (int64, error)
	unschedule(ctx context.Context, names []string) (int64, error)
	schedules(ctx context.Context) ([]*cron.Schedule, error)
	peek(ctx context.Context, state State, after string, count int) ([]storedEntry, error)
	get(ctx context.Context, id string) (storedEntry, error)
	// pause pauses the queue for ms, or without an end if ms is 0.
	pause(ctx context.Context, ms int64) error
	resume(ctx context.Context) error
	requeue(ctx context.Context, ids []string) (int64, error)
	reschedule(ctx context.Context, id string, delay int64) (bool, error)
	// note stores a consumer's report for keep ms, and acknowledges the job if done.
	note(ctx context.Context, r *storedJob, report string, keep int64, done bool) (bool, error)
	// status returns the name of a job's state ("dead" for a dead letter, "" if there is no such job) and its
	// report.
	status(ctx context.Context, id string) (state, report string, err error)
	// postpone replaces a job with a new one that has another payload.
	postpone(ctx context.Context, r *storedJob, delay int64, payload []byte) (bool, error)
	// remove removes all keys; it is not atomic.
	remove(ctx context.Context) error
}

// storedJob is a job in the form of the backend.
type storedJob struct {
	id, payload            string
	deliveries, token, due int64
}

// takeResult is the result of take.
type takeResult struct {
	jobs []storedJob
	// wait is the time until the next attempt if there is no job. 0: at once, because a call removes a bounded
	// number of entries and there are more. Negative: no job will fall due, or the time is unknown.
	wait time.Duration
}

// logFirstUse logs, once, how the queue runs.
func (q *Queue[T]) logFirstUse() {
	if !q.logged.Load() && !q.logged.Swap(true) {
		q.o.Logger.Debug(q.String())
	}
}

// store returns the backend for a call.
func (q *Queue[T]) store() store {
	q.logFirstUse()
	if q.native() {
		return &native{c: q.c, name: q.name, max: q.o.MaxDeliveries, configured: &q.configured}
	}
	return &scripts{c: q.c, name: q.name, max: q.o.MaxDeliveries}
}

// failed returns the error of an operation on the queue.
func (q *Queue[T]) failed(what string, err error) error {
	return fmt.Errorf("queue %q: %s: %w", q.name, what, err)
}

// Cancel removes jobs in any state, and returns the number that it removed. A consumer that has
// one gets ErrLost when it settles it. Unique still refuses such jobs. Cancel costs one round
// trip for every 500 ids.
func (q *Queue[T]) Cancel(ctx context.Context, ids ...string) (int64, error) {
	return q.inChunks(ctx, "cancel", ids, q.store().cancel)
}

// Delete removes the queue: the jobs in all states, the dead letters, the schedules, a pause, and the records
// of Unique. A consumer that has a job gets ErrLost when it settles it. On servers other than ebb, Delete
// searches all keys of the backend for the records of Unique, O(keys). The outcomes that Status reports stay
// for Keep.
func (q *Queue[T]) Delete(ctx context.Context) error {
	if err := q.store().remove(ctx); err != nil {
		return q.failed("delete", err)
	}
	return nil
}

// Info describes the content of a queue.
type Info struct {
	Delayed, Ready, Leased int64
	// Dead is the number of dead letters. They do not count as jobs of the queue.
	Dead int64
	// Lateness is the time since the oldest ready job fell due; 0 if no job is ready.
	Lateness time.Duration
	// NextDue is the time until the next delayed job falls due; negative if no job is delayed.
	NextDue time.Duration
	// Schedules is the number of schedules.
	Schedules int64
	// NextOccurrence is the time until the next occurrence of a schedule; negative if there is none.
	NextOccurrence time.Duration
	// Paused says that consumers get no jobs: see Pause.
	Paused bool
	// PausedUntil is the last millisecond of the pause, by the backend's clock. It is zero if the
	// pause has no end.
	PausedUntil time.Time
}

// toDuration returns the duration of a number of ms, at most 292 years.
func toDuration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// Len returns the number of jobs in all states. MaxLen is its limit.
func (i Info) Len() int64 { return i.Delayed + i.Ready + i.Leased }

// Info describes the queue. O(log n).
func (q *Queue[T]) Info(ctx context.Context) (Info, error) {
	i, err := q.store().info(ctx)
	if err != nil {
		return Info{}, q.failed("info", err)
	}
	return i, nil
}

// Len returns the number of jobs in all states, without the dead letters.
func (q *Queue[T]) Len(ctx context.Context) (int64, error) {
	i, err := q.Info(ctx)
	return i.Len(), err
}
