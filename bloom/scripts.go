package bloom

import "github.com/ebbdb/ebb/conn"

// The script layout. The hash KEYS[1] has
//
//	config           as config.String
//	j<slot>          the number of the generation that has the slot
//	l<slot>          its layers
//	n<slot>          values in its last layer
//	c<slot>          values that were added last in it
//
// and KEYS[2+slot*layers+layer] are its bitmaps, as many layers of each slot as the
// caller has seen. Arguments:
//
//	1 config  2 window, ms  3 generations  4 layers  5 whether it grows, 1 or 0
//	6 values of a full filter, 0: no end  7.. k of each layer, then their capacities,
//	then for each value and each layer k places
//
// Replies: an array with a number for each value; or where the caller does not know
// enough, {'config', the configuration} or {'layers', how many there are}.
const prelude = `
local hash, window, gens, layers = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local cfg = redis.call('HGET', hash, 'config')
if cfg and cfg ~= ARGV[1] then return {'config', cfg} end
local slots = gens + 1
local function field(name, slot) return tonumber(redis.call('HGET', hash, name .. slot) or 0) end
local current, oldest = 0, 0
if window > 0 then
	local t = redis.call('TIME')
	local now = t[1] * 1000 + math.floor(t[2] / 1000)
	current = math.floor(now * gens / window)
	oldest = current - gens
end
local deepest, live = 1, {}
for slot = 0, slots - 1 do
	local l = field('l', slot)
	if l > 0 and field('j', slot) >= oldest then
		live[#live + 1] = {slot = slot, number = field('j', slot), layers = l}
		if l > deepest then deepest = l end
	end
end
if deepest > layers then return {'layers', deepest} end
table.sort(live, function(a, b) return a.number > b.number end)
local k, at = {}, 7
for i = 1, layers do k[i] = tonumber(ARGV[at]) at = at + 1 end
local room = {}
for i = 1, layers do room[i] = tonumber(ARGV[at]) at = at + 1 end
local width, offset = 0, {}
for i = 1, layers do offset[i] = width width = width + k[i] end
local function key(slot, layer) return KEYS[1 + slot * layers + layer] end
local function has(g, from)
	for layer = 1, g.layers do
		local ask = {'BITFIELD', key(g.slot, layer)}
		for i = 1, k[layer] do
			ask[#ask + 1] = 'GET'
			ask[#ask + 1] = 'u1'
			ask[#ask + 1] = ARGV[from + offset[layer] + i - 1]
		end
		ask[1] = BITFIELD
		local all = true
		for _, bit in ipairs(redis.call(unpack(ask))) do
			if bit == 0 then all = false break end
		end
		if all then return true end
	end
	return false
end
local out = {}
`

// containsScript replies 1 and 0.
var containsScript = conn.NewScript(`local BITFIELD = 'BITFIELD_RO'` + prelude + `
while at <= #ARGV do
	local found = 0
	for _, g in ipairs(live) do
		if has(g, at) then found = 1 break end
	end
	out[#out + 1] = found
	at = at + width
end
return out
`)

// addScript replies 1 for a value that is new, 0 for one that was there, -1 for one
// that there is no room for. When a generation needs more layers than the caller gave,
// the script stops, and replies {'layers', n, replies so far}.
var addScript = conn.NewScript(`local BITFIELD = 'BITFIELD'` + prelude + `
local full = tonumber(ARGV[6])
local keep = 0
if window > 0 then keep = string.format('%.0f', window + 2 * math.ceil(window / gens)) end
if not cfg then redis.call('HSET', hash, 'config', ARGV[1]) end
if window > 0 then redis.call('PEXPIRE', hash, keep) end
local total = 0
for _, g in ipairs(live) do total = total + field('c', g.slot) end
local mine = live[1] -- newer than current, if time went backwards: then it takes what comes
local function begin()
	local slot = current % slots
	for layer = 1, layers do redis.call('DEL', key(slot, layer)) end
	redis.call('HSET', hash, 'j' .. slot, string.format('%.0f', current), 'l' .. slot, 1, 'n' .. slot, 0, 'c' .. slot, 0)
	mine = {slot = slot, number = current, layers = 1}
	table.insert(live, 1, mine)
end
while at <= #ARGV do
	local found
	for _, g in ipairs(live) do
		if has(g, at) then found = g break end
	end
	if found and found.number >= current then
		out[#out + 1] = 0
	elseif not found and full > 0 and total >= full then
		out[#out + 1] = -1
	else
		if not mine or mine.number < current then begin() end
		if field('n', mine.slot) >= room[mine.layers] and ARGV[5] == '1' then
			if mine.layers == layers then return {'layers', layers + 1, out} end
			mine.layers = mine.layers + 1
			redis.call('DEL', key(mine.slot, mine.layers))
			redis.call('HSET', hash, 'l' .. mine.slot, mine.layers, 'n' .. mine.slot, 0)
		end
		local put = {'BITFIELD', key(mine.slot, mine.layers)}
		for i = 1, k[mine.layers] do
			put[#put + 1] = 'SET'
			put[#put + 1] = 'u1'
			put[#put + 1] = ARGV[at + offset[mine.layers] + i - 1]
			put[#put + 1] = '1'
		end
		redis.call(unpack(put))
		if window > 0 then redis.call('PEXPIRE', put[2], keep) end
		redis.call('HINCRBY', hash, 'n' .. mine.slot, 1)
		redis.call('HINCRBY', hash, 'c' .. mine.slot, 1)
		if found then
			if field('c', found.slot) > 0 then redis.call('HINCRBY', hash, 'c' .. found.slot, -1) end
			out[#out + 1] = 0
		else
			total = total + 1
			out[#out + 1] = 1
		end
	end
	at = at + width
end
return out
`)

// countScript replies how many values live.
var countScript = conn.NewScript(`
local cfg = redis.call('HGET', KEYS[1], 'config')
if not cfg then return 0 end
local window, gens = string.match(cfg, '^%S+ %S+ %S+ %S+ (%S+) (%S+)$')
window, gens = tonumber(window), tonumber(gens)
local oldest, n = 0, 0
if window > 0 then
	local t = redis.call('TIME')
	oldest = math.floor((t[1] * 1000 + math.floor(t[2] / 1000)) * gens / window) - gens
end
for slot = 0, gens do
	local f = redis.call('HMGET', KEYS[1], 'j' .. slot, 'c' .. slot)
	if f[1] and tonumber(f[1]) >= oldest then n = n + tonumber(f[2]) end
end
return n
`)

// deleteScript takes the configuration and layers, and the keys that go with them.
// It replies nothing, or what the caller does not know, as the others do.
var deleteScript = conn.NewScript(`
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
	if all[i] == 'config' and all[i + 1] ~= ARGV[1] then return {'config', all[i + 1]} end
end
for i = 1, #all, 2 do
	if string.sub(all[i], 1, 1) == 'l' and tonumber(all[i + 1]) > tonumber(ARGV[2]) then
		return {'layers', tonumber(all[i + 1])}
	end
end
for _, key in ipairs(KEYS) do redis.call('DEL', key) end
return {}
`)
