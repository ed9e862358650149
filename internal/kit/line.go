package kit

// This file is a line of waiters in Lua: the scripts of package limit and of
// redisson.RateLimiter serve calls that wait in FIFO order.
//
//	line    a sorted set of tickets by their turn
//	leases  a hash, whose key ends in "heard", with the lease of each ticket, in us: a waiter renews it, and the scripts skip one
//	        whose lease is over
//
// Both keys exist only while a call waits.

// LineNow begins a script: the server's time in us, and functions for numbers.
const LineNow = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local fmod, floor, ceil, max, min = math.fmod, math.floor, math.ceil, math.max, math.min
local function num(i) return tonumber(ARGV[i]) end
local function int(x) return string.format('%.0f', x) end
`

// LineFirst is first(line, leases): it returns the first waiter in the line, and removes those whose lease is over. It follows
// LineNow.
const LineFirst = `
local function first(line, leases)
  for _ = 1, 200 do
    local t = redis.call('ZRANGE', line, 0, 0)[1]
    if not t then return nil end
    local till = redis.call('HGET', leases, t)
    if till and tonumber(till) >= now then return t end
    redis.call('ZREM', line, t)
    redis.call('HDEL', leases, t)
  end
  return ''
end
`

// LineLeave is a script that removes a waiter. KEYS the line and the leases in it; ARGV the ticket.
const LineLeave = `
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
`
