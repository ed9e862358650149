package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestStatusFollowsAJob(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Keep: time.Minute})
		is := func(want State) Status {
			t.Helper()
			s := must(q.Status(ctx, "a"))(t)
			if s.State != want {
				t.Fatalf("%+v, want %v", s, want)
			}
			return s
		}
		_, err := q.Status(ctx, "a")
		failsWith(t, err, ErrNoJob)
		must(q.Push(ctx, "v", PushOptions{ID: "a", Delay: time.Hour}))(t)
		is(Delayed)
		ok(t, q.Reschedule(ctx, "a", 0))
		is(Ready)
		lost := must(q.Pop(ctx))(t)
		must(q.Requeue(ctx, "a"))(t)
		j := must(q.Pop(ctx))(t)
		failsWith(t, lost.Progress(ctx, 0.9, "stale"), ErrLost)
		ok(t, j.Progress(ctx, 0.5, "half"))
		if s := is(Leased); s.Progress != 0.5 || s.Note != "half" || s.Result != nil || !s.DoneAt.IsZero() {
			t.Errorf("%+v", s)
		}
		lost.SetResult([]byte("stale"))
		failsWith(t, lost.Ack(ctx), ErrLost)
		j.SetResult([]byte("42\x00"))
		before := now(t, b)
		ok(t, j.Ack(ctx))
		if s := is(Done); s.Progress != 1 || string(s.Result) != "42\x00" || s.DoneAt.Before(before) || s.DoneAt.After(now(t, b)) {
			t.Errorf("%+v", s)
		}
		must(q.Push(ctx, "v", PushOptions{ID: "a"}))(t)
		if s := is(Ready); s.Progress != 0 {
			t.Errorf("%+v", s)
		}
		ok(t, must(q.Pop(ctx))(t).Bury(ctx, "no good"))
		is(DeadLetter)
		// A job that is cancelled has no outcome, and the outcome of an earlier job with its id is gone.
		must(q.Push(ctx, "v", PushOptions{ID: "b"}))(t)
		ok(t, must(q.Pop(ctx))(t).Ack(ctx))
		if n := must(q.Cancel(ctx, "b"))(t); n != 0 || must(q.Status(ctx, "b"))(t).State != Done {
			t.Errorf("%d jobs that were done are cancelled", n)
		}
		must(q.Push(ctx, "v", PushOptions{ID: "b", Delay: time.Hour}))(t)
		if n := must(q.Cancel(ctx, "b", "none"))(t); n != 1 {
			t.Errorf("%d jobs are cancelled", n)
		}
		_, err = q.Status(ctx, "b")
		failsWith(t, err, ErrNoJob)
		failsWith(t, must(q.pushed(ctx))(t).Progress(ctx, 2, ""), ebb.ErrArgument)
		failsWith(t, must(open(Options[string]{}).pushed(ctx))(t).Progress(ctx, 0, ""), ebb.ErrArgument)
	})
}

func TestAJobHasNoOutcomeOfAnEarlierOneWithItsID(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Keep: time.Minute, MaxLen: 2, Overflow: DropOldest})
		keeps := open(Options[string]{Keep: time.Minute})
		plain := open(Options[string]{}) // a program without Keep
		gone := func(id string) {
			t.Helper()
			_, err := q.Status(ctx, id)
			failsWith(t, err, ErrNoJob)
		}
		done := func(id string) {
			t.Helper()
			must(q.Push(ctx, "v", PushOptions{ID: id}))(t)
			j := must(q.Pop(ctx))(t)
			j.SetResult([]byte("of " + id))
			ok(t, j.Ack(ctx))
			if s := must(q.Status(ctx, id))(t); j.ID != id || s.State != Done || string(s.Result) != "of "+id {
				t.Fatalf("%q: %+v", j.ID, s)
			}
		}
		// The next job of the id expires, or is dropped.
		for _, id := range []string{"a", "b", "c"} {
			done(id)
		}
		must(keeps.Push(ctx, "v", PushOptions{ID: "a", TTL: time.Millisecond, Unique: time.Millisecond}))(t)
		b.Pass(5 * time.Millisecond)
		_, err := q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		gone("a")
		must(q.PushMany(ctx, []Item[string]{{PushOptions: PushOptions{ID: "b"}}, {}, {PushOptions: PushOptions{ID: "c", Unique: time.Hour}}}))(t)
		gone("b")
		if s := must(q.Status(ctx, "c"))(t); s.State != Ready {
			t.Errorf("%+v", s)
		}
		must(q.Cancel(ctx, "c"))(t)
		gone("c")
		ok(t, must(q.Pop(ctx))(t).Ack(ctx))
		// A push that is refused keeps the stored outcome.
		must(q.Push(ctx, "v", PushOptions{ID: "d"}))(t)
		j := must(q.Pop(ctx))(t)
		ok(t, j.Progress(ctx, 0.5, "half"))
		_, err = q.Push(ctx, "v", PushOptions{ID: "d"})
		failsWith(t, err, ErrDuplicate)
		if s := must(q.Status(ctx, "d"))(t); s.State != Leased || s.Note != "half" {
			t.Errorf("%+v", s)
		}
		ok(t, j.Ack(ctx))
		// Discard removes the outcome of a job that was done earlier, and keeps that of a later one.
		for _, later := range []bool{false, true} {
			done("e")
			b.Pass(2 * time.Millisecond)
			must(plain.Push(ctx, "v", PushOptions{ID: "e"}))(t)
			ok(t, must(q.Pop(ctx))(t).Bury(ctx, "no"))
			if later {
				b.Pass(2 * time.Millisecond)
				must(q.Push(ctx, "v", PushOptions{ID: "e"}))(t)
				ok(t, must(q.Pop(ctx))(t).Ack(ctx))
			}
			if n := must(q.Discard(ctx, "e", "none"))(t); n != 1 {
				t.Errorf("%d discarded", n)
			}
			if later {
				if s := must(q.Status(ctx, "e"))(t); s.State != Done {
					t.Errorf("%+v", s)
				}
			} else {
				gone("e")
			}
		}
	})
}

