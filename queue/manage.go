package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// This file has the methods for operators: they show jobs in each state, pause the queue, and run jobs again.

// State selects or describes jobs.
type State int

const (
	// All selects the jobs in every state.
	All State = iota
	// Ready: the job is due, and the next consumer gets it.
	Ready
	// Delayed: the job is not due yet.
	Delayed
	// Leased: a consumer has the job.
	Leased
	// Done: the job is acknowledged. Only Status knows this state.
	Done
	// DeadLetter: the job is a dead letter. Only Status knows this state.
	DeadLetter
)

// states are the names of states in DQ.PEEK.
var states = [...]string{All: "all", Ready: "ready", Delayed: "delayed", Leased: "leased", Done: "done", DeadLetter: "dead letter"}

// String returns the state's name in lower case, as in "dead letter"; State(7) for another number.
func (s State) String() string {
	if s < All || s > DeadLetter {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return states[s]
}

// stateOf returns the state of a name; All for an unknown name.
func stateOf(name string) State {
	for s, n := range states {
		if n == name {
			return State(s)
		}
	}
	return All
}

// Entry is a job as Peek and Get show it.
type Entry[T any] struct {
	ID string
	// Value is the zero value if Err is not nil: the codec could not decode it.
	Value T
	Err   error
	// Headers are those of the push. It is nil if there are none.
	Headers map[string]string
	// State is Ready, Delayed or Leased.
	State State
	// Deliveries is the number of times that the job was delivered.
	Deliveries int
	// Due is the instant at which the job falls or fell due, by the backend's clock.
	Due time.Time
	// Token is the fencing token of a leased job; otherwise 0.
	Token int64
	// Until is the last millisecond of the lease of a leased job; otherwise zero.
	Until time.Time
	// Priority is 0 to 9. Only Get knows it.
	Priority int
	// Expires is the last millisecond in which a consumer can take a waiting job that has a TTL;
	// otherwise zero. Only Get knows it.
	Expires time.Time
}

// storedEntry is an Entry in the form of the backend.
type storedEntry struct {
	storedJob
	state                    string
	until, priority, expires int64
}

// PeekOptions selects a page of jobs. The zero value selects the first 100.
type PeekOptions struct {
	// Count is the greatest number of jobs. 0: 100. If the last job of the page would have an empty ID, which
	// DQ.ADD can make, the page has one more.
	Count int
	// After is the ID of the last job of the previous page. Default: the first page.
	After string
}

// defaultPeek is the default of PeekOptions.Count.
const defaultPeek = 100

// Peek returns jobs in a state, and changes nothing: ready jobs in the order of their delivery,
// delayed jobs by the instants at which they fall due, and leased jobs by the ends of their leases.
// It costs one round trip, O(log n + Count), and for leased jobs also O(1) for each waiting job
// whose TTL ends before their leases. Errors: ebb.ErrArgument; ErrNoJob if the job of After is no longer
// in the queue.
func (q *Queue[T]) Peek(ctx context.Context, state State, opts ...PeekOptions) ([]Entry[T], error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, q.failed("peek", err)
	}
	if state < All || state > Leased {
		return nil, q.failed("peek", fmt.Errorf("%w: the state is %v; it must be All, Ready, Delayed or Leased", conn.ErrArgument, state))
	}
	if o.Count < 0 {
		return nil, q.failed("peek", fmt.Errorf("%w: Count is %d, which is negative", conn.ErrArgument, o.Count))
	}
	o.Count = cmp.Or(o.Count, defaultPeek)
	found, err := q.store().peek(ctx, state, o.After, o.Count)
	if n := len(found); err == nil && n == o.Count && found[n-1].id == "" {
		found, err = q.store().peek(ctx, state, o.After, o.Count+1) // a page cannot follow
	}
	if err != nil {
		return nil, q.failed("peek", err)
	}
	entries := make([]Entry[T], len(found))
	for i := range found {
		entries[i] = q.entry(&found[i])
	}
	return entries, nil
}

