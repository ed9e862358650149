package limit

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// The scripts, for servers without ebb's commands. The same algorithms for ebb are in internal/limiter, and
// TestScriptsDecideAsTheCommandsDo compares them. A script consists of
//
//	luaNow      the server's time, in us
//	an algorithm, which makes a bucket of a key: earliest, take, left, full, store
//	luaLine     the waiters in FIFO order
//	a program   which uses these
//
// The replies are those of ebb's commands, to the microsecond; the comment of maxProduct explains why the numbers are exact. A
// bucket's key has the deadline (PEXPIREAT) at which the bucket is full, rounded up. TIME reads the same clock, so that the key never
// expires too early.
//
// Keys: the bucket; the line, a sorted set of tickets by their turn; and a hash with the lease of each ticket. The last two exist
// only while a call waits. A ticket is "id:cost"; the scripts skip one whose lease is over.
//
// Most calls run a short program: fastGCRA and fastFixed make three calls of the server's commands, and do not read the
// line. So a whole program marks the state of a bucket whose line has a waiter, by a capital letter, and keeps it as long as the
// line. A fast program returns an empty reply for a state that it does not understand, and the limiter runs the whole program. The
// reply of a fast program is two numbers, of which plan.fastResult makes a Result.
//
// A state that fast programs read and write is a number, or packed: a byte for its kind, and four doubles. It is a text where a whole
// program needs more than that.

// scripts are the programs for one algorithm.
type scripts struct {
	take, wait *conn.Script
}

var byAlgorithm = [...]scripts{
	GCRA:          newScripts("gcra"),
	SlidingWindow: newScripts("window"),
	SlidingLog:    newScripts("log"),
	FixedWindow:   newScripts("fixed"),
}

var luaOf = map[string]string{"gcra": luaGCRA, "window": luaWindow, "log": luaLog, "fixed": luaWindow}

// luaBucket makes the bucket of KEYS and the first ARGV.
var luaBucket = map[string]string{
	"gcra":   "local b = gcra(KEYS[1], num(1), num(3), num(4))\n",
	"window": "local b = window(KEYS[1], num(1), num(2), 'w')\n",
	"log":    "local b = log(KEYS[1], num(1), num(2))\n",
	"fixed":  "local b = window(KEYS[1], num(1), num(2), 'f')\n",
}

func newScripts(algo string) scripts {
	head := luaNow + luaOf[algo] + luaLine + luaBucket[algo]
	return scripts{take: conn.NewScript(head + luaTake), wait: conn.NewScript(head + luaWait)}
}

var (
	reserveScript = conn.NewScript(luaNow + luaGCRA + luaLine + luaBucket["gcra"] + luaReserve)
	cancelScript  = conn.NewScript(luaNow + luaGCRA + luaCancel)
	leaveScript   = conn.NewScript(kit.LineLeave)
	allScript     = conn.NewScript(luaNow + luaGCRA + luaWindow + luaLog + luaLine + luaAll)
)

// fastGCRA takes a T of per/den us. ARGV: six doubles in one text: cost x T and burst x T, each as whole us
// and a rest in 1/den us; den; per. If the theoretical arrival time has no rest, which is always so for a T
// of whole us, the state is that time alone. The reply is the remaining time in us, and the rest; if the
// limiter is in debt, -1 minus the debt, and the rest.
//
// On redis-server 7.0 it takes 4.2 us of CPU, and the whole program 10.4 us: go test -run xxx -bench Scripts ./limit (2026-11-30, pipelines
// of 32, 2 cores with other load).
var fastGCRA = conn.NewScript(`
local call, unpack = redis.call, struct.unpack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local us, rest, wide, widen, den, per = unpack('<dddddd', ARGV[1])
local state = call('GET', KEYS[1])
local tat, frac = 0, 0
if state then
  if #state == 33 then
    local form, d
    form, tat, frac, d = unpack('<Bddd', state)
    if form ~= 1 or d ~= den then return end
  else
    tat = tonumber(state)
    if not tat or tat < 1e14 then return end
  end
end
if tat < now then tat, frac = now, 0 end
local new, part = tat + us, frac + rest
if part >= den then new, part = new + 1, part - den end
local room, left = now + wide - new, widen - part
if left < 0 then room, left = room - 1, left + den end
if room < 0 then return {now - tat - 1, frac} end
if part == 0 then
  call('SET', KEYS[1], new, 'PXAT', math.ceil(new / 1000))
else
  call('SET', KEYS[1], struct.pack('<Bdddd', 1, new, part, den, per), 'PXAT', math.ceil((new + 1) / 1000))
end
return {room, left}
`)

