package fresh

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

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
// elected, and the ms until a fresh value is stale, else the rest of another program's lease, -1 if there is none.
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
