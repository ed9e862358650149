package expset

import "github.com/ebbdb/ebb/conn"

func newScript(op string) *conn.Script { return conn.NewScript(prelude + op) }

// prelude begins each script. KEYS: the sorted set by deadline, the stream of events, and the index of the
// family. ARGV: the limit of members; the number of expired members that a script removes first; the number
// of events to keep; their lifetime in ms (-1: the set has no events); the set's name in its family; the
// score of members without a deadline; "(" if a member lives in the millisecond of its deadline; then the
// arguments of the operation.
//
//	look(m)    the score of a living member, or false
//	living()   how many live
//	sweep(n)   removes up to n of the dead
//	seal()     ends a script that may have written
//
// A set ends by itself after its last deadline if all members have one, with events the
// grace later, and the index the grace after the last one that it knows: a sweeping call
// must find it.
const prelude = `
local maxlen, bound, events, grace = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local name, never, strict, first = ARGV[5], ARGV[6], ARGV[7], 8
local set, stream, index = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(n) return string.format('%.0f', n) end
local function num(s)
  if s == 'inf' then return math.huge end
  return tonumber(s)
end
local told = false
local function bury(m, deadline)
  if events > 0 then
    redis.call('XADD', stream, 'MAXLEN', '~', int(events), '*', 'key', set, 'item', m, 'deadline', deadline, 'fired-at', int(now))
    told = true
  end
  redis.call('ZREM', set, m)
end
local function dead(deadline)
  deadline = num(deadline)
  return deadline < now or strict == '' and deadline == now
end
local function look(m)
  local deadline = redis.call('ZSCORE', set, m)
  if deadline and dead(deadline) then
    bury(m, deadline)
    return false
  end
  return deadline
end
local function living()
  return redis.call('ZCARD', set) - redis.call('ZCOUNT', set, '-inf', strict .. int(now))
end
local function sweep(n)
  local found = redis.call('ZRANGEBYSCORE', set, '-inf', strict .. int(now), 'WITHSCORES', 'LIMIT', 0, n)
  for i = 1, #found, 2 do bury(found[i], found[i + 1]) end
  return #found / 2
end
local function left(deadline)
  if num(deadline) >= num(never) then return -1 end
  return num(deadline) - now
end
local function next()
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if not head[1] or num(head[2]) >= num(never) then return -1, false end
  return math.max(num(head[2]) - now + 1, 0), head[2]
end
local function seal()
  if told then redis.call('PEXPIRE', stream, int(grace)) end
  if grace >= 0 then
    local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
    if last[1] and num(last[2]) < num(never) then
      local at = num(last[2]) + 1
      if events > 0 then at = at + grace end
      redis.call('PEXPIREAT', set, int(at))
    else
      redis.call('PERSIST', set)
    end
  end
  if name == '' then return end
  local _, head = next()
  if head then
    redis.call('ZADD', index, head, name)
    local last = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')
    redis.call('PEXPIREAT', index, int(math.max(num(last[2]), now) + grace))
  else
    redis.call('ZREM', index, name)
  end
end
`

var (
	// addScript returns the number of new members, or -1 if the set is full. ARGV: ttl, whether existing members
	// keep their deadlines, members.
	addScript = newScript(`
sweep(bound)
local ttl, deadline = tonumber(ARGV[first]), never
if ttl > 0 then deadline = int(now + ttl) end
local have, fresh = {}, 0
for i = first + 2, #ARGV do
  local m = ARGV[i]
  if have[m] == nil then
    have[m] = look(m)
    if not have[m] then fresh = fresh + 1 end
  end
end
if maxlen > 0 and fresh > 0 and living() + fresh > maxlen then
  seal()
  return -1
end
for m, was in pairs(have) do
  if not was or ARGV[first + 1] ~= '1' then redis.call('ZADD', set, deadline, m) end
end
seal()
return fresh
`)
	removeScript = newScript(`
sweep(bound)
local n = 0
for i = first, #ARGV do
  if look(ARGV[i]) then n = n + redis.call('ZREM', set, ARGV[i]) end
end
seal()
return n
`)
	containsScript = newScript(`
sweep(bound)
local all = {}
for i = first, #ARGV do
  if look(ARGV[i]) then all[#all + 1] = 1 else all[#all + 1] = 0 end
end
seal()
return all
`)
	membersScript = newScript(`
if strict == '' then strict = '(' else strict = '' end
return redis.call('ZRANGEBYSCORE', set, strict .. int(now), '+inf')
`)
	pageScript = newScript(`
local found = redis.call('ZSCAN', set, ARGV[first], 'COUNT', ARGV[first + 1])
local some = {}
for i = 1, #found[2], 2 do
  if not dead(found[2][i + 1]) then some[#some + 1] = found[2][i] end
end
return {found[1], some}
`)
	lenScript = newScript(`
sweep(bound)
seal()
return living()
`)
	ttlScript = newScript(`
local deadline = look(ARGV[first])
seal()
if not deadline then return -2 end
return left(deadline)
`)
	// deadlineScript sets the deadline of a member; a ttl of 0 removes it.
	deadlineScript = newScript(`
sweep(bound)
local m, ttl, did = ARGV[first], tonumber(ARGV[first + 1]), 0
local deadline = look(m)
if deadline and ttl > 0 then
  redis.call('ZADD', set, int(now + ttl), m)
  did = 1
elseif deadline and left(deadline) >= 0 then
  redis.call('ZADD', set, never, m)
  did = 1
end
seal()
return did
`)
	sweepScript = newScript(`
sweep(tonumber(ARGV[first]))
seal()
local ms = next()
return ms
`)
	// clearScript returns 1 if there are more expired members to report.
	clearScript = newScript(`
if sweep(tonumber(ARGV[first])) >= tonumber(ARGV[first]) then
  seal()
  return 1
end
redis.call('UNLINK', set)
seal()
return 0
`)
)
