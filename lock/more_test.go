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

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestSeveralLocksAreTakenTogetherOrNotAtAll(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		l := func(name string) *lock.Lock { return newLock(t, b.Conn, b.Name(name), 20*time.Second) }
		both, err := lock.Multi(l("b"), l("a"))
		must(t, err)
		held, err := l("b").TryAcquire(ctx)
		must(t, err)
		if _, err := both.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("one of them is taken: %v", err)
		}
		if _, err := both.Acquire(ctx, 20*time.Millisecond); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("one of them is taken: %v", err)
		}
		a, err := l("a").TryAcquire(ctx) // nothing has stayed taken
		must(t, err)
		must(t, a.Release(ctx))
		must(t, held.Release(ctx))
		leases, err := both.Acquire(ctx, time.Second)
		must(t, err)
		for _, name := range []string{"a", "b"} {
			if _, err := l(name).TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
				t.Errorf("%s is not taken: %v", name, err)
			}
			if leases.Token(b.Name(name)) == 0 {
				t.Errorf("no token of %s", name)
			}
		}
		must(t, leases.Release(ctx))
		if leases.Context().Err() == nil {
			t.Error("the context outlives the leases")
		}
		if _, err := lock.Multi(l("a"), l("b"), l("a")); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("twice the same: %v", err)
		}
	})
}

func TestTakersOfSeveralLocksNeverWaitInACircle(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		names := []string{"a", "b", "c"}
		var wg sync.WaitGroup
		var holders [3]atomic.Int32
		for i := range 6 {
			wg.Go(func() {
				one, two := (i+1)%3, i%3
				m, err := lock.Multi(newLock(t, b.Conn, b.Name(names[one]), 20*time.Second), newLock(t, b.Conn, b.Name(names[two]), 20*time.Second))
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					leases, err := m.Acquire(ctx, 0)
					if err != nil {
						t.Error(err)
						return
					}
					if holders[one].Add(1) != 1 || holders[two].Add(1) != 1 {
						t.Error("two holders")
					}
					holders[one].Add(-1)
					holders[two].Add(-1)
					if err := leases.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestAllGoOnWhenTheLatchIsAtZero(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		fresh(t, b, b.Name("k"))
		l, err := lock.NewLatch(b.Conn, b.Name("k"))
		must(t, err)
		must(t, l.Wait(ctx)) // nothing to count is zero
		if ok, err := l.Set(ctx, 2); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := l.Set(ctx, 5); ok || err != nil {
			t.Fatal(ok, err)
		}
		var through atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := l.Wait(ctx); err != nil {
					t.Error(err)
				}
				through.Add(1)
			})
		}
		if n, err := l.CountDown(ctx); n != 1 || err != nil {
			t.Error(n, err)
		}
		b.Pass(5 * time.Millisecond)
		if n := through.Load(); n != 0 {
			t.Errorf("%d went on at 1", n)
		}
		if n, err := l.CountDown(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		wg.Wait()
		if n, err := l.CountDown(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		giving, cancel := context.WithCancel(ctx)
		_, err = l.Set(ctx, 1)
		must(t, err)
		wg.Go(func() {
			if err := l.Wait(giving); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		b.Pass(2 * time.Millisecond)
		cancel()
		wg.Wait()
	})
}

func TestThereIsOneLeaderAndAllKnowIt(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		candidate := func(id string) *lock.Leader {
			e, err := lock.NewLeader(b.Open(), b.Name("office"), id, lock.Options{TTL: 15 * time.Second})
			must(t, err)
			return e
		}
		a, z := candidate("a:1"), candidate("z")
		watching, stop := context.WithCancel(ctx)
		var seen []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		wg.Go(func() {
			for r, err := range candidate("observer").Observe(watching) {
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen = append(seen, r.ID)
				mu.Unlock()
			}
		})
		saw := func(id string) {
			t.Helper()
			b.Until("it is seen that "+id+" leads", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(seen) > 0 && seen[len(seen)-1] == id
			})
		}
		saw("")
		first, err := a.Campaign(ctx)
		must(t, err)
		saw("a:1")
		if r, err := z.Current(ctx); r != (lock.Reign{ID: "a:1", Token: first.Token()}) || err != nil {
			t.Error(r, err)
		}
		var second *lock.Lease
		wg.Go(func() {
			if second, err = z.Campaign(ctx); err != nil {
				t.Error(err)
			}
			stop()
		})
		b.Pass(5 * time.Millisecond)
		must(t, first.Release(ctx))
		wg.Wait()
		if second.Token() <= first.Token() {
			t.Errorf("reign %d after %d", second.Token(), first.Token())
		}
		must(t, second.Release(ctx))
		failed := errors.New("failed")
		if err := a.Lead(ctx, func(ctx context.Context, token int64) error { return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		if r, err := z.Current(ctx); r != (lock.Reign{}) || err != nil {
			t.Error(r, err)
		}
	})
}

func TestALeaderThatLosesItsOfficeCampaignsAgain(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		e, err := lock.NewLeader(b.Conn, b.Name("office"), "a", lock.Options{TTL: short})
		must(t, err)
		var tokens []int64
		must(t, e.Lead(ctx, func(office context.Context, token int64) error {
			tokens = append(tokens, token)
			if len(tokens) >= 3 {
				return nil
			}
			if _, err := b.Del(ctx, b.Name("office")); err != nil {
				t.Error(err)
			}
			<-office.Done()
			return office.Err()
		}))
		if len(tokens) < 3 || tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Error(tokens)
		}
	})
}

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
		what, err := o.Do(ctx, func(context.Context) (err error) { // after a failure another may try
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
