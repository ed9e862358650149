package limit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
)

// Options configures a limiter. The zero value works.
type Options struct {
	Algorithm Algorithm     // default: GCRA
	Burst     int64         // GCRA: the most requests at once; 0: the rate's N
	PerClient bool          // the rate holds for each client separately; false: for all together
	Client    string        // the client's name, for PerClient; "": a random name
	Timeout   time.Duration // Down decides a call that has no reply after it; 0: 1 s
	Probe     time.Duration // the longest pause between probes of a backend that does not reply; 0: 1 s
	Logger    *slog.Logger  // nil: no log
}

const (
	// timeout is longer than a failover of the network, and shorter than the time that most callers can wait.
	timeout = time.Second
	// probe is the longest time for which Down still decides after the backend is available again.
	probe = time.Second
)

// Limiter limits the rate of operations, for each key separately. Its methods are safe for
// concurrent use.
type Limiter struct {
	c            *conn.Conn
	name         string
	client       string // with PerClient ":" and the client's name, else ""
	directPrefix string // name and client, if all keys begin with them unchanged; else ""
	opt          Options
	down         Down
	plan         atomic.Pointer[plan]
	breaker      breaker
	local        local
	logged       sync.Once

	scriptsOnly bool // for tests: use scripts even where ebb's commands are available
}

// Result is the reply of a limiter to one request.
type Result struct {
	Allowed    bool
	Limit      int64         // the most requests that a full bucket allows at once
	Remaining  int64         // the number of requests that the limit allows now, after this one
	Taken      int64         // the number of requests that this call took
	RetryAfter time.Duration // the time until the same request is allowed if no other call takes; 0: it was allowed
	ResetAfter time.Duration // the time until the bucket is full

	Down  bool // the backend did not reply, and the limiter's Down decided
	Local bool // this process decided by itself: Down is Local
}

// New returns a limiter. The rate holds for each key separately, and down selects what happens
// while the backend does not reply. New sends nothing to the backend. Errors: ebb.ErrArgument.
func New(c *conn.Conn, name string, rate Rate, down Down, opts ...Options) (*Limiter, error) {
	name, o, err := kit.Make(c, "limit", name, opts)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Timeout < 0 || o.Probe < 0:
		return nil, kit.Argument("limit", name, "Timeout is %v and Probe %v; neither may be negative", o.Timeout, o.Probe)
	case o.Client != "" && !o.PerClient:
		return nil, kit.Argument("limit", name, "Client is %q, but PerClient is not set; only PerClient uses a Client", o.Client)
	}
	if err := down.check(); err != nil {
		return nil, fmt.Errorf("limit %q: %w", name, err)
	}
	p, err := newPlan(rate, o.Algorithm, o.Burst)
	if err != nil {
		return nil, fmt.Errorf("limit %q: %w", name, err)
	}
	o.Timeout = cmp.Or(o.Timeout, timeout)
	o.Probe = cmp.Or(o.Probe, probe)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l := &Limiter{c: c, name: name, opt: o, down: down}
	if o.PerClient {
		if o.Client == "" {
			o.Client = kit.ID()
		}
		l.client = ":" + o.Client
	}
	if b := l.name + l.client; escapeBraces(b) == b {
		l.directPrefix = b
	}
	l.plan.Store(p)
	l.breaker.start(o.Probe)
	return l, nil
}

// SetRate changes the rate of this limiter from its next call on, and with GCRA the burst (0: the rate's N).
// It does not change the limiters of other processes. Earlier requests still count. Errors: ebb.ErrArgument.
func (l *Limiter) SetRate(rate Rate, burst int64) error {
	p, err := newPlan(rate, l.opt.Algorithm, burst)
	if err == nil {
		l.plan.Store(p)
	}
	return err
}

// Rate returns the rate that the limiter allows.
func (l *Limiter) Rate() Rate { return l.plan.Load().rate }

