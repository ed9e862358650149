package queue

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// native keeps a queue by ebb's own commands: the key is the queue's name, so that
// any client shares it with DQ.*. Dead letters are the queue {name}:dead; what they
// died of, which ebb does not keep, is in the hash {name}:why, for whyTTL.
type native struct {
	c          *conn.Conn
	name       string
	max        int
	configured *atomic.Bool
}

// whyTTL is for how long the reason of a dead letter is kept: longer than an operator takes to
// read dead letters.
const whyTTL = 30 * 24 * time.Hour

func (n *native) deadKey() string { return kit.Key(n.name, "dead") }
func (n *native) whyKey() string  { return kit.Key(n.name, "why") }

// configure sends the queue its limits. Consumers call it at their first call, and when a job
// shows that the queue has no limits: a client that deletes the key deletes them.
func (n *native) configure(ctx context.Context) error {
	_, err := n.c.Do(ctx, "DQ.CONFIG", n.name, "MAXDELIVERIES", n.max, "DEADLETTER", n.deadKey())
	if err == nil {
		n.configured.Store(true)
	}
	return err
}

// addArgs are the arguments of DQ.ADD behind the key.
func addArgs(p *pushItem, maxLen int64) []any {
	id := p.id
	if id == "" {
		id = "*"
	}
	args := []any{id, p.payload}
	switch {
	case p.at > 0:
		args = append(args, "AT", p.at)
	case p.delay > 0:
		args = append(args, "DELAY", p.delay)
	}
	if maxLen > 0 {
		args = append(args, "MAXLEN", maxLen)
	}
	if p.priority > 0 {
		args = append(args, "PRIORITY", p.priority)
	}
	if p.ttl > 0 {
		args = append(args, "EXPIRE", p.ttl)
	}
	if p.unique > 0 {
		args = append(args, "UNIQUE", p.unique)
	}
	if p.replace {
		args = append(args, "REPLACE")
	}
	return args
}

// dropScript adds jobs, each in the place of the next if there is no room: ARGV
// holds DQ.ADD's arguments for each, behind their number.
var dropScript = conn.NewScript(`
local reply, i = {}, 1
while i <= #ARGV do
  local add = {'DQ.ADD', KEYS[1]}
  for k = 1, tonumber(ARGV[i]) do add[k + 2] = ARGV[i + k] end
  i = i + 1 + tonumber(ARGV[i])
  local r = redis.pcall(unpack(add))
  while type(r) == 'table' and r.err and string.sub(r.err, 1, 4) == 'FULL' do
    local next = redis.call('DQ.PEEK', KEYS[1])[1]
    if not next then break end
    redis.call('DQ.CANCEL', KEYS[1], next[1])
    r = redis.pcall(unpack(add))
  end
  if type(r) == 'table' and r.err then
    if string.sub(r.err, 1, 4) ~= 'FULL' then return r end
    table.insert(reply, {2, ''})
  elseif r then
    table.insert(reply, {0, r})
  else
    table.insert(reply, {1, ''})
  end
end
return reply
`)

func (n *native) push(ctx context.Context, items []pushItem, maxLen int64, drop bool) ([]pushed, error) {
	if drop {
		return n.pushDropping(ctx, items, maxLen)
	}
	var b conn.Batch
	for i := range items {
		b.Do(append([]any{"DQ.ADD", n.name}, addArgs(&items[i], maxLen)...)...)
	}
	var replies []conn.Value
	var err error
	if len(items) == 1 {
		var v conn.Value
		v, err = n.c.Do(ctx, append([]any{"DQ.ADD", n.name}, addArgs(&items[0], maxLen)...)...)
		if isFull(err) {
			err = nil
		}
		replies = []conn.Value{v}
	} else if maxLen > 0 {
		replies, err = n.c.Tx(ctx, &b) // with room made in between, later ones would overtake
	} else {
		replies, err = n.c.Pipeline(ctx, &b)
	}
	if err != nil {
		return nil, err
	}
	results := make([]pushed, len(items))
	for i, v := range replies {
		switch err := v.Err(); {
		case isFull(err):
			results[i].state = full
		case err != nil:
			return nil, err
		case v.IsNull():
			results[i] = pushed{id: items[i].id, state: duplicate}
		default:
			results[i].id = v.String()
		}
	}
	return results, nil
}

func (n *native) pushDropping(ctx context.Context, items []pushItem, maxLen int64) ([]pushed, error) {
	var args []any
	for i := range items {
		a := addArgs(&items[i], maxLen)
		args = append(append(args, len(a)), a...)
	}
	v, err := n.c.Script(ctx, dropScript, []string{n.name}, args...)
	if err != nil {
		return nil, err
	}
	if len(v.Elems) != len(items) {
		return nil, unreadable("a push", v)
	}
	results := make([]pushed, len(items))
	for i, e := range v.Elems {
		if len(e.Elems) != 2 {
			return nil, unreadable("a push", e)
		}
		if results[i].state = pushState(e.Elems[0].Int); results[i].state == added {
			results[i].id = e.Elems[1].String()
		} else {
			results[i].id = items[i].id
		}
	}
	return results, nil
}

