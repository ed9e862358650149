package objects

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// waiter is a kind of object whose calls wait at ebb while it is taken.
type waiter struct {
	name string
	word string // in the request that waits
	// hold takes the object on another connection, and returns how to let go.
	hold func(t *testing.T, c *ebb.Conn) (letGo func())
	// wait takes it and gives it back at once, or returns an error.
	wait func(t *testing.T, c *ebb.Conn) func(ctx context.Context) error
	// hasOwner: what a call takes is the owner's that it names. A job has only the token that the reply says.
	hasOwner bool
	// again: a request whose reply was lost is sent again by the call itself, so that it succeeds.
	again bool
}

// proxied is a server, and how to connect to it.
type proxied struct {
	addr   string
	open   func(t *testing.T, addr string) *ebb.Conn
	direct *ebb.Conn // without a proxy
}

// Proxied checks that what a call gave up is given back after it, over a proxy to an ebb server. All leases are an hour long, so
// none ends by itself.
func Proxied(t *testing.T, addr string, open func(t *testing.T, addr string) *ebb.Conn) {
	x := proxied{addr, open, open(t, addr)}
	for _, w := range waiters() {
		t.Run(strings.ReplaceAll(w.name, " ", "-"), func(t *testing.T) {
			t.Run("late-reply", func(t *testing.T) { w.late(t, x) })
			if w.hasOwner {
				t.Run("overtaken", func(t *testing.T) { w.overtaken(t, x) })
				t.Run("lost-reply", func(t *testing.T) { w.lost(t, x) })
			}
		})
	}
}

// begin starts a call over a proxy while another client holds the object, and sets a trap for its request.
func (w *waiter) begin(t *testing.T, ctx context.Context, kind drivertest.TrapKind, x proxied) (
	trap *drivertest.Trap, letGo func(), done chan error) {
	p := drivertest.NewProxy(t, x.addr)
	take := w.wait(t, x.open(t, p.Addr()))
	letGo = w.hold(t, x.direct)
	trap, done = p.Trap(kind, w.word), make(chan error, 1)
	go func() { done <- take(ctx) }()
	return trap, letGo, done
}

// late has the reply come after the end of the call's context, with what it waited for.
func (w *waiter) late(t *testing.T, x proxied) {
	ctx, cancel := context.WithCancel(drivertest.Within(t))
	defer cancel()
	trap, letGo, done := w.begin(t, ctx, drivertest.LateReply, x)
	drivertest.Until(t, "the call waits", func() bool { return blocked(t, x.direct) })
	letGo()
	<-trap.Caught
	cancel()
	ended(t, <-done)
	w.free(t, x.direct)
}

// overtaken has the request of a call arrive after what took it back.
func (w *waiter) overtaken(t *testing.T, x proxied) {
	ctx, cancel := context.WithCancel(drivertest.Within(t))
	defer cancel()
	trap, letGo, done := w.begin(t, ctx, drivertest.Overtake, x)
	<-trap.Caught
	cancel()
	ended(t, <-done)
	letGo()
	trap.Pass()
	w.free(t, x.direct)
}

// lost has the connection cut in place of the reply.
func (w *waiter) lost(t *testing.T, x proxied) {
	trap, letGo, done := w.begin(t, drivertest.Within(t), drivertest.LoseReply, x)
	drivertest.Until(t, "the call waits", func() bool { return blocked(t, x.direct) })
	letGo()
	<-trap.Caught
	if err := <-done; w.again && err != nil {
		t.Errorf("the call whose reply was lost: %v", err)
	}
	w.free(t, x.direct)
}

