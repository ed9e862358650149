package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

const (
	// givers is the number of goroutines that take and give up. It is more than the driver has in-flight slots, so that calls share
	// pipelines.
	givers = 24
	// gives is the number of times that each does so.
	gives = 60
	// mostPatience is the longest time that a call has: some round trips.
	mostPatience = 3 * time.Millisecond
)

// Taker takes something, keeps it for a moment, and gives it back.
type Taker struct {
	Name string
	// Take returns how to give back what it took; nil: nothing. An error is that of a call that was given up, or nothing was free.
	Take func(ctx context.Context) (giveBack func(ctx context.Context) error, err error)
	// Free fails unless everything can be taken now.
	Free func(ctx context.Context) error
}

// GivenUp has many calls that give up within a round trip, on each kind of object that takes something, and fails the test if
// anything stays taken that no caller holds. All leases are an hour long, so none ends by itself.
func GivenUp(t *testing.T, c *ebb.Conn, name string) { GiveUp(t, takers(t, c, name)) }

// GiveUp does the work of GivenUp for these objects.
func GiveUp(t *testing.T, all []Taker) {
	for _, x := range all {
		var running sync.WaitGroup
		for g := range givers {
			running.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(g)))
				for range gives {
					x.once(t, r)
				}
			})
		}
		running.Wait()
		if err := x.Free(drivertest.Within(t)); err != nil {
			t.Errorf("%s: something stays taken: %v", x.Name, err)
		}
	}
}

// once takes, with a context that ends at random, and gives back.
func (x *Taker) once(t *testing.T, r *rand.Rand) {
	patience := time.Duration(r.Int64N(int64(mostPatience)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if r.IntN(2) == 0 { // cancelled, without a deadline
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		defer time.AfterFunc(patience, cancel).Stop()
	}
	defer cancel()
	giveBack, err := x.Take(ctx)
	if giveBack != nil {
		err = giveBack(drivertest.Within(t))
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, lock.ErrTaken) &&
		!errors.Is(err, limit.ErrTaken) && !errors.Is(err, limit.ErrLate) &&
		!errors.Is(err, queue.ErrEmpty) && !errors.Is(err, ebb.ErrUnavailable) {
		t.Errorf("%s: %v", x.Name, err)
	}
}

// Leased makes a Taker.Take of a call that returns a lease.
func Leased[L interface {
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

// AllOf is a Taker.Free that takes n times, and gives all of it back.
func AllOf(n int, take func(ctx context.Context) (func(context.Context) error, error)) func(ctx context.Context) error {
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

func takers(t *testing.T, c *ebb.Conn, name string) []Taker {
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
	reserved, err := limit.New(c, name+"-reserved", limit.Per(1000, time.Hour), limit.FailClosed, limit.Options{Burst: 1})
	must(err)
	reserve := func(ctx context.Context) (func(context.Context) error, error) {
		r, err := reserved.ReserveN(ctx, "k", 1, time.Hour)
		if err != nil {
			return nil, err
		}
		return r.Cancel, nil
	}
	soon := func(ctx context.Context) error {
		r, err := reserved.ReserveN(ctx, "k", 1, time.Hour)
		if err != nil {
			return err
		}
		if one := time.Hour / 1000; r.Delay() > 2*one {
			return fmt.Errorf("the next request is due in %v; one takes %v", r.Delay(), one)
		}
		return r.Cancel(ctx)
	}
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
	return []Taker{
		{"TryAcquire of a lock", Leased(l.TryAcquire), AllOf(1, Leased(l.TryAcquire))},
		{"Acquire of a lock", Leased(forEver(l.Acquire)), AllOf(1, Leased(l.TryAcquire))},
		{"a fair lock", Leased(forEver(fair.Acquire)), AllOf(1, Leased(fair.TryAcquire))},
		{"sharing", Leased(forEver(rw.Share)), AllOf(1, Leased(rw.TryAcquire))},
		{"a semaphore", Leased(func(ctx context.Context) (*lock.Lease, error) { return sem.Acquire(ctx, 1, 0) }), AllOf(2, Leased(one))},
		{"slots", Leased(func(ctx context.Context) (*limit.Slot, error) { return slots.Acquire(ctx, "k") }), AllOf(2, Leased(trySlot))},
		{"a reservation", reserve, soon},
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
	}
}
