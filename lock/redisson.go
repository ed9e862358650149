package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// RedissonClient makes objects in the layout of the Java library Redisson, which Go and Java
// programs can share. The layout has no fencing tokens for plain locks, no queue, and no
// idempotent requests.
type RedissonClient struct {
	c    *conn.Conn
	id   string
	opts []Options
}

// Redisson returns a client. id identifies this process and is a UUID; if it is "", Redisson
// makes one. The holder of a lock is that id with the number of a thread, which the caller
// chooses, because goroutines have none. Redisson sends nothing to the backend. It returns no
// error, so that a program can write lock.Redisson(c, id).Lock(name): the methods of the client
// check the connection and the options.
func Redisson(c *conn.Conn, id string, opts ...Options) *RedissonClient {
	if id == "" {
		id = kit.UUID()
	}
	return &RedissonClient{c: c, id: id, opts: opts}
}

// ID returns the client's id.
func (r *RedissonClient) ID() string { return r.id }

func (r *RedissonClient) holder(thread int64) string {
	return r.id + ":" + strconv.FormatInt(thread, 10)
}

// RedissonLock is Redisson's RLock, or its RFencedLock. It is reentrant: a holder may acquire
// it again, and holds it until it has released it as often. It is a hash, holder -> count.
//
// A request whose reply was lost cannot be sent again, because it would count twice. What it
// acquired stays held until the lease is over. A reply that comes within half a second after
// the end of the context is not lost: the lock is released again.
type RedissonLock struct {
	object
	r      *RedissonClient
	fenced bool
}

// Lock returns the lock of that name, whose leases have the Token 0.
func (r *RedissonClient) Lock(name string) (*RedissonLock, error) {
	return r.newLock("Redisson lock", name, false)
}

// FencedLock returns the lock of that name that counts its holders; Token is the count.
func (r *RedissonClient) FencedLock(name string) (*RedissonLock, error) {
	return r.newLock("Redisson fenced lock", name, true)
}

func (r *RedissonClient) newLock(what, name string, fenced bool) (*RedissonLock, error) {
	l := &RedissonLock{r: r, fenced: fenced}
	if err := l.init(r.c, what, name, r.opts); err != nil {
		return nil, err
	}
	l.wakeups = wake.Channel{Conn: r.c, Name: kit.Prefixed("redisson_lock__channel", l.name), Settles: true}
	l.wakeups.Wakes = wake.One // messages name no waiter
	return l, nil
}

func (l *RedissonLock) acquirer() acquirer {
	l.logFirstUse(l)
	return redissonAcquirer{
		c: l.c, ttl: kit.Millis(l.opts.TTL), fenced: l.fenced,
		keys: []string{l.name, kit.Prefixed("redisson_lock_token", l.name)}, channel: l.wakeups.Name,
		acquireScript: redissonLockAcquire, renewScript: redissonLockRenew, releaseScript: redissonLockRelease,
	}
}

// TryAcquire tries once, for a thread of this process. It returns ErrTaken if another owner
// holds the lock.
func (l *RedissonLock) TryAcquire(ctx context.Context, thread int64) (*Lease, error) {
	return l.tryAcquire(ctx, l.acquirer(), l.r.holder(thread))
}

// Acquire waits as Lock.Acquire does, but not in FIFO order.
func (l *RedissonLock) Acquire(ctx context.Context, thread int64, wait time.Duration) (*Lease, error) {
	return l.acquire(ctx, l.acquirer(), l.r.holder(thread), wait)
}

// String describes the lock.
func (l *RedissonLock) String() string { return l.describe(l.leases(), "") }

// RedissonRW is Redisson's RReadWriteLock. Its hash has a field for the mode and one for each
// holder; each hold of a reader is also a key of its own, with its lease.
type RedissonRW struct {
	object
	r *RedissonClient
}

// ReadWriteLock returns the read-write lock of that name.
func (r *RedissonClient) ReadWriteLock(name string) (*RedissonRW, error) {
	l := &RedissonRW{r: r}
	if err := l.init(r.c, "Redisson read-write lock", name, r.opts); err != nil {
		return nil, err
	}
	l.wakeups = wake.Channel{Conn: r.c, Name: kit.Prefixed("redisson_rwlock", l.name), Settles: true}
	l.wakeups.Wakes = wake.All // several readers can acquire it at once
	return l, nil
}

func (l *RedissonRW) acquirer(thread int64, write bool) (acquirer, string) {
	l.logFirstUse(l)
	holder := l.r.holder(thread)
	c := redissonAcquirer{
		c: l.c, ttl: kit.Millis(l.opts.TTL), channel: l.wakeups.Name,
		keys:          []string{l.name, kit.Key(l.name, holder+":rwlock_timeout")},
		acquireScript: redissonReadAcquire, renewScript: redissonReadRenew, releaseScript: redissonReadRelease,
	}
	if write {
		c.acquireScript, c.renewScript, c.releaseScript = redissonWriteAcquire, redissonLockRenew, redissonWriteRelease
		holder += ":write"
	}
	return c, holder
}

