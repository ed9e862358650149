package queue

import "github.com/ebbdb/ebb/conn"

// The keys of a queue on servers without DQ.*. internal/delayq implements the same for ebb; a model test
// compares the two.
//
//	{name}:jobs     hash   id -> leased, priority, deliveries, max, due, number, till, ttl, payload
//	{name}:waiting  zset   number+id, by (9 - priority) x 2^48 + due ms
//	{name}:events   zset   number+id, by the last ms of the lease, or of the TTL
//	{name}:died     zset   dead letters, by the instant at which they died
//	{name}:letters  hash   id -> deliveries reason payload
//	{name}:last     string the last number used, with a TTL
//	{name}:once:... string a job that Unique refuses, with a TTL
//	{name}:cron     hash   schedules, see schedule_scripts.go; so are ticks and paused
//	{name}:wake     channel
//
// A number has 16 digits: microseconds since 1970, or one more than the last number. It orders the waiting
// jobs of one priority and instant, and is the token of a lease. As in ebb, no job moves when it falls due:
// the first job of each priority in waiting shows whether one is ready. Each call first handles leases and
// TTLs that have ended, a bounded number of them. The keys of jobs and of schedules have no TTL; Redis
// removes them with the last job and the last schedule.
//
// max is the MaxDeliveries of the consumer that took the job: the next call may have to bury the job by it.
//
// The commands of ebb use other keys for a queue of the same name, so that data can move from Redis to ebb.

// maxExpirations is the number of ended leases and TTLs that a call handles at most: some ms of a server's
// time.
const maxExpirations = "200"

const luaPrelude = `
local jobs, waiting, events = KEYS[1], KEYS[2], KEYS[3]
local dead, letters, last, wake = KEYS[4], KEYS[5], KEYS[6], ARGV[1]
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = math.floor(us / 1000)
local SPAN = 281474976710656
local FORGET = '86400000'

local function int(n) return string.format('%.0f', n) end

local top
local function number()
  if not top then top = tonumber(call('GET', last) or 0) end
  top = math.max(top + 1, us)
  return top
end
local function finish(reply)
  if top then call('SET', last, int(top), 'PX', FORGET) end
  return reply
end

local function load(id)
  local s = call('HGET', jobs, id)
  if not s then return nil end
  local leased, priority, deliveries, max, due, number, till, ttl, rest = struct.unpack('<BBHHdddd', s)
  return {id = id, leased = leased == 1, priority = priority, deliveries = deliveries, max = max,
    due = due, number = number, till = till, ttl = ttl, payload = string.sub(s, rest)}
end
local function member(j) return string.format('%016.0f', j.number) .. j.id end
local function store(how, j)
  return call(how, jobs, j.id, struct.pack('<BBHHdddd', j.leased and 1 or 0, j.priority,
    math.min(j.deliveries, 65535), j.max, j.due, j.number, j.till, j.ttl) .. j.payload)
end
local function index(j)
  local m = member(j)
  if j.leased then
    call('ZADD', events, int(j.till), m)
  else
    call('ZADD', waiting, int((9 - j.priority) * SPAN + j.due), m)
    if j.ttl > 0 then call('ZADD', events, int(j.due + j.ttl), m) end
  end
end
local function putJob(j)
  store('HSET', j)
  index(j)
end
local function unindex(j)
  local m = member(j)
  if not j.leased then call('ZREM', waiting, m) end
  if j.leased or j.ttl > 0 then call('ZREM', events, m) end
end
local function removeJob(j) call('HDEL', jobs, j.id) end
local function bury(j, reason, died)
  local id, at = j.id, died
  while call('ZSCORE', dead, id) do
    id = j.id .. ':' .. int(at)
    at = at + 1
  end
  call('ZADD', dead, int(died), id)
  call('HSET', letters, id, j.deliveries .. ' ' .. #reason .. ' ' .. reason .. j.payload)
  removeJob(j)
end
local function returnJob(j, due)
  j.leased, j.due, j.number, j.till = false, due, number(), 0
  putJob(j)
end
local function expired(j) return not j.leased and j.ttl > 0 and now > j.due + j.ttl end
local function exhausted(j) return j.max > 0 and j.deliveries >= j.max end

local over = call('ZRANGEBYSCORE', events, '-inf', '(' .. int(now), 'LIMIT', 0, ` + maxExpirations + `)
for _, m in ipairs(over) do
  local j = load(string.sub(m, 17))
  local own = j and member(j) == m
  if own then unindex(j) end
  if not own then
    call('ZREM', events, m) -- another program deleted keys
  elseif not j.leased then
    removeJob(j)
  elseif exhausted(j) then
    bury(j, '` + leaseOver + `', j.till + 1)
  else
    returnJob(j, j.till + 1)
    if expired(j) then
      unindex(j)
      removeJob(j)
    end
  end
end

-- budget is the number of useless entries that the call may still remove.
local budget = ` + maxExpirations + `
-- first returns the job to take next; without one, the instant at which the next falls due, and its id.
-- It removes entries without a job, because another program deleted a key. When the budget is spent,
-- it returns now as that instant.
local function first()
  local from, soonest, which = '-inf', nil, nil
  while true do
    if budget <= 0 then return nil, now, nil end
    local x = call('ZRANGEBYSCORE', waiting, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not x[1] then return nil, soonest, which end
    local score = tonumber(x[2])
    local line = math.floor(score / SPAN)
    local due = score - line * SPAN
    local id = string.sub(x[1], 17)
    if due <= now then
      local j = load(id)
      if j and member(j) == x[1] then return j end
      call('ZREM', waiting, x[1])
      budget = budget - 1
    else
      if not soonest or due < soonest then soonest, which = due, id end
      from = int((line + 1) * SPAN)
    end
  end
end
-- announce publishes a message about a new job, unless another job falls due first. It uses pcall, so that
-- a user without rights to channels gets no error: consumers poll in any case.
local function announce(j)
  if j.due <= now then
    redis.pcall('PUBLISH', wake, 'ready')
  else
    local ready, soonest = first()
    if not ready and not (soonest and soonest < j.due) then redis.pcall('PUBLISH', wake, 'later') end
  end
end
local function leasedJob(id, token)
  local j = load(id)
  if j and j.leased and j.number == tonumber(token) and now <= j.till then return j end
end
`

