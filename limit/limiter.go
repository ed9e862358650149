package limit

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Options configures a limiter. The zero value works.
type Options struct {
	Algorithm Algorithm     // default: GCRA
	Burst     int64         // GCRA: the most requests at once; 0: the rate's N
	PerClient bool          // the rate holds for each client separately; false: for all together
	Client    string        // the client's name, for PerClient; "": a random name
	Timeout   time.Duration // a call without a reply for so long is decided by Down; 0: 1 s
	Probe     time.Duration // the longest pause between probes of a backend that does not reply; 0: 1 s
	Logger    *slog.Logger  // nil: no log
}

const (
	// timeout is longer than a failover of the network, and shorter than most
	// callers are patient.
	timeout = time.Second
	// probe is as long as a caller may be decided for by Down after all is well.
	probe = time.Second
)

// Limiter limits the rate of operations, for each key separately. Its methods are safe for
// concurrent use.
type Limiter struct {
	c      *conn.Conn
	name   string
	client string // ":id" with PerClient
	opt    Options
	down   Down
	plan   atomic.Pointer[plan]
	away   circuit
	local  local
	said   sync.Once

	noNative bool // for tests: scripts, also where ebb's commands are
}

// Result is the reply of a limiter to one request.
type Result struct {
	Allowed    bool
	Limit      int64         // the most that a full bucket allows at once
	Remaining  int64         // what the limit allows now, after this request
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
	if o.Timeout == 0 {
		o.Timeout = timeout
	}
	if o.Probe == 0 {
		o.Probe = probe
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Limiter{c: c, name: name, opt: o, down: down}
	if o.PerClient {
		if o.Client == "" {
			o.Client = kit.ID()
		}
		l.client = ":" + o.Client
	}
	l.plan.Store(p)
	l.away.start(o.Probe)
	return l, nil
}

// SetRate changes the rate of this limiter from its next call on, and with GCRA the burst (0:
// the rate's N). It does not change the limiters of other processes. What was taken before
// still counts. Errors: ebb.ErrArgument.
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
func (l *Limiter) Burst() int64 { return l.plan.Load().most }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return kit.Given(l.c, l.name) }

// String describes the limiter: `limiter "api" (5 per 1m0s, gcra; RL.TAKE of ebb)`.
func (l *Limiter) String() string {
	how := "RL.TAKE of ebb"
	if !l.native() {
		caps := l.c.Capabilities()
		how = strings.TrimRight("a Lua script on "+caps.Server+" "+caps.Version, " ")
	}
	who := ""
	if l.client != "" {
		who = " for each client"
	}
	return fmt.Sprintf("limiter %q (%v%s; %s)", l.name, l.plan.Load(), who, how)
}

func (l *Limiter) native() bool { return !l.noNative && l.c.Capabilities().Native }

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
		l.local.forget(l.bucket(k))
		if _, err := l.c.Do(ctx, command, l.bucket(k)); err != nil {
			return l.failed("reset", k, err)
		}
	}
	return nil
}

