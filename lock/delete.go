package lock

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Delete of an object removes its keys, also while a lease is held: the holder gets ErrLost at its next renewal, and waiting calls poll
// again. Afterwards the object is as before its first use.

// deleteScript removes KEYS, and publishes ARGV[2] on the channel ARGV[1].
var deleteScript = conn.NewScript(`
redis.call('DEL', unpack(KEYS))
redis.pcall('PUBLISH', ARGV[1], ARGV[2])
return 1
`)

// redissonRWDelete is deleteScript for a RedissonRW. KEYS[2] is the prefix of the keys of the holds of readers; the hash has their
// names.
var redissonRWDelete = conn.NewScript(`
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  for j = 1, tonumber(all[i + 1]) or 0 do redis.call('DEL', KEYS[2] .. all[i] .. ':rwlock_timeout:' .. j) end
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], ARGV[2])
return 1
`)

// deleteKeys removes keys, and publishes a message to the waiters.
func (o *object) deleteKeys(ctx context.Context, s *conn.Script, message string, keys ...string) error {
	if _, err := o.c.Script(ctx, s, keys, o.wakeups.Name, message); err != nil {
		return o.wrap("delete", err)
	}
	return nil
}

// deleteLock removes a lock or a semaphore in the layout of this package.
func (o *object) deleteLock(ctx context.Context) error {
	if o.c.Capabilities().Native {
		if _, err := o.c.Del(ctx, o.name); err != nil {
			return o.wrap("delete", err)
		}
		return nil
	}
	return o.deleteKeys(ctx, deleteScript, "", o.name, o.keys.fence, o.keys.wait, o.keys.held, o.keys.line, o.keys.alive)
}

// Delete removes the lock, also while it is held. Its holder gets ErrLost from Renew, from
// Release, or within a third of the lease as the cause of its Context. On servers other than
// ebb Delete also removes the last token; tokens still grow unless the server's clock is set
// back. Delete is one request.
func (l *Lock) Delete(ctx context.Context) error { return l.deleteLock(ctx) }

// Delete removes the lock, as Lock.Delete does.
func (l *RW) Delete(ctx context.Context) error { return l.deleteLock(ctx) }

// Delete removes the semaphore and all leases of its permits, as Lock.Delete does.
func (s *Semaphore) Delete(ctx context.Context) error { return s.deleteLock(ctx) }

// Delete removes all the locks one after the other, as Lock.Delete does.
func (m *Many) Delete(ctx context.Context) error {
	var errs []error
	for _, l := range m.locks {
		errs = append(errs, l.Delete(ctx))
	}
	return errors.Join(errs...)
}

// Delete removes the election's key, also while a candidate leads, as Lock.Delete does.
func (e *Leader) Delete(ctx context.Context) error {
	if err := e.lock.Delete(ctx); err != nil {
		return err
	}
	e.announce(ctx, "")
	return nil
}

// Delete removes the latch. The latch is then open, and waiting calls return.
func (l *Latch) Delete(ctx context.Context) error {
	return l.deleteKeys(ctx, deleteScript, "0", l.latchKeys()...)
}

// Delete removes the record that the work was begun or done: the next Do calls its function,
// also while another call still runs its own.
func (o *Once) Delete(ctx context.Context) error {
	if _, err := o.c.Del(ctx, o.name); err != nil {
		return o.wrap("delete", err)
	}
	return nil
}

// Delete removes the lock, as Lock.Delete does, and the count of a fenced one.
func (l *RedissonLock) Delete(ctx context.Context) error {
	return l.deleteKeys(ctx, deleteScript, "0", l.name, kit.Prefixed("redisson_lock_token", l.name))
}

// Delete removes the lock with the holds of its readers, as Lock.Delete does.
func (l *RedissonRW) Delete(ctx context.Context) error {
	return l.deleteKeys(ctx, redissonRWDelete, "0", l.name, kit.Key(l.name, ""))
}

// Delete removes the semaphore. There are no permits until TrySetPermits makes some.
func (s *RedissonSemaphore) Delete(ctx context.Context) error {
	return s.deleteKeys(ctx, deleteScript, "0", s.name)
}

// Delete removes the semaphore and all leases of its permits. There are no permits until
// TrySetPermits makes some.
func (s *RedissonPermits) Delete(ctx context.Context) error {
	return s.deleteKeys(ctx, deleteScript, "0", s.name, kit.Key(s.name, "timeout"))
}