// fastFixed is for fixed windows. ARGV: three doubles in one text: limit, period in us, cost. The reply is
// the number of used requests including the cost, which exceeds the limit if the request was denied, and the
// us until the window ends.
var fastFixed = conn.NewScript(`
local call, unpack = redis.call, struct.unpack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, period, cost = unpack('<ddd', ARGV[1])
local state = call('GET', KEYS[1])
local used, kept = 0, false
local start = now - now % period
if state then
  if #state ~= 33 then return end
  local form, p, s, prev, u = unpack('<Bdddd', state)
  if form ~= 2 or p ~= period or prev ~= 0 then return end
  if s >= start then start, used, kept = s, u, true end
end
used = used + cost
local ends = start + period
if used <= limit then
  state = struct.pack('<Bdddd', 2, period, start, 0, used)
  if kept then call('SET', KEYS[1], state, 'KEEPTTL') else call('SET', KEYS[1], state, 'PXAT', ends / 1000) end
end
return {used, ends - now}
`)

const luaNow = kit.LineNow + `
local far = 2^53 -- us: the debt from a far greater rate may be longer
local wrong = 'WRONGTYPE the key holds another kind of value, or a limiter of another algorithm'
`

// luaGCRA: the state is the theoretical arrival time (us and a fraction of den), the rate (den in per us), and the reservations, each
// "due:cost:id", in the order of their instants. They are a schedule in which each reservation conforms. A new grant goes to the
// first place at which it and the reservations behind it conform.
const luaGCRA = `
local function gcra(key, most, den, per, asItIs)
  local R = fmod(per, den)
  local T = (per - R) / den
  local function span(c)
    local x = c * R
    local n = fmod(x, den)
    return c * T + (x - n) / den, n
  end
  local function less(a, an, b, bn) return a < b or (a == b and an < bn) end
  local function plus(a, an, b, bn)
    a, an = a + b, an + bn
    if an >= den then return a + 1, an - den end
    return a, an
  end
  local function minus(a, an, b, bn)
    a, an = a - b, an - bn
    if an < 0 then return a - 1, an + den end
    return a, an
  end
  local function after(a, an, at, c)
    if a < at then a, an = at, 0 end
    return plus(a, an, span(c))
  end
  local wide, widen = span(most)

  local tat, frac, turns = 0, 0, {}
  local state = redis.call('GET', key)
  local plain = state and tonumber(state)
  if plain then
    if plain < 1e14 then return nil end -- another program's counter: it is not an instant after 1973
    tat = plain
  elseif state then
    local us, n, d, rest = string.match(state, '^[gG] (%d+) (%d+) (%d+) %d+(.*)$')
    if us then
      tat, frac, d = tonumber(us), tonumber(n), tonumber(d)
    elseif #state == 33 and string.byte(state) == 1 then
      us, tat, frac, d = struct.unpack('<Bddd', state)
      rest = ''
    else
      return nil
    end
    if d ~= den and frac > 0 then
      frac = d * den < 2^53 and ceil(frac * den / d) or den
      if frac >= den then tat, frac = tat + 1, 0 end
    end
    if rest ~= '' then
      for due, c, id in string.gmatch(rest, ' (%d+):(%d+):(%w+)') do
        due, c = tonumber(due), tonumber(c)
        if due <= now and #turns == 0 and not asItIs then
          tat, frac = after(tat, frac, due, c)
        else
          turns[#turns + 1] = {due, c, id}
        end
      end
    end
  end

  local b = {most = most, turns = turns}
  local function conform(a, an, i)
    for j = i, #turns do
      local t = turns[j]
      a, an = after(a, an, t[1], t[2])
      local l, ln = plus(t[1], 0, wide, widen)
      if less(l, ln, a, an) then return false end
    end
    return true
  end
  function b.earliest(c)
    local back, backn = minus(wide, widen, span(c))
    local a, an, from = tat, frac, now
    for i = 1, #turns + 1 do
      local at, n = minus(a, an, back, backn)
      if n > 0 then at = at + 1 end
      at = max(from, at)
      local t = turns[i]
      if not t then return at end
      local x, xn = after(a, an, at, c)
      if at < t[1] and conform(x, xn, i) then return at end
      a, an = after(a, an, t[1], t[2])
      from = max(now, t[1])
    end
  end
  function b.take(c) tat, frac = after(tat, frac, now, c) end
  function b.left()
    local a, an = tat, frac
    if a < now then a, an = now, 0 end
    local x, xn = plus(now, 0, wide, widen)
    local room, roomn = minus(x, xn, a, an)
    for _, t in ipairs(turns) do
      a, an = plus(a, an, span(t[2]))
      x, xn = plus(t[1], 0, wide, widen)
      x, xn = minus(x, xn, a, an)
      if less(x, xn, room, roomn) then room, roomn = x, xn end
    end
    if room < 0 then return 0 end
    local n = min(most, floor(room * den / per))
    local s, sn = span(n)
    if less(room, roomn, s, sn) then return n - 1 end
    s, sn = span(n + 1)
    if n < most and not less(room, roomn, s, sn) then return n + 1 end
    return n
  end
  function b.full()
    local a, an = tat, frac
    for _, t in ipairs(turns) do a, an = after(a, an, t[1], t[2]) end
    if an > 0 then a = a + 1 end
    return a
  end
  function b.later(over) return ceil(over * per / den) end
  function b.store(till)
    local s = int(tat)
    if till or #turns > 0 then
      s = {till and 'G' or 'g', s, int(frac), int(den), int(per)}
      for _, t in ipairs(turns) do s[#s + 1] = int(t[1]) .. ':' .. int(t[2]) .. ':' .. t[3] end
      s = table.concat(s, ' ')
    elseif frac > 0 then
      s = struct.pack('<Bdddd', 1, tat, frac, den, per)
    end
    redis.call('SET', key, s, 'PXAT', int(ceil(max(b.full(), till or 0) / 1000)))
  end
  return b
end
`

