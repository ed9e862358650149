package expmap

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/layouts"
)

// A script is a layout and an operation. The layout gives the operation these
// functions:
//
//	look(f)         the value of a living entry, as it is stored, or false
//	put(f, v, ttl)  sets an entry to live for ttl ms, 0 for ever, but no longer than
//	                idle ms without a touch
//	touch(f, v)     reads count as use
//	setDeadline(f, v, ttl) lets a living entry live for another ttl ms, 0 for ever
//	left(f)         ms that a living entry has, -1 for ever
//	drop(f)         removes one
//	living()        how many live
//	full(n, f)      whether n new entries do not fit; with an eviction it removes others first,
//	                and none whose field is a key of the table f, which may be nil
//	done(reply)     what a script that has called full returns: the reply, or, if full has removed
//	                entries, an array of the reply and their number
//	sweep(n)        removes up to n of the dead
//	page(c, n)      some living entries from a cursor on: the next one, f, v, f, v ...
//	next()          ms until a deadline is over, -1 if there is none
//	clear()         removes all
//	seal()          ends a script that may have written; dirty says that a deadline or a
//	                key's existence may have changed
//
// Scripts that replace values also have these:
//
//	bare(v)         the value in what look returned, as the codec made it
//	keep(f, v, new) replaces the value of a living entry, which look returned as v;
//	                its deadline stays, and it counts as use
//	rewrite(f, raw) replaces what the hash stores for a living entry, and nothing else
//	plain           whether what the hash stores is the value alone
//
// used is the sorted set of the last use of each field, false without an eviction. KEYS are the
// layout's, then a marker of GetOrLoad. ARGV are the header's, then the operation's.
type layout struct {
	set, get, del, ttl, setDeadline, length, page, sweep, clear, finish *conn.Script
	setMany, swap, swapDel, add, peek                                   *conn.Script
}

// newLayout returns a layout. limits are the functions for scripts that add entries, or with an eviction
// count uses.
func newLayout(prelude, limits, changes string, evicts bool) *layout {
	script := func(op string) *conn.Script { return conn.NewScript(header + prelude + op) }
	changes = limits + changes
	uses := ""
	if evicts {
		uses = limits
	}
	return &layout{
		set: script(limits + opSet), get: script(uses + opGet), peek: script(uses + opPeek),
		del: script(opDel), ttl: script(opTTL), setDeadline: script(uses + opSetDeadline), length: script(opLen),
		page: script(opPage), sweep: script(opSweep), clear: script(opClear), finish: script(limits + opFinish + opSet),
		setMany: script(limits + opSetMany), swap: script(changes + opSwap), swapDel: script(changes + opSwapDel), add: script(changes + opAdd),
	}
}

var (
	fieldsLayout = newLayout(wrapped+fieldsPrelude, refuseFull, fieldsRewrite+wrappedChanges, false)
	zsetLayout   = newLayout(zsetPrelude+wrapped+zsetMark, refuseFull, plainRewrite+wrappedChanges, false)

	evictingFieldsLayout = newLayout(wrapped+fieldsPrelude, optionLimits+evict+fieldsEvict, fieldsRewrite+wrappedChanges, true)
	evictingZsetLayout   = newLayout(zsetPrelude+wrapped+zsetMark, optionLimits+evict, plainRewrite+wrappedChanges, true)
)

// layoutOf returns the layout of another library. Its scripts are made once.
func layoutOf(other *layouts.Map) *layout {
	return other.Scripts(func(l layouts.Lua) any {
		return newLayout(l.Prelude, l.Limits+evict, plainRewrite+l.Changes, true)
	}).(*layout)
}

// header reads the common arguments: the idle TTL; the limit of entries; the number of expired entries that a
// script removes first; the number of events to keep; their lifetime; the map's name in the index of its
// family; whether the server is ebb; and the eviction.
const header = `
local idle, maxlen, bound = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local events, grace, name, first = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], 9
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local map, dirty = KEYS[1], false
local function int(n) return string.format('%.0f', n) end
`

