package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/backends"
	"github.com/ebbdb/ebb/lock"
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
		must(t, second(b.Do(ctx, "SCRIPT", "FLUSH"))) // an empty cache is nothing
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
			return // there a waiter is a connection
		}
		ctx, name := b.Context(), b.Name("k")
		l, err := lock.NewFair(b.Conn, name, lock.Options{TTL: 20 * time.Second})
		must(t, err)
		// One that asked long ago and never again, as its keys show it.
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
