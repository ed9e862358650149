package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// The report and the outcome of a job are in the string {name}:state:ID, for Options.Keep:
//
//	ms since 1970 at which it was done, 0 before   space   report in JSON
//
// A push of a job with that id removes them if its Options have Keep. Cancel and Discard do so too. The
// outcome is always that of the last job of the id.

// Status is the state of a job, as Queue.Status reports it.
type Status struct {
	// State is Ready, Delayed, Leased, Done or DeadLetter.
	State State
	// Progress is the progress that Job.Progress last reported, 0 to 1, and Note its text.
	Progress float64
	Note     string
	// Result is the result that Job.SetResult has set, if State is Done.
	Result []byte
	// DoneAt is the instant of the Ack, by the backend's clock, if State is Done.
	DoneAt time.Time
}

// report is the data that a consumer reports about a job.
type report struct {
	Progress float64 `json:"p,omitempty"`
	Note     string  `json:"n,omitempty"`
	Result   []byte  `json:"r,omitempty"`
}

func (r *report) text() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// Progress reports the share of the job that is done, 0 to 1, and a short text, for Queue.Status. It needs
// Options.Keep, and costs one round trip. Errors: ebb.ErrArgument; ErrLost if the caller no longer has the
// job.
func (j *Job[T]) Progress(ctx context.Context, done float64, note string) error {
	what := fmt.Sprintf("progress of job %q", j.ID)
	switch {
	case j.q.o.Keep == 0:
		return j.q.failed(what, fmt.Errorf("%w: Progress needs a queue with Options.Keep", conn.ErrArgument))
	case done < 0 || done > 1 || done != done:
		return j.q.failed(what, fmt.Errorf("%w: the progress is %v; it must be from 0 to 1", conn.ErrArgument, done))
	case !utf8.ValidString(note):
		return j.q.failed(what, fmt.Errorf("%w: the note is %q; it must be UTF-8", conn.ErrArgument, note))
	}
	ok, err := j.q.store().note(ctx, &j.stored, (&report{Progress: done, Note: note}).text(), kit.Millis(j.q.o.Keep), false)
	return j.outcome("progress", ok, err)
}

// SetResult sets the result that Ack stores for Queue.Status, if the queue has Options.Keep. The Ack of Run
// stores it too. SetResult sends nothing and keeps the slice. It must not be called while another goroutine
// settles the job.
func (j *Job[T]) SetResult(result []byte) { j.result = result }

// Status returns the state of a job, and the progress or the result that its consumer has reported. After its
// Ack the state is Done for Options.Keep; the consumer's Options count. Of several jobs of one id Status
// knows the last, if that one was pushed through a queue with Keep. It costs one round trip. Errors: ErrNoJob
// if the queue does not have the job and no longer knows that it is done.
func (q *Queue[T]) Status(ctx context.Context, id string) (s Status, err error) {
	state, text, err := q.store().status(ctx, id)
	if err != nil {
		return s, q.failed(fmt.Sprintf("status of %q", id), err)
	}
	at, body, _ := strings.Cut(text, " ")
	done, _ := strconv.ParseInt(at, 10, 64)
	var r report
	if body != "" {
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			return s, q.failed(fmt.Sprintf("status of %q", id), fmt.Errorf("%w: %w", conn.ErrValue, err))
		}
	}
	switch {
	case state == "dead":
		s = Status{State: DeadLetter, Progress: r.Progress, Note: r.Note}
	case state != "":
		s.State = stateOf(state)
		if done == 0 {
			s.Progress, s.Note = r.Progress, r.Note
		}
	case done > 0:
		s = Status{State: Done, Progress: 1, Note: r.Note, Result: r.Result, DoneAt: time.UnixMilli(done)}
	default:
		return s, q.failed(fmt.Sprintf("status of %q", id), ErrNoJob)
	}
	return s, nil
}

func stateKey(name, id string) string { return kit.Key(name, "state:"+id) }