// leaseOver is the reason of a dead letter whose last lease ended.
const leaseOver = "its last lease ended and no consumer had settled it"

// pushScript adds jobs. ARGV: wake, bound, whether to drop the oldest, whether to remove the outcomes of
// earlier jobs with the ids; then for each job its id ("": the script makes one), payload, delay, instant (0:
// see delay), priority, TTL, Unique, whether to replace a waiting job. KEYS behind the common ones: the
// outcome of each id if outcomes are to be removed, and the records of jobs with Unique. The reply has a pair
// of state and id for each job.
var pushScript = conn.NewScript(luaPrelude + `
local most, drop = tonumber(ARGV[2]), ARGV[3] == '1'
local forget = ARGV[4] == '1'
local reply, mark, added = {}, 6, nil
if forget then mark = mark + (#ARGV - 4) / 8 end
for i = 5, #ARGV, 8 do
  local id, unique, once = ARGV[i], tonumber(ARGV[i + 6]), nil
  if unique > 0 then
    mark = mark + 1
    once = KEYS[mark]
  end
  local replace = ARGV[i + 7] == '1'
  local plain = most == 0 and not once and id ~= '' and not replace
  local j = {id = id, leased = false, priority = tonumber(ARGV[i + 4]), deliveries = 0, number = number(),
    till = 0, ttl = tonumber(ARGV[i + 5]), max = 0, due = tonumber(ARGV[i + 3]), payload = ARGV[i + 1]}
  if j.due == 0 then j.due = now + ARGV[i + 2] end
  local there, old
  if replace then old = load(id) end
  if old then
    there = old.leased
    if not there then
      unindex(old)
      removeJob(old)
    end
  elseif plain then
    there = store('HSETNX', j) == 0
  else
    there = id ~= '' and call('HEXISTS', jobs, id) == 1 or once and call('EXISTS', once) == 1
  end
  local room = there or old or most == 0 or call('HLEN', jobs) < most
  while not room and drop do
    local ready, _, later = first()
    local oldest = ready or later and load(later)
    if not oldest then break end
    unindex(oldest)
    removeJob(oldest)
    room = call('HLEN', jobs) < most
  end
  if there then
    table.insert(reply, {1, id})
  elseif not room then
    table.insert(reply, {2, id})
  else
    if id == '' then j.id = int(j.number) end
    if not plain then store('HSET', j) end
    index(j)
    if once then call('SET', once, j.id, 'PX', unique) end
    table.insert(reply, {0, j.id})
    if forget then call('DEL', KEYS[6 + #reply]) end
    if not added or j.due < added.due then added = j end
  end
end
if added then announce(added) end
return finish(reply)
`)