// pushed pushes a job and takes it.
func (q *Queue[T]) pushed(ctx context.Context) (*Job[T], error) {
	var v T
	if _, err := q.Push(ctx, v, PushOptions{Priority: 9}); err != nil {
		return nil, err
	}
	return q.Pop(ctx)
}

func TestAResultIsForgottenAfterKeep(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Keep: time.Minute})
		must(q.Push(ctx, "v", PushOptions{ID: "a"}))(t)
		ok(t, must(q.Pop(ctx))(t).Ack(ctx))
		b.Pass(time.Minute)
		must(q.Status(ctx, "a"))(t)
		b.Pass(time.Millisecond)
		_, err := q.Status(ctx, "a")
		failsWith(t, err, ErrNoJob)
	})
}

func TestRunBatchHandlesSeveralJobsAtATime(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx := b.Context()
		q := open(Options[string]{MaxDeliveries: 2, Backoff: func(int) time.Duration { return time.Millisecond }})
		for i := range 10 {
			must(q.Push(ctx, fmt.Sprint(i), PushOptions{ID: fmt.Sprint(i)}))(t)
		}
		var mu sync.Mutex
		var sizes []int
		seen := map[string]int{}
		running, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			done <- q.RunBatch(running, BatchOptions{Size: 4}, func(ctx context.Context, jobs []*Job[string]) error {
				mu.Lock()
				defer mu.Unlock()
				sizes = append(sizes, len(jobs))
				for _, j := range jobs {
					seen[j.ID]++
					if j.ID == "3" {
						if err := j.Bury(ctx, "never"); err != nil {
							return err
						}
					}
				}
				if len(sizes) == 1 {
					return errors.New("not yet")
				}
				if len(sizes) == 2 {
					panic("no")
				}
				return nil
			})
		}()
		b.Until("all are done", func() bool { return must(q.Len(ctx))(t) == 0 })
		stop()
		failsWith(t, <-done, context.Canceled)
		mu.Lock()
		defer mu.Unlock()
		if sizes[0] != 4 || slices.Max(sizes) > 4 || seen["3"] != 1 || seen["0"] != 2 || len(seen) != 10 {
			t.Errorf("sizes %v, deliveries %v", sizes, seen)
		}
		if i := must(q.Info(ctx))(t); i.Dead != 1 {
			t.Errorf("%+v", i)
		}
		if m := q.Metrics(); m.Pushed != 10 || m.Buried != 1 || m.Acked != 9 || m.Delivered != m.Acked+m.Nacked+m.Buried || m.Running != 0 {
			t.Errorf("%+v", m)
		}
	})
}

func TestALostLeaseIsNoFailureOfTheRestOfItsBatch(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx := b.Context()
		q := open(Options[string]{MaxDeliveries: 1, Lease: 450 * time.Millisecond})
		for i := range 5 {
			must(q.Push(ctx, "v", PushOptions{ID: fmt.Sprint(i)}))(t)
		}
		running, stop := context.WithCancel(ctx)
		done, batches := make(chan error, 1), 0
		go func() {
			done <- q.RunBatch(running, BatchOptions{}, func(ctx context.Context, jobs []*Job[string]) error {
				if batches++; batches > 1 {
					return nil
				}
				must(q.Cancel(context.WithoutCancel(ctx), "3"))(t)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		b.Until("all are done", func() bool { return must(q.Len(ctx))(t) == 0 })
		stop()
		failsWith(t, <-done, context.Canceled)
		if i, m := must(q.Info(ctx))(t), q.Metrics(); i.Dead != 0 || m.Acked != 4 || m.Nacked != 0 {
			t.Errorf("%+v, %+v", i, m)
		}
	})
}

func TestABatchWaitsForMoreJobs(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Lease: 3 * time.Second})
		for i := range 3 {
			must(q.Push(ctx, fmt.Sprint(i), PushOptions{Delay: time.Duration(i+1) * 500 * time.Millisecond}))(t)
		}
		running, stop := context.WithCancel(ctx)
		done, size := make(chan error), make(chan int, 9)
		go func() {
			done <- q.RunBatch(running, BatchOptions{Size: 10, Wait: 1200 * time.Millisecond}, func(ctx context.Context, jobs []*Job[string]) error {
				size <- len(jobs)
				return kit.Sleep(ctx, 20*time.Second) // the leases are extended
			})
		}()
		if n := <-size; n != 3 {
			t.Errorf("a batch of %d", n)
		}
		b.Pass(10 * time.Second)
		if i := must(q.Info(ctx))(t); i.Leased != 3 {
			t.Errorf("%+v", i)
		}
		stop() // without Grace the jobs are due again
		failsWith(t, <-done, context.Canceled)
		if i := must(q.Info(ctx))(t); i.Ready != 3 {
			t.Errorf("%+v", i)
		}
		if m := q.Metrics(); m.Nacked != 3 || m.Handled < 10*time.Second {
			t.Errorf("%+v", m)
		}
		for _, o := range []BatchOptions{{Workers: -1}, {Size: -1}, {Size: 501}, {Wait: -1}, {Wait: 2 * time.Second}} {
			failsWith(t, q.RunBatch(ctx, o, func(context.Context, []*Job[string]) error { return nil }), ebb.ErrArgument)
		}
	})
}
