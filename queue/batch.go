package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// BatchOptions configures RunBatch.
type BatchOptions struct {
	// Workers is the number of batches that are handled at a time. 0: 1.
	Workers int
	// Size is the greatest number of jobs of a batch, at most 500. 0: 100.
	Size int
	// Wait is the time for which a batch that is not full waits for more jobs. It must be shorter
	// than half of the queue's Lease. 0: no time.
	Wait time.Duration
}

// defaultBatchSize is the default of BatchOptions.Size.
const defaultBatchSize = 100

func (o *BatchOptions) check(lease time.Duration) error {
	o.Workers = cmp.Or(o.Workers, 1)
	o.Size = cmp.Or(o.Size, defaultBatchSize)
	switch {
	case o.Workers < 0:
		return fmt.Errorf("%w: Workers is %d; it must be at least 1, or 0 for 1", conn.ErrArgument, o.Workers)
	case o.Size < 0 || o.Size > maxPush:
		return fmt.Errorf("%w: Size is %d; it must be from 1 to %d", conn.ErrArgument, o.Size, maxPush)
	case o.Wait < 0 || o.Wait > lease/2:
		return fmt.Errorf("%w: Wait is %v; it must be from 0 to %v, half of the lease", conn.ErrArgument, o.Wait, lease/2)
	}
	return nil
}

// RunBatch calls fn with several jobs at a time until the context ends, as Run does with one job. The result
// of fn settles the jobs that fn has not settled: nil is Ack, an error is Fail of each, an error of Later is
// Postpone, and a panic counts as an error. A function that can fail for a part of a batch settles its jobs
// itself.
//
// The context of fn ends when one of the leases is lost, with the cause ErrLost; when Options.Timeout is
// over; or when RunBatch's context has ended and Grace is over. After a lost lease and after Grace the
// unfinished jobs are due again at once. After a lost lease, for instance by Cancel, the delivery of the
// other jobs does not count. Middleware does not apply.
func (q *Queue[T]) RunBatch(ctx context.Context, o BatchOptions, fn func(ctx context.Context, jobs []*Job[T]) error) error {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return q.failed("run", err)
	}
	if err := o.check(q.o.Lease); err != nil {
		return q.failed("run", err)
	}
	workCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	errs := make([]error, o.Workers)
	fetchCtx, stopFetching := context.WithCancel(ctx) // an error ends all workers
	defer stopFetching()
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			errs[i] = q.batchLoop(fetchCtx, workCtx, o, fn)
			stopFetching()
		})
	}
	<-fetchCtx.Done()
	if q.o.Grace == 0 {
		stop()
	}
	grace := time.AfterFunc(q.o.Grace, stop)
	workers.Wait()
	grace.Stop()
	for _, err := range errs {
		if !kit.Ended(fetchCtx, err) {
			return err
		}
	}
	return q.failed("run", ctx.Err())
}

// batchLoop handles one batch after the other until ctx ends or a fetch fails. It returns the reason.
func (q *Queue[T]) batchLoop(ctx, inner context.Context, o BatchOptions, fn func(context.Context, []*Job[T]) error) error {
	w := q.consumer()
	defer w.close()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		jobs, err := w.fetch(ctx, o.Size)
		if err == nil && len(jobs) < o.Size && o.Wait > 0 && kit.Sleep(ctx, o.Wait) == nil {
			jobs = append(jobs, q.takeMore(ctx, o.Size-len(jobs))...)
		}
		if len(jobs) > 0 {
			q.handleBatch(inner, jobs, fn)
		}
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
}

// takeMore takes due jobs for a batch that is not full. It ignores an error, because the next fetch gets it
// again.
func (q *Queue[T]) takeMore(ctx context.Context, count int) []*Job[T] {
	t, err := q.store().take(ctx, count, kit.Millis(q.o.Lease))
	if errors.Is(err, conn.ErrNotReplicated) {
		return q.decode(ctx, q.confirmReplicated(ctx, t.jobs, err))
	}
	if err != nil {
		return nil
	}
	return q.decode(ctx, t.jobs)
}

// handleBatch runs the function for the jobs of a batch and settles them.
func (q *Queue[T]) handleBatch(ctx context.Context, jobs []*Job[T], fn func(context.Context, []*Job[T]) error) {
	jobsCtx, cancel := context.WithCancelCause(ctx)
	releases := make([]func(), len(jobs))
	var leases *jobLease
	for i, j := range jobs {
		lease, release := q.keepLease(jobsCtx, j, cancel)
		lease.next, leases, releases[i] = leases, lease, release
	}
	begun := q.counts.begin(len(jobs))
	err := func() error {
		timed, stop := jobsCtx, func() {}
		if q.o.Timeout > 0 {
			timed, stop = context.WithTimeoutCause(jobsCtx, q.o.Timeout, ErrTimeout)
		}
		defer stop()
		fnCtx := jobContext{timed, leases}
		return addTimeout(fnCtx, runBatch(fnCtx, jobs, fn))
	}()
	q.counts.end(len(jobs), begun)
	for _, release := range releases {
		release()
	}
	if errors.Is(context.Cause(jobsCtx), ErrLost) && err != nil && !errors.Is(err, ErrPermanent) && !IsLater(err) {
		err = Later(0) // the jobs whose leases were not lost have not failed
	}
	cancel(nil)
	var settling sync.WaitGroup
	for _, j := range jobs {
		if !j.settled.Load() {
			settling.Go(func() { q.finish(ctx, j, err) })
		}
	}
	settling.Wait()
}

// runBatch calls a function that may panic.
func runBatch[T any](ctx context.Context, jobs []*Job[T], fn func(context.Context, []*Job[T]) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			ids := make([]string, len(jobs))
			for i, j := range jobs {
				ids[i] = j.ID
			}
			err = jobs[0].q.panicked(p, ids...)
		}
	}()
	return fn(ctx, jobs)
}
