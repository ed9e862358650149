package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// kept runs a test of Run on a queue with leases of three seconds, whose calls to ebb's own commands pass
// through d. Times are exact.
func kept(t *testing.T, test func(t *testing.T, b *backends.Backend, d *between, q *Queue[string])) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		d := &between{c: b.Conn}
		test(t, b, d, must(New(ebb.Use(d), fresh(b), Options[string]{Lease: 3 * time.Second}))(t))
	})
}

// outage returns a function that makes the backend unreachable, after a while and for a while.
func outage(d *between) (begin func(after, lasts time.Duration)) {
	var mu sync.Mutex // guards what follows
	var from, to time.Time
	d.call = func(_ context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
		mu.Lock()
		away := !time.Now().Before(from) && time.Now().Before(to)
		mu.Unlock()
		if away {
			return ebb.Value{}, fmt.Errorf("%w: it is away", ebb.ErrUnavailable)
		}
		return run()
	}
	return func(after, lasts time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		from = time.Now().Add(after)
		to = from.Add(lasts)
	}
}

func TestALeaseIsExtendedEveryThirdOfIt(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		extended := atomic.Int32{}
		d.call = func(_ context.Context, name string, run func() (ebb.Value, error)) (ebb.Value, error) {
			if name == "DQ.EXTEND" {
				extended.Add(1)
			}
			return run()
		}
		done := make(chan error)
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			done <- kit.Sleep(ctx, 30500*time.Millisecond)
			return nil
		})
		must(q.Push(b.Context(), "v"))(t)
		ok(t, <-done)
		failsWith(t, stop(), context.Canceled)
		if n := extended.Load(); n != 30 {
			t.Errorf("extended %d times in 30 s", n)
		}
	})
}

func TestALeaseOutlivesABackendThatIsBackInTime(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		done, runs := make(chan error), atomic.Int32{}
		must(q.Push(b.Context(), "v"))(t)
		outage(d)(500*time.Millisecond, time.Second)
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			runs.Add(1)
			done <- kit.Sleep(ctx, 20*time.Second)
			return nil
		})
		ok(t, <-done)
		b.Until("it is done", func() bool { return must(q.Len(b.Context()))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestALeaseEndsThatCannotBeExtended(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		cause, took := make(chan error), time.Duration(0)
		must(q.Push(b.Context(), "v"))(t)
		begin := time.Now()
		outage(d)(100*time.Millisecond, time.Minute)
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			took = time.Since(begin)
			cause <- context.Cause(ctx)
			return nil
		})
		failsWith(t, <-cause, ErrLost)
		failsWith(t, stop(), context.Canceled)
		if took != q.o.Lease {
			t.Errorf("lost after %v", took)
		}
	})
}

// After a pause of the process the timer of a lease fires some time later than the function's first look at its context.
func TestAJobThatWasLostInAPauseSaysSoBeforeItsTimer(t *testing.T) {
	pause := func(l *jobLease, d time.Duration) { l.begin(stopwatch{startWatch().from.Add(-d)}) }
	look := func(ctx context.Context, l *jobLease, lease time.Duration) error {
		if pause(l, lease-1); ctx.Err() != nil {
			return fmt.Errorf("before its end: %w", ctx.Err())
		}
		if pause(l, lease); ctx.Err() == nil {
			return errors.New("the context has not ended")
		}
		return context.Cause(ctx)
	}
	kept(t, func(t *testing.T, b *backends.Backend, _ *between, q *Queue[string]) {
		said := make(chan error, 1)
		must(q.Push(b.Context(), "v"))(t)
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			said <- look(ctx, ctx.(jobContext).lease, q.o.Lease)
			return j.Ack(context.WithoutCancel(ctx))
		})
		failsWith(t, <-said, ErrLost)
		failsWith(t, stop(), context.Canceled)
	})
	kept(t, func(t *testing.T, b *backends.Backend, _ *between, q *Queue[string]) {
		said := make(chan error, 1)
		must(q.PushMany(b.Context(), []Item[string]{{Value: "a"}, {Value: "b"}}))(t)
		ctx, cancel := context.WithCancel(b.Context())
		failsWith(t, q.RunBatch(ctx, BatchOptions{}, func(ctx context.Context, jobs []*Job[string]) error {
			defer cancel()
			said <- look(ctx, ctx.(jobContext).lease.next, q.o.Lease)
			return errors.Join(jobs[0].Ack(b.Context()), jobs[1].Ack(b.Context()))
		}), context.Canceled)
		failsWith(t, <-said, ErrLost)
	})
	kept(t, func(t *testing.T, b *backends.Backend, _ *between, q *Queue[string]) {
		done := make(chan error, 1)
		must(q.Push(b.Context(), "v"))(t)
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			err := j.Ack(ctx)
			pause(ctx.(jobContext).lease, q.o.Lease)
			done <- errors.Join(err, ctx.Err()) // the lease no longer matters
			return nil
		})
		ok(t, <-done)
		failsWith(t, stop(), context.Canceled)
	})
}