// wrapped is common to two layouts: in a map with an idle TTL a value is its absolute deadline (ms since 1970, 0 for none), a colon, and
// the value. mark sets the deadline of a field; 0 removes it.
const wrapped = `
local mark
local function sooner(hard)
  if idle > 0 and (hard == 0 or now + idle < hard) then return now + idle end
  return hard
end
local function put(f, v, ttl)
  local hard = 0
  if ttl > 0 then hard = now + ttl end
  if idle > 0 then v = int(hard) .. ':' .. v end
  redis.call('HSET', map, f, v)
  mark(f, sooner(hard))
end
local function touch(f, v)
  if idle > 0 then mark(f, sooner(tonumber(string.match(v, '^%d+') or '0'))) end
end
local function setDeadline(f, v, ttl)
  if idle > 0 then
    local colon = string.find(v, ':', 1, true)
    if colon then v = string.sub(v, colon + 1) end
    return put(f, v, ttl)
  end
  if ttl > 0 then mark(f, now + ttl) else mark(f, 0) end
end
`

// fieldsPrelude is for servers whose hash fields have deadlines. HLEN may count expired fields there, except
// on ebb; HKEYS does not. A deadline of the current millisecond, which an entry of a map with an idle TTL may
// have, would remove the entry if it were set again.
const fieldsPrelude = `
local used = ARGV[8] ~= '' and KEYS[2]
mark = function(f, at)
  if at > now then redis.call('HPEXPIREAT', map, int(at), 'FIELDS', 1, f)
  elseif at == 0 then redis.call('HPERSIST', map, 'FIELDS', 1, f) end
end
local function look(f) return redis.call('HGET', map, f) end
local function left(f) return redis.call('HPTTL', map, 'FIELDS', 1, f)[1] end
local function drop(f)
  redis.call('HDEL', map, f)
  if used then redis.call('ZREM', used, f) end
end
local function living()
  local n = redis.call('HLEN', map)
  if ARGV[7] == '1' or maxlen > 0 and n < maxlen then return n end
  return #redis.call('HKEYS', map)
end
local function sweep(n) return 0 end
local function page(cursor, n) return redis.call('HSCAN', map, cursor, 'COUNT', n) end
local function next() return -1 end
local function clear() redis.call('UNLINK', map, used or map) end
local function seal() end
`

