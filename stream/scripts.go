package stream

import "github.com/ebbdb/ebb/conn"

// The scripts of a group have the keys stream, retry set and dead letters, and
// first the arguments
//
//	1 group  2 consumer  3 MaxDeliveries, 0: no end  4 DeadLen  5 DeadTTL, ms
//
// held returns the pending entry of an ID, or nil. bury makes an entry a dead letter and acknowledges it; a deleted entry becomes no
// dead letter.
const prelude = `
local group, me, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local function ms()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function held(id)
	return redis.call('XPENDING', KEYS[1], group, id, id, 1)[1]
end
local function bury(id, deliveries)
	local e = redis.call('XRANGE', KEYS[1], id, id)[1]
	if e then
		local v
		for i = 1, #e[2], 2 do
			if e[2][i] == 'v' or e[2][i] == 'payload' then v = e[2][i + 1] end
		end
		if v then
			redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'v', v, 'id', id, 'deliveries', deliveries)
		else
			redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'id', id, 'deliveries', deliveries)
		end
		redis.call('PEXPIRE', KEYS[3], ARGV[5])
	end
	redis.call('XACK', KEYS[1], group, id)
	redis.call('ZREM', KEYS[2], id)
end
`

// takeScript delivers entries to a consumer: first those whose Nack delay has passed, then abandoned ones, and without either new
// ones. Further arguments:
//
//	6 ClaimAfter, ms  7 count  8 the ID after which the search for abandoned entries begins, "-": the beginning
//	9 the number of pending entries to search, 0: none
//
// The reply has the deliveries, each ID, fields and number; the ID at which the search continues, "-" at the end; and the ms until
// another known entry falls due, -1: unknown.
var takeScript = conn.NewScript(prelude + `
local idle, want, after, look = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
local now, soon, got = ms(), -1, {}
local function give(id, deliveries)
	redis.call('ZREM', KEYS[2], id)
	if most > 0 and deliveries >= most then
		bury(id, deliveries)
		return
	end
	local e = redis.call('XCLAIM', KEYS[1], group, me, 0, id)[1]
	if e and e[2] then
		got[#got + 1] = {id, e[2], deliveries + 1}
	else
		redis.call('XACK', KEYS[1], group, id) -- the entry was deleted
	end
end
local function due(d)
	if soon < 0 or d < soon then soon = d end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, want)) do
	local p = held(id)
	if p then give(id, p[4]) else redis.call('ZREM', KEYS[2], id) end
end
if look > 0 and #got < want then
	local from = after
	if from ~= '-' then from = '(' .. from end
	local page = redis.call('XPENDING', KEYS[1], group, from, '+', look)
	local done = true
	for _, p in ipairs(page) do
		if #got >= want then done = false break end
		after = p[1]
		if p[3] < idle then
			due(idle - p[3])
		elseif not redis.call('ZSCORE', KEYS[2], p[1]) then
			give(p[1], p[4])
		end
	end
	if done and #page < look then after = '-' end
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] then due(math.max(first[2] - now, 0)) end
if #got == 0 then
	local r = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', want, 'STREAMS', KEYS[1], '>')
	if r and r[1] then
		for _, e in ipairs(r[1][2]) do
			got[#got + 1] = {e[1], e[2], 1}
		end
	end
end
return {got, after, soon}
`)

// What the scripts of a delivery return.
const (
	settledDone = 1
	settledGone = 0  // the entry is pending for no consumer
	settledLost = -1 // the entry is pending for another consumer, or for this one again
)

// deliveryPrelude begins the scripts of a delivery. Further arguments:
//
//	6 ID  7 number of the delivery
const deliveryPrelude = prelude + `
local id = ARGV[6]
local p = held(id)
if not p then return 0 end
if p[2] ~= me or p[4] ~= tonumber(ARGV[7]) then return -1 end
`

var ackScript = conn.NewScript(deliveryPrelude + `
redis.call('XACK', KEYS[1], group, id)
redis.call('ZREM', KEYS[2], id)
return 1
`)

// nackScript delays the entry: 8 the delay, 9 the shortest time for which the retry set must be kept, both in ms. A repeated call changes
// nothing.
var nackScript = conn.NewScript(deliveryPrelude + `
if most > 0 and p[4] >= most then
	bury(id, p[4])
	return 1
end
redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', ms() + tonumber(ARGV[8])), id)
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[9]) then
	redis.call('PEXPIRE', KEYS[2], ARGV[9])
end
return 1
`)

// extendScript extends a delivery, unless a Nack has returned the entry.
var extendScript = conn.NewScript(deliveryPrelude + `
if redis.call('ZSCORE', KEYS[2], id) then return 0 end
if #redis.call('XCLAIM', KEYS[1], group, me, 0, id, 'JUSTID') == 0 then return 0 end
return 1
`)

// leaveScript removes a consumer without pending entries from its group. It also removes up to a hundred dead consumers with names of 32
// characters, as kit.ID makes them: they have no pending entries and were idle for ARGV[3] ms.
var leaveScript = conn.NewScript(`
local gone = 0
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
	local x = {}
	for i = 1, #c, 2 do x[c[i]] = c[i + 1] end
	if #x.name == 32 and x.pending == 0 and x.idle >= tonumber(ARGV[3]) and gone < 100 then
		redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], x.name)
		gone = gone + 1
	end
end
local p = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if #p == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2]) end
return 1
`)

// redriven is the consumer that has redriven entries until another claims them.
const redriven = "(redriven)"

// groupField is the field of an entry for one group only; its value is the name of the group.
const groupField = "for"

// redriveScript delivers up to ARGV[6] dead letters again. The entry becomes pending and due, without deliveries; if the stream no longer
// has it, the script adds it for the group. ARGV[7] is the shortest time for which the retry set must be kept, ms. It drops letters without
// a value. The reply is {moved, seen}.
var redriveScript = conn.NewScript(prelude + `
redis.call('XPENDING', KEYS[1], group) -- fails where there is no group
local n, now = 0, string.format('%.0f', ms())
local page = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', ARGV[6])
for _, e in ipairs(page) do
	local v, id
	for i = 1, #e[2], 2 do
		if e[2][i] == 'v' then v = e[2][i + 1] elseif e[2][i] == 'id' then id = e[2][i + 1] end
	end
	if v then
		n = n + 1
		if id and redis.call('XRANGE', KEYS[1], id, id)[1] then
			if not held(id) then
				redis.call('XCLAIM', KEYS[1], group, me, 0, id, 'RETRYCOUNT', 0, 'FORCE', 'JUSTID')
				redis.call('ZADD', KEYS[2], now, id)
			end
		else
			redis.call('XADD', KEYS[1], '*', 'v', v, '` + groupField + `', group)
		end
	end
	redis.call('XDEL', KEYS[3], e[1])
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[7]) then
	redis.call('PEXPIRE', KEYS[2], ARGV[7])
end
return {n, #page}
`)