func TestACancelledJobEndsItsFunctionAtTheNextExtension(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, _ *between, q *Queue[string]) {
		cause, took := make(chan error), time.Duration(0)
		id := must(q.Push(b.Context(), "v"))(t)
		begin := time.Now()
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			took = time.Since(begin)
			cause <- context.Cause(ctx)
			return nil
		})
		b.Pass(100 * time.Millisecond)
		must(q.Cancel(b.Context(), id))(t)
		failsWith(t, <-cause, ErrLost)
		failsWith(t, stop(), context.Canceled)
		if took != q.o.Lease/3 {
			t.Errorf("lost after %v", took)
		}
	})
}

func TestAFunctionMayGoOnAfterItHasSettledItsJob(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, _ *between, q *Queue[string]) {
		done := make(chan error)
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			done <- errors.Join(j.Ack(ctx), kit.Sleep(ctx, 10*time.Second))
			return nil
		})
		must(q.Push(b.Context(), "v"))(t)
		ok(t, <-done)
		failsWith(t, stop(), context.Canceled)
	})
}

func TestNoExtensionIsUnderWayWhenAJobIsSettled(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		extending, began, acked := atomic.Int32{}, make(chan struct{}), make(chan struct{})
		d.call = func(_ context.Context, name string, run func() (ebb.Value, error)) (ebb.Value, error) {
			switch name {
			case "DQ.EXTEND":
				extending.Add(1)
				defer extending.Add(-1)
				close(began)
				_ = kit.Sleep(context.Background(), time.Second)
			case "DQ.ACK":
				if extending.Load() != 0 {
					t.Error("the lease may be extended after its end")
				}
				defer close(acked)
			}
			return run()
		}
		stop := running(b, q, 1, func(context.Context, *Job[string]) error {
			<-began
			return nil
		})
		must(q.Push(b.Context(), "v"))(t)
		<-acked
		failsWith(t, stop(), context.Canceled)
	})
}

func TestWhatWasDoneIsSaidAgainUntilItIsHeard(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		runs, away := atomic.Int32{}, outage(d)
		must(q.Push(b.Context(), "v"))(t)
		stop := running(b, q, 1, func(context.Context, *Job[string]) error {
			runs.Add(1)
			away(0, 500*time.Millisecond)
			return nil
		})
		b.Pass(time.Second)
		failsWith(t, stop(), context.Canceled)
		if n := must(q.Len(b.Context()))(t); n != 0 || runs.Load() != 1 {
			t.Errorf("%d jobs are left after %d runs", n, runs.Load())
		}
	})
}

func TestNothingIsSettledAfterTheEndOfItsLease(t *testing.T) {
	kept(t, func(t *testing.T, b *backends.Backend, d *between, q *Queue[string]) {
		away := outage(d)
		must(q.Push(b.Context(), "v"))(t)
		stop := running(b, q, 1, func(context.Context, *Job[string]) error {
			away(0, time.Minute)
			return nil
		})
		b.Pass(time.Millisecond)
		begin := time.Now()
		failsWith(t, stop(), context.Canceled)
		if took := time.Since(begin); took > q.o.Lease {
			t.Errorf("Run ended after %v", took)
		}
	})
}

func TestFunctionsEndWithTheGrace(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Grace: 50 * time.Millisecond})
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		must(q.Push(ctx, "v"))(t)
		b.Pass(10 * time.Millisecond)
		begin := time.Now()
		failsWith(t, stop(), context.Canceled)
		if took := time.Since(begin); took != q.o.Grace {
			t.Errorf("after %v", took)
		}
		if j := must(q.TryPop(ctx))(t); j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
	})
}

func TestAsManyRunAtATimeAsThereAreWorkers(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		const workers = 3
		ctx, q := b.Context(), open(Options[string]{})
		at, most, release := atomic.Int32{}, atomic.Int32{}, make(chan struct{})
		stop := running(b, q, workers, func(_ context.Context, j *Job[string]) error {
			defer at.Add(-1)
			n := at.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			if j.Value == "waits" {
				<-release
			}
			return nil
		})
		for range 4 { // some workers were idle while others worked
			must(q.Push(ctx, "v"))(t)
			b.Until("it is done", func() bool { return must(q.Len(ctx))(t) == 0 })
		}
		for range workers + 2 {
			must(q.Push(ctx, "waits"))(t)
		}
		b.Until("all work", func() bool { return at.Load() == workers })
		close(release)
		b.Until("all is done", func() bool { return must(q.Len(ctx))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		if n := most.Load(); n != workers {
			t.Errorf("%d ran at a time", n)
		}
	})
}
