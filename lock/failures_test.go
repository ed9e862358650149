package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/objects"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/resp"
)

func TestALockOutlivesARestartOfItsServer(t *testing.T) {
	together(t, func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer) {
		if b.Kind == "mem" || b.Kind == "file" {
			return
		}
		ctx := b.Context()
		held := map[string]*lock.Lease{}
		var wg sync.WaitGroup
		for kind := range exclusive {
			lease, err := make(kind, 15*time.Second).TryAcquire(ctx)
			must(t, err)
			held[kind] = lease
			other := make(kind, 15*time.Second)
			wg.Go(func() { // it waits while the server is away
				next, err := other.Acquire(ctx, 0)
				if err != nil {
					t.Error(kind, err)
					return
				}
				if next.Token() <= lease.Token() {
					t.Errorf("%s: token %d after %d", kind, next.Token(), lease.Token())
				}
				if lease.Context().Err() == nil {
					t.Errorf("%s: two holders", kind)
				}
				if err := next.Release(ctx); err != nil {
					t.Error(kind, err)
				}
			})
		}
		if !b.Fault() {
			t.Log("nothing to kill")
		}
		for kind, lease := range held {
			b.Until("the lease is renewed", func() bool {
				err := lease.Renew(ctx)
				if errors.Is(err, lock.ErrLost) {
					t.Fatal(kind, err)
				}
				return err == nil
			})
			must(t, lease.Release(ctx))
		}
		wg.Wait()
	})
}

func TestAServerThatForgetsEndsTheLease(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if b.Native() || b.Cluster() != nil {
			return
		}
		ctx, name := b.Context(), b.Name("k")
		lease, err := newLock(t, b.Conn, name, 3*time.Second).TryAcquire(ctx)
		must(t, err)
		must(t, second(b.Do(ctx, "SCRIPT", "FLUSH"))) // an empty script cache must not matter
		must(t, lease.Renew(ctx))
		must(t, second(b.Del(ctx, name, "{"+name+"}:fence"))) // and the last token is gone
		next, err := newLock(t, b.Conn, name, time.Minute).TryAcquire(ctx)
		must(t, err)
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		<-lease.Context().Done()
		if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Error(err)
		}
		must(t, next.Release(ctx))
	})
}

func TestCallsEndWithTheirContext(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx, l := b.Context(), make()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := l.TryAcquire(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("try: %v", err)
		}
		if _, err := l.Acquire(ended, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("acquire: %v", err)
		}
		brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		held, err := l.TryAcquire(ctx)
		must(t, err)
		if _, err := l.Acquire(brief, time.Minute); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrTaken) {
			t.Errorf("acquire: %v", err)
		}
		must(t, held.Release(ctx))
	})
}

func TestABackendThatIsGoneIsNamed(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if b.Virtual() {
			return
		}
		c := b.Open()
		l := newLock(t, c, b.Name("k"), time.Minute)
		must(t, c.Close())
		if _, err := l.TryAcquire(b.Context()); !errors.Is(err, ebb.ErrClosed) {
			t.Errorf("try: %v", err)
		}
		if _, err := l.Acquire(b.Context(), time.Minute); !errors.Is(err, ebb.ErrClosed) {
			t.Errorf("acquire: %v", err)
		}
	})
}

func TestAWaiterThatDiedIsPassedBy(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if b.Native() {
			return // a waiter is a connection there
		}
		ctx, name := b.Context(), b.Name("k")
		l, err := lock.NewFair(b.Conn, name, lock.Options{TTL: 20 * time.Second})
		must(t, err)
		// The keys of a waiter whose only request was long ago.
		must(t, second(b.Do(ctx, "ZADD", "{"+name+"}:line", 1, "dead")))
		must(t, second(b.Do(ctx, "ZADD", "{"+name+"}:alive", 1_700_000_000_000, "dead")))
		lease, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, lease.Release(ctx))
		if n := inLine(t, b, name); n != 0 {
			t.Errorf("%d in line", n)
		}
	})
}

// hung is a server that does not reply to blocking commands; its client library reports that some
// milliseconds before the deadline of the context.
type hung struct{ conn.Driver }

func (hung) Capabilities() ebb.Capabilities { return ebb.Capabilities{Native: true, Server: "ebb"} }
func (hung) Do(context.Context, []any) (ebb.Value, error) {
	return ebb.Value{Kind: resp.KindNull}, nil
}

func (hung) Block(ctx context.Context, _ []any) (ebb.Value, error) {
	at, _ := ctx.Deadline()
	if err := kit.Sleep(ctx, time.Until(at)-20*time.Millisecond); err != nil {
		return ebb.Value{}, err
	}
	return ebb.Value{}, fmt.Errorf("no reply: %w", context.DeadlineExceeded)
}

func TestAServerThatHangsIsNoEndOfTheCallersContext(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		l := newLock(t, ebb.Use(hung{}), "k", time.Minute)
		_, err := l.Acquire(b.Context(), time.Second)
		if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its own limit: %v", err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = l.Acquire(ctx, time.Second)
		if errors.Is(err, ebb.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: %v", err)
		}
	})
}

func TestARenewalThatHangsIsNoEndOfTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		lease, err := newLock(t, b.Conn, "k", time.Minute).TryAcquire(t.Context())
		must(t, err)
		b.Hang()
		err = lease.Renew(t.Context())
		if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		b.GoOn()
		must(t, lease.Release(t.Context()))
	})
}

func TestAWaitThatIsOverAtOnceIsNotALongOne(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx := b.Context()
		held, err := make().TryAcquire(ctx)
		must(t, err)
		l := make()
		for _, wait := range []time.Duration{1, time.Microsecond, 50 * time.Microsecond} {
			if _, err = l.Acquire(ctx, wait); !errors.Is(err, lock.ErrTaken) || errors.Is(err, ebb.ErrUnavailable) {
				t.Errorf("%v: %v", wait, err)
			}
		}
		must(t, held.Release(ctx))
		lease, err := l.Acquire(ctx, math.MaxInt64) // the longest lease is not over either
		must(t, err)
		must(t, lease.Release(ctx))
	})
}

func TestWhatIsBegunAgainCountsFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		o, err := lock.NewOnce(b.Conn, "k", 50*time.Millisecond)
		must(t, err)
		objects.LoseReplies(b)
		did, err := o.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			if !b.Data.Exists("k") {
				t.Error("the span was over before the context")
			}
			return nil
		})
		if did != lock.Did || err != nil {
			t.Error(did, err)
		}
	})
}

func TestAUserWithoutChannelsNeedsNone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := b.Quiet()
		if c == nil {
			return
		}
		ctx := b.Context()
		for kind, make := range exclusive {
			held, err := make(t, b.Conn, b.Name(kind), time.Minute).TryAcquire(ctx)
			must(t, err)
			l := make(t, c, b.Name(kind), time.Minute)
			var others sync.WaitGroup
			for _, c := range []*ebb.Conn{b.Conn, c} {
				others.Go(func() {
					lease, err := make(t, c, b.Name(kind), time.Minute).Acquire(ctx, 0)
					if err == nil {
						err = lease.Release(ctx)
					}
					if err != nil {
						t.Error(kind, err)
					}
				})
			}
			lease, err := l.Acquire(ctx, 20*time.Millisecond)
			if !errors.Is(err, lock.ErrTaken) {
				t.Error(kind, lease, err)
			}
			must(t, held.Release(ctx))
			others.Wait()
		}
		latch, err := lock.NewLatch(c, b.Name("latch"))
		must(t, err)
		must(t, second(latch.Set(ctx, 1)))
		must(t, second(latch.CountDown(ctx)))
	})
}
