package near

import "github.com/ebbdb/ebb/conn"

func newScript(op string) *conn.Script { return conn.NewScript(prelude + op) }

// prelude begins each script. KEYS are the index and its deadlines (ms since 1970). ARGV are the number of expired members that a
// script removes first, then the arguments of the operation. If all members have deadlines, both keys expire after the last one.
const prelude = `
local index, due, bound = KEYS[1], KEYS[2], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(n) return string.format('%.0f', n) end
local function over(m)
  local deadline = redis.call('ZSCORE', due, m)
  return deadline and tonumber(deadline) < now
end
local function drop(m)
  redis.call('ZREM', due, m)
  return redis.call('ZREM', index, m)
end
local function sweep(n)
  for _, m in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', '(' .. int(now), 'LIMIT', 0, n)) do drop(m) end
end
local function there(m)
  if over(m) then drop(m) end
  return redis.call('ZSCORE', index, m)
end
local function seal()
  local n = redis.call('ZCARD', due)
  if n > 0 and n == redis.call('ZCARD', index) then
    local at = int(tonumber(redis.call('ZRANGE', due, -1, -1, 'WITHSCORES')[2]) + 1)
    redis.call('PEXPIREAT', index, at)
    redis.call('PEXPIREAT', due, at)
  else
    redis.call('PERSIST', index)
    redis.call('PERSIST', due)
  end
end
`

var (
	placeScript = newScript(`
sweep(bound)
local m, ttl = ARGV[4], tonumber(ARGV[5])
redis.call('GEOADD', index, ARGV[2], ARGV[3], m)
if ttl > 0 then redis.call('ZADD', due, int(now + ttl), m) else redis.call('ZREM', due, m) end
seal()
return 1
`)
	removeScript = newScript(`
sweep(bound)
local n = 0
for i = 2, #ARGV do
  if there(ARGV[i]) then n = n + drop(ARGV[i]) end
end
seal()
return n
`)
	// memberScript runs a command about one or two members, in meters.
	memberScript = newScript(`
sweep(bound)
for i = 3, #ARGV do there(ARGV[i]) end
seal()
if ARGV[4] then return redis.call(ARGV[2], index, ARGV[3], ARGV[4], 'm') end
return redis.call(ARGV[2], index, ARGV[3])
`)
	ttlScript = newScript(`
local m = ARGV[2]
if over(m) or not redis.call('ZSCORE', index, m) then return -2 end
local deadline = redis.call('ZSCORE', due, m)
if deadline then return tonumber(deadline) - now end
return -1
`)
	lenScript = newScript(`
sweep(bound)
seal()
return redis.call('ZCARD', index) - redis.call('ZCOUNT', due, '-inf', '(' .. int(now))
`)
	// searchScript runs GEOSEARCH with ARGV[3] and on, for ARGV[2] members, 0 for all.
	// If the result has expired members, it requests twice as many.
	searchScript = newScript(`
sweep(bound)
if ARGV[3] == 'FROMMEMBER' then there(ARGV[4]) end
seal()
local want = tonumber(ARGV[2])
local ask = want
while true do
  local cmd = {'GEOSEARCH', index}
  for i = 3, #ARGV do cmd[#cmd + 1] = ARGV[i] end
  cmd[#cmd + 1] = 'ASC'
  if want > 0 then
    cmd[#cmd + 1] = 'COUNT'
    cmd[#cmd + 1] = ask
  end
  cmd[#cmd + 1] = 'WITHDIST'
  cmd[#cmd + 1] = 'WITHCOORD'
  local found, some = redis.call(unpack(cmd)), {}
  for _, f in ipairs(found) do
    if not over(f[1]) and (want == 0 or #some < want) then some[#some + 1] = f end
  end
  if want == 0 or #some == want or #found < ask then return some end
  ask = ask * 2
end
`)
	// sweepScript removes expired members. The reply is the ms until the next one expires.
	sweepScript = newScript(`
sweep(tonumber(ARGV[2]))
seal()
local head = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
if not head[1] then return -1 end
return math.max(tonumber(head[2]) - now + 1, 0)
`)
)
