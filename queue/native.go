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

// native uses ebb's own commands. The key is the queue's name, so that any client can use it with DQ.*. Dead
// letters are in the queue {name}:dead. ebb does not store their reasons: they are in the hash {name}:why,
// for reasonTTL.
type native struct {
	c          *conn.Conn
	name       string
	max        int
	configured *atomic.Bool
}

// reasonTTL is the time for which the reason of a dead letter is kept: longer than operators need to read it.
const reasonTTL = 30 * 24 * time.Hour

func (n *native) deadKey() string   { return kit.Key(n.name, "dead") }
func (n *native) reasonKey() string { return kit.Key(n.name, "why") }

// configure sends the queue its limits. A consumer calls it at its first call, and when a job shows that the
// queue has no limits: a client that deletes the key deletes them too.
func (n *native) configure(ctx context.Context) error {
	_, err := n.c.Do(ctx, "DQ.CONFIG", n.name, "MAXDELIVERIES", n.max, "DEADLETTER", n.deadKey())
	if err == nil {
		n.configured.Store(true)
	}
	return err
}

// addArguments returns the arguments of DQ.ADD behind the key.
func addArguments(p *pushItem, maxLen int64) []any {
	id := cmp.Or(p.id, "*")
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

// nativePushScript adds jobs. ARGV: whether each replaces the job that would be delivered next if the queue
// is full; then, for each, the number of DQ.ADD's arguments, and the arguments. KEYS behind the queue, if
// any: the outcomes of earlier jobs with the same ids.
var nativePushScript = conn.NewScript(`
local reply, i = {}, 2
while i <= #ARGV do
  local add = {'DQ.ADD', KEYS[1]}
  for k = 1, tonumber(ARGV[i]) do add[k + 2] = ARGV[i + k] end
  i = i + 1 + tonumber(ARGV[i])
  local r = redis.pcall(unpack(add))
  while ARGV[1] == '1' and type(r) == 'table' and r.err and string.sub(r.err, 1, 4) == 'FULL' do
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
    if KEYS[#reply + 1] then redis.call('DEL', KEYS[#reply + 1]) end
  else
    table.insert(reply, {1, ''})
  end
end
return reply
`)

func (n *native) push(ctx context.Context, items []pushItem, maxLen int64, drop bool) ([]pushResult, error) {
	if forget := forgets(items); drop || forget {
		return n.pushByScript(ctx, items, maxLen, drop, forget)
	}
	var b conn.Batch
	for i := range items {
		b.Do(append([]any{"DQ.ADD", n.name}, addArguments(&items[i], maxLen)...)...)
	}
	var replies []conn.Value
	var err error
	if len(items) == 1 {
		var v conn.Value
		v, err = n.c.Do(ctx, append([]any{"DQ.ADD", n.name}, addArguments(&items[0], maxLen)...)...)
		if isFull(err) {
			err = nil
		}
		replies = []conn.Value{v}
	} else if maxLen > 0 {
		replies, err = n.c.Tx(ctx, &b) // otherwise later jobs could overtake when room becomes free between two calls
	} else {
		replies, err = n.c.Pipeline(ctx, &b)
	}
	if err != nil {
		return nil, err
	}
	results := make([]pushResult, len(items))
	for i, v := range replies {
		switch err := v.Err(); {
		case isFull(err):
			results[i].state = full
		case err != nil:
			return nil, err
		case v.IsNull():
			results[i] = pushResult{id: items[i].id, state: duplicate}
		default:
			results[i].id = v.String()
		}
	}
	return results, nil
}

func (n *native) pushByScript(ctx context.Context, items []pushItem, maxLen int64, drop, forget bool) ([]pushResult, error) {
	args, keys := []any{drop}, []string{n.name}
	for i := range items {
		if forget {
			keys = append(keys, stateKey(n.name, items[i].id))
		}
		a := addArguments(&items[i], maxLen)
		args = append(append(args, len(a)), a...)
	}
	v, err := n.c.Script(ctx, nativePushScript, keys, args...)
	if err != nil {
		return nil, err
	}
	if len(v.Elems) != len(items) {
		return nil, errorReply("a push", v)
	}
	results := make([]pushResult, len(items))
	for i, e := range v.Elems {
		if len(e.Elems) != 2 {
			return nil, errorReply("a push", e)
		}
		if results[i].state = pushState(e.Elems[0].Int); results[i].state == added {
			results[i].id = e.Elems[1].String()
		} else {
			results[i].id = items[i].id
		}
	}
	return results, nil
}

func isFull(err error) bool { return hasCode(err, "FULL") }

func outOfMemory(err error) bool { return hasCode(err, "OOM") }

func hasCode(err error, code string) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && refused.Code() == code
}

func (n *native) take(ctx context.Context, count int, lease int64) (takeResult, error) {
	return n.pop(ctx, n.c.Do, count, lease)
}

func (n *native) jobsOfReply(v conn.Value) []storedJob {
	jobs, _ := parseJobs(v.Elems)
	return jobs
}

