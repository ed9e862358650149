package redisson

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// The scripts of RateLimiter. KEYS: the rate; value and permits of all clients; value and permits of this client. Times are in
// ms.

// luaRate reads the rate, chooses the keys, counts the free permits, and sets the TTL of the keys.
const luaRate = kit.LineNow + `
local ms = floor(now / 1000)
local conf = redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime', 'ebb-members')
if not (conf[1] and conf[2] and conf[3]) then return redis.error_reply('EBBNORATE there is no rate') end
local rate, interval = tonumber(conf[1]), tonumber(conf[2])
local value, permits = KEYS[2], KEYS[3]
if conf[3] == '1' then value, permits = KEYS[4], KEYS[5] end

-- The members of three generations of Redisson, which differ in their length: those of 3.13.3 to
-- 3.16.3 have 8 bytes.
local function count(m)
  if #m == 8 then return (select(2, struct.unpack('<fI', m))) end
  return (select(2, struct.unpack('<Bc0I', m)))
end
local function member(old, random, n)
  if old then return string.sub(random, 1, 4) .. struct.pack('<I', n) end
  return struct.pack('<Bc0I', #random, random, n)
end

-- settle returns whether the Java programs read only the old members: their scripts read the random
-- bytes of new members as permits, and the new scripts fail at old members. All programs write the same
-- kind: the newest grant shows it, or the one that was seen before.
local function settle(old)
  local newest = redis.call('ZRANGE', permits, -1, -1)[1]
  if not newest and redis.call('PTTL', value) > 0 and redis.call('PTTL', KEYS[1]) < 0 then return nil end
  if not old then
    if newest then old = #newest == 8 else old = conf[5] == 'fI' end
  end
  if old ~= (conf[5] == 'fI') then
    if old then redis.call('HSET', KEYS[1], 'ebb-members', 'fI') else redis.call('HDEL', KEYS[1], 'ebb-members') end
  end
  local oldest = newest and redis.call('ZRANGE', permits, 0, 0)[1]
  if newest and ((#newest == 8) ~= old or (#oldest == 8) ~= old) then
    local all = redis.call('ZRANGE', permits, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
      local m = all[i]
      if (#m == 8) ~= old then
        redis.call('ZREM', permits, m)
        redis.call('ZADD', permits, all[i + 1], member(old, old and string.sub(m, 2) or m, count(m)))
      end
    end
  end
  return old
end
local function sum(all)
  local n = 0
  for _, m in ipairs(all) do n = n + count(m) end
  return n
end

-- free returns the number of free permits, after the grants that have left the interval are removed.
local function free()
  local have = redis.call('GET', value)
  if not have then return nil end
  have = tonumber(have)
  local over = redis.call('ZRANGEBYSCORE', permits, 0, ms - interval)
  if #over == 0 then return have end
  redis.call('ZREMRANGEBYSCORE', permits, 0, ms - interval)
  have = have + sum(over)
  if have > rate then have = rate - sum(redis.call('ZRANGE', permits, 0, -1)) end
  redis.call('SET', value, int(have))
  return have
end

local function touch()
  local keep = tonumber(conf[4] or 0)
  if keep > 0 then
    redis.call('PEXPIRE', KEYS[1], keep)
  else
    keep = redis.call('PTTL', KEYS[1])
  end
  if keep > 0 then
    redis.call('PEXPIRE', value, keep)
    redis.call('PEXPIRE', permits, keep)
  end
end
`

// rateAcquire: KEYS also the two of the line; ARGV permits, 16 random bytes, a ticket, its turn or "", its lease in us, the longest
// wait in ms or -1, whether there is a line, whether the Java programs are old. The reply is {1, 0, 0} if it took the permits,
// {0, ms, 0} if they would come too late, and {2, ms, turn} to poll again after ms.
var rateAcquire = conn.NewScript(luaRate + kit.LineFirst + `
local n, me, turn, patience, fair = num(1), ARGV[3], ARGV[4], num(6), ARGV[7] == '1'
if n > rate then return redis.error_reply('EBBTOOMUCH more than the rate') end
local old = settle(ARGV[8] == '1')
if old == nil then return redis.error_reply('EBBOLD a counter without a log') end
local line, leases = KEYS[6], KEYS[7]
local have = free()
local head = fair and redis.call('EXISTS', line) == 1 and first(line, leases)
if head == me then head = nil end
if not head and (not have or have >= n) then
  if not have then redis.call('SET', value, int(rate)) end
  redis.call('ZADD', permits, ms, member(old, ARGV[2], n))
  redis.call('DECRBY', value, int(n))
  if fair then
    redis.call('ZREM', line, me)
    redis.call('HDEL', leases, me)
  end
  touch()
  return {1, 0, 0}
end
touch()
local oldest = redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')[2]
local wait = 3 + interval - (ms - tonumber(oldest or ms))
if head and have and have >= n then wait = 25 end -- the first waiter in line needs more
if patience >= 0 and (patience == 0 or (wait > patience and not head)) then
  if fair then
    redis.call('ZREM', line, me)
    redis.call('HDEL', leases, me)
  end
  return {0, wait, 0}
end
if fair then
  if turn == '' then
    local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
    turn = int(max(now, last and tonumber(last) + 1 or 0))
  end
  redis.call('ZADD', line, turn, me)
  redis.call('HSET', leases, me, int(now + num(5)))
  redis.call('PEXPIRE', line, int(ceil(num(5) / 1000)))
  redis.call('PEXPIRE', leases, int(ceil(num(5) / 1000)))
end
return {2, wait, turn}
`)

var leaveScript = conn.NewScript(kit.LineLeave)

// rateRevoke: ARGV permits, and the random bytes of the grant.
var rateRevoke = conn.NewScript(luaRate + `
local n = num(1)
local gone = redis.call('ZREM', permits, member(false, ARGV[2], n), member(true, ARGV[2], n))
if gone == 1 then redis.call('INCRBY', value, int(n)) end
return gone
`)

var rateAvailable = conn.NewScript(luaRate + `
local have = free()
touch()
return have or rate
`)

// rateTrySet and rateSet: ARGV rate, interval, type, keepAliveTime.
var (
	rateTrySet = conn.NewScript(`
redis.call('HSETNX', KEYS[1], 'rate', ARGV[1])
redis.call('HSETNX', KEYS[1], 'interval', ARGV[2])
redis.call('HSETNX', KEYS[1], 'keepAliveTime', ARGV[4])
local new = redis.call('HSETNX', KEYS[1], 'type', ARGV[3])
if new == 1 and tonumber(ARGV[4]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return new
`)
	rateSet = conn.NewScript(`
redis.call('HSET', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'keepAliveTime', ARGV[4], 'type', ARGV[3])
if tonumber(ARGV[4]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
redis.call('HDEL', KEYS[1], 'ebb-members')
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return 1
`)
	// rateEvery: ARGV a command, and its argument.
	rateEvery = conn.NewScript(`
local changed = 0
for i, key in ipairs(KEYS) do
  local n = redis.call(ARGV[1], key, unpack(ARGV, 2))
  if i == 1 then changed = n end
end
return changed
`)
)
