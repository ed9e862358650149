// Package fresh keeps values with an elected loader at a backend: what packages cache and lock
// share.
//
//	Look ─▶ Fresh            the value
//	     ─▶ Stale or Absent  with a Token: the caller is the one that makes the next value,
//	                         under a lease; without one another program is, or none was elected
//
// Invariants: a key has at most one valid token; Set with a token stores only while the token
// is valid; and every other change through this package ends the token.
//
// On ebb a value is a string with FRESH, and Look is GETFRESH. On other servers it is a string with a
// head of 16 bytes (version, fresh deadline in ms), the lease is the key "<key>:load", and each
// operation is one script in the server's time.
//
// Start reading at Backend.
package fresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// State says how old a value is.
type State int

// These are the states.
const (
	Absent State = iota // there is no value
	Fresh               // the value is fresh
	Stale               // the value is stale
)

// Entry is the state of a key on the backend.
type Entry struct {
	State State
	Body  string        // the value, without a State of Absent; "" if it is not one of this package
	Token string        // of a caller that was elected
	Left  time.Duration // until a fresh value is stale; conn.Forever: never
	Wait  time.Duration // what is left of another program's lease
	Held  bool          // another program has a lease
}

// Backend is one of the two layouts. A body is never empty. A key has a hash tag that its other keys share.
type Backend interface {
	// Look reads an entry. With a lease above 0 the caller can be elected. After temporary errors it sends the
	// request again, up to tries in all.
	Look(ctx context.Context, key string, lease time.Duration, tries int) (Entry, error)
	// Await is Look for a missing entry that another program makes: it returns after a change, or a while. n is
	// the number of calls before.
	Await(ctx context.Context, key string, lease time.Duration, n int) (Entry, error)
	// Renew renews a lease, and reports whether the token was still the key's.
	Renew(ctx context.Context, key, token string, lease time.Duration) (bool, error)
	// Release gives a lease up.
	Release(ctx context.Context, key, token string) error
	// Set stores an entry, which is fresh for a span and gone after ttl; a span of 0: fresh until it is gone. With a
	// token it does so only if the token is still the key's, and reports that.
	Set(ctx context.Context, key, body, token string, span, ttl time.Duration) (bool, error)
	// Stale makes entries stale.
	Stale(ctx context.Context, keys []string) error
	// Remove removes entries and ends their leases.
	Remove(ctx context.Context, keys []string) error
	// Discard removes an entry, and ends its lease, if its body is still that one.
	Discard(ctx context.Context, key, body string) error
}

// On returns the layout of a backend: that of ebb's own commands where it has them, unless scripts is set.
func On(c *conn.Conn, scripts bool) Backend {
	if c.Capabilities().Native && !scripts {
		return onEbb{c}
	}
	return byScript{c}
}

// onEbb is the layout of ebb's own commands.
type onEbb struct{ c *conn.Conn }

func (b onEbb) Look(ctx context.Context, key string, lease time.Duration, tries int) (Entry, error) {
	return b.get(ctx, key, conn.FreshOptions{Lease: lease}, tries)
}

// The pauses between two tries of a request.
const firstPause, lastPause = 5 * time.Millisecond, 100 * time.Millisecond

// repeat calls fn until it is answered, up to tries times.
func repeat(ctx context.Context, tries int, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !conn.Temporary(err) || n+1 >= tries || kit.Sleep(ctx, kit.Backoff(firstPause, lastPause, n)) != nil {
			return err
		}
	}
}

// unsure reports whether a request that failed may have elected the caller. One that found no server has not.
func unsure(ctx context.Context, err error) bool {
	var op *net.OpError
	return err != nil && (ctx.Err() != nil || conn.Temporary(err)) && !(errors.As(err, &op) && op.Op == "dial")
}

// awaitFor is the time that one command waits; the next begins behind the waiters that came meanwhile.
const awaitFor = 10 * time.Second

func (b onEbb) Await(ctx context.Context, key string, lease time.Duration, _ int) (Entry, error) {
	return b.get(ctx, key, conn.FreshOptions{Lease: lease, Wait: awaitFor}, 1)
}

