package queue

import "github.com/ebbdb/ebb/conn"

// How the scripts keep a queue:
//
//	{name}:jobs     hash   id -> leased, priority, deliveries, max, due, number, till, ttl, payload
//	{name}:waiting  zset   number+id, by (9 - priority) x 2^48 + due ms
//	{name}:events   zset   number+id, by the last ms of the lease, or before it expires
//	{name}:died     zset   dead letters, by when they died
//	{name}:letters  hash   id -> deliveries reason payload
//	{name}:last     string the last number given, with a TTL
//	{name}:once:... string what Unique keeps out, with a TTL
//	{name}:cron     hash   schedules, see schedule_scripts.go; so are ticks and paused
//	{name}:wake     channel
//
// A number is 16 digits: microseconds since 1970, or one more than the last. It
// orders what waits with the same priority and instant, and is the token of a lease.
// As in ebb itself nothing moves when it falls due: the first of each priority in
// waiting shows what is ready. What does change with time, ends of leases and of TTLs,
// is settled at the beginning of every call, a bounded number at a time. Only jobs
// and what belongs to them is without a TTL, and goes with the last job, and so are schedules.
//
// max is the MaxDeliveries of the consumer that took the job, since the next call may
// have to bury it.
//
// None of the keys is one that ebb's own commands use for a queue of the same name:
// data that moves from Redis to ebb conflicts with no other key.

// settleMost is how many ends of leases and TTLs a call settles: some ms of a
// server's time.
const settleMost = "200"

const prelude = `
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
local function place(j)
  store('HSET', j)
  index(j)
end
local function lift(j)
  local m = member(j)
  if not j.leased then call('ZREM', waiting, m) end
  if j.leased or j.ttl > 0 then call('ZREM', events, m) end
end
local function forget(j) call('HDEL', jobs, j.id) end
local function bury(j, reason, died)
  local id, at = j.id, died
  while call('ZSCORE', dead, id) do
    id = j.id .. ':' .. int(at)
    at = at + 1
  end
  call('ZADD', dead, int(died), id)
  call('HSET', letters, id, j.deliveries .. ' ' .. #reason .. ' ' .. reason .. j.payload)
  forget(j)
end
local function again(j, due)
  j.leased, j.due, j.number, j.till = false, due, number(), 0
  place(j)
end
local function expired(j) return not j.leased and j.ttl > 0 and now > j.due + j.ttl end
local function spent(j) return j.max > 0 and j.deliveries >= j.max end

local over = call('ZRANGEBYSCORE', events, '-inf', '(' .. int(now), 'LIMIT', 0, ` + settleMost + `)
for _, m in ipairs(over) do
  local j = load(string.sub(m, 17))
  local own = j and member(j) == m
  if own then lift(j) end
  if not own then
    call('ZREM', events, m) -- another program deleted keys
  elseif not j.leased then
    forget(j)
  elseif spent(j) then
    bury(j, '` + leaseOver + `', j.till + 1)
  else
    again(j, j.till + 1)
    if expired(j) then
      lift(j)
      forget(j)
    end
  end
end

-- patience is how much more a call removes that is of no use.
local patience = ` + settleMost + `
-- first returns the job to be taken next, and otherwise when one falls due, and which.
-- What is left of a job that is not there, because another program deleted a key, is removed;
-- if there is much of it, something falls due at once.
local function first()
  local from, soonest, which = '-inf', nil, nil
  while true do
    if patience <= 0 then return nil, now, nil end
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
      patience = patience - 1
    else
      if not soonest or due < soonest then soonest, which = due, id end
      from = int((line + 1) * SPAN)
    end
  end
end
-- announce tells those who wait for what has come, unless something else comes first.
-- They look in any case: a user without channels is no reason to fail, by pcall.
local function announce(j)
  if j.due <= now then
    redis.pcall('PUBLISH', wake, 'ready')
  else
    local ready, soonest = first()
    if not ready and not (soonest and soonest < j.due) then redis.pcall('PUBLISH', wake, 'later') end
  end
end
local function held(id, token)
  local j = load(id)
  if j and j.leased and j.number == tonumber(token) and now <= j.till then return j end
end
`

// leaseOver is the reason of a job whose last lease ended.
const leaseOver = "its last lease ended and no consumer had settled it"

