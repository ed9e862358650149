package redisson

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
	"github.com/ebbdb/ebb/lock"
)

// Semaphore is Redisson's RSemaphore, which is an integer. It does not record the holders of
// permits, so the permits of a program that died are not given back, nor are those of a
// request whose reply was lost. A reply that comes within half a second after the end of the context
// is not lost: the permits are given back.
type Semaphore struct{ object }

// NewSemaphore returns the semaphore of that name. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func NewSemaphore(c *conn.Conn, name string, opts ...LockOptions) (*Semaphore, error) {
	s := &Semaphore{}
	if err := s.init(c, "semaphore", name, opts, wake.All, permitsChannel); err != nil { // one release may be enough for several waiters
		return nil, err
	}
	return s, nil
}

// permitsChannel names the channel of a semaphore.
func permitsChannel(name string) string { return kit.Prefixed("redisson_sc", name) }

var (
	semaphoreAcquire = conn.NewScript(`
local value = tonumber(redis.call('GET', KEYS[1]) or 0)
if value < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
`)
	semaphoreRelease = conn.NewScript(`
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.pcall('PUBLISH', ARGV[2], value)
return value
`)
)

// TrySetPermits makes n permits, and reports whether it did: permits that exist stay as they
// are.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	return s.trySet(ctx, n, n)
}

// TryAcquire takes n permits, and returns lock.ErrTaken if fewer are free.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64) error {
	if n < 0 {
		return s.core.Argument("the call wants %d permits; the number must not be negative", n)
	}
	s.core.LogFirstUse(s)
	r, err := s.take(ctx, n)
	switch {
	case err != nil:
		s.takeBackLate(ctx, n, err)
		return s.core.Wrap("acquire", err)
	case !r.Granted:
		return s.core.Wrap("acquire", lock.ErrTaken)
	}
	return nil
}

// takeBackLate releases n permits if the reply to a failed request comes late and says that it took them.
func (s *Semaphore) takeBackLate(ctx context.Context, n int64, failed error) {
	late, _ := kit.Late(ctx, failed)
	if took, ok, err := locking.Integer(late, late.Err()); ok && err == nil && took == 1 {
		s.core.TakeBack(ctx, func(ctx context.Context) error { return s.Release(ctx, n) })
	}
}

func (s *Semaphore) take(ctx context.Context, n int64) (locking.Reply, error) {
	ok, err := locking.Boolean(locking.Integer(s.core.Conn.Script(ctx, semaphoreAcquire, []string{s.core.Name}, n)))
	return locking.Reply{Granted: ok}, err
}

// Acquire waits for n permits, for at most wait, or until the context ends if wait is 0. A
// request for few permits can overtake one for many.
func (s *Semaphore) Acquire(ctx context.Context, n int64, wait time.Duration) error {
	if n < 0 || wait < 0 {
		return s.core.Argument("the call wants %d permits within %v; neither may be negative", n, wait)
	}
	s.core.LogFirstUse(s)
	if _, err := s.core.Poll(ctx, wait, false, func(ctx context.Context) (locking.Reply, error) { return s.take(ctx, n) }); err != nil {
		s.takeBackLate(ctx, n, err)
		return s.core.Wrap("acquire", err)
	}
	return nil
}

// Release gives n permits back. The semaphore does not check that they were taken.
func (s *Semaphore) Release(ctx context.Context, n int64) error {
	if _, err := s.core.Conn.Script(ctx, semaphoreRelease, []string{s.core.Name}, n, s.core.Wakeups.Name); err != nil {
		return s.core.Wrap("release", err)
	}
	return nil
}

// AvailablePermits returns the number of free permits.
func (s *Semaphore) AvailablePermits(ctx context.Context) (int64, error) {
	return s.readNumber(ctx)
}

// Delete removes the semaphore. There are no permits until TrySetPermits makes some.
func (s *Semaphore) Delete(ctx context.Context) error {
	return s.core.DeleteKeys(ctx, locking.DeleteScript, "0", s.core.Name)
}

// String describes the semaphore.
func (s *Semaphore) String() string { return s.core.Describe("permits without leases", "") }
