package redisson

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
	"github.com/ebbdb/ebb/lock"
)

// Permits is Redisson's RPermitExpirableSemaphore: an integer, and a sorted set {name}:timeout of
// the leased permits, 16 raw bytes each, scored by the end of their leases.
type Permits struct{ object }

// NewPermits returns the semaphore of that name, whose permits are leased. It sends nothing to the
// backend. Errors: ebb.ErrArgument.
func NewPermits(c *conn.Conn, name string, opts ...LockOptions) (*Permits, error) {
	s := &Permits{}
	if err := s.init(c, "permits", name, opts, wake.All, permitsChannel); err != nil { // one release may be enough for several waiters
		return nil, err
	}
	return s, nil
}

// TrySetPermits makes n permits, and reports whether it did: permits that exist stay as they
// are.
func (s *Permits) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	return s.trySet(ctx, n, n)
}

// TryAcquire tries once to lease a permit, and returns lock.ErrTaken if none is free. The lease's
// Owner is the permit's id.
func (s *Permits) TryAcquire(ctx context.Context) (*lock.Lease, error) {
	return s.tryAcquire(ctx, s.acquirer(), permitID())
}

// Acquire waits for a permit, for at most wait, or until the context ends if wait is 0.
func (s *Permits) Acquire(ctx context.Context, wait time.Duration) (*lock.Lease, error) {
	return s.acquire(ctx, s.acquirer(), permitID(), wait)
}

// AvailablePermits returns the number of free permits, including those whose lease is over.
func (s *Permits) AvailablePermits(ctx context.Context) (int64, error) {
	p := s.acquirer()
	n, err := kit.Number(s.core.Conn.Script(ctx, permitCount, p.keys, s.core.Wakeups.Name))
	if err != nil {
		return 0, s.core.Wrap("look at", err)
	}
	return n, nil
}

// Delete removes the semaphore and all leases of its permits. There are no permits until
// TrySetPermits makes some.
func (s *Permits) Delete(ctx context.Context) error {
	return s.core.DeleteKeys(ctx, locking.DeleteScript, "0", s.core.Name, kit.Key(s.core.Name, "timeout"))
}

// String describes the semaphore.
func (s *Permits) String() string { return s.core.Describe(s.core.Leases(), "") }

func permitID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return string(id[:])
}

func (s *Permits) acquirer() permitAcquirer {
	s.core.LogFirstUse(s)
	return permitAcquirer{c: s.core.Conn, ttl: kit.Millis(s.core.TTL),
		keys: []string{s.core.Name, kit.Key(s.core.Name, "timeout")}, channel: s.core.Wakeups.Name}
}

// permitAcquirer acquires a permit, whose id is the owner.
type permitAcquirer struct {
	c       *conn.Conn
	ttl     int64 // ms
	keys    []string
	channel string
}

// permitPrelude returns permits whose lease is over.
const permitPrelude = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function returnExpired(channel)
  local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, now, 'LIMIT', 0, 200)
  if #over == 0 then return end
  for _, id in ipairs(over) do redis.call('ZREM', KEYS[2], id) end
  redis.pcall('PUBLISH', channel, redis.call('INCRBY', KEYS[1], #over))
end
`

var (
	permitAcquire = conn.NewScript(permitPrelude + `
returnExpired(ARGV[3])
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then -- the request is repeated
  redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
  return {1, 0}
end
if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then
  local ends = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  if not ends then return {0, 0} end
  return {0, math.max(ends - now, 1)}
end
redis.call('DECR', KEYS[1])
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return {1, 0}
`)
	permitRenew = conn.NewScript(permitPrelude + `
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return 1
`)
	permitRelease = conn.NewScript(permitPrelude + `
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then returnExpired(ARGV[3]) return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.pcall('PUBLISH', ARGV[3], redis.call('INCRBY', KEYS[1], 1))
return 1
`)
	permitCount = conn.NewScript(permitPrelude + `
returnExpired(ARGV[1])
return redis.call('GET', KEYS[1]) or 0
`)
)

func (p permitAcquirer) Try(ctx context.Context, id string, _ bool) (locking.Reply, error) {
	v, err := p.c.Script(ctx, permitAcquire, p.keys, id, p.ttl, p.channel)
	r, err := locking.ScriptReply(v, err)
	r.Token = 0 // permits have no token
	return r, err
}

func (p permitAcquirer) Renew(ctx context.Context, id string, _ int64) error {
	return locking.Renewed(locking.Integer(p.c.Script(ctx, permitRenew, p.keys, id, p.ttl)))
}

func (p permitAcquirer) Release(ctx context.Context, id string, _ int64) (bool, error) {
	return locking.Boolean(locking.Integer(p.c.Script(ctx, permitRelease, p.keys, id, p.ttl, p.channel)))
}

func (p permitAcquirer) Abandon(ctx context.Context, id string) error {
	_, err := p.Release(ctx, id, 0)
	return err
}

func (permitAcquirer) Repeatable() bool { return true }