// Burst returns the most requests that the limiter allows at once.
func (l *Limiter) Burst() int64 { return l.plan.Load().burst }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return kit.Given(l.c, l.name) }

// String describes the limiter: `limiter "api" (5 per 1m0s, gcra; RL.TAKE of ebb)`.
func (l *Limiter) String() string {
	how := "RL.TAKE of ebb"
	if !l.native() {
		caps := l.c.Capabilities()
		how = strings.TrimRight("a Lua script on "+caps.Server+" "+caps.Version, " ")
	}
	scope := ""
	if l.client != "" {
		scope = " for each client"
	}
	return fmt.Sprintf("limiter %q (%v%s; %s)", l.name, l.plan.Load(), scope, how)
}

func (l *Limiter) native() bool { return !l.scriptsOnly && l.c.Capabilities().Native }

// Allow takes one request of a key from the limit, and reports whether it is allowed. A denied
// request takes nothing. Allow costs one round trip. While other calls Wait for the key, Allow
// is denied, because waiting calls are served in FIFO order. The key "" is a key like any
// other.
//
// An error means that there is no decision, and Allowed is false. Errors: the context's; with
// FailClosed, ebb.ErrUnavailable if the backend does not reply; and the backend's error about
// the key, for instance a key of another type.
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.take(ctx, key, 1, modeTake)
}

// AllowN does the work of Allow for n requests at once: it takes all or none. Further errors:
// ErrTooMuch for more than Burst, ebb.ErrArgument.
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	return l.take(ctx, key, n, modeTake)
}

// AllowAtMost takes up to n requests, as many as the limit allows now, in one step.
// Result.Taken is their number, and Allowed reports whether there were any. RetryAfter is then
// the time until one more is allowed.
func (l *Limiter) AllowAtMost(ctx context.Context, key string, n int64) (Result, error) {
	return l.take(ctx, key, n, modeMost)
}

// Peek returns what Allow would return, and takes nothing. It costs one round trip.
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	return l.take(ctx, key, 1, modePeek)
}

// Reset makes the buckets of the given keys full and removes their reservations. Without keys
// it resets the key "", as Delete does. It costs one round trip for each key.
func (l *Limiter) Reset(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		keys = []string{""}
	}
	command := "DEL"
	if l.native() {
		command = "RL.RESET"
	}
	for _, k := range keys {
		l.local.remove(l.bucket(k))
		if _, err := l.c.Do(ctx, command, l.bucket(k)); err != nil {
			return l.failed("reset", k, err)
		}
	}
	return nil
}

// Delete removes the data of the given keys at the backend: buckets, which count as full afterwards,
// reservations, and the queues of waiting calls, which queue again. Without keys it removes the data of the
// key "". The buckets of other keys expire when they are full. Delete costs one round trip for each key.
func (l *Limiter) Delete(ctx context.Context, of ...string) error {
	if len(of) == 0 {
		of = []string{""}
	}
	if l.native() {
		return l.Reset(ctx, of...)
	}
	for _, k := range of {
		l.local.remove(l.bucket(k))
		if _, err := l.c.Del(ctx, keys(l.bucket(k))...); err != nil {
			return l.failed("delete", k, err)
		}
	}
	return nil
}

// mode is the operation on a bucket.
type mode uint8

const (
	modeTake mode = iota
	modePeek
	modeMost
)

var modeNames = [...]string{modeTake: "take", modePeek: "peek", modeMost: "most"}

// bucket returns the name of the bucket of a key, which is a key at the backend.
func (l *Limiter) bucket(key string) string {
	b := l.name + l.client
	if key != "" {
		b += ":" + key
	}
	return escapeBraces(b)
}

// escapeBraces returns a key whose helper keys are in the same slot: it replaces braces that are not a hash
// tag. A key may be the input of any user.
func escapeBraces(key string) string {
	if kit.Tagged(key) || !strings.ContainsAny(key, "{}") {
		return key
	}
	return braceEscapes.Replace(key)
}

var braceEscapes = strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25")