// takeScript leases jobs. ARGV: wake, count, lease, MaxDeliveries, whether to skip schedules. The reply is
// the us until the next job falls due (-1: none will), and the jobs. If schedules are due, it is -2, the time
// in ms, and the name and the record of each.
var takeScript = conn.NewScript(luaSchedulePrelude + `
local count, lease, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local reply, soonest = {-1}, nil
if ARGV[5] ~= '1' then
  reply = {-2, now}
  for _, name in ipairs(call('ZRANGEBYSCORE', ticks, '-inf', int(now), 'LIMIT', 0, ` + maxTicks + `)) do
    local record = call('HGET', cron, name)
    if record then
      table.insert(reply, name)
      table.insert(reply, record)
    else
      call('ZREM', ticks, name) -- another program deleted keys
    end
  end
  if reply[3] then return finish(reply) end
  reply = {-1}
end
local pause = pausedUntil()
if pause >= 0 then
  local x = call('ZRANGE', ticks, 0, 0, 'WITHSCORES')
  if pause > 0 then soonest = pause + 1 end
  if x[1] and (not soonest or tonumber(x[2]) < soonest) then soonest = tonumber(x[2]) end
  if soonest then reply[1] = math.max(soonest * 1000 - us, 0) end
  return finish(reply)
end
while #reply <= count do
  local j
  j, soonest = first()
  if not j then break end
  unindex(j)
  if expired(j) then
    removeJob(j)
    budget = budget - 1
  else
    j.leased, j.number, j.till, j.deliveries, j.max = true, number(), now + lease, j.deliveries + 1, max
    putJob(j)
    table.insert(reply, {j.id, j.payload, j.deliveries, j.number, j.due})
  end
end
if #reply == 1 then
  local x = call('ZRANGE', events, 0, 0, 'WITHSCORES')
  if x[1] and (not soonest or x[2] + 1 < soonest) then soonest = x[2] + 1 end
  x = call('ZRANGE', ticks, 0, 0, 'WITHSCORES')
  if x[1] and (not soonest or tonumber(x[2]) < soonest) then soonest = tonumber(x[2]) end
  if soonest then reply[1] = math.max(soonest * 1000 - us, 0) end
end
return finish(reply)
`)

// ackScript acknowledges a job. ARGV: wake, id, token.
var ackScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
unindex(j)
removeJob(j)
return finish(1)
`)

// nackScript returns a job to the queue. ARGV: wake, id, token, delay, reason.
var nackScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
unindex(j)
if exhausted(j) then
  bury(j, ARGV[5], now)
else
  returnJob(j, now + ARGV[4])
  announce(j)
end
return finish(1)
`)

// extendScript extends a lease. ARGV: wake, id, token, lease.
var extendScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
unindex(j)
local sooner = now + ARGV[4] < j.till
j.till = now + ARGV[4]
putJob(j)
if sooner then redis.pcall('PUBLISH', wake, 'lease') end
return finish(1)
`)

// buryScript makes a job a dead letter. ARGV: wake, id, token, reason, deliveries, payload.
var buryScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
unindex(j)
j.deliveries, j.payload = ARGV[5], ARGV[6]
bury(j, ARGV[4], now)
return finish(1)
`)

