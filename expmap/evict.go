package expmap

// Eviction selects the entry that a full map removes for a new one.
type Eviction int

// These are the evictions.
const (
	// NoEviction refuses the new entry with ErrFull.
	NoEviction Eviction = iota
	// LRU removes the least recently used entry.
	LRU
	// LFU removes the entry with the fewest uses since it was added; among several such entries, the one with
	// the smallest encoded key.
	LFU
)

// String returns Redisson's name of the eviction.
func (e Eviction) String() string {
	switch e {
	case LRU:
		return "LRU"
	case LFU:
		return "LFU"
	}
	return ""
}

// refuseFull is the function full for maps without an eviction.
const refuseFull = `
local function done(reply) return reply end
local function full(n) return maxlen > 0 and living() + n > maxlen end
`

// optionLimits passes the limit and the mode of the map's options to evict. LRU numbers the uses, so that
// their order is exact within a millisecond and independent of the clock.
const optionLimits = `
local limit, mode = maxlen, ARGV[8]
local function refused() return false end
local function after(last) return last + 1 end
`

// evict counts uses in the sorted set used, and removes the entries with the lowest scores when new ones need
// space. One script removes as many entries as it adds, and up to 100 more if the limit was lowered. Entries
// without a recorded use, written before the map had an eviction, are removed last.
const evict = `
local top, evicted = nil, 0
local function done(reply)
  if evicted == 0 then return reply end
  return {reply, evicted}
end
local function use(f)
  if not used then return end
  if mode == 'LFU' then
    if redis.call('ZINCRBY', used, 1, f) == '1' then dirty = true end
    return
  end
  if not top then
    top = tonumber(redis.call('ZRANGE', used, -1, -1, 'WITHSCORES')[2] or 0)
    dirty = dirty or top == 0
  end
  top = after(top)
  redis.call('ZADD', used, string.format('%.17g', top), f)
end
local putOnly, touchOnly = put, touch
local function put(f, v, ttl)
  putOnly(f, v, ttl)
  use(f)
end
local function touch(f, v)
  touchOnly(f, v)
  use(f)
end
local function full(n, keep)
  if refused(n) then return true end
  if limit == 0 then return false end
  local all = n
  if keep then
    all = 0
    for _ in pairs(keep) do all = all + 1 end
  end
  if all > limit then return true end
  local over = math.min(living() + n - limit, n + 100)
  local from = 0
  while over > 0 do
    local some = redis.call('ZRANGE', used, from, from + over - 1)
    if #some == 0 then break end
    for _, f in ipairs(some) do
      if keep and keep[f] then
        from = from + 1
      elseif look(f) then
        drop(f)
        over, evicted = over - 1, evicted + 1
      else
        redis.call('ZREM', used, f)
      end
    end
  end
  local cursor = '0'
  while over > 0 do
    local found = page(cursor, 100)
    for i = 1, #found[2], 2 do
      local f = found[2][i]
      if over > 0 and not (keep and keep[f]) then
        drop(f)
        over, evicted = over - 1, evicted + 1
      end
    end
    cursor = found[1]
    if cursor == '0' then break end
  end
  return over > 0
end
`

// fieldsEvict gives the recorded use of a field the deadline of the field. It is for ebb, where members of
// sorted sets have deadlines: so the set records no use of an entry that no longer exists. A field in its
// last millisecond cannot get its deadline again; its use is removed when it would be the next to be evicted.
const fieldsEvict = `
local function same(f)
  local at = redis.call('HPEXPIRETIME', map, 'FIELDS', 1, f)[1]
  if at > now then redis.call('ZPEXPIREAT', used, int(at), 'MEMBERS', 1, f)
  elseif at == -1 then redis.call('ZPERSIST', used, 'MEMBERS', 1, f) end
end
local putUsed, touchUsed, deadlineUsed = put, touch, setDeadline
local function put(f, v, ttl)
  putUsed(f, v, ttl)
  same(f)
end
local function touch(f, v)
  touchUsed(f, v)
  if idle > 0 then same(f) end
end
local function setDeadline(f, v, ttl)
  deadlineUsed(f, v, ttl)
  same(f)
end
`
