package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/drivertest"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

const (
	// givers is how many goroutines take and give up. It is more than the driver has in-flight slots, so that calls share
	// pipelines.
	givers = 24
	// gives is how often each does so.
	gives = 60
	// mostPatience is the longest time that a call has: some round trips.
	mostPatience = 3 * time.Millisecond
)

// taker takes something, keeps it for a moment, and gives it back.
type taker struct {
	name string
	// take returns how to give back what it took; nil: nothing. An error is that of a call that was given up, or nothing was free.
	take func(ctx context.Context) (giveBack func(ctx context.Context) error, err error)
	// free fails unless everything can be taken now.
	free func(ctx context.Context) error
}

// GivenUp has many calls that give up within a round trip, on each kind of object that takes something, and fails the test if
// anything stays taken that no caller holds. All leases are an hour long, so none ends by itself.
func GivenUp(t *testing.T, c *ebb.Conn, name string) {
	for _, x := range takers(t, c, name) {
		var all sync.WaitGroup
		for g := range givers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(g)))
				for range gives {
					x.once(t, r)
				}
			})
		}
		all.Wait()
		if err := x.free(drivertest.Within(t)); err != nil {
			t.Errorf("%s: something stays taken: %v", x.name, err)
		}
	}
}

// once takes, with a context that ends at random, and gives back.
func (x *taker) once(t *testing.T, r *rand.Rand) {
	patience := time.Duration(r.Int64N(int64(mostPatience)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if r.IntN(2) == 0 { // cancelled, without a deadline
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		defer time.AfterFunc(patience, cancel).Stop()
	}
	defer cancel()
	giveBack, err := x.take(ctx)
	if giveBack != nil {
		err = giveBack(drivertest.Within(t))
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, lock.ErrTaken) &&
		!errors.Is(err, limit.ErrTaken) && !errors.Is(err, queue.ErrEmpty) && !errors.Is(err, ebb.ErrUnavailable) {
		t.Errorf("%s: %v", x.name, err)
	}
}

// leased makes a taker of a call that returns a lease.
func leased[L interface {
	Release(ctx context.Context) error
}](take func(ctx context.Context) (L, error)) func(ctx context.Context) (func(context.Context) error, error) {
	return func(ctx context.Context) (func(context.Context) error, error) {
		l, err := take(ctx)
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	}
}

// forEver is a call that waits until its context ends.
func forEver(acquire func(context.Context, time.Duration) (*lock.Lease, error)) func(ctx context.Context) (*lock.Lease, error) {
	return func(ctx context.Context) (*lock.Lease, error) { return acquire(ctx, 0) }
}

// allOf takes n times, and gives all of it back.
func allOf(n int, take func(ctx context.Context) (func(context.Context) error, error)) func(ctx context.Context) error {
	return func(ctx context.Context) (err error) {
		for range n {
			giveBack, takeErr := take(ctx)
			if takeErr != nil {
				return errors.Join(err, takeErr)
			}
			defer func() { err = errors.Join(err, giveBack(ctx)) }()
		}
		return err
	}
}

func takers(t *testing.T, c *ebb.Conn, name string) []taker {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	opts := lock.Options{TTL: time.Hour, UntilRelease: true}
	l, err := lock.New(c, name+"-lock", opts)
	must(err)
	fair, err := lock.NewFair(c, name+"-fair", opts)
	must(err)
	rw, err := lock.NewRW(c, name+"-rw", opts)
	must(err)
	sem, err := lock.NewSemaphore(c, name+"-sem", 2, opts)
	must(err)
	slots, err := limit.NewConcurrency(c, name+"-slots", 2, limit.ConcurrencyOptions{Lease: time.Hour, UntilRelease: true})
	must(err)
	once, err := lock.NewOnce(c, name+"-once", time.Hour)
	must(err)
	q, err := queue.New[int](c, name+"-queue", queue.Options[int]{Lease: time.Hour, MaxDeliveries: -1})
	must(err)
	const jobs = 8
	for i := range jobs {
		_, err = q.Push(drivertest.Within(t), i)
		must(err)
	}
	one := func(ctx context.Context) (*lock.Lease, error) { return sem.TryAcquire(ctx, 1) }
	trySlot := func(ctx context.Context) (*limit.Slot, error) { return slots.TryAcquire(ctx, "k") }
	value, err := lock.NewOnceValue(c, name+"-value", time.Hour, lock.OnceValueOptions[int]{Lease: time.Hour})
	must(err)
	nothing := func(context.Context) (int, error) { return 0, lock.ErrTaken } // so that the next may try
	popWith := func(pop func(context.Context) (*queue.Job[int], error)) func(ctx context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) (func(context.Context) error, error) {
			j, err := pop(ctx)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return j.Nack(ctx, 0) }, nil
		}
	}
	allJobs := func(ctx context.Context) error {
		if i, err := q.Info(ctx); err != nil || i.Leased != 0 || i.Ready != jobs {
			return fmt.Errorf("of %d jobs %d are leased, and %d ready: %v", jobs, i.Leased, i.Ready, err)
		}
		return nil
	}
	return append(redissonTakers(t, c, name), []taker{
		{"TryAcquire of a lock", leased(l.TryAcquire), allOf(1, leased(l.TryAcquire))},
		{"Acquire of a lock", leased(forEver(l.Acquire)), allOf(1, leased(l.TryAcquire))},
		{"a fair lock", leased(forEver(fair.Acquire)), allOf(1, leased(fair.TryAcquire))},
		{"sharing", leased(forEver(rw.Share)), allOf(1, leased(rw.TryAcquire))},
		{"a semaphore", leased(func(ctx context.Context) (*lock.Lease, error) { return sem.Acquire(ctx, 1, 0) }), allOf(2, leased(one))},
		{"slots", leased(func(ctx context.Context) (*limit.Slot, error) { return slots.Acquire(ctx, "k") }), allOf(2, leased(trySlot))},
		{"once", func(ctx context.Context) (func(context.Context) error, error) {
			_, err := once.Do(ctx, func(context.Context) error { return lock.ErrTaken }) // so that the next may try
			return nil, err
		}, func(ctx context.Context) error {
			if s, err := once.State(ctx); err != nil || s != 0 {
				return fmt.Errorf("the state is %v, %v", s, err)
			}
			return nil
		}},
		{"a value once", func(ctx context.Context) (func(context.Context) error, error) {
			_, _, err := value.Do(ctx, "k", nothing)
			return nil, err
		}, func(ctx context.Context) error {
			if _, did, err := value.TryDo(ctx, "k", nothing); did != lock.Did {
				return fmt.Errorf("the outcome is %v, %v", did, err)
			}
			return nil
		}},
		{"TryPop of a queue", popWith(q.TryPop), allJobs},
		{"Pop of a queue", popWith(q.Pop), allJobs},
	}...)
}