// luaWindow: the state is the period, the start of the latest window with a grant, the number of grants in the window before it, and
// the number in it.
const luaWindow = `
local function muldiv(a, b, c)
  local r = fmod(b, c)
  local q = a * ((b - r) / c)
  b = r
  local x = a * b
  if x < 2^53 then
    r = fmod(x, c)
    return q + (x - r) / c, r
  end
  local bit, p = 1, 0
  while bit * 2 <= a do bit = bit * 2 end
  r = 0
  while bit >= 1 do
    p, r = p * 2, r * 2
    if r >= c then p, r = p + 1, r - c end
    if a >= bit then
      a, r = a - bit, r + b
      if r >= c then p, r = p + 1, r - c end
    end
    bit = bit / 2
  end
  return q + p, r
end
local function window(key, limit, period, form)
  local sliding = form == 'w'
  local start, prev, used, span = 0, 0, 0, period
  local function roll()
    local s = now - fmod(now, span)
    if s <= start then return end
    if s == start + span and sliding then prev = used else prev = 0 end
    start, used = s, 0
  end
  local function weight()
    if prev == 0 then return used end
    local q, r = muldiv(prev, span - max(0, now - start), span)
    if r > 0 then q = q + 1 end
    return used + q
  end
  local state = redis.call('GET', key)
  if state then
    local f, a, s, p, u
    if #state == 33 and string.byte(state) == 2 then
      f, a, s, p, u = 'f', select(2, struct.unpack('<Bdddd', state))
    else
      f, a, s, p, u = string.match(state, '^(%a) (%d+) (%d+) (%d+) (%d+)$')
    end
    if not f or string.lower(f) ~= form then return nil end
    span, start, prev, used = tonumber(a), tonumber(s), tonumber(p), tonumber(u)
    if span ~= period then
      roll()
      used, prev, span = weight(), 0, period
      local at = max(now, start)
      start = at - fmod(at, period)
    end
  end
  roll()

  local b = {most = limit}
  function b.earliest(c)
    if weight() <= limit - c then return now end
    local after = start + period
    local room = limit - used - c
    if room >= 0 then
      return after - (muldiv(room, period, prev))
    end
    if not sliding or used <= limit - c then return after end
    return after + period - (muldiv(limit - c, period, used))
  end
  function b.take(c) used = used + c end
  function b.left() return max(0, limit - weight()) end
  function b.full()
    if used > 0 and sliding then return start + 2 * period end
    if used > 0 or prev > 0 then return start + period end
    return now
  end
  function b.later(over) return ceil(over * period / limit) end
  function b.store(till)
    local s
    if till or sliding then
      s = table.concat({till and string.upper(form) or form, int(period), int(start), int(prev), int(used)}, ' ')
    else
      s = struct.pack('<Bdddd', 2, period, start, prev, used)
    end
    redis.call('SET', key, s, 'PXAT', int(ceil(max(b.full(), till or 0) / 1000)))
  end
  return b
end
`

