package loadgen

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
)

// timedTests are ebb's own commands, each beside the script that does the same job
// on a server without them: on the server's clock, in one call, with a TTL on
// whatever it leaves behind.
var timedTests = []typeTest{
	native("CL.THROTTLE", gcraScript, []string{"CL.THROTTLE", "limit:__rand_int__", "99", "100", "60"},
		[]string{"1", "limit:__rand_int__", "100", "100", "60"}),
	native("RL.TAKE gcra", gcraScript, []string{"RL.TAKE", "limit:__rand_int__", "100", "60000"},
		[]string{"1", "limit:__rand_int__", "100", "100", "60"}),
	native("RL.TAKE window", windowScript, []string{"RL.TAKE", "limit:__rand_int__", "100", "60000", "ALGO", "window"},
		[]string{"1", "limit:__rand_int__", "100", "60000"}),
	native("RL.TAKE log", logScript, []string{"RL.TAKE", "limit:__rand_int__", "100", "60000", "ALGO", "log"},
		[]string{"1", "limit:__rand_int__", "100", "60000"}),
	native("RL.TAKE fixed", fixedScript, []string{"RL.TAKE", "limit:__rand_int__", "100", "60000", "ALGO", "fixed"},
		[]string{"1", "limit:__rand_int__", "100", "60000"}),
	lockTest(),
	native("DQ.ADD", addScript, []string{"DQ.ADD", "{q}", "*", "__data__", "DELAY", "60000"},
		[]string{"3", "{q}:due", "{q}:data", "{q}:id", "__data__", "60000"}),
	popTest(),
}

// native returns a command of ours, and a script, over 100,000 keys.
func native(name, script string, ours, theirs []string) typeTest {
	t := evalTest(script, theirs)
	t.keyspace = 100_000
	return typeTest{name: name, args: ours, keyspace: 100_000, theirs: &t}
}

func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

func evalTest(script string, args []string) typeTest {
	return typeTest{load: 1, add: func(c *client, _ int) { c.add("SCRIPT", "LOAD", script) },
		args: append([]string{"EVALSHA", sha(script)}, args...)}
}

// lockTest acquires and releases one of many locks.
func lockTest() typeTest {
	const keys = 1_000_000 // two clients rarely want the same
	theirs := typeTest{load: 2, keyspace: keys,
		add:    func(c *client, i int) { c.add("SCRIPT", "LOAD", [...]string{acquireScript, releaseScript}[i]) },
		args:   []string{"EVALSHA", sha(acquireScript), "2", "{lock}:__rand_int__", "{lock}:fence", "owner-1", "30000"},
		follow: []string{"EVALSHA", sha(releaseScript), "1", "{lock}:__rand_int__", "owner-1", "__reply_0__"}}
	return typeTest{name: "LOCK.*", keyspace: keys, theirs: &theirs,
		args:   []string{"LOCK.ACQUIRE", "lock:__rand_int__", "owner-1", "30000"},
		follow: []string{"LOCK.RELEASE", "lock:__rand_int__", "owner-1", "__reply_0__"}}
}

// popTest takes due jobs and acknowledges them.
func popTest() typeTest {
	const jobs, taken = 1_000_000, 800_000
	theirs := typeTest{load: jobs + 2, requests: taken, add: func(c *client, i int) {
		switch {
		case i < 2:
			c.add("SCRIPT", "LOAD", [...]string{popScript, ackScript}[i])
		default:
			c.add("ZADD", "{q}:due", strconv.Itoa(i), strconv.Itoa(i))
			c.add("HSET", "{q}:data", strconv.Itoa(i), "0123456789abcdef")
		}
	},
		args:   []string{"EVALSHA", sha(popScript), "5", "{q}:due", "{q}:data", "{q}:leased", "{q}:tries", "{q}:tokens", "30000"},
		follow: []string{"EVALSHA", sha(ackScript), "4", "{q}:data", "{q}:leased", "{q}:tries", "{q}:tokens", "__reply_0__", "__reply_3__"}}
	return typeTest{name: "DQ.POP+ACK", load: jobs, requests: taken, theirs: &theirs,
		add:    func(c *client, i int) { c.add("DQ.ADD", "{q}", strconv.Itoa(i), "0123456789abcdef") },
		args:   []string{"DQ.POP", "{q}", "LEASE", "30000"},
		follow: []string{"DQ.ACK", "{q}", "__reply_0__", "__reply_3__"}}
}

