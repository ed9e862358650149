package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/kit"
)

// Schedules on servers without DQ.SCHEDULE. The keys:
//
//	{name}:cron    hash   schedule -> its rule and its state, in JSON
//	{name}:ticks   zset   schedule, by its next occurrence in ms
//	{name}:paused  string kept while the queue is paused, with a TTL if the pause has an end
//
// Lua cannot compute the next occurrence of a cron expression, so a consumer does. If schedules are due,
// takeScript replies with them instead of jobs. The consumer computes the next state of each for two cases:
// the previous job is in the queue, or is not. tickScript replaces the schedule if it is still the one that
// the consumer has read: one of several consumers succeeds, and adds the job and the next occurrence in one
// step.

const (
	// ticksDue is the first element of takeScript's reply if schedules are due.
	ticksDue = -2
	// maxTicks is the number of schedules that a call handles at most; see maxExpirations.
	maxTicks = "100"
	// maxTickRounds is the number of times that a call of take handles schedules at most before it takes jobs.
	maxTickRounds = 8
	// tickRetry is the number of ms after which consumers try again to handle a schedule that this program
	// cannot read: another program may be able to.
	tickRetry = 60_000
	// maxDeclares is the number of attempts of Schedule if other programs change the schedule meanwhile.
	maxDeclares = 10
)

// scheduleKeys returns the keys of schedules and of a pause, which follow the common keys.
func (s *scripts) scheduleKeys() []string {
	return []string{kit.Key(s.name, "cron"), kit.Key(s.name, "ticks"), kit.Key(s.name, "paused")}
}

const luaSchedulePrelude = luaPrelude + `
local cron, ticks, paused = KEYS[7], KEYS[8], KEYS[9]
-- pausedUntil returns the last ms of a pause, 0 without an end, -1 if there is no pause.
local function pausedUntil()
  local till = tonumber(call('GET', paused) or -1)
  if till > 0 and till < now then return -1 end
  return till
end
`

// record is a schedule in the hash.
type record struct {
	Every    int64  `json:"every,omitempty"` // ms
	Cron     string `json:"cron,omitempty"`
	Zone     string `json:"zone,omitempty"`
	From     int64  `json:"from,omitempty"` // ms since 1970, as the other instants
	Until    int64  `json:"until,omitempty"`
	Late     int64  `json:"late,omitempty"` // ms
	Overlap  bool   `json:"overlap,omitempty"`
	Priority uint8  `json:"priority,omitempty"`
	TTL      int64  `json:"ttl,omitempty"` // ms
	Next     int64  `json:"next"`
	Last     int64  `json:"last,omitempty"`
	Runs     int64  `json:"runs,omitempty"`
	Skipped  int64  `json:"skipped,omitempty"`
	TooLate  int64  `json:"toolate,omitempty"`
	Payload  []byte `json:"payload"`
}

// writeRecord returns the text of a schedule in the hash.
func writeRecord(s *cron.Schedule) string {
	text, _ := json.Marshal(record{Every: s.Every, Cron: s.Cron, Zone: s.Zone, From: s.From, Until: s.Until, Late: s.Late, Overlap: s.Overlap,
		Priority: s.Priority, TTL: s.Expire, Next: s.Next, Last: s.Last, Runs: s.Runs, Skipped: s.Skipped, TooLate: s.TooLate, Payload: s.Payload})
	return string(text)
}

// readRecord parses the text of a schedule in the hash, and checks it.
func readRecord(name, text string) (*cron.Schedule, error) {
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("%w: schedule %q: %w", conn.ErrValue, name, err)
	}
	s := &cron.Schedule{Name: []byte(name), Payload: r.Payload, Next: r.Next, Last: r.Last, Runs: r.Runs, Skipped: r.Skipped, TooLate: r.TooLate,
		Rule: cron.Rule{Every: r.Every, Cron: r.Cron, Zone: r.Zone, From: r.From, Until: r.Until, Late: r.Late, Overlap: r.Overlap, Priority: r.Priority,
			Expire: r.TTL}}
	if !s.Valid() || r.Every < 0 || r.Next <= 0 || r.Next > cron.MaxTime || r.Priority > maxPriority || r.TTL < 0 {
		return nil, fmt.Errorf("%w: schedule %q is %s", conn.ErrValue, name, text)
	}
	return s, nil
}