func isFull(err error) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && refused.Code() == "FULL"
}

func (n *native) take(ctx context.Context, count int, lease int64) (taken, error) {
	return n.pop(ctx, n.c.Do, count, lease)
}

func (n *native) late(v conn.Value) []raw {
	jobs, _ := rawJobs(v.Elems)
	return jobs
}

// takeWaiting is take that waits up to block ms for a job; 0 for ever.
func (n *native) takeWaiting(ctx context.Context, count int, lease, block int64) (taken, error) {
	return n.pop(ctx, n.c.Block, count, lease, "BLOCK", block)
}

func (n *native) pop(ctx context.Context, do func(context.Context, ...any) (conn.Value, error), count int, lease int64, more ...any) (t taken, err error) {
	if !n.configured.Load() {
		if err := n.configure(ctx); err != nil {
			return t, err
		}
	}
	v, err := do(ctx, append([]any{"DQ.POP", n.name, "COUNT", count, "LEASE", lease}, more...)...)
	if err != nil && !errors.Is(err, conn.ErrNotReplicated) {
		return t, err
	}
	t.wait = -1 // unknown
	jobs, bad := rawJobs(v.Elems)
	if bad != nil {
		return t, bad
	}
	t.jobs, bad = n.enforce(ctx, jobs)
	return t, cmp.Or(err, bad)
}

// enforce sends the queue its limit, and returns the jobs that exceed it, which become dead
// letters. A job that it cannot return becomes ready after its lease. It returns the others, and an error only without any.
func (n *native) enforce(ctx context.Context, jobs []raw) (kept []raw, err error) {
	for _, r := range jobs {
		if n.max == 0 || r.deliveries <= int64(n.max) {
			kept = append(kept, r)
			continue
		}
		if err = n.configure(ctx); err == nil {
			_, err = n.c.Do(ctx, "DQ.NACK", n.name, r.id, r.token)
		}
	}
	if len(kept) > 0 {
		err = nil
	}
	return kept, err
}

func (n *native) truth(ctx context.Context, args ...any) (bool, error) {
	k, err := n.count(ctx, args...)
	return k == 1, err
}

