package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// Concurrency limits how many operations run at the same time, over all processes. It leases
// slots. If a holder dies, its slot becomes free when the lease ends. The methods are safe for
// concurrent use.
type Concurrency struct {
	c       *conn.Conn
	name    string
	slots   int64
	opt     ConcurrencyOptions
	wakeups wake.Channel // for all keys: the scripts publish the owner whose turn it is

	scriptsOnly bool // for tests
}

// ConcurrencyOptions configures the leases of slots. The zero value works.
type ConcurrencyOptions struct {
	Lease  time.Duration // renewed at a third of it; 0: 15 s
	Logger *slog.Logger  // nil: no log
	// UntilRelease lets a slot outlive the context of Acquire. The context then bounds the wait
	// alone, and the slot is renewed until Release or until it is lost. A slot that the program
	// forgets to release stays taken while the process lives.
	UntilRelease bool
}

const (
	// slotLease is the time for which the slot of a process that has died stays taken. A renewal every five seconds costs little.
	slotLease = 15 * time.Second
	// minLease is the shortest lease that renewals can keep.
	minLease = 30 * time.Millisecond
)

// NewConcurrency returns a limit of slots for each key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func NewConcurrency(c *conn.Conn, name string, slots int64, opts ...ConcurrencyOptions) (*Concurrency, error) {
	name, o, err := kit.Make(c, "limit: concurrency", name, opts)
	if err != nil {
		return nil, err
	}
	o.Lease = cmp.Or(o.Lease, slotLease)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	switch {
	case slots < 1 || slots > 1<<31-1:
		return nil, kit.Argument("limit: concurrency", name, "it has %d slots; it must have from 1 to %d", slots, 1<<31-1)
	case o.Lease < minLease:
		return nil, kit.Argument("limit: concurrency", name, "Lease is %v; it must be at least %v, or 0 for %v", o.Lease, minLease, slotLease)
	}
	wakeups := wake.Channel{Conn: c, Name: kit.Key(escapeBraces(name), "freed")}
	return &Concurrency{c: c, name: name, slots: slots, opt: o, wakeups: wakeups}, nil
}

// String describes the limit: `concurrency limit "resize" (4 slots, lease 15s; SEM.ACQUIRE of
// ebb)`.
func (q *Concurrency) String() string {
	how := "SEM.ACQUIRE of ebb"
	if !q.native() {
		caps := q.c.Capabilities()
		how = strings.TrimRight("a Lua script on "+caps.Server+" "+caps.Version, " ")
	}
	return fmt.Sprintf("concurrency limit %q (%d slots, lease %v; %s)", q.name, q.slots, q.opt.Lease, how)
}

func (q *Concurrency) native() bool { return !q.scriptsOnly && q.c.Capabilities().Native }

// TryAcquire takes a slot of a key if one is free and no call waits for it. Otherwise it
// returns ErrTaken. ctx bounds the life of the slot: see Acquire.
func (q *Concurrency) TryAcquire(ctx context.Context, key string) (*Slot, error) {
	return q.acquire(ctx, key, false)
}

// Acquire takes a slot of a key, and waits until one is free. Waiting calls get slots in FIFO
// order. The caller must Release the slot.
//
// The slot is renewed while ctx lives. When ctx ends, the slot is released and Slot.Context
// ends. So ctx bounds the life of the slot, and not only the call: a function that returns a
// slot must not cancel the context that it acquired it with. To bound the wait alone, set
// ConcurrencyOptions.UntilRelease.
//
// Errors: the context's, and ebb.ErrUnavailable, because without a backend no slot is given.
func (q *Concurrency) Acquire(ctx context.Context, key string) (*Slot, error) {
	return q.acquire(ctx, key, true)
}

func (q *Concurrency) acquire(ctx context.Context, key string, wait bool) (*Slot, error) {
	s := &Slot{q: q, key: q.key(key), owner: kit.ID(), done: make(chan struct{})}
	err := ctx.Err()
	if err == nil {
		s.startLease(ctx)
		if q.native() {
			err = s.acquireNative(ctx, wait)
		} else {
			err = s.acquireByScript(ctx, wait)
		}
		if err == nil {
			go s.renewLoop(s.lifetime(ctx))
			return s, nil
		}
		s.expiry.Stop()
		s.cancel(err)
	}
	return nil, fmt.Errorf("limit: concurrency %q: acquire %q: %w", q.name, key, err)
}