// zsetPrelude keeps the deadlines beside the hash: KEYS are the hash, the deadlines,
// the stream of events, and the index of a family. The first two end by themselves after the
// last deadline if all entries have one, with events the grace later, and the index
// the grace after the last one that it knows: a sweeping call must find it. A read leaves the
// keys as they are, so that it does not change copies of values in other processes.
const zsetPrelude = `
local due, stream, index, used = KEYS[2], KEYS[3], KEYS[4], ARGV[8] ~= '' and KEYS[5]
local told = false
local function bury(f, deadline)
  dirty = true
  if events > 0 then
    local v = redis.call('HGET', map, f)
    if v then
      local told_of = {'deadline', deadline, 'fired-at', int(now)}
      if #v <= 1048576 then told_of = {'value', v, unpack(told_of)} end
      redis.call('XADD', stream, 'MAXLEN', '~', int(events), '*', 'key', map, 'item', f, unpack(told_of))
      told = true
    end
  end
  redis.call('HDEL', map, f)
  redis.call('ZREM', due, f)
  if used then redis.call('ZREM', used, f) end
end
local function look(f)
  local deadline = redis.call('ZSCORE', due, f)
  if deadline and tonumber(deadline) < now then
    bury(f, deadline)
    return false
  end
  return redis.call('HGET', map, f)
end
local function left(f)
  local deadline = redis.call('ZSCORE', due, f)
  if deadline then return tonumber(deadline) - now end
  return -1
end
local function drop(f)
  dirty = true
  redis.call('HDEL', map, f)
  redis.call('ZREM', due, f)
  if used then redis.call('ZREM', used, f) end
end
local function living()
  return redis.call('HLEN', map) - redis.call('ZCOUNT', due, '-inf', '(' .. int(now))
end
local function sweep(n)
  local dead = redis.call('ZRANGEBYSCORE', due, '-inf', '(' .. int(now), 'WITHSCORES', 'LIMIT', 0, n)
  for i = 1, #dead, 2 do bury(dead[i], dead[i + 1]) end
  return #dead / 2
end
local function page(cursor, n)
  local found = redis.call('HSCAN', map, cursor, 'COUNT', n)
  local some = {}
  for i = 1, #found[2], 2 do
    local deadline = redis.call('ZSCORE', due, found[2][i])
    if not deadline or tonumber(deadline) >= now then
      some[#some + 1] = found[2][i]
      some[#some + 1] = found[2][i + 1]
    end
  end
  return {found[1], some}
end
local function next()
  local head = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  if not head[1] then return -1 end
  return math.max(tonumber(head[2]) - now + 1, 0)
end
local function clear() redis.call('UNLINK', map, due, used or map) end
local function seal()
  if not dirty then return end
  if told then redis.call('PEXPIRE', stream, int(grace)) end
  local n = redis.call('ZCARD', due)
  if n > 0 and n == redis.call('HLEN', map) then
    local last = redis.call('ZRANGE', due, -1, -1, 'WITHSCORES')
    local at = tonumber(last[2]) + 1
    if events > 0 then at = at + grace end
    at = int(at)
    redis.call('PEXPIREAT', map, at)
    redis.call('PEXPIREAT', due, at)
    if used then redis.call('PEXPIREAT', used, at) end
  else
    redis.call('PERSIST', map)
    redis.call('PERSIST', due)
    if used then redis.call('PERSIST', used) end
  end
  if name == '' then return end
  if n > 0 then
    redis.call('ZADD', index, redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2], name)
    local last = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')
    redis.call('PEXPIREAT', index, int(math.max(tonumber(last[2]), now) + grace))
  else
    redis.call('ZREM', index, name)
  end
end
`

const zsetMark = `
mark = function(f, at)
  dirty = true
  if at > 0 then redis.call('ZADD', due, int(at), f) else redis.call('ZREM', due, f) end
end
`

// fieldsRewrite keeps the deadline, which HSET removes. A server may have HPEXPIREAT without HSETEX; there an
// entry in its last millisecond gets one more.
const fieldsRewrite = `
local function rewrite(f, raw)
  if ARGV[7] == '1' then return redis.call('HSETEX', map, 'KEEPTTL', 'FIELDS', 1, f, raw) end
  local at = redis.call('HPEXPIRETIME', map, 'FIELDS', 1, f)[1]
  redis.call('HSET', map, f, raw)
  if at > 0 then redis.call('HPEXPIREAT', map, int(math.max(at, now + 1)), 'FIELDS', 1, f) end
end
`

const plainRewrite = `
local function rewrite(f, raw) redis.call('HSET', map, f, raw) end
`

const wrappedChanges = `
local plain = idle == 0
local function bare(v)
  local colon = not plain and string.find(v, ':', 1, true)
  return colon and string.sub(v, colon + 1) or v
end
local function keep(f, v, new)
  if not plain then new = (string.match(v, '^%d+') or '0') .. ':' .. new end
  rewrite(f, new)
  touch(f, v)
end
`