// leasesKey is the suffix of the hash with the leases of the waiting calls. The text must stay, because
// programs of all versions share the hash.
const leasesKey = "heard"

// keys returns the KEYS of the scripts of a bucket.
func keys(bucket string) []string {
	return []string{bucket, kit.Key(bucket, "line"), kit.Key(bucket, leasesKey)}
}

// check returns an error for a request that the limit can never allow.
func (l *Limiter) check(p *plan, doing, key string, n int64, m mode) error {
	switch {
	case n < 1:
		return l.failed(doing, key, argument("the call takes %d requests; it must take at least 1", n))
	case n > p.burst && m == modeTake:
		return l.failed(doing, key, fmt.Errorf("%w: %d, of at most %d (%v)", ErrTooMuch, n, p.burst, p))
	}
	return nil
}

func (l *Limiter) take(ctx context.Context, key string, n int64, m mode) (Result, error) {
	p := l.plan.Load()
	if err := l.check(p, "take from", key, n, m); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil { // a decision by Down would ignore it
		return Result{}, l.failed("take from", key, err)
	}
	if m == modeMost {
		n = min(n, p.burst) // a full bucket has no more
	}
	if r, ok := l.takeDirect(p, key, n, m); ok {
		return r, nil
	}
	bucket := l.bucket(key)
	if !l.breaker.allow() {
		return l.decideLocally(p, bucket, key, n, m, l.breaker.lastError())
	}
	r, err := l.send(ctx, p, bucket, n, m)
	if err = l.classify(ctx, err); err != nil {
		if isUnavailable(err) {
			return l.decideLocally(p, bucket, key, n, m, err)
		}
		return Result{}, l.failed("take from", key, err)
	}
	return r, nil
}

// takeDirect takes by a direct call of the embedded engine. ok is false if the call has changed nothing.
func (l *Limiter) takeDirect(p *plan, key string, n int64, m mode) (r Result, ok bool) {
	d := direct.Of(l.c)
	if d == nil || m == modeMost || l.scriptsOnly || l.directPrefix == "" || !l.breaker.isClosed() || strings.ContainsAny(key, "{}") {
		return r, false
	}
	l.logFirstUse()
	t, state := d.Take(l.directPrefix, key, &p.direct, n, m == modePeek)
	if state != direct.Done {
		return r, false
	}
	r = Result{Allowed: t.Allowed, Limit: t.Limit, Remaining: t.Remaining,
		RetryAfter: microseconds(t.Retry), ResetAfter: microseconds(t.Reset)}
	return r.took(n, m), true
}

// took returns the Result of a request for n whose reply does not contain the number taken.
func (r Result) took(n int64, m mode) Result {
	if m == modeTake && r.Allowed {
		r.Taken = n
	}
	return r
}

// bounded returns the context of one request, which ends after Options.Timeout. The embedded engine needs no timeout.
func (l *Limiter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.c.Capabilities().Embedded {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, l.opt.Timeout, errTimeout)
}

// logFirstUse logs, once, how the limiter runs.
func (l *Limiter) logFirstUse() {
	l.logged.Do(func() { l.opt.Logger.Debug("limit: first use", "limiter", l.String()) })
}

// send sends the request of one operation to the backend.
func (l *Limiter) send(ctx context.Context, p *plan, bucket string, n int64, m mode) (Result, error) {
	l.logFirstUse()
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if l.native() {
		return l.sendNative(ctx, p, bucket, n, m)
	}
	if p.fast != nil && m == modeTake {
		if r, ok, err := l.sendFast(ctx, p, bucket, n); ok || err != nil {
			return r, err
		}
	}
	return l.sendScript(ctx, p, bucket, n, m)
}

// sendNative sends RL.TAKE, or the script that calls it twice for modeMost.
func (l *Limiter) sendNative(ctx context.Context, p *plan, bucket string, n int64, m mode) (Result, error) {
	if m == modeMost {
		v, err := l.c.Script(ctx, nativeMost, []string{bucket}, append([]any{n}, p.native...)...)
		if err != nil {
			return Result{}, err
		}
		return parseResult(v)
	}
	v, err := l.c.Do(ctx, p.request(bucket, n, m)...)
	if err != nil {
		return Result{}, err
	}
	r, err := parseResult(v)
	return r.took(n, m), err
}