// Delete removes the data of the given keys at the backend; without keys, of the key "". The holder of a slot
// of such a key gets ErrLost at its next renewal, and waiting callers queue again. The data of other keys
// expires with the leases. Delete costs one round trip for each key.
func (q *Concurrency) Delete(ctx context.Context, of ...string) error {
	if len(of) == 0 {
		of = []string{""}
	}
	for _, k := range of {
		s := &Slot{q: q, key: q.key(k)}
		keys := s.keys()
		if q.native() {
			keys = keys[:1]
		}
		if _, err := q.c.Del(ctx, keys...); err != nil {
			return fmt.Errorf("limit: concurrency %q: delete %q: %w", q.name, k, err)
		}
	}
	return nil
}

// key returns the name of the slots of a key at the backend.
func (q *Concurrency) key(key string) string {
	if key == "" {
		return escapeBraces(q.name)
	}
	return escapeBraces(q.name + ":" + key)
}

func (s *Slot) acquireNative(ctx context.Context, wait bool) error {
	args := []any{"SEM.ACQUIRE", s.key, s.owner, s.q.slots, s.q.opt.Lease.Milliseconds()}
	v, err := s.q.c.Do(ctx, args...)
	if err == nil && v.IsNull() && wait {
		v, err = s.waitNative(ctx, args)
	}
	switch {
	case err != nil:
		s.takeBack(ctx, err)
		return err
	case v.IsNull() && wait:
		return context.DeadlineExceeded
	case v.IsNull():
		return ErrTaken
	}
	s.token = v.Int
	return nil
}

// waitNative waits in the server's line, and renews the slot at once, because the call does not know when its lease began. The
// lease and the slot's context count from that renewal.
func (s *Slot) waitNative(ctx context.Context, args []any) (v conn.Value, err error) {
	for {
		ms := int64(0)
		if d := untilDeadline(ctx); d >= 0 {
			ms = max(1, kit.Millis(d))
		}
		v, err = s.q.c.Block(ctx, append(args[:5:5], "WAIT", ms)...)
		if refused, ok := errors.AsType[conn.ReplyError](err); ok && refused.Code() == "UNBLOCKED" {
			continue
		}
		if err != nil || v.IsNull() {
			return v, err
		}
		s.startLease(ctx)
		if err = s.renew(s.ctx); !errors.Is(err, ErrLost) {
			return v, err
		}
	}
}

// acquireByScript polls by the script: after each wake-up, at the end of a lease if the owner is the first in
// line, and at least every refresh.
func (s *Slot) acquireByScript(ctx context.Context, wait bool) (err error) {
	turn := ""
	var d *wake.Dispatcher
	var w *wake.Waiter
	defer func() {
		if d != nil {
			w.Leave(false)
			d.Close()
		}
		if err != nil && !errors.Is(err, ErrTaken) {
			s.takeBack(ctx, err)
		}
	}()
	for {
		s.startLease(ctx)
		v, err := s.q.c.Script(ctx, slotScript, s.keys(), s.owner, s.q.slots, s.q.opt.Lease.Microseconds(), turn,
			(4 * refresh).Microseconds(), wait,
			s.q.wakeups.Name)
		switch {
		case err != nil:
			return err
		case len(v.Elems) < 3:
			return fmt.Errorf("%w: the reply is %s, want at least 3 values", conn.ErrValue, v)
		case v.Elems[0].Int == 1:
			s.token, err = v.Elems[1].AsInt()
			return err
		case !wait:
			return ErrTaken
		}
		turn = v.Elems[1].String()
		us, _ := v.Elems[2].AsInt()
		pause := max(minPause, min(refresh, time.Duration(us)*time.Microsecond))
		if d == nil {
			d = s.q.wakeups.Open()
			bounded, cancel := context.WithTimeout(ctx, pause)
			_ = d.Ready(bounded) // without a subscription, the call polls
			cancel()
			w = d.Join(s.owner)
			continue // a message may have come before
		}
		if err := await(ctx, w.C, pause); err != nil {
			return err
		}
	}
}