// Get returns a job in any state, in one round trip. O(1). Errors: ErrNoJob.
func (q *Queue[T]) Get(ctx context.Context, id string) (Entry[T], error) {
	e, err := q.store().get(ctx, id)
	if err != nil {
		return Entry[T]{}, q.failed(fmt.Sprintf("get %q", id), err)
	}
	return q.entry(&e), nil
}

// entry decodes a job.
func (q *Queue[T]) entry(r *storedEntry) Entry[T] {
	v, env, err := q.decodePayload(r.payload)
	e := Entry[T]{ID: r.id, Value: v, Err: err, Headers: env.Headers, State: stateOf(r.state), Deliveries: int(r.deliveries + env.Before),
		Due: time.UnixMilli(r.due), Token: r.token, Priority: int(r.priority)}
	if r.until > 0 {
		e.Until = time.UnixMilli(r.until)
	}
	if r.expires > 0 {
		e.Expires = time.UnixMilli(r.expires)
	}
	return e
}

// Pause stops the delivery of jobs for d, or until Resume if d is 0. Consumers wait. Pushing, settling,
// leases, TTLs and schedules continue, and so do functions of Run that have a job. A later Pause replaces an
// earlier one. Errors: ebb.ErrArgument.
func (q *Queue[T]) Pause(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return q.failed("pause", fmt.Errorf("%w: the pause is %v, which is negative", conn.ErrArgument, d))
	}
	if err := q.store().pause(ctx, kit.Millis(d)); err != nil {
		return q.failed("pause", err)
	}
	return nil
}

// Resume ends a pause. Without one it does nothing.
func (q *Queue[T]) Resume(ctx context.Context) error {
	if err := q.store().resume(ctx); err != nil {
		return q.failed("resume", err)
	}
	return nil
}

// Requeue makes jobs due now, as if they had never been delivered, and returns the number of jobs that it
// found: delayed and ready jobs; leased jobs, whose consumers get ErrLost; and dead letters, as Redrive does.
// Jobs other than dead letters keep their priority. All lose their TTL. Requeue costs one round trip for
// every 500 ids.
func (q *Queue[T]) Requeue(ctx context.Context, ids ...string) (int64, error) {
	return q.inChunks(ctx, "requeue", ids, q.store().requeue)
}

// Reschedule makes a waiting job, ready or delayed, due after delay from now, as if it had never been
// delivered. The job keeps its priority and its TTL. Reschedule costs one round trip. Errors:
// ebb.ErrArgument; ErrNoJob if no job with the id waits.
func (q *Queue[T]) Reschedule(ctx context.Context, id string, delay time.Duration) error {
	what := fmt.Sprintf("reschedule %q", id)
	if delay < 0 {
		return q.failed(what, fmt.Errorf("%w: the delay is %v, which is negative", conn.ErrArgument, delay))
	}
	ok, err := q.store().reschedule(ctx, id, kit.Millis(delay))
	if err == nil && !ok {
		err = ErrNoJob
	}
	if err != nil {
		return q.failed(what, err)
	}
	return nil
}

// The native store.

func (n *native) peek(ctx context.Context, state State, after string, count int) ([]storedEntry, error) {
	args := []any{"DQ.PEEK", n.name, "STATE", state.String(), "COUNT", count}
	if after != "" {
		args = append(args, "FROM", after)
	}
	v, err := n.c.Do(ctx, args...)
	if err != nil {
		return nil, withErrNoJob(err)
	}
	return readEntries(v)
}

// withErrNoJob adds ErrNoJob to ebb's error for a page behind a job that no longer exists.
func withErrNoJob(err error) error {
	if refused, ok := errors.AsType[conn.ReplyError](err); ok && strings.Contains(string(refused), "has no job with the id") {
		return fmt.Errorf("%w: %w", ErrNoJob, err)
	}
	return err
}