// TryAcquire tries once to acquire the write lock, for a thread of this process.
func (l *RedissonRW) TryAcquire(ctx context.Context, thread int64) (*Lease, error) {
	acq, holder := l.acquirer(thread, true)
	return l.tryAcquire(ctx, acq, holder)
}

// Acquire waits for the write lock.
func (l *RedissonRW) Acquire(ctx context.Context, thread int64, wait time.Duration) (*Lease, error) {
	acq, holder := l.acquirer(thread, true)
	return l.acquire(ctx, acq, holder, wait)
}

// TryShare tries once to acquire the read lock. The thread that holds the write lock may
// acquire it.
func (l *RedissonRW) TryShare(ctx context.Context, thread int64) (*Lease, error) {
	acq, holder := l.acquirer(thread, false)
	return l.tryAcquire(ctx, acq, holder)
}

// Share waits for the read lock.
func (l *RedissonRW) Share(ctx context.Context, thread int64, wait time.Duration) (*Lease, error) {
	acq, holder := l.acquirer(thread, false)
	return l.acquire(ctx, acq, holder, wait)
}

// String describes the lock.
func (l *RedissonRW) String() string { return l.describe(l.leases(), "") }

// redissonAcquirer acquires one of these locks for a holder.
type redissonAcquirer struct {
	c                                         *conn.Conn
	ttl                                       int64 // ms
	keys                                      []string
	channel                                   string
	fenced                                    bool
	acquireScript, renewScript, releaseScript *conn.Script
}

func (r redissonAcquirer) try(ctx context.Context, holder string, _ bool) (reply, error) {
	v, err := r.c.Script(ctx, r.acquireScript, r.keys, holder, r.ttl, r.fenced)
	if err != nil {
		return reply{}, err
	}
	return r.read(v)
}

func (redissonAcquirer) read(v conn.Value) (a reply, err error) {
	if len(v.Elems) != 3 {
		return a, fmt.Errorf("%w: a script returned %s", conn.ErrValue, v)
	}
	var n [3]int64
	for i, e := range v.Elems {
		if n[i], err = e.AsInt(); err != nil {
			return a, err
		}
	}
	return reply{granted: n[0] == 1, token: n[1], retryAfter: time.Duration(n[2]) * time.Millisecond}, nil
}

func (r redissonAcquirer) renew(ctx context.Context, holder string, _ int64) error {
	return renewed(integer(r.c.Script(ctx, r.renewScript, r.keys, holder, r.ttl)))
}

func (r redissonAcquirer) release(ctx context.Context, holder string, _ int64) (bool, error) {
	return boolean(integer(r.c.Script(ctx, r.releaseScript, r.keys, holder, r.ttl, r.channel)))
}

// abandon is not called: see countingAcquirer.
func (redissonAcquirer) abandon(context.Context, string) error { return nil }
func (redissonAcquirer) repeatable() bool                      { return false }

var (
	redissonLockAcquire = conn.NewScript(`
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
	redissonLockRenew = conn.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)
	redissonLockRelease = conn.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[3], '0')
end
return 1
`)

	// The key of a lock of readers expires with the longest hold.
	redissonReadAcquire = conn.NewScript(`
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode and mode ~= 'read' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0 then
  return {0, 0, redis.call('PTTL', KEYS[1]) + 1}
end
if not mode then redis.call('HSET', KEYS[1], 'mode', 'read') end
local n = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('SET', KEYS[2] .. ':' .. n, '1', 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
return {1, 0, 0}
`)
	redissonReadRenew = conn.NewScript(`
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if n == 0 then return 0 end
for i = 1, n do redis.call('PEXPIRE', KEYS[2] .. ':' .. i, ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
return 1
`)
	// KEYS[2] ends with the name of this holder; the keys of other holders differ in it.
	redissonReadRelease = conn.NewScript(`
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if n == 0 then return 0 end
redis.call('DEL', KEYS[2] .. ':' .. n)
if n == 1 then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if redis.call('HLEN', KEYS[1]) > 1 then
  if mode == 'write' then return 1 end
  local prefix = string.sub(KEYS[2], 1, #KEYS[2] - #(ARGV[1] .. ':rwlock_timeout'))
  local most = -3
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local count = tonumber(all[i + 1])
    if all[i] ~= 'mode' and count then
      for j = count, 1, -1 do
        most = math.max(most, redis.call('PTTL', prefix .. all[i] .. ':rwlock_timeout:' .. j))
      end
    end
  end
  if most > 0 then
    redis.call('PEXPIRE', KEYS[1], most)
    return 1
  end
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[3], '0')
return 1
`)

	redissonWriteAcquire = conn.NewScript(`
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode and (mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0) then
  return {0, 0, redis.call('PTTL', KEYS[1]) + 1}
end
redis.call('HSET', KEYS[1], 'mode', 'write')
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
return {1, 0, 0}
`)
	// A writer that is a reader too remains a reader.
	redissonWriteRelease = conn.NewScript(`
if redis.call('HGET', KEYS[1], 'mode') ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
redis.pcall('PUBLISH', ARGV[3], '0')
return 1
`)
)
