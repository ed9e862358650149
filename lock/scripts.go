package lock

import (
	"context"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/locking"
)

// A lock without a line, on servers without LOCK.*. Its keys:
//
//	name          the owner; expires with the lease
//	{name}:fence  the last token, the holder's if there is one; expires a day later
//	{name}:wait   exists if a waiter wants a message on the channel {name}:wake
//
// A token is the server's time in microseconds, or the last token plus one if that is greater. So tokens grow, even if the counter
// was lost or the clock was set back.
//
// All scripts send messages by pcall: a waiter polls in any case, and a script must not fail half-way for a user without rights to
// channels.
//
// Without contention a lock costs five commands in two scripts: the release removes the mark of the waiters with the lock, and a
// waiter whose request is denied sets it again.

// waiterTimeout (ms): the scripts remove a waiter that has not polled for this long. Waiters poll at least every
// locking.MaxPause, so that some requests may be late.
const (
	waiterTimeout     = 5_000
	waiterTimeoutText = "5000"
)

// fenceLife is the time, in ms, for which the last token is kept after the lease.
const fenceLife = 24 * 60 * 60 * 1000

// acquireScript returns the token. If the lock is taken, it returns the remaining milliseconds of the lease
// as a negative number, or 0. A waiter passes the third key, which the script then sets, and its time to
// live. The script joins the digits of the new token as texts, because converting a number costs as much as
// TIME.
var acquireScript = conn.NewScript(`
local call = redis.call
if not call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if call('GET', KEYS[1]) ~= ARGV[1] then
    if KEYS[3] then call('SET', KEYS[3], '1', 'PX', ARGV[4]) end
    return -call('PTTL', KEYS[1]) - 1
  end
  call('PEXPIRE', KEYS[1], ARGV[2])
  local token = tonumber(call('GET', KEYS[2]))
  if token then return token end
end
local time = call('TIME')
local us = time[2]
local token = time[1] .. (#us == 6 and us or string.rep('0', 6 - #us) .. us)
local last = tonumber(call('SET', KEYS[2], token, 'PX', ARGV[3], 'GET') or 0)
token = tonumber(token)
if last >= token then
  token = last + 1
  call('SET', KEYS[2], token, 'PX', ARGV[3])
end
return token
`)

var renewScript = conn.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// releaseScript derives the name of the channel from KEYS[2], because it rarely needs the name.
var releaseScript = conn.NewScript(`
local call = redis.call
if call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if call('DEL', KEYS[1], KEYS[2]) == 2 then redis.pcall('PUBLISH', string.sub(KEYS[2], 1, -5) .. 'wake', '') end
return 1
`)

// scriptLock implements locking.Acquirer by these scripts.
type scriptLock struct{ o *object }

// keys are the names of the helper keys of an object, and of its channel.
type keys struct{ fence, wait, held, line, alive, wake string }

// keysOf makes all names in one allocation, because programs often make a lock for a single lease.
func keysOf(name string) (k keys) {
	open, end := "{", "}:"
	if strings.Contains(name, "{") { // like kit.Key
		open, end = "", ":"
	}
	rest := open + name + end + "fence" + open + name + end + "wait" + open + name + end + "held" +
		open + name + end + "line" + open + name + end + "alive" + open + name + end + "wake"
	tag := len(open) + len(name) + len(end)
	cut := func(suffix int) (key string) {
		key, rest = rest[:tag+suffix], rest[tag+suffix:]
		return key
	}
	return keys{fence: cut(5), wait: cut(4), held: cut(4), line: cut(4), alive: cut(5), wake: cut(4)}
}

func (s scriptLock) Try(ctx context.Context, owner string, queue bool) (locking.Reply, error) {
	o := s.o
	keys, args := []string{o.name, o.keys.fence}, []any{owner, o.ttl, o.fenceTTL}
	if queue {
		keys, args = append(keys, o.keys.wait), append(args, waiterTimeoutText)
	}
	n, _, err := locking.Integer(o.c.Script(ctx, acquireScript, keys, args...))
	if err != nil || n <= 0 {
		return locking.Reply{RetryAfter: time.Duration(-n) * time.Millisecond}, err
	}
	return locking.Reply{Granted: true, Token: n}, err
}

// The owner is enough for renew and release: it is unique, and has one token.

func (s scriptLock) Renew(ctx context.Context, owner string, _ int64) error {
	o := s.o
	return locking.Renewed(locking.Integer(o.c.Script(ctx, renewScript, []string{o.name, o.keys.fence}, owner, o.ttl, o.fenceTTL)))
}

func (s scriptLock) Release(ctx context.Context, owner string, _ int64) (bool, error) {
	o := s.o
	return locking.Boolean(locking.Integer(o.c.Script(ctx, releaseScript, []string{o.name, o.keys.wait}, owner)))
}

func (s scriptLock) Abandon(ctx context.Context, owner string) error {
	_, err := s.Release(ctx, owner, 0)
	return err
}

func (scriptLock) Repeatable() bool { return true }

// NoLine says that waiters do not queue.
func (scriptLock) NoLine() {}
