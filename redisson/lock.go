package redisson

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
	"github.com/ebbdb/ebb/lock"
)

// Lock is Redisson's RLock, or its RFencedLock. It is reentrant: a holder may acquire it again, and
// holds it until it has released it as often. It is a hash, holder -> count. It has no queue, and a
// plain lock has no fencing tokens.
//
// A request whose reply was lost cannot be sent again, because it would count twice. What it
// acquired stays held until the lease is over. A reply that comes within half a second after
// the end of the context is not lost: the lock is released again.
type Lock struct {
	object
	client *Client
	fenced bool
}

// NewLock returns the lock of that name, whose leases have the Token 0. It sends nothing to the
// backend. Errors: ebb.ErrArgument.
func NewLock(c *Client, name string, opts ...LockOptions) (*Lock, error) {
	return newLock(c, "lock", name, opts, false)
}

// NewFencedLock returns the lock of that name that counts its holders; Token is the count.
func NewFencedLock(c *Client, name string, opts ...LockOptions) (*Lock, error) {
	return newLock(c, "fenced lock", name, opts, true)
}

func newLock(c *Client, kind, name string, opts []LockOptions, fenced bool) (*Lock, error) {
	l := &Lock{client: c, fenced: fenced}
	channel := func(name string) string { return kit.Prefixed("redisson_lock__channel", name) }
	if err := l.init(c.conn(), kind, name, opts, wake.One, channel); err != nil { // messages name no waiter
		return nil, err
	}
	return l, nil
}

func (l *Lock) acquirer() locking.Acquirer {
	l.core.LogFirstUse(l)
	return holds{
		c: l.core.Conn, ttl: kit.Millis(l.core.TTL), fenced: l.fenced,
		keys: []string{l.core.Name, kit.Prefixed("redisson_lock_token", l.core.Name)}, channel: l.core.Wakeups.Name,
		acquireScript: lockAcquire, renewScript: lockRenew, releaseScript: lockRelease,
	}
}

// TryAcquire tries once, for a thread of this process. It returns lock.ErrTaken if another owner
// holds the lock.
func (l *Lock) TryAcquire(ctx context.Context, thread int64) (*lock.Lease, error) {
	return l.tryAcquire(ctx, l.acquirer(), l.client.holder(thread))
}

// Acquire waits as lock.Lock.Acquire does, but not in FIFO order.
func (l *Lock) Acquire(ctx context.Context, thread int64, wait time.Duration) (*lock.Lease, error) {
	return l.acquire(ctx, l.acquirer(), l.client.holder(thread), wait)
}

// Delete removes the lock, as lock.Lock.Delete does, and the count of a fenced one.
func (l *Lock) Delete(ctx context.Context) error {
	return l.core.DeleteKeys(ctx, locking.DeleteScript, "0", l.core.Name, kit.Prefixed("redisson_lock_token", l.core.Name))
}

// String describes the lock.
func (l *Lock) String() string { return l.core.Describe(l.core.Leases(), "") }

// holds acquires a lock for a holder, which the lock counts.
type holds struct {
	c                                         *conn.Conn
	ttl                                       int64 // ms
	keys                                      []string
	channel                                   string
	fenced                                    bool
	acquireScript, renewScript, releaseScript *conn.Script
}

func (r holds) Try(ctx context.Context, holder string, _ bool) (locking.Reply, error) {
	v, err := r.c.Script(ctx, r.acquireScript, r.keys, holder, r.ttl, r.fenced)
	if err != nil {
		return locking.Reply{}, err
	}
	return r.Read(v)
}

func (holds) Read(v conn.Value) (a locking.Reply, err error) {
	if len(v.Elems) != 3 {
		return a, fmt.Errorf("%w: a script returned %s", conn.ErrValue, v)
	}
	var n [3]int64
	for i, e := range v.Elems {
		if n[i], err = e.AsInt(); err != nil {
			return a, err
		}
	}
	return locking.Reply{Granted: n[0] == 1, Token: n[1], RetryAfter: time.Duration(n[2]) * time.Millisecond}, nil
}

func (r holds) Renew(ctx context.Context, holder string, _ int64) error {
	return locking.Renewed(locking.Integer(r.c.Script(ctx, r.renewScript, r.keys, holder, r.ttl)))
}

func (r holds) Release(ctx context.Context, holder string, _ int64) (bool, error) {
	return locking.Boolean(locking.Integer(r.c.Script(ctx, r.releaseScript, r.keys, holder, r.ttl, r.channel)))
}

// Abandon is not called: see locking.Counting.
func (holds) Abandon(context.Context, string) error { return nil }
func (holds) Repeatable() bool                      { return false }

var (
	lockAcquire = conn.NewScript(`
local new = redis.call('EXISTS', KEYS[1]) == 0
if new or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  local token = 0
  if ARGV[3] == '1' then
    if new then redis.call('INCR', KEYS[2]) end
    token = redis.call('GET', KEYS[2]) or 0
  end
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, token, 0}
end
return {0, 0, redis.call('PTTL', KEYS[1]) + 1}
`)
	lockRenew = conn.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)
	lockRelease = conn.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[3], '0')
end
return 1
`)
)