// Delete removes what the backend stores for the given keys: buckets, which count as full
// afterwards, reservations, and the queues of waiting calls, which queue again. Without keys it
// removes the data of the key "". The buckets of other keys expire when they are full. Delete
// costs one round trip for each key.
func (l *Limiter) Delete(ctx context.Context, of ...string) error {
	if len(of) == 0 {
		of = []string{""}
	}
	if l.native() {
		return l.Reset(ctx, of...)
	}
	for _, k := range of {
		l.local.forget(l.bucket(k))
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

// bucket is the key of a bucket.
func (l *Limiter) bucket(key string) string {
	b := l.name + l.client
	if key != "" {
		b += ":" + key
	}
	return whole(b)
}

// whole returns a key without half a hash tag, which a helper key could not share.
// Keys may be input of any client.
func whole(key string) string {
	if kit.Tagged(key) || !strings.ContainsAny(key, "{}") {
		return key
	}
	return braces.Replace(key)
}

var braces = strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25")

// keys are the keys of a bucket's script.
func keys(bucket string) []string {
	return []string{bucket, kit.Key(bucket, "line"), kit.Key(bucket, "heard")}
}

// check refuses what no limiter could ever answer.
func (l *Limiter) check(p *plan, doing, key string, n int64, m mode) error {
	switch {
	case n < 1:
		return l.failed(doing, key, argument("the call wants to take %d; it must take at least 1", n))
	case n > p.most && m == modeTake:
		return l.failed(doing, key, fmt.Errorf("%w: %d, of at most %d (%v)", ErrTooMuch, n, p.most, p))
	}
	return nil
}

func (l *Limiter) take(ctx context.Context, key string, n int64, m mode) (Result, error) {
	p := l.plan.Load()
	if err := l.check(p, "take from", key, n, m); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil { // also where Down decides
		return Result{}, l.failed("take from", key, err)
	}
	if m == modeMost {
		n = min(n, p.most) // there never are more
	}
	bucket := l.bucket(key)
	if !l.away.ask() {
		return l.aside(p, bucket, key, n, m, l.away.cause())
	}
	r, err := l.ask(ctx, p, bucket, n, m)
	if err = l.judge(ctx, err); err != nil {
		if isAway(err) {
			return l.aside(p, bucket, key, n, m, err)
		}
		return Result{}, l.failed("take from", key, err)
	}
	return r, nil
}

// bounded is the context of one question, which embedded needs no bound.
func (l *Limiter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.c.Capabilities().Embedded {
		return ctx, func() {}
	}
	b := kit.NewBound(ctx, l.opt.Timeout, errSlow)
	return b, b.Stop
}

// ask sends the request of one operation to the backend.
func (l *Limiter) ask(ctx context.Context, p *plan, bucket string, n int64, m mode) (r Result, err error) {
	l.said.Do(func() { l.opt.Logger.Debug("limit: first use", "limiter", l.String()) })
	if !l.c.Capabilities().Embedded { // as bounded, without a function
		b := kit.NewBound(ctx, l.opt.Timeout, errSlow)
		defer b.Stop()
		ctx = b
	}
	var told conn.Ints
	var v conn.Value
	native := l.native()
	switch {
	case native && m != modeMost:
		if told, err = l.c.Ints(ctx, p.nativeWords(bucket, n, m)...); err == nil {
			r, err = taken(told.At[:told.N])
		}
	case !native && p.fast != nil && m == modeTake:
		words := append([]string{bucket, "", ""}[:1], p.fastArgs(n)...)
		if told, err = l.c.ScriptInts(ctx, p.fast, 1, words...); err != nil {
			return r, err
		}
		if told.N > 0 {
			return p.granted(n, told), nil
		}
		fallthrough // a state that is for the whole program
	case !native:
		if v, err = l.c.Script(ctx, byAlgorithm[p.algo].take, keys(bucket), append(p.script[:4:4], n, modeNames[m])...); err == nil {
			r, err = result(v)
		}
	default:
		if v, err = l.c.Script(ctx, nativeMost, []string{bucket}, append([]any{n}, p.native...)...); err == nil {
			r, err = result(v)
		}
	}
	if m == modeTake && r.Allowed {
		r.Taken = n
	}
	return r, err
}

// nativeWords are RL.TAKE.
func (p *plan) nativeWords(bucket string, n int64, m mode) []string {
	words := make([]string, 0, 2+len(p.words)+3)
	words = append(append(words, "RL.TAKE", bucket), p.words...)
	if n != 1 {
		words = append(words, "COST", strconv.FormatInt(n, 10))
	}
	if m == modePeek {
		words = append(words, "PEEK")
	}
	return words
}

// nativeMost takes as much as there is from a limiter of ebb's: ARGV the most, and
// what follows the key in RL.TAKE.
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

// result is taken for a reply.
func result(v conn.Value) (Result, error) {
	var told [6]int64
	n := min(len(told), len(v.Elems))
	for i := range v.Elems[:n] {
		x, err := v.Elems[i].AsInt()
		if err != nil {
			return Result{}, err
		}
		told[i] = x
	}
	if n < 5 {
		return Result{}, fmt.Errorf("%w: the answer %s", conn.ErrValue, v)
	}
	return taken(told[:n])
}

// taken reads the five integers of RL.TAKE, and the sixth of scripts.
func taken(told []int64) (Result, error) {
	if len(told) < 5 {
		return Result{}, fmt.Errorf("%w: the answer %v", conn.ErrValue, told)
	}
	r := Result{
		Allowed: told[0] == 1, Limit: told[1], Remaining: told[2],
		RetryAfter: span(told[3]), ResetAfter: span(told[4]),
	}
	if len(told) > 5 {
		r.Taken = told[5]
	}
	return r, nil
}

// far is the longest time that a Result has, 285 years. The debt is greater where the rate was
// far greater before.
const far = 1 << 53 // us

// span is a number of us; a negative one is none.
func span(us int64) time.Duration {
	return time.Duration(min(max(0, us), far)) * time.Microsecond
}
