package lock

import (
	"context"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// A lock without a line, on servers without LOCK.*. Its keys:
//
//	name          the owner, lives as long as the lease
//	{name}:fence  the last token, which is the holder's; lives a day longer
//	{name}:wait   there is a waiter to be woken; channel {name}:wake
//
// A token is the server's time in microseconds, or the last token plus one where
// that is greater: so tokens grow, also if the counter was lost or the clock was set.
//
// Messages are sent by pcall, here and in the other scripts: a waiter polls in any case,
// and a user without channels is no reason to fail half-way.
//
// Without contention a lock costs five commands in two scripts: that is why what marks
// the waiters is removed with the lock, and set again by a waiter whose request is denied.

// patience is the time, in ms, after its last request for which the scripts take a waiter for
// alive. Waiters ask at least every mostPause, so that some requests may be late.
const (
	patience     = 5_000
	patienceText = "5000"
)

// fenceLife is how long, in ms, the last token is kept after the lease.
const fenceLife = 24 * 60 * 60 * 1000

// takeScript returns the token, or 0 or less: minus the milliseconds for which it is
// taken. A waiter gives the third key, which is set then, and its time to live. The
// new token is put together as a text: to print a number costs as much as to read the
// clock.
var takeScript = conn.NewScript(`
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

var keepScript = conn.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// giveScript makes the channel's name of that of the waiters' key, which it seldom needs.
var giveScript = conn.NewScript(`
local call = redis.call
if call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if call('DEL', KEYS[1], KEYS[2]) == 2 then redis.pcall('PUBLISH', string.sub(KEYS[2], 1, -5) .. 'wake', '') end
return 1
`)

// scriptLock is these scripts.
type scriptLock struct{ o *object }

// keys are the helper keys of an object, made once.
type keys struct{ fence, wait, held, line, alive, wake string }

// keysOf makes them all in one piece: a lock is often made for one lease.
func keysOf(name string) (k keys) {
	open, end := "{", "}:"
	if strings.Contains(name, "{") { // as kit.Key has it
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

func (s scriptLock) ask(ctx context.Context, owner string, waits bool) (answer, error) {
	o := s.o
	var got conn.Ints
	var err error
	if waits {
		got, err = o.c.ScriptInts(ctx, takeScript, 3, o.name, o.keys.fence, o.keys.wait, owner, o.ttl, o.fenced, patienceText)
	} else {
		got, err = o.c.ScriptInts(ctx, takeScript, 2, o.name, o.keys.fence, owner, o.ttl, o.fenced)
	}
	n := got.At[0]
	if err != nil || n <= 0 {
		return answer{again: time.Duration(-n) * time.Millisecond}, err
	}
	return answer{granted: true, token: n}, err
}

// The owner is enough for renew and release: it is unique, and has one token.

func (s scriptLock) renew(ctx context.Context, owner string, _ int64) error {
	o := s.o
	return renewed(one(o.c.ScriptInts(ctx, keepScript, 2, o.name, o.keys.fence, owner, o.ttl, o.fenced)))
}

func (s scriptLock) release(ctx context.Context, owner string, _ int64) (bool, error) {
	o := s.o
	return truth(one(o.c.ScriptInts(ctx, giveScript, 2, o.name, o.keys.wait, owner)))
}

func (s scriptLock) forget(ctx context.Context, owner string) error {
	_, err := s.release(ctx, owner, 0)
	return err
}

func (scriptLock) repeatable() bool { return true }
