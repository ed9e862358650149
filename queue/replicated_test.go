package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// fewReplicas makes a backend whose replicas may be away: a call then returns its result together with the
// error.
func fewReplicas(away *atomic.Bool) func(context.Context, string, func() (ebb.Value, error)) (ebb.Value, error) {
	return func(_ context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
		v, err := run()
		if err == nil && away.Load() {
			err = fmt.Errorf("%w: %w", ebb.ErrNotReplicated, ebb.ErrUnavailable)
		}
		return v, err
	}
}

func TestJobsAreNotSpentWhileReplicasAreAway(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, scripted := range []bool{false, true} {
			away, d := atomic.Bool{}, &between{c: b.Conn}
			d.call = fewReplicas(&away)
			ctx, o := b.Context(), Options[string]{Lease: 50 * time.Millisecond, MaxDeliveries: 2}
			q := must(New(ebb.Use(d), fresh(b), o))(t)
			q.scripted = scripted
			_, err := q.TryPop(ctx) // sends the queue its limits
			failsWith(t, err, ErrEmpty)
			must(q.PushMany(ctx, []Item[string]{{Value: "a"}, {Value: "b"}}))(t)
			away.Store(true)
			var popping sync.WaitGroup
			for range 2 {
				popping.Go(func() {
					j, err := q.Pop(ctx)
					if err == nil && j.Deliveries != 1 {
						err = fmt.Errorf("delivered %d times", j.Deliveries)
					}
					if err == nil {
						err = j.Ack(ctx)
					}
					if err != nil {
						t.Error(err)
					}
					if away.Load() {
						t.Error("the lease is on no replica")
					}
				})
			}
			b.Pass(time.Minute)
			away.Store(false)
			popping.Wait()

			away.Store(true)
			_, err = q.Push(ctx, "c")
			failsWith(t, err, ebb.ErrNotReplicated)
			short, cancel := context.WithTimeout(ctx, time.Second)
			_, err = q.Pop(short)
			failsWith(t, err, context.DeadlineExceeded)
			cancel()
			away.Store(false)
			if j := must(q.Pop(ctx))(t); j.Value != "c" || j.Deliveries != 2 {
				t.Errorf("%+v", j)
			}
		}
	})
}

// TestWhatTheMasterAloneHasIsSaid is the table of docs/toolkit/queue.md.
func TestWhatTheMasterAloneHasIsSaid(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		away, d := atomic.Bool{}, &between{c: b.Conn}
		d.call = fewReplicas(&away)
		ctx, q := b.Context(), must(New(ebb.Use(d), fresh(b), Options[string]{Lease: 3 * time.Second}))(t)
		_, err := q.TryPop(ctx) // sends the queue its limits
		failsWith(t, err, ErrEmpty)

		away.Store(true)
		_, err = q.Push(ctx, "v", PushOptions{ID: "v"})
		failsWith(t, err, ebb.ErrNotReplicated)
		_, err = q.TryPop(ctx) // no consumer has a lease on it
		failsWith(t, err, ebb.ErrNotReplicated)
		away.Store(false)
		_, err = q.Push(ctx, "v", PushOptions{ID: "v"})
		failsWith(t, err, ErrDuplicate)
		j := must(q.Pop(ctx))(t)
		if j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
		away.Store(true)
		failsWith(t, j.Ack(ctx), ebb.ErrNotReplicated)
		away.Store(false)
		failsWith(t, j.Ack(ctx), ErrLost)

		cause, took := make(chan error), time.Duration(0)
		must(q.Push(ctx, "runs"))(t)
		begin := time.Now()
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			took = time.Since(begin)
			cause <- context.Cause(ctx)
			return nil
		})
		b.Pass(1500 * time.Millisecond) // the lease is extended once
		away.Store(true)
		failsWith(t, <-cause, ErrLost)
		failsWith(t, stop(), context.Canceled)
		if took != 4*time.Second {
			t.Errorf("lost after %v", took)
		}
	})
}

func TestALeaseThatIsLostBeforeItIsReplicatedHasNoHolder(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		away, d := atomic.Bool{}, &between{c: b.Conn}
		d.call = fewReplicas(&away)
		ctx, q := b.Context(), must(New[string](ebb.Use(d), fresh(b)))(t)
		_, err := q.TryPop(ctx) // sends the queue its limits
		failsWith(t, err, ErrEmpty)
		id := must(q.Push(ctx, "cancelled"))(t)
		away.Store(true)
		got := popping(ctx, q)
		b.Pass(time.Second)
		direct := must(New[string](b.Conn, q.Name()))(t)
		if i := must(direct.Info(ctx))(t); i.Leased != 1 {
			t.Errorf("%+v", i)
		}
		must(direct.Cancel(ctx, id))(t)
		away.Store(false)
		b.Pass(10 * time.Second)
		must(q.Push(ctx, "other"))(t)
		if v, _ := got(time.Now()); v != "other" {
			t.Errorf("%q", v)
		}
	})
}
