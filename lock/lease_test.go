package lock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestAContextThatIsLookedAtLateSaysTheSame(t *testing.T) {
	type key struct{}
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := context.WithValue(b.Context(), key{}, "value")
		l := newLock(t, b.Conn, b.Name("l"), 30*time.Second)

		released, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, released.Release(ctx))
		must(t, released.Release(ctx))
		late := released.Context()
		if late.Err() == nil || !errors.Is(context.Cause(late), context.Canceled) || late.Value(key{}) != "value" || late != released.Context() {
			t.Errorf("after the release: %v", context.Cause(late))
		}

		lost, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, second(b.Del(ctx, l.Name())))
		if err := lost.Renew(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("renewal of a lost lease: %v", err)
		}
		if late := lost.Context(); late.Err() == nil || !errors.Is(context.Cause(late), lock.ErrLost) {
			t.Errorf("after the loss: %v", context.Cause(late))
		}
		if err := lost.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of a lost lease: %v", err)
		}

		over := errors.New("the work is over")
		working, end := context.WithCancelCause(ctx)
		outlived, err := l.TryAcquire(working)
		must(t, err)
		end(over)
		if err := outlived.Renew(ctx); !errors.Is(err, over) {
			t.Errorf("renewal after the work: %v", err)
		}
		if late := outlived.Context(); !errors.Is(context.Cause(late), over) {
			t.Errorf("after the work: %v", context.Cause(late))
		}
		must(t, outlived.Release(ctx))
	})
}

// A lease that a direct call acquired is renewed and released by commands once the engine takes no direct calls.
func TestALeaseOutlivesDirectCalls(t *testing.T) {
	ctx := t.Context()
	c, err := embed.Open(ctx, "mem://")
	must(t, err)
	defer func() { must(t, c.Close()) }()
	l := newLock(t, c, "l", 30*time.Second)
	for _, acquire := range []func() (*lock.Lease, error){
		func() (*lock.Lease, error) { return lock.Acquire(ctx, c, "l", 30*time.Second) },
		func() (*lock.Lease, error) { return l.TryAcquire(ctx) },
		func() (*lock.Lease, error) { return l.Acquire(ctx, time.Second) },
	} {
		lease, err := acquire()
		must(t, err)
		must(t, second(c.Do(ctx, "ACL", "SETUSER", "default", "-flushall")))
		if _, err := l.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("the lock is held: %v", err)
		}
		must(t, lease.Renew(ctx))
		must(t, lease.Release(ctx))
		must(t, second(c.Do(ctx, "ACL", "SETUSER", "default", "allcommands")))
		if direct.Of(c) == nil {
			t.Fatal("the engine has no direct calls")
		}
	}
}

func TestTokensOfScriptsGrowWhenTheClockWasSetBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if b.Native() { // LOCK.ACQUIRE has its own test
			return
		}
		ctx := b.Context()
		l := newLock(t, b.Conn, b.Name("l"), 30*time.Second)
		first, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, first.Release(ctx))
		if now := time.UnixMicro(first.Token()); now.Year() < 2024 || now.Year() > 2200 {
			t.Errorf("token %d is %v", first.Token(), now)
		}
		ahead := first.Token() + time.Hour.Microseconds() // the last token of an earlier clock
		_, err = b.Do(ctx, "SET", "{"+l.Name()+"}:fence", strconv.FormatInt(ahead, 10), "PX", time.Hour.Milliseconds())
		must(t, err)
		for n := int64(1); n < 4; n++ {
			lease, err := l.TryAcquire(ctx)
			must(t, err)
			if lease.Token() != ahead+n {
				t.Errorf("token %d after %d", lease.Token(), ahead+n-1)
			}
			must(t, lease.Release(ctx))
		}
	})
}