// pushScript adds jobs: ARGV wake, bound, whether to drop the oldest, then of each
// id ("" has one made), payload, delay, instant (0: see delay), priority, TTL, Unique, whether to
// replace a job that waits.
// KEYS go on with what stands for each that is unique. It replies with a pair each.
var pushScript = conn.NewScript(prelude + `
local most, drop = tonumber(ARGV[2]), ARGV[3] == '1'
local reply, mark, news = {}, 6, nil
for i = 4, #ARGV, 8 do
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
      lift(old)
      forget(old)
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
    lift(oldest)
    forget(oldest)
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
    if not news or j.due < news.due then news = j end
  end
end
if news then announce(news) end
return finish(reply)
`)

// takeScript leases jobs: ARGV wake, count, lease, MaxDeliveries, whether to leave schedules alone.
// It replies with for how many us there is nothing to do, -1 for ever, then with the jobs. If
// schedules are due, it replies with -2, the time in ms, and a name and a record of each.
var takeScript = conn.NewScript(timedPrelude + `
local count, lease, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local reply, soonest = {-1}, nil
if ARGV[5] ~= '1' then
  reply = {-2, now}
  for _, name in ipairs(call('ZRANGEBYSCORE', ticks, '-inf', int(now), 'LIMIT', 0, ` + ticksAtOnce + `)) do
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
  lift(j)
  if expired(j) then
    forget(j)
    patience = patience - 1
  else
    j.leased, j.number, j.till, j.deliveries, j.max = true, number(), now + lease, j.deliveries + 1, max
    place(j)
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

// ackScript: ARGV wake, id, token.
var ackScript = conn.NewScript(prelude + `
local j = held(ARGV[2], ARGV[3])
if not j then return finish(0) end
lift(j)
forget(j)
return finish(1)
`)

// nackScript: ARGV wake, id, token, delay, reason.
var nackScript = conn.NewScript(prelude + `
local j = held(ARGV[2], ARGV[3])
if not j then return finish(0) end
lift(j)
if spent(j) then
  bury(j, ARGV[5], now)
else
  again(j, now + ARGV[4])
  announce(j)
end
return finish(1)
`)

// extendScript: ARGV wake, id, token, lease.
var extendScript = conn.NewScript(prelude + `
local j = held(ARGV[2], ARGV[3])
if not j then return finish(0) end
lift(j)
local sooner = now + ARGV[4] < j.till
j.till = now + ARGV[4]
place(j)
if sooner then redis.pcall('PUBLISH', wake, 'lease') end
return finish(1)
`)

// buryScript: ARGV wake, id, token, reason, deliveries, payload.
var buryScript = conn.NewScript(prelude + `
local j = held(ARGV[2], ARGV[3])
if not j then return finish(0) end
lift(j)
j.deliveries, j.payload = ARGV[5], ARGV[6]
bury(j, ARGV[4], now)
return finish(1)
`)

// cancelScript: ARGV wake, ids.
var cancelScript = conn.NewScript(prelude + `
local n = 0
for i = 2, #ARGV do
  local j = load(ARGV[i])
  if j then
    lift(j)
    forget(j)
    n = n + 1
  end
end
return finish(n)
`)

// infoScript replies with counts of delayed, ready, leased and dead, for how many ms
// the oldest is late, in how many the next is due, or -1, how many schedules there are, in how many
// ms the next is due, or -1, and the last ms of a pause, 0 without an end, or -1.
var infoScript = conn.NewScript(timedPrelude + `
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

// deadScript replies with dead letters, the oldest first: ARGV wake, how many, the one before the
// first ("": none). It replies with -1 if that one is not there.
var deadScript = conn.NewScript(prelude + `
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

// revive is the part of scripts that adds a dead letter to the queue again.
const revive = `
local function revive(id)
  local letter = call('HGET', letters, id)
  if not letter or call('HEXISTS', jobs, id) == 1 then return nil end
  local _, stop, _, size = string.find(letter, '^(%d+) (%d+) ')
  local j = {id = id, leased = false, priority = 0, deliveries = 0, number = number(), till = 0, ttl = 0, max = 0,
    due = now, payload = string.sub(letter, stop + 1 + size)}
  place(j)
  call('ZREM', dead, id)
  call('HDEL', letters, id)
  return j
end
`

// reviveScript adds dead letters to the queue again: ARGV wake, ids.
var reviveScript = conn.NewScript(prelude + revive + `
local n, news = 0, nil
for i = 2, #ARGV do
  local j = revive(ARGV[i])
  if j then
    news = j
    n = n + 1
  end
end
if news then announce(news) end
return finish(n)
`)

// discardScript removes dead letters: ARGV wake, ids.
var discardScript = conn.NewScript(prelude + `
local n = 0
for i = 2, #ARGV do
  n = n + call('ZREM', dead, ARGV[i])
  call('HDEL', letters, ARGV[i])
end
return finish(n)
`)
