package redisson

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
)

// Latch is Redisson's RCountDownLatch, which is an integer that is deleted at zero: it counts down,
// and then all waiting calls return. If the reply to a request is lost, the latch may have counted
// it.
type Latch struct{ object }

// NewLatch returns the latch of that name. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func NewLatch(c *conn.Conn, name string, opts ...LockOptions) (*Latch, error) {
	l := &Latch{}
	channel := func(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }
	if err := l.init(c, "latch", name, opts, wake.All, channel); err != nil {
		return nil, err
	}
	return l, nil
}

var (
	latchCount = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local left = redis.call('DECR', KEYS[1])
if left <= 0 then redis.call('DEL', KEYS[1]) end
if left == 0 then redis.pcall('PUBLISH', ARGV[1], '0') end
return left
`)
)

// Set begins a count of n, and reports whether it did: a latch that counts already stays as it
// is.
func (l *Latch) Set(ctx context.Context, n int64) (bool, error) {
	if n < 1 {
		return false, l.core.Argument("it is set to %d; it must be at least 1", n)
	}
	l.core.LogFirstUse(l)
	return l.trySet(ctx, n, "1")
}

// CountDown counts one, and returns the rest. At zero, or if the latch was never Set, it
// does nothing.
func (l *Latch) CountDown(ctx context.Context) (int64, error) {
	l.core.LogFirstUse(l)
	n, err := kit.Number(l.core.Conn.Script(ctx, latchCount, []string{l.core.Name}, l.core.Wakeups.Name))
	if err != nil {
		return 0, l.core.Wrap("count down", err)
	}
	return max(n, 0), nil
}

// Count returns the number that is left to count.
func (l *Latch) Count(ctx context.Context) (int64, error) { return l.readNumber(ctx) }

// Wait returns when the count is zero. Before Set the count is zero too. Wait ends with the
// context. A message wakes a waiting call, which also polls every second.
func (l *Latch) Wait(ctx context.Context) error {
	l.core.LogFirstUse(l)
	_, err := l.core.Poll(ctx, 0, true, func(ctx context.Context) (locking.Reply, error) {
		n, err := l.Count(ctx)
		return locking.Reply{Granted: err == nil && n == 0}, err
	})
	if err != nil && !errors.Is(err, conn.ErrArgument) {
		return l.core.Wrap("wait for", err)
	}
	return err
}

// Delete removes the latch. The latch is then open, and waiting calls return.
func (l *Latch) Delete(ctx context.Context) error {
	return l.core.DeleteKeys(ctx, locking.DeleteScript, "0", l.core.Name)
}

// String describes the latch.
func (l *Latch) String() string { return l.core.Describe("kept until it is zero", "") }
