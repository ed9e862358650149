package layouts

import "github.com/ebbdb/ebb/internal/kit"

// MapCache is the layout of Redisson's RMapCache.
var MapCache = &Map{
	name: "Redisson's layout",
	keys: func(name string) [4]string {
		return [4]string{kit.Prefixed("redisson__timeout__set", name), kit.Prefixed("redisson__idle__set", name),
			kit.Prefixed("redisson__map_cache__last_access__set", name), kit.Key(name, "redisson_options")}
	},
	lua: Lua{Prelude: mapPrelude, Limits: mapLimits, Changes: mapChanges},
}

// mapPrelude: KEYS are the hash, the sorted set of deadlines, that of deadlines by idle time, that of uses (ms for LRU, a number
// for LFU), and a hash of options. A value is a double, the idle time in ms, the length of what follows as a uint64, and that.
// An entry is expired in the millisecond of its deadline already.
const mapPrelude = `
local ends, idles = KEYS[2], KEYS[3]
local shared = redis.call('HMGET', KEYS[5], 'max-size', 'mode')
local limit, mode = tonumber(shared[1] or 0), shared[2]
if limit <= 0 and ARGV[8] ~= '' then
  limit, mode = maxlen, ARGV[8]
  redis.call('HSET', KEYS[5], 'max-size', int(limit), 'mode', mode)
end
local used = limit > 0 and KEYS[4]
local most = {}
local function drop(f)
  redis.call('HDEL', map, f)
  redis.call('ZREM', ends, f)
  redis.call('ZREM', idles, f)
  if used then redis.call('ZREM', used, f) end
end
local function over(f)
  local deadline = redis.call('ZSCORE', ends, f)
  if deadline and tonumber(deadline) <= now then return true end
  deadline = redis.call('ZSCORE', idles, f)
  return deadline and tonumber(deadline) <= now
end
local function unpacked(packed)
  local rest, v = struct.unpack('<dLc0', packed)
  return rest, v
end
local function look(f)
  local packed = redis.call('HGET', map, f)
  if not packed then return false end
  if over(f) then
    drop(f)
    return false
  end
  local rest, v = unpacked(packed)
  most[f] = rest
  return v
end
local function mark(f, ttl)
  if ttl > 0 then redis.call('ZADD', ends, int(now + ttl), f) else redis.call('ZREM', ends, f) end
end
local function put(f, v, ttl)
  redis.call('HSET', map, f, struct.pack('<dLc0', idle, #v, v))
  mark(f, ttl)
  if idle > 0 then redis.call('ZADD', idles, int(now + idle), f) else redis.call('ZREM', idles, f) end
end
local function touch(f)
  if most[f] > 0 then redis.call('ZADD', idles, int(now + most[f]), f) end
end
local function setDeadline(f, v, ttl)
  mark(f, ttl)
  touch(f)
end
local function left(f)
  local a, b = redis.call('ZSCORE', ends, f), redis.call('ZSCORE', idles, f)
  if a and b then return math.min(tonumber(a), tonumber(b)) - now end
  if a or b then return tonumber(a or b) - now end
  return -1
end
local function living()
  local a, b = redis.call('ZCOUNT', ends, '-inf', int(now)), redis.call('ZCOUNT', idles, '-inf', int(now))
  if a == 0 or b == 0 then return redis.call('HLEN', map) - a - b end
  local dead, n = {}, 0 -- some may be in both
  for _, key in ipairs({ends, idles}) do
    for _, f in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', int(now))) do
      if not dead[f] then
        dead[f], n = true, n + 1
      end
    end
  end
  return redis.call('HLEN', map) - n
end
local function sweep(n)
  local count = 0
  for _, key in ipairs({ends, idles}) do
    for _, f in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', 0, n)) do
      drop(f)
      count = count + 1
    end
  end
  return count
end
local function page(cursor, n)
  local found = redis.call('HSCAN', map, cursor, 'COUNT', n)
  local some = {}
  for i = 1, #found[2], 2 do
    if not over(found[2][i]) then
      some[#some + 1] = found[2][i]
      local _, v = unpacked(found[2][i + 1])
      some[#some + 1] = v
    end
  end
  return {found[1], some}
end
local function next()
  local nearest = -1
  for _, key in ipairs({ends, idles}) do
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[1] then
      local at = math.max(tonumber(head[2]) - now, 0)
      if nearest < 0 or at < nearest then nearest = at end
    end
  end
  return nearest
end
local function clear() redis.call('UNLINK', map, ends, idles, KEYS[4]) end
local function seal() end
`

// mapLimits: a use of this millisecond follows those before by fractions of one.
const mapLimits = `
local function refused(n) return ARGV[8] == '' and maxlen > 0 and living() + n > maxlen end
local function after(last) return math.max(now, last + 1 / 1024) end
`

const mapChanges = `
local plain = false
local function bare(v) return v end
local function keep(f, v, new)
  rewrite(f, struct.pack('<dLc0', most[f], #new, new))
  touch(f)
end
`
