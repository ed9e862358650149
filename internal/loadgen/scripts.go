package loadgen

import (
	"crypto/sha1"
	"encoding/hex"
)

// scriptTests are scripts of four kinds: a limiter, which calls a little and
// computes a little; one that builds strings; one that does nothing but call; and
// one that reads and writes JSON of about 10 kB.
var scriptTests = []typeTest{
	scriptTest("limiter", LimiterScript, []string{"1", "limit:__rand_int__", "100", "100", "60"}, 100_000),
	scriptTest("strings", StringsScript, []string{"0", "200"}, 0),
	scriptTest("calls", CallsScript, []string{"1", "counter", "1000"}, 0),
	scriptTest("json", JSONScript, []string{"0"}, 0),
}

func scriptTest(name, text string, args []string, keyspace int) typeTest {
	sum := sha1.Sum([]byte(text))
	return typeTest{name: name, load: 1, add: func(c *client, _ int) { c.add("SCRIPT", "LOAD", text) },
		args: append([]string{"EVALSHA", hex.EncodeToString(sum[:])}, args...), keyspace: keyspace}
}

// LimiterScript is the generic cell rate algorithm: KEYS[1] holds when the next
// request conforms, in seconds; ARGV burst, requests, per seconds.
const LimiterScript = `
local burst, requests, seconds = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = (time[1] - 1700000000) + time[2] / 1000000
local gap = seconds / requests
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + gap
local wait = due - gap * burst - now
if wait > 0 then return {0, 0, tostring(wait)} end
redis.call('SET', KEYS[1], tostring(due), 'EX', math.ceil(due - now))
return {1, math.floor(-wait / gap), '0'}
`

// StringsScript builds lines and a digest-like text with .., format, gsub, rep
// and table.concat; ARGV[1] is how many.
const StringsScript = `
local n, parts, text = tonumber(ARGV[1]), {}, ''
for i = 1, n do
  local line = 'item:' .. i .. ':' .. string.format('%05d', i * 7919 % 100000)
  parts[#parts + 1] = line:upper():sub(1, 12)
  text = text .. line .. ','
end
local all = table.concat(parts, ';')
local swapped, count = all:gsub('ITEM', 'thing')
local words = 0
for w in text:gmatch('[^,]+') do words = words + #w end
return {#text, #swapped, count, words, all:find('ITEM:150', 1, true)}
`

// CallsScript calls as often as ARGV[1] says.
const CallsScript = `
for i = 1, tonumber(ARGV[1]) / 2 do
  redis.call('INCR', KEYS[1])
  redis.call('GET', KEYS[1])
end
return redis.call('GET', KEYS[1])
`

// JSONScript encodes some 10 kB of JSON, and decodes them again.
const JSONScript = `
local list = {}
for i = 1, 100 do
  list[i] = {id = i, name = 'customer ' .. i, email = 'customer' .. i .. '@example.com',
    tags = {'new', 'weekly', 'north'}, balance = i * 1.25, active = i % 2 == 0}
end
local text = cjson.encode({customers = list, total = #list})
local back = cjson.decode(text)
return {#text, #back.customers}
`