// get requests the value under an owner's name that is new, so that it can repeat the request, and give back a lease that it got
// without a reply. It needs no name for an embedded engine, which gives no lease to a client that gets no reply.
func (b onEbb) get(ctx context.Context, key string, o conn.FreshOptions, tries int) (Entry, error) {
	if o.Lease > 0 && !b.c.Capabilities().Embedded {
		o.Owner = kit.ID()
	}
	var f conn.Fresh
	maybe := false
	err := repeat(ctx, tries, func() (err error) {
		f, err = b.c.GetFresh(ctx, key, o)
		maybe = maybe || unsure(ctx, err)
		return err
	})
	if err != nil {
		if o.Owner != "" && maybe {
			_ = kit.ReleaseBriefly(ctx, err, conn.Temporary, func(ctx context.Context) error {
				_, err := b.c.UnleaseOwner(ctx, key, o.Owner)
				return err
			})
		}
		return Entry{}, err
	}
	l := Entry{Body: f.Value}
	switch f.State {
	case "fresh":
		l.State, l.Left = Fresh, f.For
	case "stale":
		l.State = Stale
	case "refresh":
		l.Token = strconv.FormatInt(f.Token, 10)
		if f.Found {
			l.State = Stale
		}
	default:
		l.Wait, l.Held = f.For, f.For != conn.Forever
	}
	return l, nil
}

func number(token string) int64 {
	n, _ := strconv.ParseInt(token, 10, 64) // it was made of a number
	return n
}

func (b onEbb) Renew(ctx context.Context, key, token string, lease time.Duration) (bool, error) {
	f, err := b.c.GetFresh(ctx, key, conn.FreshOptions{Lease: lease, Token: number(token)})
	return f.State == "refresh", err
}

func (b onEbb) Release(ctx context.Context, key, token string) error {
	_, err := b.c.Unlease(ctx, key, number(token))
	return err
}

func (b onEbb) Set(ctx context.Context, key, body, token string, span, ttl time.Duration) (bool, error) {
	o := conn.SetOptions{TTL: ttl, Fresh: span}
	if token != "" {
		o.Token = number(token)
	}
	err := b.c.Set(ctx, key, body, o)
	if errors.Is(err, conn.ErrNotSet) {
		return false, nil
	}
	return err == nil, err
}

func (b onEbb) Stale(ctx context.Context, keys []string) error {
	var batch conn.Batch
	for _, key := range keys {
		batch.Do("STALE", key)
	}
	return all(b.c.Pipeline(ctx, &batch))
}

func (b onEbb) Remove(ctx context.Context, keys []string) error {
	var batch conn.Batch
	for _, key := range keys {
		batch.Do("DEL", key)
	}
	return all(b.c.Pipeline(ctx, &batch))
}

func (b onEbb) Discard(ctx context.Context, key, body string) error {
	_, err := b.c.Do(ctx, "DELEX", key, "IFEQ", body)
	return err
}

func all(replies []conn.Value, err error) error {
	for _, v := range replies {
		if err == nil {
			err = v.Err()
		}
	}
	return err
}

// byScript is the layout of other servers.
type byScript struct{ c *conn.Conn }

const prelude = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// split returns the fresh deadline and the body of an entry. A value without a head is another program's: it counts as fresh, with
// an empty body.
const split = `
local function split(entry)
  local head = string.match(entry, '^1(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)')
  if not head then return math.huge, '' end
  return tonumber(head), string.sub(entry, 17)
end
`

// lookScript returns the state (0 absent, 1 fresh, 2 stale), the entry without its head, 1 if the caller was
// elected, and the ms until a fresh value is stale, else what is left of another program's lease, -1 if there is none.
// A request that is repeated with its token is elected again.
var lookScript = conn.NewScript(prelude + split + `
local entry, state, body = redis.call('GET', KEYS[1]), 0, false
if entry then
  local deadline
  deadline, body = split(entry)
  if deadline >= now then return {1, body, 0, math.min(deadline - now, 2^43)} end
  state = 2
end
local holder = redis.call('GET', KEYS[2])
if ARGV[1] ~= '0' and (not holder or holder == ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[1])
  return {state, body, 1, -1}
end
return {state, body, 0, holder and redis.call('PTTL', KEYS[2]) or -1}
`)

