package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

const (
	// pollInterval is the longest pause of a waiting consumer: messages are lost when a master is replaced.
	pollInterval = 5 * time.Second
	// maxPop is the greatest number of jobs that a consumer takes in one call.
	maxPop = 64
	// minRetryPause and maxRetryPause bound the pauses of a consumer that cannot reach the backend.
	minRetryPause, maxRetryPause = 10 * time.Millisecond, 2 * time.Second
)

// TryPop returns a job that is due, or ErrEmpty. On ebb it also returns ErrEmpty while other
// calls wait in Pop. It costs one round trip. On a Replicated view of the Conn, a job may stay
// leased after ebb.ErrNotReplicated; it is delivered again after its lease.
func (q *Queue[T]) TryPop(ctx context.Context) (*Job[T], error) {
	for {
		t, err := q.store().take(ctx, 1, kit.Millis(q.o.Lease))
		if err != nil {
			q.returnLateJobs(ctx, err)
			return nil, q.failed("pop", err)
		}
		if len(t.jobs) == 0 && t.wait != 0 {
			return nil, ErrEmpty
		}
		if jobs := q.decode(ctx, t.jobs); len(jobs) > 0 {
			return jobs[0], nil
		}
	}
}

// Pop waits for a job, until the context ends. If the backend does not reply, Pop waits until it does. If the
// context ends while a job is on its way, Pop returns the job or gives it back, which may take up to a
// second; if it cannot, the queue delivers the job again after its lease. A value that the codec cannot
// decode counts as a failed delivery. On a Replicated view of the Conn, Pop returns a job once its lease is
// on the replicas.
func (q *Queue[T]) Pop(ctx context.Context) (*Job[T], error) {
	w := q.consumer()
	defer w.close()
	jobs, err := w.fetch(ctx, 1)
	if err != nil {
		return nil, err
	}
	return jobs[0], nil
}

