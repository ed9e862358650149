package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// This file extends the leases of jobs whose functions run, and ends their contexts when a lease is over.

// jobLease is the lease of a job whose function runs.
type jobLease struct {
	length  time.Duration
	lost    context.CancelCauseFunc // ends the function's context
	settled *atomic.Bool            // the job's; once set, the end of the lease does not matter
	next    *jobLease               // the next lease of the same batch

	mu    sync.Mutex // guards begun
	begun stopwatch  // since the lease or its last extension began
}

// begin counts the lease from the instant at.
func (l *jobLease) begin(at stopwatch) {
	l.mu.Lock()
	l.begun = at
	l.mu.Unlock()
}

// checkClock ends the context if the lease is over although its timer has not fired yet, as after a pause of the process.
func (l *jobLease) checkClock() {
	l.mu.Lock()
	over := l.begun.elapsed() >= l.length
	l.mu.Unlock()
	if over && !l.settled.Load() {
		l.lost(ErrLost)
	}
}

// jobContext is the context of the function of a job, or of a batch of jobs. Its Err looks at the clock.
type jobContext struct {
	context.Context
	lease *jobLease // the first of the batch
}

func (c jobContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	for l := c.lease; l != nil; l = l.next {
		l.checkClock()
	}
	return c.Context.Err()
}

// keepLease extends a job's lease every third of its length until release is called. It calls lost with
// ErrLost when the lease is over or may be over. It costs a timer, and from the first extension a goroutine.
// release waits for that goroutine.
func (q *Queue[T]) keepLease(ctx context.Context, j *Job[T], lost context.CancelCauseFunc) (l *jobLease, release func()) {
	ctx, end := context.WithCancel(ctx)
	stopped := make(chan struct{})
	l = &jobLease{length: q.o.Lease, lost: lost, settled: &j.settled, begun: startWatch()}
	expiry := time.AfterFunc(q.o.Lease, func() { lost(ErrLost) })
	first := time.AfterFunc(q.o.Lease/3, func() {
		defer close(stopped)
		q.extendUntil(ctx, j, l, expiry)
	})
	return l, func() {
		end()
		if !first.Stop() {
			<-stopped
		} else {
			expiry.Stop()
		}
	}
}

// extendUntil extends a lease until ctx ends. expiry ends the function's context at the end of the current
// lease.
func (q *Queue[T]) extendUntil(ctx context.Context, j *Job[T], l *jobLease, expiry *time.Timer) {
	defer func() { expiry.Stop() }()
	for tries := 0; ctx.Err() == nil; {
		if j.settled.Load() {
			return
		}
		// The new lease begins when the server gets the request, or later.
		begun, next := startWatch(), time.AfterFunc(q.o.Lease, func() { l.lost(ErrLost) })
		err := j.Extend(ctx, q.o.Lease)
		switch {
		case err == nil:
			expiry.Stop()
			l.begin(begun)
			expiry, tries = next, 0
			_ = kit.Sleep(ctx, q.o.Lease/3)
			continue
		case errors.Is(err, ErrLost):
			next.Stop()
			if !j.settled.Load() {
				l.lost(ErrLost)
			}
			return
		}
		next.Stop()
		tries++
		_ = kit.Sleep(ctx, kit.Backoff(minRetryPause, max(q.o.Lease/6, minRetryPause), tries))
	}
}
