package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// Ours: scripts on redis-server, our own commands on ebb.

// door opens a Conn for a benchmark.
type door func(b *testing.B, s *server) *ebb.Conn

// overGoRedis returns a Conn over the client that the other libraries use.
func overGoRedis(b *testing.B, s *server) *ebb.Conn { return ebb.Wrap(goRedis(b, s)) }

// overRueidis is contrib/rueidis.
func overRueidis(b *testing.B, s *server) *ebb.Conn {
	goRedis(b, s)
	c, err := rueidisebb.Wrap(newRueidis(b, s))
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func oursLimiters() []contender        { return limiters(overGoRedis) }
func oursLimitersRueidis() []contender { return limiters(overRueidis) }

// limiters are GCRA, as redis_rate has it, and the fixed window, as rueidislimiter
// has it.
func limiters(open door) []contender {
	return []contender{
		{"ebb", openLimit(open, limit.Options{}, many)},
		{"ebb-odd", openLimit(open, limit.Options{}, odd)},
		{"ebb-fixed", openLimit(open, limit.Options{Algorithm: limit.FixedWindow}, mostInWindow)},
	}
}

// mostInWindow is the most that windows take.
const mostInWindow = 1 << 26

func openLimit(open door, o limit.Options, n int64) func(*testing.B, *server) func(context.Context, int) error {
	return func(b *testing.B, s *server) func(context.Context, int) error {
		l := newLimit(b, open(b, s), o, n)
		return func(ctx context.Context, worker int) error {
			r, err := l.Allow(ctx, keyOf(worker))
			if err == nil && !r.Allowed {
				err = errRefused
			}
			return err
		}
	}
}

func newLimit(b *testing.B, c *ebb.Conn, o limit.Options, n int64) *limit.Limiter {
	b.Cleanup(func() { _ = c.Close() })
	l, err := limit.New(c, "bench", limit.PerMinute(n), limit.FailClosed, o)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func oursLocks() []contender { return []contender{{"ebb", openLock(overGoRedis, keyOf)}} }
func oursLocksContended() []contender {
	return []contender{{"ebb", openLock(overGoRedis, func(int) string { return oneLock })}}
}
func oursLocksRueidis() []contender { return []contender{{"ebb", openLock(overRueidis, keyOf)}} }

func openLock(open door, key func(worker int) string) func(*testing.B, *server) func(context.Context, int) error {
	return func(b *testing.B, s *server) func(context.Context, int) error {
		c := open(b, s)
		b.Cleanup(func() { _ = c.Close() })
		return func(ctx context.Context, worker int) error {
			lease, err := lock.Acquire(ctx, c, key(worker), lockTTL)
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		}
	}
}

func oursQueues() []queueContender { return []queueContender{{"ebb", openQueue}} }

// ourQueue carries numbers as asynq does.
type ourQueue struct{ q *queue.Queue[[]byte] }

func openQueue(b *testing.B, s *server, handle func(number int)) jobQueue {
	c := overGoRedis(b, s)
	q, err := queue.New[[]byte](c, "bench")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Run(ctx, jobWorkers, func(_ context.Context, j *queue.Job[[]byte]) error {
			if len(j.Value) != 4 {
				return errors.New("not a number")
			}
			handle(int(binary.LittleEndian.Uint32(j.Value)))
			return nil
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
		_ = c.Close()
	})
	return ourQueue{q}
}

func (q ourQueue) push(ctx context.Context, number int, delay time.Duration) error {
	_, err := q.q.Push(ctx, binary.LittleEndian.AppendUint32(nil, uint32(number)), queue.PushOptions{Delay: delay})
	return err
}

func oursInProcess() []inProcess {
	return []inProcess{
		{"ebb", openInProcess(limit.Options{}, many)},
		{"ebb-fixed", openInProcess(limit.Options{Algorithm: limit.FixedWindow}, mostInWindow)},
	}
}

func openInProcess(o limit.Options, n int64) func(b *testing.B) func(key string) bool {
	return func(b *testing.B) func(key string) bool {
		c, err := ebb.Open(b.Context(), "mem://")
		if err != nil {
			b.Fatal(err)
		}
		l := newLimit(b, c, o, n)
		return func(key string) bool {
			r, err := l.Allow(context.Background(), key)
			return err == nil && r.Allowed
		}
	}
}