// ended checks the error of a call that was given up: it may have got its reply.
func ended(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// blocked reports whether a client of the server waits.
func blocked(t *testing.T, c *ebb.Conn) bool {
	v, err := c.Do(drivertest.Within(t), "INFO", "clients")
	drivertest.Must(t, err)
	return !strings.Contains(v.Str, "blocked_clients:0\r\n")
}

// free checks that the object can be taken.
func (w *waiter) free(t *testing.T, c *ebb.Conn) {
	t.Helper()
	if err := w.wait(t, c)(drivertest.Within(t)); err != nil {
		t.Errorf("it stays taken: %v", err)
	}
}

// errAgain is the error of work that leaves nothing, so that the next call may do it.
var errAgain = errors.New("leave nothing")

// none replaces errAgain by nil.
func none(err error) error {
	if errors.Is(err, errAgain) {
		return nil
	}
	return err
}

func waiters() []waiter {
	opts := lock.Options{TTL: time.Hour, UntilRelease: true}
	acquire := func(name string, of func(t *testing.T, c *ebb.Conn) func(context.Context) (*lock.Lease, error)) waiter {
		take := func(t *testing.T, c *ebb.Conn) func(context.Context) (func(context.Context) error, error) {
			get := of(t, c)
			return func(ctx context.Context) (func(context.Context) error, error) { return Leased(get)(ctx) }
		}
		return releasing(name, take)
	}
	all := []waiter{
		acquire("a lock", func(t *testing.T, c *ebb.Conn) func(context.Context) (*lock.Lease, error) {
			return forEver(given(lock.New(c, "proxied-lock", opts))(t).Acquire)
		}),
		acquire("a shared lock", func(t *testing.T, c *ebb.Conn) func(context.Context) (*lock.Lease, error) {
			return forEver(given(lock.NewRW(c, "proxied-rw", opts))(t).Acquire)
		}),
		acquire("a semaphore", func(t *testing.T, c *ebb.Conn) func(context.Context) (*lock.Lease, error) {
			s := given(lock.NewSemaphore(c, "proxied-sem", 1, opts))(t)
			return func(ctx context.Context) (*lock.Lease, error) { return s.Acquire(ctx, 1, 0) }
		}),
		releasing("slots", func(t *testing.T, c *ebb.Conn) func(context.Context) (func(context.Context) error, error) {
			s := given(limit.NewConcurrency(c, "proxied-slots", 1, limit.ConcurrencyOptions{Lease: time.Hour, UntilRelease: true}))(t)
			return Leased(func(ctx context.Context) (*limit.Slot, error) { return s.Acquire(ctx, "k") })
		}),
		working("once value", func(t *testing.T, c *ebb.Conn) func(context.Context, func(context.Context) error) error {
			o := given(lock.NewOnceValue(c, "proxied-once", time.Hour, lock.OnceValueOptions[int]{Lease: time.Hour}))(t)
			return func(ctx context.Context, fn func(context.Context) error) error {
				_, _, err := o.Do(ctx, "k", func(ctx context.Context) (int, error) { return 0, fn(ctx) })
				return err
			}
		}),
		working("a cache", func(t *testing.T, c *ebb.Conn) func(context.Context, func(context.Context) error) error {
			x := given(cache.New[string, int](c, "proxied-cache", cache.Options[string, int]{Lease: time.Hour}))(t)
			return func(ctx context.Context, fn func(context.Context) error) error {
				_, err := x.Get(ctx, "k", func(ctx context.Context, _ string) (int, error) { return 0, fn(ctx) })
				return err
			}
		}),
	}
	for i := range all {
		all[i].hasOwner, all[i].word = true, "WAIT"
		all[i].again = all[i].name != "slots" && all[i].name != "a cache" // which return the error
	}
	return append(all, jobs())
}

// releasing is the waiter of an object whose calls return a release.
func releasing(name string, of func(t *testing.T, c *ebb.Conn) func(context.Context) (func(context.Context) error, error)) waiter {
	return waiter{name: name,
		hold: func(t *testing.T, c *ebb.Conn) func() {
			release, err := of(t, c)(drivertest.Within(t))
			drivertest.Must(t, err)
			return func() { drivertest.Must(t, release(drivertest.Within(t))) }
		},
		wait: func(t *testing.T, c *ebb.Conn) func(ctx context.Context) error {
			take := of(t, c)
			return func(ctx context.Context) error {
				release, err := take(ctx)
				if err != nil {
					return err
				}
				return release(ctx)
			}
		},
	}
}

// working is the waiter of an object that calls a function for one caller at a time.
func working(name string, of func(t *testing.T, c *ebb.Conn) func(context.Context, func(context.Context) error) error) waiter {
	return waiter{name: name,
		hold: func(t *testing.T, c *ebb.Conn) func() {
			do := of(t, c)
			begun, letGo, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				over <- do(drivertest.Within(t), func(context.Context) error {
					close(begun)
					<-letGo
					return errAgain
				})
			}()
			<-begun
			return func() {
				close(letGo)
				drivertest.Must(t, none(<-over))
			}
		},
		wait: func(t *testing.T, c *ebb.Conn) func(ctx context.Context) error {
			do := of(t, c)
			return func(ctx context.Context) error { return none(do(ctx, func(context.Context) error { return errAgain })) }
		},
	}
}

// jobs is the waiter of a queue. To let go is to push a job.
func jobs() waiter {
	q := func(t *testing.T, c *ebb.Conn) *queue.Queue[int] {
		return given(queue.New(c, "proxied-queue", queue.Options[int]{Lease: time.Hour, MaxDeliveries: -1}))(t)
	}
	return waiter{name: "jobs", word: "BLOCK",
		hold: func(t *testing.T, c *ebb.Conn) func() {
			return func() { drivertest.Must(t, second(q(t, c).Push(drivertest.Within(t), 1))) }
		},
		wait: func(t *testing.T, c *ebb.Conn) func(ctx context.Context) error {
			q := q(t, c)
			return func(ctx context.Context) error {
				j, err := q.Pop(ctx)
				if err != nil {
					return err
				}
				return j.Nack(context.WithoutCancel(ctx), 0)
			}
		},
	}
}

// given returns a value, or ends the test.
func given[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		drivertest.Must(t, err)
		return v
	}
}