// cancelScript removes jobs, and the outcomes of earlier jobs with their ids. ARGV: wake, ids.
var cancelScript = conn.NewScript(luaPrelude + `
local n = 0
for i = 2, #ARGV do
  local j = load(ARGV[i])
  if j then
    unindex(j)
    removeJob(j)
    call('DEL', KEYS[i + 5])
    n = n + 1
  end
end
return finish(n)
`)

// infoScript replies with the counts of delayed, ready, leased and dead jobs; the ms since the oldest ready job fell due; the ms until
// the next job falls due, or -1; the number of schedules; the ms until the next occurrence, or -1; and the last ms of a pause, 0
// without an end, -1 without a pause.
var infoScript = conn.NewScript(luaSchedulePrelude + `
local ready, oldest, coming = 0, nil, nil
for line = 0, 9 do
  local base = line * SPAN
  local n = call('ZCOUNT', waiting, int(base), int(base + now))
  ready = ready + n
  if n > 0 then
    local x = call('ZRANGEBYSCORE', waiting, int(base), int(base + now), 'WITHSCORES', 'LIMIT', 0, 1)
    if not oldest or x[2] - base < oldest then oldest = x[2] - base end
  end
  local x = call('ZRANGEBYSCORE', waiting, '(' .. int(base + now), '(' .. int(base + SPAN), 'WITHSCORES', 'LIMIT', 0, 1)
  if x[1] and (not coming or x[2] - base < coming) then coming = x[2] - base end
end
local all, tick = call('ZCARD', waiting), call('ZRANGE', ticks, 0, 0, 'WITHSCORES')[2]
return finish({all - ready, ready, call('HLEN', jobs) - all, call('ZCARD', dead),
  oldest and now - oldest or 0, coming and coming - now or -1,
  call('HLEN', cron), tick and math.max(tick - now, 0) or -1, pausedUntil()})
`)

// deadScript replies with dead letters, the oldest first. ARGV: wake, their number, the id of the one before
// the first ("": none). The reply is -1 if that one does not exist.
var deadScript = conn.NewScript(luaPrelude + `
local reply, from = {}, 0
if ARGV[3] ~= '' then
  from = call('ZRANK', dead, ARGV[3])
  if not from then return finish(-1) end
  from = from + 1
end
local x = call('ZRANGE', dead, from, from + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #x, 2 do
  table.insert(reply, {x[i], tonumber(x[i + 1]), call('HGET', letters, x[i])})
end
return finish(reply)
`)

// luaRevive adds a dead letter to the queue again.
const luaRevive = luaUncounted + `
local function revive(id)
  local letter = call('HGET', letters, id)
  if not letter or call('HEXISTS', jobs, id) == 1 then return nil end
  local _, stop, _, size = string.find(letter, '^(%d+) (%d+) ')
  local j = {id = id, leased = false, priority = 0, deliveries = 0, number = number(), till = 0, ttl = 0, max = 0,
    due = now, payload = uncounted(string.sub(letter, stop + 1 + size))}
  putJob(j)
  call('ZREM', dead, id)
  call('HDEL', letters, id)
  return j
end
`

// reviveScript adds dead letters to the queue again. ARGV: wake, ids.
var reviveScript = conn.NewScript(luaPrelude + luaRevive + `
local n, added = 0, nil
for i = 2, #ARGV do
  local j = revive(ARGV[i])
  if j then
    added = j
    n = n + 1
  end
end
if added then announce(added) end
return finish(n)
`)

// discardScript removes dead letters, and the outcomes of the same or earlier jobs with their ids. ARGV:
// wake, ids.
var discardScript = conn.NewScript(luaPrelude + luaForget + `
local n = 0
for i = 2, #ARGV do
  local died = call('ZSCORE', dead, ARGV[i])
  if died then
    call('ZREM', dead, ARGV[i])
    forget(KEYS[i + 5], died)
    n = n + 1
  end
  call('HDEL', letters, ARGV[i])
end
return finish(n)
`)