// takeWaiting does the work of take, and waits up to block ms for a job; 0: without a bound.
func (n *native) takeWaiting(ctx context.Context, count int, lease, block int64) (takeResult, error) {
	return n.pop(ctx, n.c.Block, count, lease, "BLOCK", block)
}

func (n *native) pop(ctx context.Context, do func(context.Context, ...any) (conn.Value, error), count int, lease int64, more ...any) (
	t takeResult, err error) {
	if !n.configured.Load() {
		if err := n.configure(ctx); err != nil && !outOfMemory(err) { // the queue does not exist, or enforceLimit sends its limits again
			return t, err
		}
	}
	v, err := do(ctx, append([]any{"DQ.POP", n.name, "COUNT", count, "LEASE", lease}, more...)...)
	if err != nil && !errors.Is(err, conn.ErrNotReplicated) {
		return t, err
	}
	t.wait = -1 // unknown
	jobs, bad := parseJobs(v.Elems)
	if bad != nil {
		return t, bad
	}
	t.jobs, bad = n.enforceLimit(ctx, jobs)
	return t, cmp.Or(err, bad)
}

// enforceLimit handles jobs that exceed the limit of deliveries: it sends the queue its limit again, and
// gives these jobs back, which makes them dead letters. A job that it cannot give back becomes ready after
// its lease. It returns the other jobs, and an error only if there are none.
func (n *native) enforceLimit(ctx context.Context, jobs []storedJob) (kept []storedJob, err error) {
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

func (n *native) boolean(ctx context.Context, args ...any) (bool, error) {
	k, err := n.count(ctx, args...)
	return k == 1, err
}

func (n *native) count(ctx context.Context, args ...any) (int64, error) {
	return kit.Number(n.c.Do(ctx, args...))
}

func (n *native) ack(ctx context.Context, id string, token int64) (bool, error) {
	return n.boolean(ctx, "DQ.ACK", n.name, id, token)
}

func (n *native) extend(ctx context.Context, id string, token, lease int64) (bool, error) {
	return n.boolean(ctx, "DQ.EXTEND", n.name, id, token, lease)
}

// luaLetter returns the id that a job gets as a dead letter now, and the field of its reason. If its id is
// taken, the server adds the instant, in ms, or the first later instant that is free.
const luaLetter = `
local function letter(letters, id)
  local time = redis.call('TIME')
  local died = time[1] * 1000 + math.floor(time[2] / 1000)
  local free, at = id, died
  while redis.call('DQ.GET', letters, free) do
    free = id .. ':' .. string.format('%.0f', at)
    at = at + 1
  end
  return free, free .. '@' .. string.format('%.0f', died)
end
`

// lastNackScript returns a job to the queue after its last delivery, and stores the reason. ARGV: id, token,
// delay, the note, its TTL.
var lastNackScript = conn.NewScript(luaLetter + `
local _, field = letter(KEYS[3], ARGV[1])
local done = redis.call('DQ.NACK', KEYS[1], ARGV[1], ARGV[2], 'DELAY', ARGV[3])
if done == 1 then
  redis.call('HSET', KEYS[2], field, ARGV[4])
  redis.call('HPEXPIRE', KEYS[2], ARGV[5], 'FIELDS', 1, field)
end
return done
`)

func (n *native) nack(ctx context.Context, r *storedJob, delay int64, reason string) (bool, error) {
	if n.max == 0 || r.deliveries < int64(n.max) {
		return n.boolean(ctx, "DQ.NACK", n.name, r.id, r.token, "DELAY", delay)
	}
	return n.scriptBoolean(ctx, lastNackScript, []string{n.name, n.reasonKey(), n.deadKey()},
		r.id, r.token, delay, deadNote(r, reason), reasonTTL.Milliseconds())
}

// deadNote returns the note of a dead letter: its number of deliveries and the reason.
func deadNote(r *storedJob, reason string) string {
	return strconv.FormatInt(r.deliveries, 10) + " " + reason
}

// nativeBuryScript makes a job a dead letter at once. ARGV: id, token, payload, the note, its TTL.
var nativeBuryScript = conn.NewScript(luaLetter + `
if redis.call('DQ.ACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local id, field = letter(KEYS[2], ARGV[1])
redis.call('DQ.ADD', KEYS[2], id, ARGV[3])
redis.call('HSET', KEYS[3], field, ARGV[4])
redis.call('HPEXPIRE', KEYS[3], ARGV[5], 'FIELDS', 1, field)
return 1
`)

func (n *native) bury(ctx context.Context, r *storedJob, reason string) (bool, error) {
	return n.scriptBoolean(ctx, nativeBuryScript, []string{n.name, n.deadKey(), n.reasonKey()},
		r.id, r.token, r.payload, deadNote(r, reason), reasonTTL.Milliseconds())
}

func (n *native) scriptBoolean(ctx context.Context, s *conn.Script, keys []string, args ...any) (bool, error) {
	v, err := n.c.Script(ctx, s, keys, args...)
	if err != nil {
		return false, err
	}
	k, err := v.AsInt()
	return k == 1, err
}

// nativeCancelScript removes jobs, and the outcomes of earlier jobs with their ids. ARGV: ids.
var nativeCancelScript = conn.NewScript(`
local n = 0
for i, id in ipairs(ARGV) do
  if redis.call('DQ.CANCEL', KEYS[1], id) == 1 then
    redis.call('DEL', KEYS[i + 1])
    n = n + 1
  end
end
return n
`)

func (n *native) cancel(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(n.c.Script(ctx, nativeCancelScript, append([]string{n.name}, stateKeys(n.name, ids)...), idArgs(ids)...))
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
	count := func(v conn.Value, key string) int64 { return max(at(v, key), 0) } // 0 if there is no queue
	q, d := replies[0], replies[1]
	i = Info{Delayed: count(q, "delayed"), Ready: count(q, "ready"), Leased: count(q, "leased"), Schedules: count(q, "schedules"),
		Dead: count(d, "ready") + count(d, "delayed") + count(d, "leased"), NextDue: -1, NextOccurrence: -1}
	if i.Paused = count(q, "paused") == 1; i.Paused && count(q, "paused-until") > 0 {
		i.PausedUntil = time.UnixMilli(count(q, "paused-until"))
	}
	i.Lateness = time.Duration(max(at(q, "lateness"), 0)) * time.Millisecond
	if now, ok := serverMillis(replies[2]); ok {
		if due := at(q, "next-due"); due >= 0 {
			i.NextDue = toDuration(max(due-now, 0))
		}
		if due := at(q, "next-schedule"); due >= 0 {
			i.NextOccurrence = toDuration(max(due-now, 0))
		}
	}
	return i, nil
}

// serverMillis returns the ms since 1970 of a reply to TIME.
func serverMillis(v conn.Value) (ms int64, ok bool) {
	if len(v.Elems) != 2 {
		return 0, false
	}
	sec, err := v.Elems[0].AsInt()
	us, err2 := v.Elems[1].AsInt()
	return sec*1000 + us/1000, err == nil && err2 == nil
}

func (n *native) remove(ctx context.Context) error {
	_, err := n.c.Del(ctx, n.name, n.deadKey(), n.reasonKey())
	n.configured.Store(false)
	return err
}

// reasonField returns the field in which ebb 0.6 stored the reason of a dead letter: the id of its job, and
// the instant at which it died, which two jobs of one id may share. The id of a dead letter ends with an
// instant if there was already a dead letter of that id.
func reasonField(id string, died int64) string {
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		if n, err := strconv.ParseInt(id[i+1:], 10, 64); err == nil && n >= died && n < died+1000 {
			id = id[:i]
		}
	}
	return id + "@" + strconv.FormatInt(died, 10)
}

