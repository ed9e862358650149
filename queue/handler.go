package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Handler handles a job: see Run.
type Handler[T any] func(ctx context.Context, j *Job[T]) error

// Middleware wraps a Handler, for instance to log, to trace or to limit. It sees the job before the call and
// the error after it, and need not call next.
type Middleware[T any] func(next Handler[T]) Handler[T]

// chain returns fn behind the middleware of the options; the first is the outermost.
func (q *Queue[T]) chain(fn Handler[T]) Handler[T] {
	for i := len(q.o.Middleware) - 1; i >= 0; i-- {
		fn = q.o.Middleware[i](fn)
	}
	return fn
}

// postponeError is the error that Later returns.
type postponeError struct{ delay time.Duration }

func (e postponeError) Error() string {
	return fmt.Sprintf("queue: the job is postponed for %v", e.delay)
}

// Later returns an error with which a function of Run postpones its job, as Postpone does, without counting a
// failure: for instance because a limit does not admit the job now.
func Later(delay time.Duration) error { return postponeError{max(delay, 0)} }

// IsLater reports whether an error postpones its job, for middleware that counts failures.
func IsLater(err error) bool {
	var l postponeError
	return errors.As(err, &l)
}

// Limit returns middleware that runs at most as many jobs of one key as a limit admits. take asks the limit,
// for instance one of package limit: it returns ok and a release function (nil if there is nothing to
// release), or the time after which to ask again. In that case the job is postponed, so that other jobs can
// run; the pause between two attempts is at least 10 ms. An error of take is a failure of the job. All
// programs that use the same limit share it.
func Limit[T any](key func(j *Job[T]) string,
	take func(ctx context.Context, key string) (ok bool, again time.Duration, release func(), err error)) Middleware[T] {
	return func(next Handler[T]) Handler[T] {
		return func(ctx context.Context, j *Job[T]) error {
			ok, again, release, err := take(ctx, key(j))
			if err != nil {
				return err
			}
			if !ok {
				return Later(max(again, minPostpone))
			}
			if release != nil {
				defer release()
			}
			return next(ctx, j)
		}
	}
}

// minPostpone is the shortest delay of a job that Limit does not admit.
const minPostpone = 10 * time.Millisecond

// Postpone returns the job to the queue, which delivers it again after delay. Unlike Nack it does not count
// as a delivery. The job keeps its priority and loses its TTL, because it was delivered in time.
func (j *Job[T]) Postpone(ctx context.Context, delay time.Duration) error {
	e, value := unwrap(j.stored.payload)
	e.Before = int64(j.Deliveries) - 1
	payload, err := e.wrap(value)
	if err != nil {
		return j.q.failed("postpone", err)
	}
	return j.settle("postpone", func() (bool, error) {
		return j.q.store().postpone(ctx, &j.stored, max(kit.Millis(delay), 0), payload)
	})
}

// withTimeout returns the context of the function of a job, with the timeout of the job.
func (j *Job[T]) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, j.timeout, ErrTimeout)
}

// addTimeout adds ErrTimeout to the error of a function that ended because of its timeout.
func addTimeout(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) && !errors.Is(err, ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// nativePostponeScript replaces a leased job with a new one. ARGV: id, token, delay, payload.
var nativePostponeScript = conn.NewScript(luaGetJob + `
local j = get(KEYS[1], ARGV[1])
if not j or j.state ~= 'leased' or string.format('%.0f', j.token) ~= ARGV[2] then return 0 end
redis.call('DQ.CANCEL', KEYS[1], ARGV[1])
redis.call('DQ.ADD', KEYS[1], ARGV[1], ARGV[4], 'PRIORITY', j.priority, 'DELAY', ARGV[3])
return 1
`)

func (n *native) postpone(ctx context.Context, r *storedJob, delay int64, payload []byte) (bool, error) {
	return n.scriptBoolean(ctx, nativePostponeScript, []string{n.name}, r.id, r.token, delay, payload)
}

// postponeScript replaces a leased job with a new one. ARGV: wake, id, token, delay, payload.
var postponeScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
unindex(j)
j.deliveries, j.max, j.ttl, j.payload = 0, 0, 0, ARGV[5]
returnJob(j, now + ARGV[4])
announce(j)
return finish(1)
`)

func (s *scripts) postpone(ctx context.Context, r *storedJob, delay int64, payload []byte) (bool, error) {
	return s.boolean(ctx, postponeScript, r.id, r.token, delay, payload)
}