func stateKeys(name string, ids []string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = stateKey(name, id)
	}
	return keys
}

// forgets reports whether the push of jobs removes the outcomes of earlier jobs with their ids.
func forgets(items []pushItem) bool {
	return slices.ContainsFunc(items, func(p pushItem) bool { return p.forget })
}

// luaForget removes the outcome under a key, unless the job was done after an instant in ms.
const luaForget = `
local function forget(key, after)
  local kept = redis.call('GET', key)
  if kept and tonumber(string.match(kept, '^%d+')) <= tonumber(after) then redis.call('DEL', key) end
end
`

// nativeNoteScript stores a report. ARGV: id, token, report, its TTL, whether to acknowledge the job.
var nativeNoteScript = conn.NewScript(luaGetJob + `
local at = '0'
if ARGV[5] == '1' then
  if redis.call('DQ.ACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
  local time = redis.call('TIME')
  at = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
else
  local j = get(KEYS[1], ARGV[1])
  if not j or j.state ~= 'leased' or string.format('%.0f', j.token) ~= ARGV[2] then return 0 end
end
redis.call('SET', KEYS[2], at .. ' ' .. ARGV[3], 'PX', ARGV[4])
return 1
`)

func (n *native) note(ctx context.Context, r *storedJob, text string, keep int64, done bool) (bool, error) {
	return n.scriptBoolean(ctx, nativeNoteScript, []string{n.name, stateKey(n.name, r.id)}, r.id, r.token, text, keep, done)
}

// nativeStatusScript replies with a job's state and its report. ARGV: id.
var nativeStatusScript = conn.NewScript(luaGetJob + `
local j, state = get(KEYS[1], ARGV[1]), ''
if j then
  state = j.state
elseif get(KEYS[2], ARGV[1]) then
  state = 'dead'
end
return {state, redis.call('GET', KEYS[3]) or ''}
`)

func (n *native) status(ctx context.Context, id string) (state, text string, err error) {
	v, err := n.c.Script(ctx, nativeStatusScript, []string{n.name, n.deadKey(), stateKey(n.name, id)}, id)
	return readStatus(v, err)
}

func readStatus(v conn.Value, err error) (state, text string, _ error) {
	if err != nil {
		return "", "", err
	}
	if len(v.Elems) != 2 {
		return "", "", errorReply("a status", v)
	}
	return v.Elems[0].String(), v.Elems[1].String(), nil
}

// noteScript stores a report. ARGV: wake, id, token, report, its TTL, whether to acknowledge the job.
var noteScript = conn.NewScript(luaPrelude + `
local j = leasedJob(ARGV[2], ARGV[3])
if not j then return finish(0) end
local at = '0'
if ARGV[6] == '1' then
  unindex(j)
  removeJob(j)
  at = int(now)
end
call('SET', KEYS[7], at .. ' ' .. ARGV[4], 'PX', ARGV[5])
return finish(1)
`)

func (s *scripts) note(ctx context.Context, r *storedJob, text string, keep int64, done bool) (bool, error) {
	v, err := s.run(ctx, noteScript, []string{stateKey(s.name, r.id)}, r.id, r.token, text, keep, done)
	if err != nil {
		return false, err
	}
	k, err := v.AsInt()
	return k == 1, err
}

// statusScript replies with a job's state and its report. ARGV: wake, id.
var statusScript = conn.NewScript(luaPrelude + luaStateOf + `
local j, s = load(ARGV[2]), ''
if j then
  s = state(j)
elseif call('HEXISTS', letters, ARGV[2]) == 1 then
  s = 'dead'
end
return finish({s, call('GET', KEYS[7]) or ''})
`)

func (s *scripts) status(ctx context.Context, id string) (state, text string, err error) {
	v, err := s.run(ctx, statusScript, []string{stateKey(s.name, id)}, id)
	return readStatus(v, err)
}
