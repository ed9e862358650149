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

// settleFor is for how long Run tries to settle a job whose function has returned.
const settleFor = 10 * time.Second

// Run calls fn with jobs, in up to workers goroutines at a time, until the context ends. It
// returns when all calls have returned, with an error that says why it ended and that has the
// context's error in its chain.
//
// The result of fn, behind the Middleware of Options, settles the job unless fn did: nil is Ack, an
// error is Fail, that of Later is Postpone, and a panic counts as an error. Run extends the lease while fn runs. The context of fn ends when the
// lease is lost, with the cause ErrLost, or its Timeout is over, with ErrTimeout, or Grace after Run's context, or when Run ends with an
// error. A job that is interrupted this way is due again at once, unless fn's error has
// ErrPermanent in its chain.
func (q *Queue[T]) Run(ctx context.Context, workers int, fn func(ctx context.Context, j *Job[T]) error) error {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return q.failed("run", err)
	}
	if workers < 1 {
		return q.failed("run", fmt.Errorf("%w: %d workers; at least 1 is right", conn.ErrArgument, workers))
	}
	handle := q.chain(fn)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	busy := make(chan struct{}, workers)
	err := q.feed(ctx, busy, func(j *Job[T]) {
		running.Go(func() {
			defer func() { <-busy }()
			q.work(inner, j, handle)
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

// feed takes as many jobs as there are idle workers, time and again, and returns why
// it ended.
func (q *Queue[T]) feed(ctx context.Context, busy chan struct{}, start func(*Job[T])) error {
	w := q.consumer()
	defer w.close()
	for {
		select {
		case busy <- struct{}{}:
		case <-ctx.Done():
			return q.failed("run", ctx.Err())
		}
		idle := 1
		for more := true; more && idle < popAtOnce; {
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

// work runs a function for a job and settles it.
func (q *Queue[T]) work(ctx context.Context, j *Job[T], fn func(context.Context, *Job[T]) error) {
	err, lost := q.attend(ctx, j, fn)
	if j.settled.Load() {
		return
	}
	if lost {
		q.o.Logger.Warn("a job was lost while it ran", "queue", q.name, "job", j.ID)
		return
	}
	q.finish(ctx, j, err)
}

// finish settles a job by the error of its function. ctx is the one that Run ends after Grace.
func (q *Queue[T]) finish(ctx context.Context, j *Job[T], err error) {
	last, done := context.WithTimeout(context.WithoutCancel(ctx), min(settleFor, q.o.Lease))
	defer done()
	var postponed later
	for tries := 0; ; tries++ {
		var failed error
		switch {
		case err == nil:
			failed = j.Ack(last)
		case errors.As(err, &postponed):
			failed = j.Postpone(last, postponed.delay)
		case ctx.Err() != nil && !errors.Is(err, ErrPermanent):
			failed = j.nack(last, 0, err.Error())
		default:
			failed = j.Fail(last, err)
		}
		if failed == nil {
			return
		}
		if !conn.Temporary(failed) || kit.Sleep(last, kit.Backoff(againFirst, againMost, tries)) != nil {
			q.o.Logger.Warn("a job could not be settled", "queue", q.name, "job", j.ID, "error", failed)
			return
		}
	}
}

// attend runs a function for as long as the lease lasts, and keeps it meanwhile. A
// function that ends its goroutine leaves the job to the end of its lease.
func (q *Queue[T]) attend(ctx context.Context, j *Job[T], fn func(context.Context, *Job[T]) error) (err error, lost bool) {
	own, cancel := context.WithCancelCause(ctx)
	release := q.keep(own, j, cancel)
	defer func() {
		release()
		lost = errors.Is(context.Cause(own), ErrLost)
		cancel(nil)
	}()
	timed, stop := j.bounded(own)
	defer stop()
	begun := q.counts.begin(1)
	defer func() { q.counts.end(1, begun) }()
	return timedOut(timed, run(timed, j, fn)), false
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

// panicked returns the error of a function that has panicked: the first line of the panic. The stack goes to the Logger, because
// the error becomes the reason of a dead letter.
func (q *Queue[T]) panicked(p any, jobs ...string) error {
	q.o.Logger.Error("the function of a job has panicked", "queue", q.name, "jobs", jobs, "panic", p, "stack", string(debug.Stack()))
	line, _, _ := strings.Cut(fmt.Sprint(p), "\n")
	return fmt.Errorf("panic: %s", line)
}

// keep extends a job's lease every third of it until release is called, and calls
// lost with ErrLost when the lease is over as far as it can know. It costs a
// timer, and a goroutine from the first extension on. release waits for it.
func (q *Queue[T]) keep(ctx context.Context, j *Job[T], lost context.CancelCauseFunc) (release func()) {
	ctx, end := context.WithCancel(ctx)
	finished := make(chan struct{})
	over := time.AfterFunc(q.o.Lease, func() { lost(ErrLost) })
	first := time.AfterFunc(q.o.Lease/3, func() {
		defer close(finished)
		q.extendUntil(ctx, j, over, lost)
	})
	return func() {
		end()
		if !first.Stop() {
			<-finished
		} else {
			over.Stop()
		}
	}
}

// extendUntil extends a lease until ctx ends. over ends the one there is.
func (q *Queue[T]) extendUntil(ctx context.Context, j *Job[T], over *time.Timer, lost context.CancelCauseFunc) {
	defer func() { over.Stop() }()
	for tries := 0; ctx.Err() == nil; {
		if j.settled.Load() {
			return
		}
		// The new lease begins when the server gets the request, or later.
		next := time.AfterFunc(q.o.Lease, func() { lost(ErrLost) })
		err := j.Extend(ctx, q.o.Lease)
		switch {
		case err == nil:
			over.Stop()
			over, tries = next, 0
			_ = kit.Sleep(ctx, q.o.Lease/3)
			continue
		case errors.Is(err, ErrLost):
			next.Stop()
			if !j.settled.Load() {
				lost(ErrLost)
			}
			return
		}
		next.Stop()
		tries++
		_ = kit.Sleep(ctx, kit.Backoff(againFirst, max(q.o.Lease/6, againFirst), tries))
	}
}