// await waits for a wake-up, but for d at most.
func await(ctx context.Context, woken <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-woken:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// keys returns the KEYS of the scripts.
func (s *Slot) keys() []string {
	return []string{s.key, kit.Key(s.key, "fence"), kit.Key(s.key, "line"), kit.Key(s.key, leasesKey)}
}

// The scripts, for servers without SEM.ACQUIRE. KEYS: the slots, a sorted set of owners by the end of their
// leases in us; the last fencing token; the line; and the lease of each waiter in the line, as at luaLine.

// luaWake publishes the owner that is the first in line. It uses pcall, so that a user without rights to channels gets no error: the
// waiter polls in any case.
const luaWake = `
local function wake(channel)
  local head = redis.call('EXISTS', KEYS[3]) == 1 and first(KEYS[3], KEYS[4])
  if head and head ~= '' then redis.pcall('PUBLISH', channel, head) end
end
`

// slotScript acquires a slot. ARGV: owner, slots, lease in us, the owner's turn in the line or "", its lease
// in the line, whether it waits, the channel. The reply is {1, token, 0} or {0, turn, us to wait}: the first
// in line waits until a lease ends, others for the length of their lease in the line.
var slotScript = conn.NewScript(luaNow + luaLine + luaWake + `
local me, slots, lease, turn = ARGV[1], num(2), num(3), ARGV[4]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. int(now))
local head = redis.call('EXISTS', KEYS[3]) == 1 and first(KEYS[3], KEYS[4])
if (not head or head == me) and redis.call('ZCARD', KEYS[1]) < slots then
  local token = max(now, tonumber(redis.call('GET', KEYS[2]) or 0) + 1)
  redis.call('SET', KEYS[2], int(token), 'PX', int(max(ceil(lease / 1000) + 86400000, redis.call('PTTL', KEYS[2]))))
  redis.call('ZADD', KEYS[1], int(now + lease), me)
  redis.call('PEXPIREAT', KEYS[1], int(ceil((now + lease) / 1000)), redis.call('PTTL', KEYS[1]) > 0 and 'GT' or 'NX')
  redis.call('ZREM', KEYS[3], me)
  redis.call('HDEL', KEYS[4], me)
  if redis.call('ZCARD', KEYS[1]) < slots then wake(ARGV[7]) end
  return {1, int(token), 0}
end
if ARGV[6] == '0' then return {0, 0, 0} end
if turn == '' then
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
  turn = int(max(now, last and tonumber(last) + 1 or 0))
end
redis.call('ZADD', KEYS[3], turn, me)
redis.call('HSET', KEYS[4], me, int(now + num(5)))
redis.call('PEXPIRE', KEYS[3], int(ceil(num(5) / 1000)))
redis.call('PEXPIRE', KEYS[4], int(ceil(num(5) / 1000)))
if redis.call('ZRANK', KEYS[3], me) > 0 then return {0, turn, num(5)} end
local ends = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
return {0, turn, ends and max(0, tonumber(ends) - now) + 1 or 1}
`)

// slotRenew renews a slot. ARGV: owner, lease in us. The reply is 1, or 0 if the slot is lost.
var slotRenew = conn.NewScript(luaNow + `
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends or tonumber(ends) < now then return 0 end
redis.call('ZADD', KEYS[1], int(now + num(2)), ARGV[1])
redis.call('PEXPIREAT', KEYS[1], int(ceil((now + num(2)) / 1000)), 'GT')
redis.call('PEXPIRE', KEYS[2], int(ceil(num(2) / 1000) + 86400000), 'GT')
return 1
`)

// slotRelease releases a slot and leaves the line. ARGV: owner, the channel. The reply is 1, or 0 if the slot
// was lost.
var slotRelease = conn.NewScript(luaNow + luaLine + luaWake + `
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
local n = redis.call('ZREM', KEYS[1], ARGV[1])
wake(ARGV[2])
return n
`)