// unlessFailed returns what a taker returns for a call with this error.
func unlessFailed(giveBack func(context.Context) error, err error) (func(context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	return giveBack, nil
}

// redissonTakers are those whose backend counts, and does not know which call took something.
func redissonTakers(t *testing.T, c *ebb.Conn, name string) []taker {
	t.Helper()
	java := lock.Redisson(c, "", lock.Options{TTL: time.Hour, UntilRelease: true})
	l := given(java.Lock(name + "-java-lock"))(t)
	rw := given(java.ReadWriteLock(name + "-java-rw"))(t)
	var threads atomic.Int64
	ofThread := func(acquire func(context.Context, int64, time.Duration) (*lock.Lease, error)) func(context.Context) (*lock.Lease, error) {
		return func(ctx context.Context) (*lock.Lease, error) { return acquire(ctx, threads.Add(1), 0) }
	}
	once := func(acquire func(context.Context, int64) (*lock.Lease, error)) func(context.Context) (*lock.Lease, error) {
		return func(ctx context.Context) (*lock.Lease, error) { return acquire(ctx, threads.Add(1)) }
	}
	const permits = 4
	sem := given(java.Semaphore(name + "-java-sem"))(t)
	drivertest.Must(t, second(sem.TrySetPermits(drivertest.Within(t), permits)))
	giveOne := func(ctx context.Context) error { return sem.Release(ctx, 1) }
	allPermits := func(ctx context.Context) error {
		if n, err := sem.AvailablePermits(ctx); err != nil || n != permits {
			return fmt.Errorf("of %d permits %d are free: %v", permits, n, err)
		}
		return nil
	}
	const rate = 1 << 20
	limiter := given(limit.Redisson(c, name+"-java-rate"))(t)
	drivertest.Must(t, limiter.SetRate(drivertest.Within(t), limit.RedissonRate{Rate: rate, Interval: time.Hour}))
	var granted atomic.Int64
	return []taker{
		{"TryAcquire of a Redisson lock", leased(once(l.TryAcquire)), allOf(1, leased(once(l.TryAcquire)))},
		{"Acquire of a Redisson lock", leased(ofThread(l.Acquire)), allOf(1, leased(once(l.TryAcquire)))},
		{"sharing a Redisson lock", leased(ofThread(rw.Share)), allOf(1, leased(once(rw.TryAcquire)))},
		{"a Redisson lock of writers", leased(ofThread(rw.Acquire)), allOf(1, leased(once(rw.TryAcquire)))},
		{"TryAcquire of a Redisson semaphore", func(ctx context.Context) (func(context.Context) error, error) {
			return unlessFailed(giveOne, sem.TryAcquire(ctx, 1))
		}, allPermits},
		{"Acquire of a Redisson semaphore", func(ctx context.Context) (func(context.Context) error, error) {
			return unlessFailed(giveOne, sem.Acquire(ctx, 1, 0))
		}, allPermits},
		{"a Redisson limiter", func(ctx context.Context) (func(context.Context) error, error) {
			err := limiter.Acquire(ctx, 1)
			if err == nil {
				granted.Add(1)
			}
			return nil, err
		}, func(ctx context.Context) error {
			if n, err := limiter.AvailablePermits(ctx); err != nil || n != rate-granted.Load() {
				return fmt.Errorf("of %d permits %d are free after %d grants: %v", rate, n, granted.Load(), err)
			}
			return nil
		}},
	}
}