// luaLog: each grant is a member "at:cost" with its instant as the score. One member "#" has their negative
// sum as its score, so that the sum cannot be lost without the grants. A program skips the grants that have
// left the period, as many as it needs and some hundreds more, and removes them when it takes.
const luaLog = `
local function log(key, limit, period)
  local used, over, edge = -(tonumber(redis.call('ZSCORE', key, '#') or 0)), 0, nil
  if not (used >= 0 and used < 2^53) then return nil end
  local function cost(m) return tonumber(string.match(m, ':(%d+)$')) end
  local function pass(n)
    local old = redis.call('ZRANGEBYSCORE', key, '(0', int(now - period), 'WITHSCORES', 'LIMIT', over, n)
    for i = 1, #old, 2 do used = used - cost(old[i]) end
    if #old == 0 then return false end
    over, edge = over + #old / 2, old[#old]
    return #old == 2 * n
  end
  local more = used > 0 and pass(200)
  local function fits(c)
    for _ = 1, 20 do
      if used + c <= limit or not more then break end
      more = pass(500)
    end
    return used + c <= limit
  end
  local b = {most = limit}
  function b.earliest(c)
    if fits(c) then return now end
    local must, from = used + c - limit, over
    while must > 0 do
      local some = redis.call('ZRANGEBYSCORE', key, '(0', '+inf', 'WITHSCORES', 'LIMIT', from, 200)
      if #some == 0 then return now end
      for i = 1, #some, 2 do
        must = must - cost(some[i])
        if must <= 0 then return max(now, tonumber(some[i + 1]) + period) end
      end
      from = from + 200
      if from >= over + 5000 then from, must = from + must - 1, 1 end
    end
  end
  local function last()
    local e = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if #e == 0 or e[1] == '#' then return nil end
    return e[1], tonumber(e[2])
  end
  function b.take(c)
    local m, at = last()
    used = used + c
    if at and at >= now then
      redis.call('ZREM', key, m)
      c = c + cost(m)
    else
      at = now
    end
    redis.call('ZADD', key, int(at), int(at) .. ':' .. int(c))
  end
  function b.left()
    local l = limit - used
    if more then l = l + redis.call('ZCOUNT', key, '(0', int(now - period)) - over end
    return max(0, l)
  end
  function b.full()
    local _, at = last()
    return at and at + period or now
  end
  function b.later(over) return ceil(over * period / limit) end
  function b.store(till)
    if edge then redis.call('ZREMRANGEBYSCORE', key, '(0', edge) end
    over, edge = 0, nil
    if used <= 0 then return end
    redis.call('ZADD', key, int(-used), '#')
    redis.call('PEXPIREAT', key, int(ceil(b.full() / 1000)))
  end
  return b
end
`