func (n *native) dead(ctx context.Context, limit int, after string) ([]storedLetter, error) {
	args := []any{"DQ.PEEK", n.deadKey(), "COUNT", limit}
	if after != "" {
		args = append(args, "FROM", after)
	}
	v, err := n.c.Do(ctx, args...)
	if err != nil || len(v.Elems) == 0 {
		return nil, withErrNoJob(err)
	}
	found := make([]storedLetter, len(v.Elems))
	ask := []any{"HMGET", n.reasonKey()}
	for i, e := range v.Elems {
		if len(e.Elems) != 5 {
			return nil, errorReply("dead letters", e)
		}
		f := e.Elems
		job := storedJob{id: f[0].String(), payload: f[1].String(), deliveries: f[2].Int, due: f[4].Int}
		found[i] = storedLetter{storedJob: job, reason: leaseOver}
		ask = append(ask, job.id+"@"+strconv.FormatInt(job.due, 10), reasonField(job.id, job.due))
	}
	notes, err := n.c.Do(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if len(notes.Elems) < 2*i+2 {
			break
		}
		v := notes.Elems[2*i]
		if v.IsNull() {
			v = notes.Elems[2*i+1]
		}
		if v.IsNull() {
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

// nativeReviveScript adds dead letters to the queue again. ARGV: ids.
var nativeReviveScript = conn.NewScript(luaGetJob + luaUncounted + `
local n = 0
for _, id in ipairs(ARGV) do
  local j = get(KEYS[2], id)
  if j and redis.call('DQ.ADD', KEYS[1], id, uncounted(j.payload)) then
    redis.call('DQ.CANCEL', KEYS[2], id)
    n = n + 1
  end
end
return n
`)

func (n *native) revive(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(n.c.Script(ctx, nativeReviveScript, []string{n.name, n.deadKey()}, idArgs(ids)...))
}

// nativeDiscardScript removes dead letters, and the outcomes of the same or earlier jobs with their ids.
// ARGV: ids.
var nativeDiscardScript = conn.NewScript(luaGetJob + luaForget + `
local n = 0
for i, id in ipairs(ARGV) do
  local j = get(KEYS[1], id)
  if j then
    redis.call('DQ.CANCEL', KEYS[1], id)
    forget(KEYS[i + 1], j.due)
    n = n + 1
  end
end
return n
`)

func (n *native) discard(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(n.c.Script(ctx, nativeDiscardScript, append([]string{n.deadKey()}, stateKeys(n.name, ids)...), idArgs(ids)...))
}
