package redisson

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/objects"
)

func TestAUserWithoutChannelsNeedsNone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := b.Quiet()
		if c == nil {
			return
		}
		ctx := b.Context()
		q := must(NewDelayedQueue[string](c, fresh(b, "q")))(t)
		ok(t, q.Push(ctx, "later", time.Hour))
		latch := must(NewLatch(c, fresh(b, "latch")))(t)
		ok(t, second(latch.Set(ctx, 1)))
		ok(t, second(latch.CountDown(ctx)))
		shared := must(NewLock(NewClient(c, ""), fresh(b, "lock")))(t)
		ok(t, must(shared.TryAcquire(ctx, 1))(t).Release(ctx))
		permits := must(NewPermits(c, fresh(b, "permits")))(t)
		ok(t, second(permits.TrySetPermits(ctx, 1)))
		ok(t, must(permits.TryAcquire(ctx))(t).Release(ctx))
	})
}

func TestWhatWasGrantedOnASlowWayIsHeldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		ctx := t.Context()
		l := must(NewLock(NewClient(b.Conn, ""), "k", LockOptions{TTL: time.Second}))(t)
		for range 2 { // the first time the server learns the scripts
			lease, err := l.Acquire(ctx, 1, 0)
			ok(t, err)
			ok(t, lease.Renew(ctx))
			b.Intercept(nil)
			b.SetLatency(0)
			ok(t, lease.Release(ctx))
			if b.Data.Exists("k") {
				t.Errorf("it is held once more: %v", b.Data.Hash("k"))
			}
			b.SetLatency(300 * time.Millisecond)
			n := 0
			b.Intercept(func(cmd []string) error {
				if n++; n == 2 { // the renewal that follows such a grant
					return ebbtest.ErrCut
				}
				return nil
			})
		}
		b.SetLatency(0)
	})
}

func TestAPermitThatIsAskedForAgainHasItsWholeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		s := must(NewPermits(b.Conn, "k", LockOptions{TTL: 60 * time.Millisecond}))(t)
		ok(t, second(s.TrySetPermits(t.Context(), 1)))
		objects.LoseReplies(b)
		lease, err := s.TryAcquire(t.Context())
		ok(t, err)
		b.Hang() // nothing renews it
		<-lease.Context().Done()
		for _, ends := range b.Data.SortedSet("{k}:timeout") {
			if now := b.Clock.Now().UnixMilli(); int64(ends) < now {
				t.Errorf("the lease was over %d ms before the context", now-int64(ends))
			}
		}
		b.GoOn()
	})
}