// Consume yields jobs as they fall due, one at a time. The loop's body settles each:
//
//	for job, err := range q.Consume(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//		err = job.Ack(ctx)
//	}
//
// The loop ends with the context, without an error. If the backend returns an error that a
// retry cannot fix, Consume yields it and ends. A job that the loop's body does not settle is
// delivered again after its lease.
func (q *Queue[T]) Consume(ctx context.Context) iter.Seq2[*Job[T], error] {
	return func(yield func(*Job[T], error) bool) {
		w := q.consumer()
		defer w.close()
		for {
			jobs, err := w.fetch(ctx, 1)
			if kit.Ended(ctx, err) && len(jobs) == 0 {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(jobs[0], nil) {
				return
			}
		}
	}
}

// consumer waits for jobs repeatedly, in one goroutine.
type consumer[T any] struct {
	q       *Queue[T]
	wakeups *wake.Dispatcher // open from the first wait to close; nil before
}

func (q *Queue[T]) consumer() *consumer[T] { return &consumer[T]{q: q} }

func (w *consumer[T]) close() {
	if w.wakeups != nil {
		w.wakeups.Close()
	}
}

// fetch waits for up to count jobs, and returns at least one or an error.
func (w *consumer[T]) fetch(ctx context.Context, count int) ([]*Job[T], error) {
	var lastErr error // the error of the last call without a reply
	for tries := 0; ; {
		raws, err := w.takeOrWait(ctx, count)
		w.q.returnLateJobs(ctx, err)
		if errors.Is(err, conn.ErrNotReplicated) {
			raws = w.q.confirmReplicated(ctx, raws, err)
		}
		jobs := w.q.decode(ctx, raws)
		switch {
		case len(jobs) > 0:
			return jobs, nil
		case ctx.Err() != nil && lastErr != nil:
			return nil, w.q.failed("pop", fmt.Errorf("%w, after %w", ctx.Err(), lastErr))
		case ctx.Err() != nil:
			return nil, w.q.failed("pop", ctx.Err())
		case err == nil:
			tries = 0
		case !conn.Temporary(err):
			return nil, w.q.failed("pop", err)
		default:
			lastErr = err
			w.q.o.Logger.Warn("cannot reach the queue", "queue", w.q.name, "error", err)
			_ = kit.Sleep(ctx, kit.Backoff(minRetryPause, maxRetryPause, tries))
			tries++
		}
	}
}

// returnLateJobs gives back the jobs in a reply that came after its call had failed. They are ready again,
// and have counted one delivery.
func (q *Queue[T]) returnLateJobs(ctx context.Context, failed error) {
	v, ok := kit.Late(ctx, failed)
	if !ok || v.Err() != nil {
		return
	}
	for _, r := range q.store().jobsOfReply(v) {
		err := kit.ReleaseBriefly(ctx, nil, conn.Temporary, func(ctx context.Context) error {
			_, err := q.store().nack(ctx, &r, 0, "the call that took it has ended")
			return err
		})
		if err != nil {
			q.o.Logger.Warn("a job could not be given back; it is ready again after its lease", "queue", q.name, "job", r.id, "error", err)
		}
	}
}

// confirmReplicated returns the jobs whose leases enough replicas have stored. It extends the leases of the
// others until that is so: taking them again would count another delivery. It drops jobs whose lease is lost.
func (q *Queue[T]) confirmReplicated(ctx context.Context, raws []storedJob, cause error) []storedJob {
	for tries := 0; len(raws) > 0; tries++ {
		q.o.Logger.Warn("a lease waits for replicas", "queue", q.name, "jobs", len(raws), "error", cause)
		errs := make([]error, len(raws))
		var extending sync.WaitGroup
		for i, r := range raws {
			extending.Go(func() {
				ok, err := q.store().extend(ctx, r.id, r.token, kit.Millis(q.o.Lease))
				if err == nil && !ok {
					err = ErrLost
				}
				errs[i] = err
			})
		}
		extending.Wait()
		cause = nil
		kept := raws[:0]
		for i, r := range raws {
			if errs[i] == nil || conn.Temporary(errs[i]) {
				kept = append(kept, r)
				cause = cmp.Or(cause, errs[i])
			}
		}
		raws = kept
		if cause == nil {
			return raws
		}
		if kit.Sleep(ctx, kit.Backoff(minRetryPause, min(maxRetryPause, max(q.o.Lease/3, minRetryPause)), tries)) != nil {
			return nil
		}
	}
	return nil
}

// takeOrWait takes jobs, and waits for them for a bounded time. It may return none.
func (w *consumer[T]) takeOrWait(ctx context.Context, count int) ([]storedJob, error) {
	if n, ok := w.q.store().(*native); ok {
		return w.waitOnServer(ctx, n, count)
	}
	if w.wakeups == nil {
		// The first attempt needs no subscription.
		t, err := w.q.store().take(ctx, count, kit.Millis(w.q.o.Lease))
		if err != nil || len(t.jobs) > 0 {
			return t.jobs, err
		}
		w.wakeups = w.q.wakeups.Open()
	}
	return w.await(ctx, count)
}

// waitOnServer waits by a command that blocks at the server.
func (w *consumer[T]) waitOnServer(ctx context.Context, n *native, count int) ([]storedJob, error) {
	lease, block := kit.Millis(w.q.o.Lease), int64(0)
	if !w.q.c.Capabilities().Embedded {
		block = kit.BlockTime.Milliseconds()
		bounded, cancel := context.WithTimeout(ctx, kit.BlockTime+kit.ReplyMargin)
		defer cancel()
		t, err := n.takeWaiting(bounded, count, lease, block)
		if kit.Overdue(ctx, bounded, err) && !errors.Is(err, conn.ErrNotReplicated) {
			err = kit.NoReply(kit.BlockTime + kit.ReplyMargin)
		}
		return t.jobs, err
	}
	t, err := n.takeWaiting(ctx, count, lease, block)
	return t.jobs, err
}

// await tries to take a job after each wake-up and when the next job becomes due.
func (w *consumer[T]) await(ctx context.Context, count int) ([]storedJob, error) {
	waiter := w.wakeups.Join("")
	defer waiter.Leave(true) // another waiter learns when the next job is due
	for {
		t, err := w.q.store().take(ctx, count, kit.Millis(w.q.o.Lease))
		if err != nil || len(t.jobs) > 0 {
			return t.jobs, err
		}
		wait := pollInterval
		if t.wait >= 0 {
			wait = min(wait, t.wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-waiter.C:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// decode decodes the jobs that were taken. It fails jobs that the codec cannot decode.
func (q *Queue[T]) decode(ctx context.Context, raws []storedJob) []*Job[T] {
	q.counts.delivered.Add(int64(len(raws)))
	jobs := make([]*Job[T], 0, len(raws))
	for _, r := range raws {
		v, e, err := q.decodePayload(r.payload)
		j := &Job[T]{ID: r.id, Value: v, Headers: e.Headers, Deliveries: int(r.deliveries + e.Before), Token: r.token, Due: time.UnixMilli(r.due),
			timeout: q.timeout(&e), q: q, stored: r}
		if err == nil {
			jobs = append(jobs, j)
			continue
		}
		q.o.Logger.Warn("a job cannot be read", "queue", q.name, "job", r.id, "error", err)
		settleCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		err = j.Fail(settleCtx, err)
		if cancel(); err != nil {
			q.o.Logger.Warn("a job could not be given back; it is ready again after its lease", "queue", q.name, "job", r.id, "error", err)
		}
	}
	return jobs
}
