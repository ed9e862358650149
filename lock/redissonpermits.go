package lock

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// RedissonSemaphore is Redisson's RSemaphore, which is an integer. It does not record the
// holders of permits, so the permits of a program that died are not given back, nor are those of a
// request whose reply was lost. A reply that comes within half a second after the end of the context
// is not lost: the permits are given back.
type RedissonSemaphore struct{ object }

// Semaphore returns the semaphore of that name.
func (r *RedissonClient) Semaphore(name string) (*RedissonSemaphore, error) {
	s := &RedissonSemaphore{}
	if err := s.setupPermits(r, "Redisson semaphore", name); err != nil {
		return nil, err
	}
	return s, nil
}

func (o *object) setupPermits(r *RedissonClient, what, name string) error {
	err := o.init(r.c, what, name, r.opts)
	o.wakeups = wake.Channel{Conn: r.c, Name: kit.Prefixed("redisson_sc", o.name), Settles: true}
	o.wakeups.Wakes = wake.All // one release may be enough for several waiters
	return err
}

var (
	redissonSemSet = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.pcall('PUBLISH', ARGV[2], ARGV[1])
return 1
`)
	redissonSemAcquire = conn.NewScript(`
local value = tonumber(redis.call('GET', KEYS[1]) or 0)
if value < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
`)
	redissonSemRelease = conn.NewScript(`
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.pcall('PUBLISH', ARGV[2], value)
return value
`)
)

// trySetPermits makes the permits unless they exist, and reports whether it did.
func (o *object) trySetPermits(ctx context.Context, n int64) (bool, error) {
	ok, err := boolean(integer(o.c.Script(ctx, redissonSemSet, []string{o.name}, n, o.wakeups.Name)))
	if err != nil {
		err = o.wrap("set", err)
	}
	return ok, err
}

// TrySetPermits makes n permits, and reports whether it did: permits that exist stay as they
// are.
func (s *RedissonSemaphore) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	return s.trySetPermits(ctx, n)
}

// TryAcquire takes n permits, and returns ErrTaken if fewer are free.
func (s *RedissonSemaphore) TryAcquire(ctx context.Context, n int64) error {
	if n < 0 {
		return s.argument("the call wants %d permits; the number must not be negative", n)
	}
	s.logFirstUse(s)
	r, err := s.take(ctx, n)
	switch {
	case err != nil:
		s.takeBackLate(ctx, n, err)
		return s.wrap("acquire", err)
	case !r.granted:
		return s.wrap("acquire", ErrTaken)
	}
	return nil
}

// takeBackLate releases n permits if the reply to a failed request comes late and says that it took them.
func (s *RedissonSemaphore) takeBackLate(ctx context.Context, n int64, failed error) {
	late, _ := kit.Late(ctx, failed)
	if took, ok, err := integer(late, late.Err()); ok && err == nil && took == 1 {
		s.takeBack(ctx, func(ctx context.Context) error { return s.Release(ctx, n) })
	}
}

func (s *RedissonSemaphore) take(ctx context.Context, n int64) (reply, error) {
	ok, err := boolean(integer(s.c.Script(ctx, redissonSemAcquire, []string{s.name}, n)))
	return reply{granted: ok}, err
}

// Acquire waits for n permits, for at most wait, or until the context ends if wait is 0. A
// request for few permits can overtake one for many.
func (s *RedissonSemaphore) Acquire(ctx context.Context, n int64, wait time.Duration) error {
	if n < 0 || wait < 0 {
		return s.argument("the call wants %d permits within %v; neither may be negative", n, wait)
	}
	s.logFirstUse(s)
	if _, err := s.poll(ctx, wait, false, func(ctx context.Context) (reply, error) { return s.take(ctx, n) }); err != nil {
		s.takeBackLate(ctx, n, err)
		return s.wrap("acquire", err)
	}
	return nil
}

// Release gives n permits back. The semaphore does not check that they were taken.
func (s *RedissonSemaphore) Release(ctx context.Context, n int64) error {
	if _, err := s.c.Script(ctx, redissonSemRelease, []string{s.name}, n, s.wakeups.Name); err != nil {
		return s.wrap("release", err)
	}
	return nil
}

// AvailablePermits returns the number of free permits.
func (s *RedissonSemaphore) AvailablePermits(ctx context.Context) (int64, error) {
	return s.readNumber(ctx)
}

// readNumber returns the integer of the object; 0 if there is none.
func (o *object) readNumber(ctx context.Context) (int64, error) {
	v, err := o.c.Do(ctx, "GET", o.name)
	if err != nil {
		return 0, o.wrap("look at", err)
	}
	if v.IsNull() {
		return 0, nil
	}
	n, err := v.AsInt()
	return n, err
}

// String describes the semaphore.
func (s *RedissonSemaphore) String() string { return s.describe("permits without leases", "") }

// RedissonPermits is Redisson's RPermitExpirableSemaphore: an integer, and a sorted set
// {name}:timeout of the leased permits, 16 raw bytes each, scored by the end of their leases.
type RedissonPermits struct{ object }

// ExpirablePermits returns the semaphore of that name, whose permits are leased.
func (r *RedissonClient) ExpirablePermits(name string) (*RedissonPermits, error) {
	s := &RedissonPermits{}
	if err := s.setupPermits(r, "Redisson permits", name); err != nil {
		return nil, err
	}
	return s, nil
}

// TrySetPermits makes n permits, and reports whether it did: permits that exist stay as they
// are.
func (s *RedissonPermits) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	return s.trySetPermits(ctx, n)
}

// TryAcquire tries once to lease a permit, and returns ErrTaken if none is free. The lease's
// Owner is the permit's id.
func (s *RedissonPermits) TryAcquire(ctx context.Context) (*Lease, error) {
	return s.tryAcquire(ctx, s.acquirer(), permitID())
}

// Acquire waits for a permit, for at most wait, or until the context ends if wait is 0.
func (s *RedissonPermits) Acquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return s.acquire(ctx, s.acquirer(), permitID(), wait)
}

// AvailablePermits returns the number of free permits, including those whose lease is over.
func (s *RedissonPermits) AvailablePermits(ctx context.Context) (int64, error) {
	p := s.acquirer()
	v, err := s.c.Script(ctx, redissonPermitCount, p.keys, s.wakeups.Name)
	if err != nil {
		return 0, s.wrap("look at", err)
	}
	n, err := v.AsInt()
	return n, err
}

// String describes the semaphore.
func (s *RedissonPermits) String() string { return s.describe(s.leases(), "") }

func permitID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return string(id[:])
}

func (s *RedissonPermits) acquirer() permitAcquirer {
	s.logFirstUse(s)
	return permitAcquirer{c: s.c, ttl: kit.Millis(s.opts.TTL), keys: []string{s.name, kit.Key(s.name, "timeout")}, channel: s.wakeups.Name}
}

// permitAcquirer acquires a permit, whose id is the owner.
type permitAcquirer struct {
	c       *conn.Conn
	ttl     int64 // ms
	keys    []string
	channel string
}

// redissonPermitPrelude returns permits whose lease is over.
const redissonPermitPrelude = `
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
	redissonPermitAcquire = conn.NewScript(redissonPermitPrelude + `
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
	redissonPermitRenew = conn.NewScript(redissonPermitPrelude + `
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return 1
`)
	redissonPermitRelease = conn.NewScript(redissonPermitPrelude + `
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then returnExpired(ARGV[3]) return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.pcall('PUBLISH', ARGV[3], redis.call('INCRBY', KEYS[1], 1))
return 1
`)
	redissonPermitCount = conn.NewScript(redissonPermitPrelude + `
returnExpired(ARGV[1])
return redis.call('GET', KEYS[1]) or 0
`)
)

func (p permitAcquirer) try(ctx context.Context, id string, _ bool) (reply, error) {
	v, err := p.c.Script(ctx, redissonPermitAcquire, p.keys, id, p.ttl, p.channel)
	r, err := scriptReply(v, err)
	r.token = 0 // permits have no token
	return r, err
}

func (p permitAcquirer) renew(ctx context.Context, id string, _ int64) error {
	return renewed(integer(p.c.Script(ctx, redissonPermitRenew, p.keys, id, p.ttl)))
}

func (p permitAcquirer) release(ctx context.Context, id string, _ int64) (bool, error) {
	return boolean(integer(p.c.Script(ctx, redissonPermitRelease, p.keys, id, p.ttl, p.channel)))
}

func (p permitAcquirer) abandon(ctx context.Context, id string) error {
	_, err := p.release(ctx, id, 0)
	return err
}

func (permitAcquirer) repeatable() bool { return true }

// Latch returns Redisson's RCountDownLatch of that name, which is an integer. If the reply to a
// request is lost, the latch may have counted it.
func (r *RedissonClient) Latch(name string) (*Latch, error) {
	l := &Latch{redisson: true}
	if err := l.init(r.c, "Redisson latch", name, r.opts); err != nil {
		return nil, err
	}
	l.wakeups = wake.Channel{Conn: r.c, Name: "redisson_countdownlatch__channel__{" + l.name + "}", Settles: true}
	l.wakeups.Wakes = wake.All
	return l, nil
}

var (
	redissonLatchSet = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.pcall('PUBLISH', ARGV[2], '1')
return 1
`)
	redissonLatchCount = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local left = redis.call('DECR', KEYS[1])
if left <= 0 then redis.call('DEL', KEYS[1]) end
if left == 0 then redis.pcall('PUBLISH', ARGV[1], '0') end
return left
`)
)

func (l *Latch) setRedisson(ctx context.Context, n int64) (bool, error) {
	ok, err := boolean(integer(l.c.Script(ctx, redissonLatchSet, []string{l.name}, n, l.wakeups.Name)))
	if err != nil {
		err = l.wrap("set", err)
	}
	return ok, err
}

func (l *Latch) countRedisson(ctx context.Context) (int64, error) {
	v, err := l.c.Script(ctx, redissonLatchCount, []string{l.name}, l.wakeups.Name)
	if err != nil {
		return 0, l.wrap("count down", err)
	}
	n, err := v.AsInt()
	if err != nil {
		return 0, fmt.Errorf("lock: %w", err)
	}
	return max(n, 0), nil
}