func (n *native) count(ctx context.Context, args ...any) (int64, error) {
	v, err := n.c.Do(ctx, args...)
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

func (n *native) ack(ctx context.Context, id string, token int64) (bool, error) {
	return n.truth(ctx, "DQ.ACK", n.name, id, token)
}

func (n *native) extend(ctx context.Context, id string, token, lease int64) (bool, error) {
	return n.truth(ctx, "DQ.EXTEND", n.name, id, token, lease)
}

// lastNackScript gives a job back for the last time, and notes why: ARGV id, token,
// delay, the note, its TTL.
var lastNackScript = conn.NewScript(`
local done = redis.call('DQ.NACK', KEYS[1], ARGV[1], ARGV[2], 'DELAY', ARGV[3])
if done == 1 then
  local time = redis.call('TIME')
  local field = ARGV[1] .. '@' .. string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[2], field, ARGV[4])
  redis.call('HPEXPIRE', KEYS[2], ARGV[5], 'FIELDS', 1, field)
end
return done
`)

func (n *native) nack(ctx context.Context, r *raw, delay int64, reason string) (bool, error) {
	if n.max == 0 || r.deliveries < int64(n.max) {
		return n.truth(ctx, "DQ.NACK", n.name, r.id, r.token, "DELAY", delay)
	}
	return n.scriptTruth(ctx, lastNackScript, []string{n.name, n.whyKey()},
		r.id, r.token, delay, note(r, reason), whyTTL.Milliseconds())
}

// note is what is noted of a dead letter.
func note(r *raw, reason string) string {
	return strconv.FormatInt(r.deliveries, 10) + " " + reason
}

// nativeBuryScript makes a job a dead letter at once: ARGV id, token, payload, the note, its TTL.
var nativeBuryScript = conn.NewScript(`
if redis.call('DQ.ACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local id, time = ARGV[1], redis.call('TIME')
local died = time[1] * 1000 + math.floor(time[2] / 1000)
local at = died
while not redis.call('DQ.ADD', KEYS[2], id, ARGV[3]) do
  id = ARGV[1] .. ':' .. string.format('%.0f', at)
  at = at + 1
end
local field = ARGV[1] .. '@' .. string.format('%.0f', died)
redis.call('HSET', KEYS[3], field, ARGV[4])
redis.call('HPEXPIRE', KEYS[3], ARGV[5], 'FIELDS', 1, field)
return 1
`)

func (n *native) bury(ctx context.Context, r *raw, reason string) (bool, error) {
	return n.scriptTruth(ctx, nativeBuryScript, []string{n.name, n.deadKey(), n.whyKey()},
		r.id, r.token, r.payload, note(r, reason), whyTTL.Milliseconds())
}

func (n *native) scriptTruth(ctx context.Context, s *conn.Script, keys []string, args ...any) (bool, error) {
	v, err := n.c.Script(ctx, s, keys, args...)
	if err != nil {
		return false, err
	}
	k, err := v.AsInt()
	return k == 1, err
}

func (n *native) cancel(ctx context.Context, ids []string) (int64, error) {
	return n.count(ctx, append([]any{"DQ.CANCEL", n.name}, list(ids)...)...)
}

func (n *native) info(ctx context.Context) (i Info, err error) {
	var b conn.Batch
	b.Do("DQ.INFO", n.name)
	b.Do("DQ.INFO", n.deadKey())
	b.Do("TIME")
	replies, err := n.c.Pipeline(ctx, &b)
	if err != nil {
		return i, err
	}
	for _, v := range replies {
		if err := v.Err(); err != nil {
			return i, err
		}
	}
	at := func(v conn.Value, key string) int64 {
		e, _ := v.Get(key)
		k, err := e.AsInt()
		if err != nil {
			return -1
		}
		return k
	}
	count := func(v conn.Value, key string) int64 { return max(at(v, key), 0) } // nothing where there is no queue
	q, d := replies[0], replies[1]
	i = Info{Delayed: count(q, "delayed"), Ready: count(q, "ready"), Leased: count(q, "leased"), Schedules: count(q, "schedules"),
		Dead: count(d, "ready") + count(d, "delayed") + count(d, "leased"), NextDue: -1, NextOccurrence: -1}
	if i.Paused = count(q, "paused") == 1; i.Paused && count(q, "paused-until") > 0 {
		i.PausedUntil = time.UnixMilli(count(q, "paused-until"))
	}
	i.Lateness = time.Duration(max(at(q, "lateness"), 0)) * time.Millisecond
	if now, ok := timeOf(replies[2]); ok {
		if due := at(q, "next-due"); due >= 0 {
			i.NextDue = span(max(due-now, 0))
		}
		if due := at(q, "next-schedule"); due >= 0 {
			i.NextOccurrence = span(max(due-now, 0))
		}
	}
	return i, nil
}

// timeOf is the reply of TIME in ms since 1970.
func timeOf(v conn.Value) (ms int64, ok bool) {
	if len(v.Elems) != 2 {
		return 0, false
	}
	sec, err := v.Elems[0].AsInt()
	us, err2 := v.Elems[1].AsInt()
	return sec*1000 + us/1000, err == nil && err2 == nil
}

func (n *native) remove(ctx context.Context) error {
	_, err := n.c.Del(ctx, n.name, n.deadKey(), n.whyKey())
	n.configured.Store(false)
	return err
}

// whyField is where the reason of a dead letter is noted: by the id that the job had,
// which is followed by an instant if there was such a letter already, and by when it
// died, since several jobs of an id may die one after the other.
func whyField(id string, died int64) string {
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		if n, err := strconv.ParseInt(id[i+1:], 10, 64); err == nil && n >= died && n < died+1000 {
			id = id[:i]
		}
	}
	return id + "@" + strconv.FormatInt(died, 10)
}

func (n *native) dead(ctx context.Context, most int, after string) ([]deadRaw, error) {
	args := []any{"DQ.PEEK", n.deadKey(), "COUNT", most}
	if after != "" {
		args = append(args, "FROM", after)
	}
	v, err := n.c.Do(ctx, args...)
	if err != nil || len(v.Elems) == 0 {
		return nil, noJob(err)
	}
	found := make([]deadRaw, len(v.Elems))
	ask := []any{"HMGET", n.whyKey()}
	for i, e := range v.Elems {
		if len(e.Elems) != 5 {
			return nil, unreadable("dead letters", e)
		}
		f := e.Elems
		found[i] = deadRaw{raw: raw{id: f[0].String(), payload: f[1].String(), deliveries: f[2].Int, due: f[4].Int}, reason: leaseOver}
		ask = append(ask, whyField(f[0].String(), f[4].Int))
	}
	notes, err := n.c.Do(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for i, v := range notes.Elems {
		if v.IsNull() || i >= len(found) {
			continue
		}
		count, reason, _ := strings.Cut(v.String(), " ")
		found[i].reason = reason
		if k, err := strconv.ParseInt(count, 10, 64); err == nil {
			found[i].deliveries = k
		}
	}
	return found, nil
}

// nativeReviveScript adds dead letters to the queue again: ARGV ids.
var nativeReviveScript = conn.NewScript(getJob + `
local n = 0
for _, id in ipairs(ARGV) do
  local j = get(KEYS[2], id)
  if j and redis.call('DQ.ADD', KEYS[1], id, j.payload) then
    redis.call('DQ.CANCEL', KEYS[2], id)
    n = n + 1
  end
end
return n
`)

func (n *native) revive(ctx context.Context, ids []string) (int64, error) {
	v, err := n.c.Script(ctx, nativeReviveScript, []string{n.name, n.deadKey()}, list(ids)...)
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

func (n *native) discard(ctx context.Context, ids []string) (int64, error) {
	return n.count(ctx, append([]any{"DQ.CANCEL", n.deadKey()}, list(ids)...)...)
}
