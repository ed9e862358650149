package lock

import (
	"context"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/locking"
)

// A number of permits with a line, on servers without LOCK.* and SEM.*. A fair lock is one permit; a read-write lock has allPermits,
// of which a reader takes one and a writer all. internal/holders implements the same for ebb. The keys, each with a TTL:
//
//	name          zset: owner -> end of its lease, ms
//	{name}:held   hash: owner -> "permits:token"; "" -> their sum
//	{name}:fence  the last token; expires a day after the last lease
//	{name}:line   zset: waiting owner -> its place
//	{name}:alive  zset: waiting owner -> the instant at which scripts remove it, ms
//
// The scripts grant permits to the first waiter in line only, so that no request overtakes a larger one. A message on the channel
// {name}:wake names the waiter that is to poll. Each call removes expired leases and waiters, at most some hundreds, so it mostly
// costs O(log N).

// allPermits is the number of permits that a writer takes.
const allPermits = 1 << 30

// linePrelude begins each script: it reads the time, and removes expired leases and waiters.
const linePrelude = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function drop(owner)
  local had = redis.call('HGET', KEYS[2], owner)
  redis.call('ZREM', KEYS[1], owner)
  if not had then return end
  redis.call('HDEL', KEYS[2], owner)
  if redis.call('HINCRBY', KEYS[2], '', -tonumber(string.match(had, '^%d+'))) <= 0 then
    redis.call('DEL', KEYS[2])
  end
end
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now, 'LIMIT', 0, 200)) do
  drop(owner)
end
local expired = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', '(' .. now, 'LIMIT', 0, 200)
for _, owner in ipairs(expired) do
  redis.call('ZREM', KEYS[4], owner)
  redis.call('ZREM', KEYS[5], owner)
end
local function keep(owner, lease)
  redis.call('ZADD', KEYS[1], now + lease, owner)
  local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', KEYS[1], last)
  redis.call('PEXPIREAT', KEYS[2], last)
end
local function wake(channel)
  local head = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if head then redis.pcall('PUBLISH', channel, head) end
end
`

var acquireInLineScript = conn.NewScript(linePrelude + `
local owner, want, limit, channel = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[6]
local lease, timeout = tonumber(ARGV[4]), tonumber(ARGV[5])
local mine = redis.call('HGET', KEYS[2], owner)
if mine then
  keep(owner, lease)
  return {string.match(mine, '%d+$'), 0}
end
local head = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
local sum = tonumber(redis.call('HGET', KEYS[2], '') or 0)
if (not head or head == owner) and sum + want <= limit then
  if head then
    redis.call('ZREM', KEYS[4], owner)
    redis.call('ZREM', KEYS[5], owner)
  end
  local token = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('GET', KEYS[3]) or 0)
  if last >= token then token = last + 1 end
  token = string.format('%.0f', token)
  redis.call('SET', KEYS[3], token, 'PX', lease + 86400000)
  redis.call('HSET', KEYS[2], owner, want .. ':' .. token)
  redis.call('HINCRBY', KEYS[2], '', want)
  keep(owner, lease)
  if sum + want < limit then wake(channel) end
  return {token, 0}
end
if timeout > 0 then
  if not redis.call('ZSCORE', KEYS[4], owner) then
    local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[4], tonumber(last or 0) + 1, owner)
  end
  redis.call('ZADD', KEYS[5], now + timeout, owner)
  redis.call('PEXPIRE', KEYS[4], timeout)
  redis.call('PEXPIRE', KEYS[5], timeout)
end
if #expired > 0 then wake(channel) end
local ends = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if not ends then return {'0', 0} end
return {'0', math.max(ends - now + 1, 1)}
`)

var renewInLineScript = conn.NewScript(linePrelude + `
local mine = redis.call('HGET', KEYS[2], ARGV[1])
if not mine or string.match(mine, '%d+$') ~= ARGV[2] then return 0 end
keep(ARGV[1], tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[3], ARGV[3] + 86400000)
return 1
`)

// releaseInLineScript releases the permits of the owner if the token is its token or 0, and removes the owner from the line.
var releaseInLineScript = conn.NewScript(linePrelude + `
local mine = redis.call('HGET', KEYS[2], ARGV[1])
local found = 0
if mine and (ARGV[2] == '0' or string.match(mine, '%d+$') == ARGV[2]) then
  drop(ARGV[1])
  found = 1
end
if ARGV[2] == '0' then
  redis.call('ZREM', KEYS[4], ARGV[1])
  redis.call('ZREM', KEYS[5], ARGV[1])
end
wake(ARGV[3])
return found
`)

// scriptLine implements locking.Acquirer by these scripts.
type scriptLine struct {
	c        *conn.Conn
	name     string
	ttl      int64 // ms
	limit, n int64
	keys     keys
}

func (s scriptLine) scriptKeys() []string {
	return []string{s.name, s.keys.held, s.keys.fence, s.keys.line, s.keys.alive}
}

func (s scriptLine) Try(ctx context.Context, owner string, queue bool) (locking.Reply, error) {
	timeout := 0 // 0: the script does not add the owner to the line
	if queue {
		timeout = waiterTimeout
	}
	return locking.ScriptReply(s.c.Script(ctx, acquireInLineScript, s.scriptKeys(), owner, s.n, s.limit, s.ttl, timeout, s.keys.wake))
}

func (s scriptLine) Renew(ctx context.Context, owner string, token int64) error {
	return locking.Renewed(locking.Integer(s.c.Script(ctx, renewInLineScript, s.scriptKeys(), owner, token, s.ttl)))
}

func (s scriptLine) Release(ctx context.Context, owner string, token int64) (bool, error) {
	return locking.Boolean(locking.Integer(s.c.Script(ctx, releaseInLineScript, s.scriptKeys(), owner, token, s.keys.wake)))
}

func (s scriptLine) Abandon(ctx context.Context, owner string) error {
	_, err := s.Release(ctx, owner, 0)
	return err
}

func (scriptLine) Repeatable() bool { return true }