// readScheduleScript replies with the time in ms, and the record of a schedule. ARGV: wake, name.
var readScheduleScript = conn.NewScript(luaSchedulePrelude + `
return finish({now, call('HGET', cron, ARGV[2])})
`)

// setScheduleScript replaces a schedule. ARGV: wake, name, its current record ("": there is none), the new
// record, its next occurrence, and the greatest number of schedules. The reply is 0 if the current record
// differs, 2 if there are too many schedules.
var setScheduleScript = conn.NewScript(luaSchedulePrelude + `
local old = call('HGET', cron, ARGV[2]) or ''
if old ~= ARGV[3] then return finish(0) end
if old == '' and call('HLEN', cron) >= tonumber(ARGV[6]) then return finish(2) end
call('HSET', cron, ARGV[2], ARGV[4])
call('ZADD', ticks, ARGV[5], ARGV[2])
if call('ZRANGE', ticks, 0, 0)[1] == ARGV[2] then redis.pcall('PUBLISH', wake, 'schedule') end
return finish(1)
`)

// unscheduleScript removes schedules. ARGV: wake, whether it removes schedules that are due, names. If it may
// not, and some are due, it removes none and replies as takeScript does.
var unscheduleScript = conn.NewScript(luaSchedulePrelude + `
local n, due = 0, {now}
for i = 3, ARGV[2] == '1' and 2 or #ARGV do
  local at, record = call('ZSCORE', ticks, ARGV[i]), call('HGET', cron, ARGV[i])
  if at and record and tonumber(at) <= now and #due < 2 * ` + maxTicks + ` then
    table.insert(due, ARGV[i])
    table.insert(due, record)
  end
end
if due[2] then return finish(due) end
for i = 3, #ARGV do
  n = n + call('HDEL', cron, ARGV[i])
  call('ZREM', ticks, ARGV[i])
end
return finish(n)
`)

// schedulesScript replies with names and records.
var schedulesScript = conn.NewScript(luaSchedulePrelude + `return finish(call('HGETALL', cron))`)

// tickScript handles due schedules. ARGV: wake; then for each schedule: its name, its current record, the new
// record if the occurrence becomes a job, the new record if it does not, the next occurrence (0: none), the
// id of the job, the id of the previous job ("": Overlap), the due time (0: no job), payload, priority, TTL.
var tickScript = conn.NewScript(luaSchedulePrelude + `
local news, n = nil, 0
for i = 2, #ARGV, 11 do
  local name, old, id, before, due = ARGV[i], ARGV[i + 1], ARGV[i + 5], ARGV[i + 6], tonumber(ARGV[i + 7])
  if call('HGET', cron, name) == old then
    n = n + 1
    local run = due > 0 and not (before ~= '' and call('HEXISTS', jobs, before) == 1) and call('HEXISTS', jobs, id) == 0
    if run then
      local j = {id = id, leased = false, priority = tonumber(ARGV[i + 9]), deliveries = 0, number = number(), till = 0,
        ttl = tonumber(ARGV[i + 10]), max = 0, due = due, payload = ARGV[i + 8]}
      putJob(j)
      if not news or j.due < news.due then news = j end
    end
    if ARGV[i + 4] == '0' then
      call('HDEL', cron, name)
      call('ZREM', ticks, name)
    else
      call('HSET', cron, name, run and ARGV[i + 2] or ARGV[i + 3])
      call('ZADD', ticks, ARGV[i + 4], name)
    end
  end
end
if news then announce(news) end
return finish(n)
`)