var setScript = conn.NewScript(prelude + `
if ARGV[2] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], '1' .. string.format('%015.0f', now + ARGV[3]) .. ARGV[1], 'PX', ARGV[4])
redis.call('DEL', KEYS[2])
return 1
`)

var (
	renewScript   = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseScript = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	discardScript = conn.NewScript(split + `
local entry = redis.call('GET', KEYS[1])
if not entry then return 0 end
local _, body = split(entry)
if body ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1], KEYS[2])
`)
	staleScript = conn.NewScript(`
redis.call('DEL', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('SETRANGE', KEYS[1], 1, '000000000000000')
return 1
`)
)

// loadKey is the key of the lease; entries and leases of a key share a slot.
func loadKey(key string) string { return key + ":load" }

func (b byScript) Look(ctx context.Context, key string, lease time.Duration, tries int) (Entry, error) {
	span, id := int64(0), ""
	if lease > 0 {
		span, id = kit.Millis(lease), kit.ID()
	}
	var v conn.Value
	maybe := false
	err := repeat(ctx, tries, func() (err error) {
		v, err = b.c.Script(ctx, lookScript, []string{key, loadKey(key)}, span, id)
		maybe = maybe || unsure(ctx, err)
		return err
	})
	if err == nil && len(v.Elems) != 4 {
		err = fmt.Errorf("%w: the script replied with %v; it should reply with four elements", conn.ErrValue, v)
	}
	if err != nil {
		if id != "" && maybe {
			b.takeBack(ctx, key, id, err)
		}
		return Entry{}, err
	}
	l := Entry{State: State(v.Elems[0].Int), Body: v.Elems[1].Str}
	if v.Elems[2].Int == 1 {
		l.Token = id
	}
	ms := v.Elems[3].Int
	switch {
	case l.State == Fresh:
		l.Left = time.Duration(ms) * time.Millisecond
	case ms >= 0:
		l.Wait, l.Held = time.Duration(ms)*time.Millisecond, true
	}
	return l, nil
}

// takeBack gives up a lease that the caller may have without its knowing.
func (b byScript) takeBack(ctx context.Context, key, id string, failed error) {
	_ = kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error { return b.Release(ctx, key, id) })
}

const (
	// The pauses in which a value is looked for that another program loads.
	firstLook, lastLook = 2 * time.Millisecond, 50 * time.Millisecond
)

func (b byScript) Await(ctx context.Context, key string, lease time.Duration, n int) (Entry, error) {
	if err := kit.Sleep(ctx, kit.Backoff(firstLook, lastLook, n)); err != nil {
		return Entry{}, err
	}
	return b.Look(ctx, key, lease, 1)
}

func (b byScript) Renew(ctx context.Context, key, token string, lease time.Duration) (bool, error) {
	v, err := b.c.Script(ctx, renewScript, []string{loadKey(key)}, token, kit.Millis(lease))
	return v.Int == 1, err
}

func (b byScript) Release(ctx context.Context, key, token string) error {
	_, err := b.c.Script(ctx, releaseScript, []string{loadKey(key)}, token)
	return err
}

func (b byScript) Set(ctx context.Context, key, body, token string, span, ttl time.Duration) (bool, error) {
	span = cmp.Or(span, ttl)
	v, err := b.c.Script(ctx, setScript, []string{key, loadKey(key)}, body, token, kit.Millis(span), kit.Millis(ttl))
	return v.Int == 1, err
}

func (b byScript) Stale(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if _, err := b.c.Script(ctx, staleScript, []string{key, loadKey(key)}); err != nil {
			return err
		}
	}
	return nil
}

func (b byScript) Discard(ctx context.Context, key, body string) error {
	_, err := b.c.Script(ctx, discardScript, []string{key, loadKey(key)}, body)
	return err
}

func (b byScript) Remove(ctx context.Context, keys []string) error {
	var batch conn.Batch
	for _, key := range keys {
		batch.Do("DEL", key, loadKey(key))
	}
	return all(b.c.Pipeline(ctx, &batch))
}