// luaLine adds a limiter's part of the line to kit.LineFirst.
const luaLine = kit.LineFirst + `
local function waiting(line, leases)
  return redis.call('EXISTS', line) == 1 and first(line, leases)
end
local function answer(b, c, behind)
  local retry, allowed = -1, 0
  if c <= b.most then
    local at = b.earliest(c)
    if at <= now and not behind then allowed = 1 else retry = max(at - now, behind and 1000 or 0) end
  end
  return allowed, retry
end
local function taken(b, allowed, retry, behind, c)
  return {allowed, b.most, behind and 0 or b.left(), min(retry, far), min(max(0, b.full() - now), far), c}
end
`

// luaTake: ARGV after the bucket's: cost, and the mode: take, peek, or most. Mode most takes as much of the
// cost as the bucket allows.
const luaTake = `
if not b then return redis.error_reply(wrong) end
local c, mode = num(5), ARGV[6]
local behind = waiting(KEYS[2], KEYS[3])
local allowed, retry = answer(b, c, behind)
if mode == 'most' and allowed == 0 then
  local left = behind and 0 or b.left()
  c = max(1, min(c, left))
  allowed, retry = answer(b, c, behind)
end
if mode == 'peek' then return taken(b, allowed, retry, behind, 0) end
if allowed == 0 then return taken(b, 0, retry, behind, 0) end
b.take(c)
b.store()
return taken(b, 1, -1, behind, c)
`

// luaWait: ARGV after the bucket's: cost, the ticket, its turn ("" for none yet), its lease in us, and the longest wait in us, -1 for
// no bound. The first element of the reply is 1: taken; 0: denied, because the wait would be too long; 2: poll again after the us in
// the reply, with the turn that is its last element; 3: as 2, but the ticket is not in the line.
//
// A ticket takes when the bucket has enough for it and for all tickets before it, even if one of these has not polled yet. A ticket
// whose turn comes after its deadline is not in the line, because no other ticket needs to wait for it. It keeps its turn, and
// returns to the line if tickets before it leave.
const luaWait = `
if not b then return redis.error_reply(wrong) end
local c, turn, lease, patience = num(5), ARGV[7], num(8), num(9)
local line, leases, me = KEYS[2], KEYS[3], ARGV[6] .. ':' .. ARGV[5]
local head = redis.call('EXISTS', line) == 1 and first(line, leases)
local rank, before, sure = 0, 0, 200
if head and head ~= me then
  rank = redis.call('ZRANK', line, me) or turn ~= '' and redis.call('ZCOUNT', line, '-inf', '(' .. turn) or redis.call('ZCARD', line)
end
if rank > 0 then
  for _, t in ipairs(redis.call('ZRANGE', line, 0, min(rank, sure) - 1)) do before = before + tonumber(string.match(t, ':(%d+)$')) end
  before = before + max(0, rank - sure) * c
end
local all = before + c
local at = b.earliest(min(b.most, all))
if all > b.most then at = at + b.later(all - b.most) end
local function out()
  if not head then return end
  redis.call('ZREM', line, me)
  redis.call('HDEL', leases, me)
end
if at <= now and rank <= sure then
  b.take(c)
  out()
  b.store(head and redis.call('EXISTS', line) == 1 and now + lease or nil)
  return taken(b, 1, -1, false, c)
end
local late = patience >= 0 and at - now > patience
if late then
  out()
  if rank == 0 then return taken(b, 0, at - now, false, 0) end
end
if turn == '' then
  local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
  turn = int(max(now, last and tonumber(last) + 1 or 0))
end
if not late then
  redis.call('ZADD', line, turn, me)
  redis.call('HSET', leases, me, int(now + lease))
  redis.call('PEXPIRE', line, int(ceil(lease / 1000)))
  redis.call('PEXPIRE', leases, int(ceil(lease / 1000)))
  b.store(now + lease)
end
local reply = taken(b, late and 3 or 2, max(0, at - now), false, 0)
reply[7] = turn
return reply
`