func (s *scripts) schedule(ctx context.Context, want *cron.Schedule) (int64, error) {
	name := string(want.Name)
	for range maxDeclares {
		v, err := s.run(ctx, readScheduleScript, s.scheduleKeys(), name)
		if err != nil && !errors.Is(err, conn.ErrNotReplicated) {
			return 0, err
		}
		if len(v.Elems) < 1 {
			return 0, errorReply("a schedule", v)
		}
		now, text, next := v.Elems[0].Int, "", *want
		var old *cron.Schedule
		if len(v.Elems) > 1 && !v.Elems[1].IsNull() {
			text = v.Elems[1].String()
			old, _ = readRecord(name, text) // a record that cannot be read is replaced
		}
		if old != nil && old.Next <= now { // its last occurrence belongs to the schedule that is replaced
			due := v.Elems[1]
			due.Str = name
			if err := s.tick(ctx, []conn.Value{v.Elems[0], due, v.Elems[1]}); err != nil {
				return 0, err
			}
			continue
		}
		if err := initialRecord(&next, old, now); err != nil {
			return 0, err
		}
		v, err = s.run(ctx, setScheduleScript, s.scheduleKeys(), name, text, writeRecord(&next), next.Next, cron.MaxSchedules)
		switch {
		case v.Int == 1:
			return next.Next, err
		case err != nil:
			return 0, err
		case v.Int == 2:
			return 0, fmt.Errorf("%w: it has %d schedules", ErrFull, cron.MaxSchedules)
		}
	}
	return 0, fmt.Errorf("%w: other clients changed the schedule %d times meanwhile", conn.ErrConflict, maxDeclares)
}

// initialRecord gives a schedule the state of the one that it replaces, or its first occurrence.
func initialRecord(s, old *cron.Schedule, now int64) error {
	if s.Continue(old) {
		return nil
	}
	if s.From == 0 && s.Every > 0 {
		s.From = now
	}
	there, err := s.Start(now)
	if err == nil && !there {
		err = ErrNever
	}
	return err
}

func (s *scripts) unschedule(ctx context.Context, names []string) (int64, error) {
	for n := 0; ; n++ {
		v, err := s.run(ctx, unscheduleScript, s.scheduleKeys(), append([]any{n == maxTickRounds}, idArgs(names)...)...)
		if len(v.Elems) == 0 {
			return kit.Number(v, err)
		}
		if err := s.tick(ctx, v.Elems); err != nil {
			return 0, err
		}
	}
}

func (s *scripts) schedules(ctx context.Context) ([]*cron.Schedule, error) {
	v, err := s.run(ctx, schedulesScript, s.scheduleKeys())
	if err != nil {
		return nil, err
	}
	var all []*cron.Schedule
	for i := 0; i+1 < len(v.Elems); i += 2 {
		r, err := readRecord(v.Elems[i].String(), v.Elems[i+1].String())
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *cron.Schedule) int { return cmp.Compare(string(a.Name), string(b.Name)) })
	return all, nil
}

// tick handles the schedules in a reply to takeScript: the time, then the name and the record of each.
func (s *scripts) tick(ctx context.Context, due []conn.Value) error {
	if len(due)%2 == 0 {
		return errorReply("a pop", conn.Value{Elems: due})
	}
	now, args := due[0].Int, []any(nil)
	for i := 1; i < len(due); i += 2 {
		args = append(args, occurrence(due[i].String(), due[i+1].String(), now)...)
	}
	_, err := s.run(ctx, tickScript, s.scheduleKeys(), args...)
	if errors.Is(err, conn.ErrNotReplicated) {
		return nil // the script has run; the call that takes jobs waits for replicas too
	}
	return err
}

// occurrence returns the arguments of tickScript for a schedule.
func occurrence(name, text string, now int64) []any {
	r, err := readRecord(name, text)
	if err == nil {
		err = r.Parse()
	}
	if err != nil {
		return []any{name, text, text, text, now + tickRetry, "", "", 0, "", 0, 0}
	}
	run, skip := r.Tick(now, false), r.Tick(now, true)
	id, before := "", ""
	if run.Due != 0 {
		id = name + "@" + strconv.FormatInt(run.Due, 10)
	}
	if r.Last != 0 && !r.Overlap {
		before = name + "@" + strconv.FormatInt(r.Last, 10)
	}
	return []any{name, text, writeRecord(r.Ticked(run)), writeRecord(r.Ticked(skip)), run.Next, id, before, run.Due, r.Payload, r.Priority, r.Expire}
}