// The operations. opSet: ARGV: field, value, ttl, whether to set only a new entry. The reply is 1, 0 if the
// entry exists, -1 if the map is full. opFinish precedes it: the marker must have the value ARGV[13],
// otherwise the reply is 2.
const (
	opSet = `
sweep(bound)
local f, ttl = ARGV[first], tonumber(ARGV[first + 2])
local have = look(f)
if have and ARGV[first + 3] == '1' then
  seal()
  return 0
end
if not have and full(1) then
  seal()
  return done(-1)
end
put(f, ARGV[first + 1], ttl)
seal()
return done(1)
`
	opFinish = `
local marker = KEYS[#KEYS]
if redis.call('GET', marker) ~= ARGV[first + 4] then return 2 end
redis.call('DEL', marker)
`
	// opSetMany: ARGV: field, value, ttl, field, value, ttl ... The reply is that of opSet.
	opSetMany = `
sweep(bound)
local new, seen = 0, {}
for i = first, #ARGV, 3 do
  local f = ARGV[i]
  if not seen[f] then
    seen[f] = true
    if not look(f) then new = new + 1 end
  end
end
if new > 0 and full(new, seen) then
  seal()
  return done(-1)
end
for i = first, #ARGV, 3 do put(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])) end
seal()
return done(1)
`
	// opSwap: ARGV: field, the value that it must have, the new value. opSwapDel: ARGV: the first two.
	opSwap = `
sweep(bound)
local f, did = ARGV[first], 0
local v = look(f)
if v and bare(v) == ARGV[first + 1] then
  keep(f, v, ARGV[first + 2])
  did = 1
end
seal()
return did
`
	opSwapDel = `
sweep(bound)
local f, did = ARGV[first], 0
local v = look(f)
if v and bare(v) == ARGV[first + 1] then
  drop(f)
  did = 1
end
seal()
return did
`
	// opAdd: ARGV: field, the number to add, the ttl of a new entry, HINCRBY or HINCRBYFLOAT. It returns the sum
	// in an array, or -1 if the map is full, -2 if the value is not a number, -3 if the sum overflows. The
	// server adds, because a number in Lua has 53 bits; the field therefore holds the bare value during the
	// addition. Servers add floats with 80 bits, and so beyond a float64.
	opAdd = `
sweep(bound)
local f, more, ttl = ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2])
local have = look(f)
if not have then
  if full(1) then
    seal()
    return done(-1)
  end
  put(f, more, ttl)
  seal()
  return done({more})
end
local raw = have
if not plain then
  raw = redis.call('HGET', map, f)
  rewrite(f, bare(have))
end
local sum = redis.pcall(ARGV[first + 3], map, f, more)
if type(sum) == 'table' and sum.err then
  if not plain then rewrite(f, raw) end
  seal()
  if string.find(sum.err, 'overflow', 1, true) or string.find(sum.err, 'NaN', 1, true) then return -3 end
  if string.find(sum.err, 'is not', 1, true) then return -2 end
  return sum
end
sum = redis.call('HGET', map, f)
if math.abs(tonumber(sum)) == math.huge then
  rewrite(f, raw)
  seal()
  return -3
end
if plain then touch(f, have) else keep(f, have, sum) end
seal()
return {sum}
`
	opGet = `
sweep(bound)
local all = {}
for i = first, #ARGV do
  local v = look(ARGV[i])
  if v then touch(ARGV[i], v) end
  all[i - first + 1] = v
end
seal()
return all
`
	// opPeek: ARGV: field. It returns the value and the result of left, or nothing.
	opPeek = `
sweep(bound)
local f, reply = ARGV[first], {}
local v = look(f)
if v then
  touch(f, v)
  reply = {v, left(f)}
end
seal()
return reply
`
	opDel = `
sweep(bound)
local n = 0
for i = first, #ARGV do
  if look(ARGV[i]) then
    drop(ARGV[i])
    n = n + 1
  end
end
seal()
return n
`
	opTTL = `
local f, ms = ARGV[first], -2
if look(f) then ms = left(f) end
seal()
return ms
`
	opSetDeadline = `
sweep(bound)
local f, ttl, did = ARGV[first], tonumber(ARGV[first + 1]), 0
local v = look(f)
if v and (ttl > 0 or left(f) >= 0) then
  setDeadline(f, v, ttl)
  did = 1
end
seal()
return did
`
	opLen = `
sweep(bound)
seal()
return living()
`
	opPage  = `return page(ARGV[first], ARGV[first + 1])`
	opSweep = `
sweep(tonumber(ARGV[first]))
seal()
return next()
`
	opClear = `
if sweep(tonumber(ARGV[first])) >= tonumber(ARGV[first]) then
  seal()
  return 1
end
clear()
seal()
return 0
`
)