// gcraScript is the generic cell rate algorithm: KEYS[1] holds when the bucket is
// full again, in seconds; ARGV burst, requests, per seconds.
const gcraScript = LimiterScript

// windowScript is a sliding window of two counters: KEYS[1] a hash of the current
// window's number, its count and the last one's; ARGV limit, window in ms.
const windowScript = `
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nr = math.floor(now / span)
local have = redis.call('HMGET', KEYS[1], 'nr', 'count', 'last')
local was, count, last = tonumber(have[1] or nr), tonumber(have[2] or 0), tonumber(have[3] or 0)
if was ~= nr then
  if was == nr - 1 then last = count else last = 0 end
  count = 0
end
local used = count + last * (span - now % span) / span
if used + 1 > limit then return {0, 0} end
redis.call('HSET', KEYS[1], 'nr', nr, 'count', count + 1, 'last', last)
redis.call('PEXPIRE', KEYS[1], 2 * span)
return {1, math.floor(limit - used - 1)}
`

// logScript is a sliding window of every instant: KEYS[1] a sorted set; ARGV limit,
// window in ms.
const logScript = `
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span * 1000)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then return {0, 0} end
redis.call('ZADD', KEYS[1], now, now .. ':' .. count)
redis.call('PEXPIRE', KEYS[1], span)
return {1, limit - count - 1}
`

// fixedScript counts in aligned windows: KEYS[1] the counter; ARGV limit, window
// in ms.
const fixedScript = `
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local count = redis.call('INCR', KEYS[1])
if count == 1 then
  local time = redis.call('TIME')
  redis.call('PEXPIRE', KEYS[1], span - (time[1] * 1000 + math.floor(time[2] / 1000)) % span)
end
if count > limit then return {0, 0} end
return {1, limit - count}
`

// acquireScript takes a lock with a fencing token: KEYS[1] the lock, KEYS[2] the
// tokens' counter; ARGV owner, lease in ms. releaseScript gives it back: ARGV
// owner, token.
const (
	acquireScript = `
local held = redis.call('GET', KEYS[1])
if held then
  local token = string.match(held, '^' .. ARGV[1] .. ':(%d+)$')
  if not token then return nil end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return token
end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. token, 'PX', ARGV[2])
return token
`
	releaseScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] .. ':' .. ARGV[2] then return redis.call('DEL', KEYS[1]) end
return 0
`
)

// addScript adds a job to be due later: KEYS due times, payloads, ids; ARGV payload,
// delay in ms. popScript leases the first that is due: KEYS due times, payloads,
// lease ends, deliveries, tokens; ARGV lease in ms. ackScript is done with it.
const (
	addScript = `
local time = redis.call('TIME')
local id = redis.call('INCR', KEYS[3])
redis.call('HSET', KEYS[2], id, ARGV[1])
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2], id)
return id
`
	popScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
if #due == 0 then return {} end
local id = due[1]
redis.call('ZREM', KEYS[1], id)
redis.call('ZADD', KEYS[3], now + ARGV[1], id)
local tries = redis.call('HINCRBY', KEYS[4], id, 1)
local token = time[1] .. ':' .. time[2] .. ':' .. tries
redis.call('HSET', KEYS[5], id, token)
return {id, redis.call('HGET', KEYS[2], id), tries, token, due[2]}
`
	ackScript = `
if redis.call('HGET', KEYS[4], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
return 1
`
)
