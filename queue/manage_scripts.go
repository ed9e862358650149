package queue

import (
	"context"

	"github.com/ebbdb/ebb/conn"
)

// The scripts of Peek, Get, Pause, Requeue and Reschedule, see lua.go.

const luaStateOf = `
local function state(j)
  if j.leased then return 'leased' end
  return j.due <= now and 'ready' or 'delayed'
end
`

// peekScript replies with jobs. ARGV: wake, state, the id of the job before the first ("": none), their
// number. The reply is -1 if that job does not exist. It merges the delayed jobs of all priorities, for which
// it reads up to ten times that number.
var peekScript = conn.NewScript(luaPrelude + luaStateOf + `
local want, most, reply = ARGV[2], tonumber(ARGV[4]), {}
local from
if ARGV[3] ~= '' then
  from = load(ARGV[3])
  if not from then return finish(-1) end
end
local function show(j)
  local e = {j.id, j.payload, j.deliveries, state(j), j.due}
  if j.leased then e[6], e[7] = j.number, j.till end
  table.insert(reply, e)
end
local function at(m)
  local j = load(string.sub(m, 17))
  return j and member(j) == m and j or nil
end
local behind = from and state(from)

if (want == 'all' or want == 'ready') and (not from or behind == 'ready') then
  for line = from and 9 - from.priority or 0, 9 do
    local base, rank = int(line * SPAN), 0
    local members
    if from and line == 9 - from.priority then
      rank = call('ZRANK', waiting, member(from)) + 1
      members = call('ZRANGE', waiting, rank, rank + most - 1)
    else
      members = call('ZRANGEBYSCORE', waiting, base, int(line * SPAN + now), 'LIMIT', 0, most)
    end
    for _, m in ipairs(members) do
      local j = at(m)
      if j and #reply < most and 9 - j.priority == line and j.due <= now then show(j) end
    end
  end
end

if (want == 'all' or want == 'delayed') and #reply < most and behind ~= 'leased' then
  local found, order = {}, 0
  for line = 0, 9 do
    local base, members = line * SPAN, nil
    if behind == 'delayed' and line == 9 - from.priority then
      local rank = call('ZRANK', waiting, member(from)) + 1
      members = call('ZRANGE', waiting, rank, rank + most - 1)
    else
      local low = '(' .. int(base + now)
      if behind == 'delayed' then
        low = (line < 9 - from.priority and '(' or '') .. int(base + from.due)
      end
      members = call('ZRANGEBYSCORE', waiting, low, '(' .. int(base + SPAN), 'LIMIT', 0, most)
    end
    for _, m in ipairs(members) do
      local j = at(m)
      if j and 9 - j.priority == line then
        order = order + 1
        j.order = order
        table.insert(found, j)
      end
    end
  end
  table.sort(found, function(a, b)
    if a.due ~= b.due then return a.due < b.due end
    return a.order < b.order
  end)
  for _, j in ipairs(found) do
    if #reply < most then show(j) end
  end
end

if want == 'all' or want == 'leased' then
  local rank = 0
  if behind == 'leased' then rank = call('ZRANK', events, member(from)) + 1 end
  while #reply < most do
    local members = call('ZRANGE', events, rank, rank + 99)
    if not members[1] then break end
    for _, m in ipairs(members) do
      local j = at(m)
      if j and j.leased and #reply < most then show(j) end
    end
    rank = rank + 100
  end
end
return finish(reply)
`)

func (s *scripts) peek(ctx context.Context, state State, after string, count int) ([]storedEntry, error) {
	v, err := s.run(ctx, peekScript, nil, state.String(), after, count)
	if err != nil {
		return nil, err
	}
	if v.Int == -1 {
		return nil, ErrNoJob
	}
	return readEntries(v)
}

// getScript replies with a job. ARGV: wake, id.
var getScript = conn.NewScript(luaPrelude + luaStateOf + `
local j = load(ARGV[2])
if not j then return finish(0) end
return finish({j.id, j.payload, state(j), j.priority, j.deliveries, j.due, not j.leased and j.ttl > 0 and j.due + j.ttl or 0,
  j.leased and j.number or 0, j.till})
`)

func (s *scripts) get(ctx context.Context, id string) (r storedEntry, err error) {
	v, err := s.run(ctx, getScript, nil, id)
	if err != nil {
		return r, err
	}
	f := v.Elems
	if len(f) == 0 {
		return r, ErrNoJob
	}
	if len(f) != 9 {
		return r, errorReply("a job", v)
	}
	return storedEntry{storedJob: storedJob{id: f[0].String(), payload: f[1].String(), deliveries: f[4].Int, due: f[5].Int, token: f[7].Int},
		state: f[2].String(), priority: f[3].Int, expires: f[6].Int, until: f[8].Int}, nil
}

// pauseScript begins or ends a pause. ARGV: wake, the length in ms (0: without an end; -1: end the pause).
// The value of the key is the last ms of the pause, 0 without an end.
var pauseScript = conn.NewScript(luaSchedulePrelude + `
local ms = tonumber(ARGV[2])
if ms < 0 then
  if call('DEL', paused) == 1 then redis.pcall('PUBLISH', wake, 'resume') end
elseif ms == 0 then
  call('SET', paused, '0')
else
  call('SET', paused, int(now + ms), 'PX', int(ms))
  redis.pcall('PUBLISH', wake, 'pause') -- for consumers that wait for the end of a longer pause
end
return finish(1)
`)

func (s *scripts) pause(ctx context.Context, ms int64) error {
	_, err := s.run(ctx, pauseScript, s.scheduleKeys(), ms)
	return err
}

func (s *scripts) resume(ctx context.Context) error { return s.pause(ctx, -1) }

// requeueScript makes jobs and dead letters due now. ARGV: wake, ids.
var requeueScript = conn.NewScript(luaPrelude + luaRevive + `
local n, added = 0, nil
for i = 2, #ARGV do
  local j = load(ARGV[i])
  if j then
    unindex(j)
    j.leased, j.deliveries, j.max, j.due, j.number, j.till, j.ttl = false, 0, 0, now, number(), 0, 0
    j.payload = uncounted(j.payload)
    putJob(j)
  else
    j = revive(ARGV[i])
  end
  if j then
    added = j
    n = n + 1
  end
end
if added then announce(added) end
return finish(n)
`)

func (s *scripts) requeue(ctx context.Context, ids []string) (int64, error) {
	return s.count(ctx, requeueScript, idArgs(ids)...)
}

// rescheduleScript makes a waiting job due later. ARGV: wake, id, delay.
var rescheduleScript = conn.NewScript(luaPrelude + luaUncounted + `
local j = load(ARGV[2])
if not j or j.leased then return finish(0) end
unindex(j)
j.deliveries, j.due, j.number, j.payload = 0, now + ARGV[3], number(), uncounted(j.payload)
putJob(j)
announce(j)
return finish(1)
`)

func (s *scripts) reschedule(ctx context.Context, id string, delay int64) (bool, error) {
	return s.boolean(ctx, rescheduleScript, id, delay)
}