// sendFast runs the fast script of the plan. ok reports whether it has decided; if not, the state of the
// bucket needs the whole script.
func (l *Limiter) sendFast(ctx context.Context, p *plan, bucket string, n int64) (r Result, ok bool, err error) {
	v, err := l.c.Script(ctx, p.fast, []string{bucket}, p.fastArgs(n)...)
	if err != nil || v.IsNull() {
		return r, false, err
	}
	r, err = p.fastResult(n, v)
	return r, err == nil, err
}

// sendScript runs the whole script of the algorithm.
func (l *Limiter) sendScript(ctx context.Context, p *plan, bucket string, n int64, m mode) (Result, error) {
	v, err := l.c.Script(ctx, byAlgorithm[p.algo].take, keys(bucket), append(p.script[:4:4], n, modeNames[m])...)
	if err != nil {
		return Result{}, err
	}
	r, err := parseResult(v)
	return r.took(n, m), err
}

// request returns the words of RL.TAKE.
func (p *plan) request(bucket string, n int64, m mode) []any {
	words := make([]any, 0, 2+len(p.native)+3)
	words = append(append(words, "RL.TAKE", bucket), p.native...)
	if n != 1 {
		words = append(words, "COST", n)
	}
	if m == modePeek {
		words = append(words, "PEEK")
	}
	return words
}

// nativeMost takes as many requests as a limiter of ebb allows. ARGV: the most to take, and the arguments of
// RL.TAKE behind the key.
var nativeMost = conn.NewScript(`
local n, rest = tonumber(ARGV[1]), {unpack(ARGV, 2)}
local function take(cost, peek)
  local args = {KEYS[1], unpack(rest)}
  args[#args + 1] = 'COST'
  args[#args + 1] = cost
  if peek then args[#args + 1] = 'PEEK' end
  return redis.call('RL.TAKE', unpack(args))
end
local cost = string.format('%.0f', n)
local t = take(cost)
if t[1] == 0 and t[3] > 0 then
  n = math.min(n, t[3])
  t = take(string.format('%.0f', n))
elseif t[1] == 0 then
  t = take(1, true)
end
t[6] = t[1] == 1 and n or 0
return t
`)

// parseResult returns the Result of a reply of integers or texts.
func parseResult(v conn.Value) (Result, error) {
	var reply [6]int64
	n := min(len(reply), len(v.Elems))
	for i := range v.Elems[:n] {
		x, err := v.Elems[i].AsInt()
		if err != nil {
			return Result{}, err
		}
		reply[i] = x
	}
	if n < 5 {
		return Result{}, fmt.Errorf("%w: the reply is %s, want at least 5 integers", conn.ErrValue, v)
	}
	return newResult(reply[:n])
}

// newResult returns the Result of the five integers of RL.TAKE, and of a sixth that scripts add.
func newResult(reply []int64) (Result, error) {
	if len(reply) < 5 {
		return Result{}, fmt.Errorf("%w: the reply is %v", conn.ErrValue, reply)
	}
	r := Result{
		Allowed: reply[0] == 1, Limit: reply[1], Remaining: reply[2],
		RetryAfter: microseconds(reply[3]), ResetAfter: microseconds(reply[4]),
	}
	if len(reply) > 5 {
		r.Taken = reply[5]
	}
	return r, nil
}

// maxSpan is the longest time in a Result, 285 years. The debt of a bucket can be longer if its rate was far
// greater before.
const maxSpan = 1 << 53 // us

// microseconds returns the duration of us microseconds, from 0 to maxSpan.
func microseconds(us int64) time.Duration {
	return time.Duration(min(max(0, us), maxSpan)) * time.Microsecond
}
