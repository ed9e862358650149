package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	syncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	syncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// lockTTL is long enough that no holder renews within a benchmark's turn.
const lockTTL = 30 * time.Second

// oneLock is the name that all goroutines want where they contend.
const oneLock = "lock:all"

// A lock taken and released, each goroutine its own.
func BenchmarkLock(b *testing.B) {
	compare(b, []int{1, 64}, append(oursLocks(),
		contender{"redislock", openRedislock(keyOf, redislock.NoRetry())},
		contender{"redsync", openRedsync(keyOf)}))
}

// One lock that 64 goroutines take in turns. Those that request it again and again do so
// every 1 or 10 ms: their own choices of 100 ms and more are out of the contest.
func BenchmarkLockContended(b *testing.B) {
	one := func(int) string { return oneLock }
	every := func(d time.Duration) []redsync.Option {
		return []redsync.Option{redsync.WithRetryDelay(d), redsync.WithTries(1 << 30)}
	}
	compare(b, []int{64}, append(oursLocksContended(),
		contender{"redislock-1ms", openRedislock(one, redislock.LinearBackoff(time.Millisecond))},
		contender{"redislock-10ms", openRedislock(one, redislock.LinearBackoff(10*time.Millisecond))},
		contender{"redsync-1ms", openRedsync(one, every(time.Millisecond)...)},
		contender{"redsync-10ms", openRedsync(one, every(10*time.Millisecond)...)}))
}

// Locks through rueidis.
func BenchmarkLockRueidis(b *testing.B) {
	compare(b, []int{1, 64}, append(oursLocksRueidis(),
		contender{"redsync", func(b *testing.B, s *server) func(context.Context, int) error {
			goRedis(b, s)
			return redsyncOn(redsync.New(syncrueidis.NewPool(rueidiscompat.NewAdapter(newRueidis(b, s)))), keyOf)
		}}))
}

func openRedislock(key func(int) string, retry redislock.RetryStrategy) func(*testing.B, *server) func(context.Context, int) error {
	return func(b *testing.B, s *server) func(context.Context, int) error {
		c := redislock.New(goRedis(b, s))
		return func(ctx context.Context, worker int) error {
			l, err := c.Obtain(ctx, key(worker), lockTTL, &redislock.Options{RetryStrategy: retry})
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}
	}
}

func openRedsync(key func(int) string, opts ...redsync.Option) func(*testing.B, *server) func(context.Context, int) error {
	return func(b *testing.B, s *server) func(context.Context, int) error {
		return redsyncOn(redsync.New(syncgoredis.NewPool(goRedis(b, s))), key, opts...)
	}
}

func redsyncOn(rs *redsync.Redsync, key func(int) string, opts ...redsync.Option) func(context.Context, int) error {
	opts = append(opts, redsync.WithExpiry(lockTTL))
	return func(ctx context.Context, worker int) error {
		m := rs.NewMutex(key(worker), opts...)
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("the lock was lost")
		}
		return err
	}
}
