package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// settleTimeout is the time for which Run tries to settle a job whose function has returned.
const settleTimeout = 10 * time.Second

// Run calls fn with jobs, in up to workers goroutines at a time, until the context ends. It returns when all
// calls have returned, with an error that gives the reason and has the context's error in its chain.
//
// The result of fn, behind the Middleware of Options, settles the job unless fn has settled it: nil is Ack,
// an error is Fail, an error of Later is Postpone, and a panic counts as an error. Run extends the lease
// while fn runs. The context of fn ends when the lease is lost, with the cause ErrLost; when the job's
// Timeout is over, with ErrTimeout; Grace after the end of Run's context; or when Run ends with an error. A
// job that is interrupted this way is due again at once, unless fn's error has ErrPermanent in its chain.
//
// After a pause of the process the context's Done may be closed some time later than that; Err looks at the clock.
func (q *Queue[T]) Run(ctx context.Context, workers int, fn func(ctx context.Context, j *Job[T]) error) error {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return q.failed("run", err)
	}
	if workers < 1 {
		return q.failed("run", fmt.Errorf("%w: workers is %d; it must be at least 1", conn.ErrArgument, workers))
	}
	handle := q.chain(fn)
	workCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	busy := make(chan struct{}, workers)
	err := q.dispatchJobs(ctx, busy, func(j *Job[T]) {
		running.Go(func() {
			defer func() { <-busy }()
			q.handle(workCtx, j, handle)
		})
	})
	if q.o.Grace == 0 {
		stop()
	}
	grace := time.AfterFunc(q.o.Grace, stop)
	running.Wait()
	grace.Stop()
	return err
}

// dispatchJobs takes jobs for the idle workers and starts them, until ctx ends or a fetch fails. It returns
// the reason.
func (q *Queue[T]) dispatchJobs(ctx context.Context, busy chan struct{}, start func(*Job[T])) error {
	w := q.consumer()
	defer w.close()
	for {
		select {
		case busy <- struct{}{}:
		case <-ctx.Done():
			return q.failed("run", ctx.Err())
		}
		idle := 1
		for more := true; more && idle < maxPop; {
			select {
			case busy <- struct{}{}:
				idle++
			default:
				more = false
			}
		}
		jobs, err := w.fetch(ctx, idle)
		for range idle - len(jobs) {
			<-busy
		}
		for _, j := range jobs {
			start(j)
		}
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
}

// handle runs the function for a job and settles the job.
func (q *Queue[T]) handle(ctx context.Context, j *Job[T], fn func(context.Context, *Job[T]) error) {
	err, lost := q.runWithLease(ctx, j, fn)
	if j.settled.Load() {
		return
	}
	if lost {
		q.o.Logger.Warn("a job was lost while it ran", "queue", q.name, "job", j.ID)
		return
	}
	q.finish(ctx, j, err)
}

// finish settles a job by the error of its function. Run ends ctx after Grace.
func (q *Queue[T]) finish(ctx context.Context, j *Job[T], err error) {
	settleCtx, done := context.WithTimeout(context.WithoutCancel(ctx), min(settleTimeout, q.o.Lease))
	defer done()
	var postponed postponeError
	for tries := 0; ; tries++ {
		var settleErr error
		switch {
		case err == nil:
			settleErr = j.Ack(settleCtx)
		case errors.As(err, &postponed):
			settleErr = j.Postpone(settleCtx, postponed.delay)
		case ctx.Err() != nil && !errors.Is(err, ErrPermanent):
			settleErr = j.nack(settleCtx, 0, err.Error())
		default:
			settleErr = j.Fail(settleCtx, err)
		}
		if settleErr == nil {
			return
		}
		if !conn.Temporary(settleErr) || kit.Sleep(settleCtx, kit.Backoff(minRetryPause, maxRetryPause, tries)) != nil {
			q.o.Logger.Warn("a job could not be settled", "queue", q.name, "job", j.ID, "error", settleErr)
			return
		}
	}
}

// runWithLease runs a function for as long as the lease lasts, and extends the lease meanwhile. If the
// function ends its goroutine with runtime.Goexit, the job stays leased until its lease ends.
func (q *Queue[T]) runWithLease(ctx context.Context, j *Job[T], fn func(context.Context, *Job[T]) error) (err error, lost bool) {
	jobCtx, cancel := context.WithCancelCause(ctx)
	lease, release := q.keepLease(jobCtx, j, cancel)
	defer func() {
		release()
		lost = errors.Is(context.Cause(jobCtx), ErrLost)
		cancel(nil)
	}()
	timed, stop := j.withTimeout(jobCtx)
	defer stop()
	fnCtx := jobContext{timed, lease}
	started := q.counts.begin(1)
	defer func() { q.counts.end(1, started) }()
	return addTimeout(fnCtx, run(fnCtx, j, fn)), false
}

// run calls a function that may panic.
func run[T any](ctx context.Context, j *Job[T], fn func(context.Context, *Job[T]) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = j.q.panicked(p, j.ID)
		}
	}()
	return fn(ctx, j)
}

// panicked returns the error of a function that has panicked: the first line of the panic. The Logger gets
// the stack, because the error becomes the reason of a dead letter.
func (q *Queue[T]) panicked(p any, jobs ...string) error {
	q.o.Logger.Error("the function of a job has panicked", "queue", q.name, "jobs", jobs, "panic", p, "stack", string(debug.Stack()))
	line, _, _ := strings.Cut(fmt.Sprint(p), "\n")
	return fmt.Errorf("panic: %s", line)
}