// readEntries returns the jobs in a reply to DQ.PEEK or peekScript.
func readEntries(v conn.Value) ([]storedEntry, error) {
	entries := make([]storedEntry, len(v.Elems))
	for i, e := range v.Elems {
		f := e.Elems
		if len(f) != 5 && len(f) != 7 {
			return nil, errorReply("a peek", e)
		}
		job := storedJob{id: f[0].String(), payload: f[1].String(), deliveries: f[2].Int, due: f[4].Int}
		r := storedEntry{storedJob: job, state: f[3].String()}
		if len(f) == 7 {
			r.token, r.until = f[5].Int, f[6].Int
		}
		entries[i] = r
	}
	return entries, nil
}

func (n *native) get(ctx context.Context, id string) (r storedEntry, err error) {
	v, err := n.c.Do(ctx, "DQ.GET", n.name, id)
	if err != nil {
		return r, err
	}
	if v.IsNull() {
		return r, ErrNoJob
	}
	for key, value := range v.Pairs {
		switch key.String() {
		case "id":
			r.id = value.String()
		case "payload":
			r.payload = value.String()
		case "state":
			r.state = value.String()
		case "priority":
			r.priority = value.Int
		case "deliveries":
			r.deliveries = value.Int
		case "due":
			r.due = value.Int
		case "expires":
			r.expires = value.Int
		case "token":
			r.token = value.Int
		case "until":
			r.until = value.Int
		}
	}
	if r.state == "" {
		return r, errorReply("a job", v)
	}
	return r, nil
}

func (n *native) pause(ctx context.Context, ms int64) error {
	until := any("yes")
	if ms > 0 {
		until = ms
	}
	_, err := n.c.Do(ctx, "DQ.CONFIG", n.name, "PAUSED", until)
	return err
}

func (n *native) resume(ctx context.Context) error {
	_, err := n.c.Do(ctx, "DQ.CONFIG", n.name, "PAUSED", "no")
	return err
}

// luaGetJob reads a job by DQ.GET.
const luaGetJob = `
local function get(key, id)
  local f = redis.call('DQ.GET', key, id)
  if not f then return nil end
  local j = {}
  for i = 1, #f, 2 do j[f[i]] = f[i + 1] end
  return j
end
`

// nativeRequeueScript replaces jobs and dead letters with new jobs. ARGV: ids.
var nativeRequeueScript = conn.NewScript(luaGetJob + luaUncounted + `
local n = 0
for _, id in ipairs(ARGV) do
  local j = get(KEYS[1], id)
  if j then
    redis.call('DQ.CANCEL', KEYS[1], id)
    redis.call('DQ.ADD', KEYS[1], id, uncounted(j.payload), 'PRIORITY', j.priority)
    n = n + 1
  else
    j = get(KEYS[2], id)
    if j then
      redis.call('DQ.ADD', KEYS[1], id, uncounted(j.payload))
      redis.call('DQ.CANCEL', KEYS[2], id)
      n = n + 1
    end
  end
end
return n
`)

func (n *native) requeue(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(n.c.Script(ctx, nativeRequeueScript, []string{n.name, n.deadKey()}, idArgs(ids)...))
}

// nativeRescheduleScript replaces a waiting job with a new one. ARGV: id, delay.
var nativeRescheduleScript = conn.NewScript(luaGetJob + luaUncounted + `
local j = get(KEYS[1], ARGV[1])
if not j or j.state == 'leased' then return 0 end
redis.call('DQ.CANCEL', KEYS[1], ARGV[1])
local add = {'DQ.ADD', KEYS[1], ARGV[1], uncounted(j.payload), 'PRIORITY', j.priority, 'DELAY', ARGV[2]}
if j.expires then
  add[9], add[10] = 'EXPIRE', string.format('%.0f', j.expires - j.due)
end
redis.call(unpack(add))
return 1
`)

func (n *native) reschedule(ctx context.Context, id string, delay int64) (bool, error) {
	return n.scriptBoolean(ctx, nativeRescheduleScript, []string{n.name}, id, delay)
}
