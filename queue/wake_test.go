package queue

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
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// woken runs a test of waiting consumers on backends without commands that wait. The calls of q pass through
// d; other is another program's queue. Times are exact.
func woken(t *testing.T, test func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string])) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		d, name := &between{c: b.Conn}, fresh(b)
		q, other := must(New[string](ebb.Use(d), name))(t), must(New[string](b.Conn, name))(t)
		q.scripted, other.scripted = true, true
		test(t, b, d, q, other)
	})
}

// popping runs a Pop in the background. It returns a function that waits for its result, and for the time
// since begin.
func popping(ctx context.Context, q *Queue[string]) (got func(begin time.Time) (string, time.Duration)) {
	value, at := make(chan string, 1), time.Time{}
	go func() {
		j, err := q.Pop(ctx)
		at = time.Now()
		if err != nil {
			value <- err.Error()
			return
		}
		value <- j.Value
	}()
	return func(begin time.Time) (string, time.Duration) {
		v := <-value
		return v, at.Sub(begin)
	}
}

func TestAWaiterHearsOfWhatCameWhileItSubscribed(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string]) {
		d.subscribe = func(ctx context.Context, run func() (conn.Feed, error)) (conn.Feed, error) {
			_ = kit.Sleep(ctx, 100*time.Millisecond) // the consumer has looked, and waits
			if _, err := other.Push(ctx, "v"); err != nil {
				t.Error(err)
			}
			return run()
		}
		begin := time.Now()
		if v, took := popping(b.Context(), q)(begin); v != "v" || took != 100*time.Millisecond {
			t.Errorf("%s after %v", v, took)
		}
	})
}

func TestAConsumerThatMayNotSubscribeLooksTwiceASecond(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string]) {
		d.subscribe = func(context.Context, func() (conn.Feed, error)) (conn.Feed, error) {
			return nil, ebb.ReplyError("NOPERM no subscriptions")
		}
		got := popping(b.Context(), q)
		b.Pass(20 * time.Second)
		must(other.Push(b.Context(), "v"))(t)
		if v, took := got(time.Now()); v != "v" || took > 500*time.Millisecond {
			t.Errorf("%s after %v", v, took)
		}
	})
}

// deaf receives no message.
type deaf struct{ conn.Feed }

func (deaf) Next(ctx context.Context) (ebb.Message, error) {
	<-ctx.Done()
	return ebb.Message{}, ctx.Err()
}

func TestALostMessageDelaysAJobBySecondsAtMost(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string]) {
		d.subscribe = func(_ context.Context, run func() (conn.Feed, error)) (conn.Feed, error) {
			f, err := run()
			return deaf{f}, err
		}
		must(other.Push(b.Context(), "much later", PushOptions{Delay: time.Hour}))(t)
		got := popping(b.Context(), q)
		b.Pass(time.Minute)
		must(other.Push(b.Context(), "v"))(t)
		if v, took := got(time.Now()); v != "v" || took > 5*time.Second {
			t.Errorf("%s after %v", v, took)
		}
	})
}

func TestAnotherWaiterFindsOutWhatALeavingOneKnew(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, _ *between, q, other *Queue[string]) {
		ctx, cancel := context.WithCancel(b.Context())
		first := popping(ctx, q)
		b.Pass(time.Millisecond)
		second := popping(b.Context(), q)
		b.Pass(time.Millisecond)
		must(other.Push(ctx, "v", PushOptions{Delay: time.Second}))(t)
		begin := time.Now()
		b.Pass(500 * time.Millisecond) // the first waiter got the message
		cancel()
		_, _ = first(begin)
		if v, took := second(begin); v != "v" || took != time.Second {
			t.Errorf("%s after %v", v, took)
		}
	})
}

func TestOneJobWakesTheLongestWaiter(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string]) {
		ctx, cancel := context.WithCancel(b.Context())
		calls := atomic.Int32{}
		d.call = func(_ context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
			calls.Add(1)
			return run()
		}
		var waiting sync.WaitGroup
		got := make(chan string, 20)
		for i := range 20 {
			waiting.Go(func() {
				if j, err := q.Pop(ctx); err == nil {
					got <- fmt.Sprint(i, " got ", j.Value)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			b.Pass(time.Millisecond)
		}
		for i := range 3 {
			calls.Store(0)
			must(other.Push(ctx, "v"))(t)
			b.Pass(time.Millisecond)
			if who, want := <-got, fmt.Sprint(i, " got v"); who != want {
				t.Errorf("%s, want %s", who, want)
			}
			if n := calls.Load(); n > 4 {
				t.Errorf("one job was asked for %d times", n)
			}
		}
		cancel()
		waiting.Wait()
	})
}

// slow is a subscription that takes its time to close.
type slow struct {
	conn.Feed
	open *atomic.Int32
}

func (s slow) Close() error {
	_ = kit.Sleep(context.Background(), time.Second)
	s.open.Add(-1)
	return s.Feed.Close()
}

func TestTheLastWaiterLeavesNoSubscription(t *testing.T) {
	woken(t, func(t *testing.T, b *backends.Backend, d *between, q, other *Queue[string]) {
		open := atomic.Int32{}
		d.subscribe = func(_ context.Context, run func() (conn.Feed, error)) (conn.Feed, error) {
			f, err := run()
			open.Add(1)
			return slow{f, &open}, err
		}
		for range 2 {
			got := popping(b.Context(), q)
			b.Pass(time.Millisecond)
			if n := open.Load(); n != 1 {
				t.Errorf("%d subscriptions", n)
			}
			must(other.Push(b.Context(), "v"))(t)
			if v, _ := got(time.Now()); v != "v" || open.Load() != 0 {
				t.Errorf("%s, and %d subscriptions", v, open.Load())
			}
		}
	})
}

func TestABackendThatIsAwayIsAskedLessAndLessOften(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		calls := atomic.Int32{}
		d := &between{c: b.Conn}
		d.call = func(context.Context, string, func() (ebb.Value, error)) (ebb.Value, error) {
			calls.Add(1)
			return ebb.Value{}, fmt.Errorf("%w: it is away", ebb.ErrUnavailable)
		}
		q := must(New[string](ebb.Use(d), fresh(b)))(t)
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
		defer cancel()
		_, err := q.Pop(ctx)
		failsWith(t, err, context.DeadlineExceeded)
		failsWith(t, err, ebb.ErrUnavailable) // the error gives the reason
		if n := calls.Load(); n < 100 || n > 400 {
			t.Errorf("asked %d times in 5 minutes", n)
		}
	})
}

func TestAConnectionThatHangsIsGivenUp(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		hangs, d := atomic.Bool{}, &between{c: b.Conn, far: true}
		d.call = func(ctx context.Context, name string, run func() (ebb.Value, error)) (ebb.Value, error) {
			if name == "DQ.POP" && hangs.CompareAndSwap(true, false) {
				<-ctx.Done()
				return ebb.Value{}, ctx.Err()
			}
			return run()
		}
		q := must(New[string](ebb.Use(d), fresh(b)))(t)
		must(q.Push(b.Context(), "v"))(t)
		hangs.Store(true)
		begin := time.Now()
		if v, took := popping(b.Context(), q)(begin); v != "v" || took < 20*time.Second || took > 31*time.Second {
			t.Errorf("%s after %v", v, took)
		}
		hangs.Store(true)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if v, _ := popping(ctx, q)(begin); !strings.Contains(v, context.DeadlineExceeded.Error()) {
			t.Errorf("%s", v)
		}
	})
}