// luaReserve: ARGV after the bucket's: cost, the longest wait in us or -1, an id.
const luaReserve = `
if not b then return redis.error_reply(wrong) end
local c, patience, id = num(5), num(6), ARGV[7]
local at = b.earliest(c)
if (patience >= 0 and at - now > patience) or waiting(KEYS[2], KEYS[3]) then return {0, max(at - now, 0)} end
if at <= now then
  b.take(c)
else
  if #b.turns >= 1000 then return redis.error_reply('ERR 1000 reservations of this key are outstanding, which is all it can hold') end
  local i = #b.turns + 1
  while i > 1 and b.turns[i - 1][1] > at do i = i - 1 end
  table.insert(b.turns, i, {at, c, id})
  if b.full() > 2^53 then return redis.error_reply('ERR the reservations of this key reach too far into the future') end
end
b.store()
return {1, at - now}
`

// luaCancel cancels a reservation. KEYS: the bucket and its line. ARGV: the id. The rest of the state stays,
// including its rate, and the mark if a call waits.
const luaCancel = `
local den, per = string.match(redis.call('GET', KEYS[1]) or '', '^[gG] %d+ %d+ (%d+) (%d+)')
if not den then return 0 end
local b = gcra(KEYS[1], 1, tonumber(den), tonumber(per), true)
for i, t in ipairs(b.turns) do
  if t[3] == ARGV[1] then
    if t[1] <= now then return 0 end
    table.remove(b.turns, i)
    local waits = redis.call('PTTL', KEYS[2])
    if waits > 0 then b.store(now + waits * 1000)
    elseif b.full() <= now then redis.call('DEL', KEYS[1])
    else b.store() end
    return 1
  end
end
return 0
`

// luaAll: KEYS: three of each bucket. ARGV: six of each: the algorithm, the bucket's four, the cost; the last
// ARGV is "peek" to change nothing.
const luaAll = `
local all, ok = {}, 1
for i = 0, #KEYS / 3 - 1 do
  local algo, a, k, b = ARGV[6 * i + 1], 6 * i + 2, KEYS[3 * i + 1], nil
  if algo == 'gcra' then b = gcra(k, num(a), num(a + 2), num(a + 3))
  elseif algo == 'log' then b = log(k, num(a), num(a + 1))
  else b = window(k, num(a), num(a + 1), string.sub(algo, 1, 1)) end
  if not b then return redis.error_reply(wrong) end
  local c = num(a + 4)
  local behind = waiting(KEYS[3 * i + 2], KEYS[3 * i + 3])
  local allowed, retry = answer(b, c, behind)
  if allowed == 0 then ok = 0 end
  all[i + 1] = {b, c, behind, allowed, retry}
end
local reply = {ok}
for i, x in ipairs(all) do
  local b, c, behind, allowed, retry = unpack(x)
  if ok == 1 and ARGV[#ARGV] ~= 'peek' then
    b.take(c)
    b.store()
    allowed, retry = 1, -1
  else
    c = 0
  end
  reply[i + 1] = taken(b, allowed, retry, behind, c)
end
return reply
`
