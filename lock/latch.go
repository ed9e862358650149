package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
)

// latchTTL is the default of Options.TTL: longer than most jobs, and bounded.
const latchTTL = 24 * time.Hour

// Latch counts down to zero, and then all waiting calls return. Its state is a number in one
// key, which is deleted at zero, and a set {name}:seen of the counts so far, so that a request
// that is sent twice counts once.
type Latch struct{ object }

// NewLatch returns the latch of that name. Options.TTL is its lifetime after the last Set or CountDown, by
// default a day; after it the latch is open, whatever its count. NewLatch sends nothing to the backend.
// Errors: ebb.ErrArgument.
func NewLatch(c *conn.Conn, name string, opts ...Options) (*Latch, error) {
	l := &Latch{}
	name, o, err := kit.Make(c, "lock: latch", name, opts)
	if err != nil {
		return nil, err
	}
	o.TTL = cmp.Or(o.TTL, latchTTL)
	if err := l.setup(c, "lock: latch", name, o); err != nil {
		return nil, err
	}
	l.core.Wakeups.Wakes = wake.All
	return l, nil
}

var latchSetScript = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

var latchCountScript = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local again = redis.call('SADD', KEYS[2], ARGV[1]) == 0
redis.call('PEXPIRE', KEYS[2], ARGV[2]) -- a repeated request writes too, so that the call can wait for replicas
if again then return redis.call('GET', KEYS[1]) end
local left = redis.call('DECR', KEYS[1])
if left <= 0 then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.pcall('PUBLISH', ARGV[3], '0')
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return left
`)

// Set begins a count of n, and reports whether it did: it does not change a latch that already counts.
func (l *Latch) Set(ctx context.Context, n int64) (bool, error) {
	if n < 1 {
		return false, l.argument("it is set to %d; it must be at least 1", n)
	}
	l.logFirstUse(l)
	ok, err := locking.Boolean(locking.Integer(l.c.Script(ctx, latchSetScript, l.latchKeys(), n, kit.Millis(l.opts.TTL))))
	if err != nil {
		return false, l.wrap("set", err)
	}
	return ok, nil
}

// CountDown counts one, and returns the remaining count. At zero, or if the latch was never Set, it does
// nothing.
func (l *Latch) CountDown(ctx context.Context) (int64, error) {
	l.logFirstUse(l)
	id, left := kit.ID(), int64(0)
	err := locking.Repeat(ctx, locking.MaxAttempts, func() error {
		v, err := l.c.Script(ctx, latchCountScript, l.latchKeys(), id, kit.Millis(l.opts.TTL), l.keys.wake)
		if err == nil {
			left, err = v.AsInt()
		}
		return err
	})
	if err != nil {
		return 0, l.wrap("count down", err)
	}
	return left, nil
}

func (l *Latch) latchKeys() []string { return []string{l.name, kit.Key(l.name, "seen")} }

// Count returns the remaining count.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	v, err := l.c.Do(ctx, "GET", l.name)
	if err != nil || v.IsNull() {
		if err != nil {
			err = l.wrap("look at", err)
		}
		return 0, err
	}
	n, err := v.AsInt()
	return n, err
}

// Wait returns when the count is zero. Before Set the count is zero too. Wait ends with the
// context. A message wakes a waiting call, which also polls every second.
func (l *Latch) Wait(ctx context.Context) error {
	l.logFirstUse(l)
	_, err := l.core.Poll(ctx, 0, true, func(ctx context.Context) (locking.Reply, error) {
		n, err := l.Count(ctx)
		return locking.Reply{Granted: err == nil && n == 0}, err
	})
	if err != nil && !errors.Is(err, conn.ErrArgument) {
		return l.wrap("wait for", err)
	}
	return err
}

// String describes the latch.
func (l *Latch) String() string {
	return l.describe(fmt.Sprintf("kept for %v", l.opts.TTL), "")
}
