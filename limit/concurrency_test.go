package limit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func mustSlots(t *testing.T, c *ebb.Conn, name string, n int64, scripts bool, lease time.Duration) *Concurrency {
	t.Helper()
	q, err := NewConcurrency(c, name, n, ConcurrencyOptions{Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	q.scriptsOnly = scripts
	return q
}

func TestSlotsAreNeverMoreThanThereAre(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		var inside, most, done atomic.Int64
		var wg sync.WaitGroup
		ctx := b.Context()
		for range 2 {
			q := mustSlots(t, b.Open(), b.Name("resize"), 3, scripts, 0)
			for range 5 {
				wg.Go(func() {
					s, err := q.Acquire(ctx, "images")
					if err != nil {
						t.Error(err)
						return
					}
					n := inside.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if err := kit.Sleep(ctx, 5*time.Millisecond); err != nil {
						t.Error(err)
					}
					inside.Add(-1)
					done.Add(1)
					if err := s.Release(ctx); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if most.Load() > 3 || done.Load() != 10 {
			t.Errorf("%d at a time, %d in all", most.Load(), done.Load())
		}
	})
}

func TestATakenSlotIsToldAndAFreeOneGiven(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		ctx := b.Context()
		q := mustSlots(t, b.Conn, b.Name("resize"), 1, scripts, 0)
		s, err := q.TryAcquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.TryAcquire(ctx, ""); !errors.Is(err, ErrTaken) {
			t.Error(err)
		}
		if o, err := q.TryAcquire(ctx, "other"); err != nil {
			t.Error(err)
		} else if err := o.Release(ctx); err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := q.Acquire(short, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for range 2 {
			if err := s.Release(ctx); err != nil {
				t.Error(err)
			}
		}
		if s.Context().Err() == nil {
			t.Error("the context outlives the slot")
		}
		next, err := q.Acquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if next.Token() <= s.Token() {
			t.Errorf("token %d after %d", next.Token(), s.Token())
		}
		if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestASlotEndsWithTheContextOfItsHolder(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		q := mustSlots(t, b.Conn, b.Name("resize"), 1, scripts, 0)
		ctx, cancel := context.WithCancel(b.Context())
		s, err := q.Acquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		next, err := q.Acquire(b.Context(), "") // at once, not after the lease
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Release(b.Context()); err != nil {
			t.Error(err)
		}
		if err := next.Release(b.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASlotThatWasWaitedForIsFresh(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		ctx, lease := b.Context(), 600*time.Millisecond
		q := mustSlots(t, b.Conn, b.Name("resize"), 1, scripts, lease)
		s, err := mustSlots(t, b.Conn, b.Name("resize"), 1, scripts, time.Minute).Acquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			next, err := q.Acquire(ctx, "")
			if err != nil {
				t.Error(err)
				return
			}
			if next.Context().Err() != nil {
				t.Error("its context has ended:", context.Cause(next.Context()))
			}
			if err := next.Release(ctx); err != nil {
				t.Error(err)
			}
		})
		if err := kit.Sleep(ctx, 2*lease); err != nil { // longer than a lease
			t.Error(err)
		}
		if err := s.Release(ctx); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

func TestWaitersForSlotsShareASubscription(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		ctx := t.Context()
		q := mustSlots(t, c, "resize", 2, true, 0)
		var held []*Slot
		for range 2 {
			s, err := q.Acquire(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, s)
		}
		subscribed := func() int64 {
			v, err := c.Do(ctx, "PUBSUB", "NUMSUB", q.wakeups.Name)
			if err != nil || len(v.Elems) != 2 {
				t.Fatal(v, err)
			}
			return v.Elems[1].Int
		}
		var asked atomic.Int64
		var all sync.WaitGroup
		var mu sync.Mutex
		var given []int // guarded by mu
		for i := range 6 {
			all.Go(func() {
				s, err := q.Acquire(ctx, "a")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				given = append(given, i)
				mu.Unlock()
				b.Clock.Advance(time.Millisecond)
				if err := s.Release(ctx); err != nil {
					t.Error(err)
				}
			})
			b.Clock.Advance(10 * time.Millisecond)
		}
		if n := subscribed(); n != 1 {
			t.Errorf("%d subscriptions", n)
		}
		b.Intercept(func(cmd []string) error {
			if strings.HasPrefix(cmd[0], "EVAL") {
				asked.Add(1)
			}
			return nil
		})
		took := spent(func() {
			if err := held[0].Release(ctx); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
		// Each caller is woken by name when it is next: no caller waits for a refresh, and only one request is in
		// vain.
		if took > 100*time.Millisecond || asked.Load() > 2*6+6 {
			t.Errorf("%v, %d questions", took, asked.Load())
		}
		for i, n := range given {
			if n != i {
				t.Errorf("given in the order %v", given)
				break
			}
		}
		if n := subscribed(); n != 0 {
			t.Errorf("%d subscriptions remain", n)
		}
		if err := held[1].Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestTwoSlotsThatAreFreedAtOnceAreBothGiven(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		ctx := t.Context()
		q := mustSlots(t, c, "resize", 2, true, 3*time.Second)
		for range 2 { // their holders die
			s, err := q.Acquire(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			s.expiry.Stop()
			s.cancel(context.Canceled)
			<-s.done
		}
		var all sync.WaitGroup
		took := spent(func() {
			for range 2 {
				all.Go(func() {
					s, err := q.Acquire(ctx, "")
					if err != nil {
						t.Error(err)
						return
					}
					if err := kit.Sleep(ctx, time.Minute); err != nil {
						t.Error(err)
					}
					if err := s.Release(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
		if took > 63*time.Second+20*time.Millisecond {
			t.Errorf("given after %v", took-time.Minute)
		}
	})
}

func TestSlotsAreRenewedAndTheDeadLoseThem(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		q := mustSlots(t, b.Conn, "resize", 1, scripts, 3*time.Second)
		s, err := q.Acquire(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		b.Clock.Advance(time.Minute)
		if _, err := q.TryAcquire(t.Context(), ""); !errors.Is(err, ErrTaken) || s.Context().Err() != nil {
			t.Error("the slot was not renewed:", err, s.Context().Err())
		}
		// A holder that dies: nothing renews its slot.
		s.expiry.Stop()
		s.cancel(context.Canceled)
		<-s.done
		took := spent(func() {
			next, err := q.Acquire(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if took < time.Second || took > 3*time.Second+2*time.Millisecond {
			t.Errorf("given on after %v", took)
		}
		if err := s.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

func TestASlotIsLostWhenItsLeaseCannotBeProven(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		for _, scripts := range []bool{false, true} {
			q := mustSlots(t, c, "resize", 1, scripts, 3*time.Second)
			s, err := q.Acquire(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			b.Stop()
			took := spent(func() { <-s.Context().Done() })
			if !errors.Is(context.Cause(s.Context()), ErrLost) || took > 3*time.Second {
				t.Error(took, context.Cause(s.Context()))
			}
			if err := s.Release(t.Context()); !errors.Is(err, ebb.ErrUnavailable) {
				t.Error(err)
			}
			b.Start()
			b.Clock.Advance(5 * time.Second)
			_, _ = c.Do(t.Context(), "DEL", "resize") // the client notices that its connection was cut
		}
	})
}

func TestBadSlotsSayWhatWouldBeRight(t *testing.T) {
	c := new(ebb.Conn)
	for want, make := range map[string]func() (*Concurrency, error){
		"the name is empty": func() (*Concurrency, error) { return NewConcurrency(c, "", 1) },
		"connection is nil": func() (*Concurrency, error) { return NewConcurrency(nil, "x", 1) },
		"from 1 to":         func() (*Concurrency, error) { return NewConcurrency(c, "x", 0) },
		"at least 30ms, or": func() (*Concurrency, error) { return NewConcurrency(c, "x", 1, ConcurrencyOptions{Lease: 1}) },
	} {
		if _, err := make(); !errors.Is(err, ebb.ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestASlotWhoseAnswerIsLostIsGivenBack(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		q := mustSlots(t, b.Conn, "resize", 1, scripts, time.Hour)
		lost := false
		b.Intercept(func(cmd []string) error {
			if !lost && (cmd[0] == "SEM.ACQUIRE" || cmd[0] == "EVAL") {
				lost = true
				return ebbtest.ErrLost
			}
			return nil
		})
		if _, err := q.TryAcquire(t.Context(), ""); !errors.Is(err, ebb.ErrUnavailable) {
			t.Fatal(err)
		}
		s, err := q.TryAcquire(t.Context(), "")
		if err != nil {
			t.Fatal("the slot was not given back:", err)
		}
		if err := s.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSlotTokensGrowAndTheKeysLastAsLongAsTheirLeases(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		ctx := t.Context()
		long := mustSlots(t, b.Conn, "resize", 2, true, time.Hour)
		short := mustSlots(t, b.Conn, "resize", 2, true, time.Second)
		ttl := func(key string) int64 {
			v, err := b.Conn.Do(ctx, "PTTL", key)
			if err != nil {
				t.Fatal(err)
			}
			return v.Int
		}
		day, hour := int64(86_400_000), int64(3_600_000)
		first, err := long.Acquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := ttl(kit.Key("resize", "fence")); n < day+hour-1 || n > day+hour+1 {
			t.Errorf("the fence lives for %d ms", n)
		}
		ahead := first.Token() + 1_000_000_000_000
		if _, err := b.Conn.Do(ctx, "SET", kit.Key("resize", "fence"), ahead, "KEEPTTL"); err != nil {
			t.Fatal(err)
		}
		second, err := short.Acquire(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if second.Token() != ahead+1 {
			t.Errorf("token %d after %d", second.Token(), ahead)
		}
		if n := ttl("resize"); n < hour-1000 {
			t.Errorf("the slots live for %d ms", n)
		}
		b.Clock.Advance(21 * time.Minute) // the slot is renewed
		if n := ttl(kit.Key("resize", "fence")); n < day+hour-120_000 {
			t.Errorf("the fence lives for %d ms after a renewal", n)
		}
		for _, s := range []*Slot{first, second} {
			if err := s.Release(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}

// deaf is a backend that hangs while silent is set; its client library does not react to cancellation, but
// observes deadlines.
type deaf struct {
	conn.Driver // nil: the rest is not called
	c           *ebb.Conn
	silent      atomic.Bool
}

func (d *deaf) Do(ctx context.Context, args []any) (ebb.Value, error) {
	if !d.silent.Load() {
		return d.c.Do(ctx, args...)
	}
	at, _ := ctx.Deadline()
	if err := kit.Sleep(context.Background(), time.Until(at)); err != nil {
		return ebb.Value{}, err
	}
	return ebb.Value{}, fmt.Errorf("no reply: %w", context.DeadlineExceeded)
}

func (d *deaf) Capabilities() ebb.Capabilities { return d.c.Capabilities() }

func TestAReleaseEndsSoonAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{c: ebbtest.Run(t).Conn}
		s, err := mustSlots(t, ebb.Use(d), "resize", 1, false, time.Minute).Acquire(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		d.silent.Store(true)
		if err := kit.Sleep(t.Context(), 25*time.Second); err != nil { // a renewal hangs
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		took := spent(func() {
			if err := s.Release(ctx); err == nil {
				t.Error("it was released")
			}
		})
		if took > 2*time.Second {
			t.Error("after", took)
		}
		<-s.done
	})
}

func TestAUserWithoutChannelsNeedsNone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := b.Quiet()
		if c == nil {
			return
		}
		q := mustSlots(t, c, b.Name("resize"), 1, false, time.Minute)
		held, err := q.Acquire(b.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				s, err := q.Acquire(b.Context(), "")
				if err == nil {
					err = s.Release(b.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		b.Pass(30 * time.Millisecond)
		if err := held.Release(b.Context()); err != nil {
			t.Error(err)
		}
		others.Wait()
	})
}

// After a pause of the process the timer of a slot fires some time later than the first look at it.
func TestASlotThatRanOutInAPauseSaysSoBeforeItsTimer(t *testing.T) {
	const lease = time.Hour // no timer fires during the test
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		ctx := b.Context()
		q := mustSlots(t, b.Conn, b.Name("resize"), 3, scripts, lease)
		for name, over := range map[string]func(s *Slot) bool{
			"Err":   func(s *Slot) bool { return s.Context().Err() != nil },
			"Valid": func(s *Slot) bool { return !s.Valid() },
			"Until": func(s *Slot) bool { return s.Until().IsZero() },
		} {
			s, err := q.TryAcquire(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			work := s.Context()
			pause := func() { s.requested.Store(&stopwatch{s.requested.Load().from.Add(-lease / 2)}) }
			pause()
			if left := time.Until(s.Until()); over(s) || left > lease/2 || left < lease/3 {
				t.Errorf("%s: the slot is over after half of its lease, or certain for %v", name, left)
			}
			if err := s.renew(ctx); err != nil {
				t.Fatal(err)
			}
			if pause(); over(s) {
				t.Errorf("%s: the slot is over although it was renewed", name)
			}
			if pause(); !over(s) || !errors.Is(context.Cause(work), ErrLost) {
				t.Errorf("%s: the cause is %v", name, context.Cause(work))
			}
			_ = s.Release(ctx)
			if s.Valid() || !s.Until().IsZero() {
				t.Errorf("%s: a released slot is valid", name)
			}
		}
	})
}
