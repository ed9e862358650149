package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestWorkIsDoneAtMostOncePerSpan(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		span := 150 * time.Millisecond
		for _, d := range []time.Duration{time.Minute, time.Hour, span} {
			fresh(t, b, b.Name(fmt.Sprint(d)))
		}
		once := func(d time.Duration) *lock.Once {
			o, err := lock.NewOnce(b.Open(), b.Name(fmt.Sprint(d)), d)
			must(t, err)
			return o
		}
		var did, doing, done atomic.Int32
		var wg sync.WaitGroup
		o := once(time.Minute)
		for range 8 {
			wg.Go(func() {
				what, err := o.Do(ctx, func(context.Context) error { return nil })
				switch {
				case err != nil:
					t.Error(err)
				case what == lock.Did:
					did.Add(1)
				case what == lock.Doing:
					doing.Add(1)
				case what == lock.Done:
					done.Add(1)
				}
			})
		}
		wg.Wait()
		if did.Load() != 1 || did.Load()+doing.Load()+done.Load() != 8 {
			t.Errorf("%d did it, %d saw it being done, %d done", did.Load(), doing.Load(), done.Load())
		}
		if what, err := o.State(ctx); what != lock.Done || err != nil {
			t.Error(what, err)
		}

		o = once(time.Hour)
		failed := errors.New("failed")
		if what, err := o.Do(ctx, func(context.Context) error { return failed }); what != lock.Did || !errors.Is(err, failed) {
			t.Error(what, err)
		}
		inside := lock.Outcome(0)
		what, err := o.Do(ctx, func(context.Context) (err error) { // after a failure another call may try
			inside, err = once(time.Hour).Do(ctx, func(context.Context) error { return errors.New("twice") })
			return err
		})
		if what != lock.Did || inside != lock.Doing || err != nil {
			t.Error(what, inside, err)
		}

		o = once(span)
		what, err = o.Do(ctx, func(in context.Context) error {
			<-in.Done() // before the span is over
			return nil
		})
		if what != lock.Did || err != nil {
			t.Error(what, err)
		}
		b.Until("the span is over", func() bool {
			what, err := o.Do(ctx, func(context.Context) error { return nil })
			must(t, err)
			return what == lock.Did
		})
	})
}

// later is a queue.
type later struct{ jobs []string }

func (l *later) PushLater(_ context.Context, job string, delay time.Duration) error {
	l.jobs = append(l.jobs, fmt.Sprint(job, " in ", delay))
	return nil
}

func TestWorkOnATakenLockGoesToAQueue(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, q := b.Context(), &later{}
		l := newLock(t, b.Conn, b.Name("k"), 30*time.Second)
		lease, err := lock.RunLater(ctx, l, q, "one")
		must(t, err)
		if _, err := lock.RunLater(ctx, l, q, "two"); !errors.Is(err, lock.ErrLater) {
			t.Error(err)
		}
		must(t, lease.Release(ctx))
		if s := strings.Join(q.jobs, ", "); s != "two in 10s" {
			t.Error(s)
		}
	})
}
