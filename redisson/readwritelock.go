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

// ReadWriteLock is Redisson's RReadWriteLock. Its hash has a field for the mode and one for each
// holder; each hold of a reader is also a key of its own, with its lease.
type ReadWriteLock struct {
	object
	client *Client
}

// NewReadWriteLock returns the read-write lock of that name. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func NewReadWriteLock(c *Client, name string, opts ...LockOptions) (*ReadWriteLock, error) {
	l := &ReadWriteLock{client: c}
	channel := func(name string) string { return kit.Prefixed("redisson_rwlock", name) }
	if err := l.init(c.conn(), "read-write lock", name, opts, wake.All, channel); err != nil { // several readers can acquire it at once
		return nil, err
	}
	return l, nil
}

func (l *ReadWriteLock) acquirer(thread int64, write bool) (locking.Acquirer, string) {
	l.core.LogFirstUse(l)
	holder := l.client.holder(thread)
	h := holds{
		c: l.core.Conn, ttl: kit.Millis(l.core.TTL), channel: l.core.Wakeups.Name,
		keys:          []string{l.core.Name, kit.Key(l.core.Name, holder+":rwlock_timeout")},
		acquireScript: readAcquire, renewScript: readRenew, releaseScript: readRelease,
	}
	if write {
		h.acquireScript, h.renewScript, h.releaseScript = writeAcquire, lockRenew, writeRelease
		holder += ":write"
	}
	return h, holder
}

// TryAcquire tries once to acquire the write lock, for a thread of this process.
func (l *ReadWriteLock) TryAcquire(ctx context.Context, thread int64) (*lock.Lease, error) {
	acq, holder := l.acquirer(thread, true)
	return l.tryAcquire(ctx, acq, holder)
}

// Acquire waits for the write lock.
func (l *ReadWriteLock) Acquire(ctx context.Context, thread int64, wait time.Duration) (*lock.Lease, error) {
	acq, holder := l.acquirer(thread, true)
	return l.acquire(ctx, acq, holder, wait)
}

// TryShare tries once to acquire the read lock. The thread that holds the write lock may
// acquire it.
func (l *ReadWriteLock) TryShare(ctx context.Context, thread int64) (*lock.Lease, error) {
	acq, holder := l.acquirer(thread, false)
	return l.tryAcquire(ctx, acq, holder)
}

// Share waits for the read lock.
func (l *ReadWriteLock) Share(ctx context.Context, thread int64, wait time.Duration) (*lock.Lease, error) {
	acq, holder := l.acquirer(thread, false)
	return l.acquire(ctx, acq, holder, wait)
}

// Delete removes the lock with the holds of its readers, as lock.Lock.Delete does.
func (l *ReadWriteLock) Delete(ctx context.Context) error {
	return l.core.DeleteKeys(ctx, readWriteDelete, "0", l.core.Name, kit.Key(l.core.Name, ""))
}

// String describes the lock.
func (l *ReadWriteLock) String() string { return l.core.Describe(l.core.Leases(), "") }

var (
	// The key of a lock of readers expires with the longest hold.
	readAcquire = conn.NewScript(`
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
	readRenew = conn.NewScript(`
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if n == 0 then return 0 end
for i = 1, n do redis.call('PEXPIRE', KEYS[2] .. ':' .. i, ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
return 1
`)
	// KEYS[2] ends with the name of this holder; the keys of other holders differ in it.
	readRelease = conn.NewScript(`
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

	writeAcquire = conn.NewScript(`
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
	writeRelease = conn.NewScript(`
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

// readWriteDelete is locking.DeleteScript for a ReadWriteLock. KEYS[2] is the prefix of the keys of the holds of readers; the hash
// has their names.
var readWriteDelete = conn.NewScript(`
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  for j = 1, tonumber(all[i + 1]) or 0 do redis.call('DEL', KEYS[2] .. all[i] .. ':rwlock_timeout:' .. j) end
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], ARGV[2])
return 1
`)
