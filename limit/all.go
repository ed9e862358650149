package limit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

// Request is one part of AllowAll: N requests of Key from Limiter.
type Request struct {
	Limiter *Limiter
	Key     string
	N       int64
}

// Request returns a Request of one, for AllowAll. It takes nothing.
func (l *Limiter) Request(key string) Request { return Request{l, key, 1} }

// RequestN returns a Request of n, for AllowAll. It takes nothing.
func (l *Limiter) RequestN(key string, n int64) Request { return Request{l, key, n} }

// AllowAll takes from all of several limiters of one Conn, or from none, in one step: for instance from a
// limit for each minute and one for each day. It reports whether it took, and returns the result of each
// limiter: if all allow the request, the state after the call; otherwise the reply that each limiter alone
// would give.
//
// In a cluster all keys must be in one slot: give them the same hash tag, such as "{ann}".
// While the backend does not reply, each limiter's Down decides. Errors: those of AllowN.
func AllowAll(ctx context.Context, requests ...Request) (bool, []Result, error) {
	if len(requests) == 0 {
		return false, nil, fmt.Errorf("limit: AllowAll: %w: it got no Request, want at least one", conn.ErrArgument)
	}
	all, err := newMultiTake(requests)
	if err != nil {
		return false, nil, err
	}
	first := requests[0].Limiter
	if err := ctx.Err(); err != nil {
		return false, nil, first.failed("take all from", requests[0].Key, err)
	}
	if !first.breaker.allow() {
		return all.decideLocally(first.breaker.lastError())
	}
	v, err := all.send(ctx)
	if err = first.classify(ctx, err); err != nil {
		if isUnavailable(err) {
			return all.decideLocally(err)
		}
		if refused, ok := errors.AsType[conn.ReplyError](err); ok && refused.Code() == "CROSSSLOT" {
			err = fmt.Errorf(`%w: in a cluster keys that are taken together need one hash tag, such as "{ann}"`, err)
		}
		return false, nil, first.failed("take all from", requests[0].Key, err)
	}
	return all.read(v)
}

// multiTake is one call of AllowAll.
type multiTake struct {
	takes   []Request
	plans   []*plan
	buckets []string
	uniform bool // one algorithm, one cost, and no bursts: RL.TAKEALL
}

func newMultiTake(takes []Request) (*multiTake, error) {
	t := &multiTake{takes: takes, uniform: true}
	seen := map[string]bool{}
	for _, x := range takes {
		l := x.Limiter
		if l == nil || l.c != takes[0].Limiter.c {
			return nil, fmt.Errorf("limit: AllowAll: %w: the limiters have different Conns; they must share one", conn.ErrArgument)
		}
		p := l.plan.Load()
		if err := l.check(p, "take all from", x.Key, x.N, modeTake); err != nil {
			return nil, err
		}
		b := l.bucket(x.Key)
		if seen[b] {
			return nil, l.failed("take all from", x.Key, argument("AllowAll got the key twice; it takes each key once"))
		}
		seen[b] = true
		t.plans, t.buckets = append(t.plans, p), append(t.buckets, b)
		t.uniform = t.uniform && p.algo == t.plans[0].algo && p.burst == p.rate.N && x.N == takes[0].N
	}
	return t, nil
}

func (t *multiTake) send(ctx context.Context) (conn.Value, error) {
	l := t.takes[0].Limiter
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	switch {
	case !l.native():
		return t.script(ctx)
	case t.uniform:
		return t.takeAll(ctx)
	}
	var args []any
	for i, p := range t.plans {
		args = append(args, len(p.native)+2)
		args = append(args, p.native...)
		args = append(args, "COST", t.takes[i].N)
	}
	return l.c.Script(ctx, nativeAll, t.buckets, args...)
}

func (t *multiTake) takeAll(ctx context.Context) (conn.Value, error) {
	args := []any{"RL.TAKEALL", len(t.buckets)}
	for _, b := range t.buckets {
		args = append(args, b)
	}
	for _, p := range t.plans {
		args = append(args, p.native[:2]...)
	}
	args = append(args, t.plans[0].native[2:]...)
	if n := t.takes[0].N; n != 1 {
		args = append(args, "COST", n)
	}
	return t.takes[0].Limiter.c.Do(ctx, args...)
}

func (t *multiTake) script(ctx context.Context) (conn.Value, error) {
	var names []string
	var args []any
	for i, p := range t.plans {
		names = append(names, keys(t.buckets[i])...)
		args = append(args, algorithms[p.algo].name)
		args = append(args, p.script...)
		args = append(args, t.takes[i].N)
	}
	return t.takes[0].Limiter.c.Script(ctx, allScript, names, append(args, "take")...)
}

func (t *multiTake) read(v conn.Value) (bool, []Result, error) {
	if len(v.Elems) != len(t.takes)+1 {
		return false, nil, fmt.Errorf("limit: %w: the reply is %s", conn.ErrValue, v)
	}
	ok := v.Elems[0].Int == 1
	results := make([]Result, len(t.takes))
	for i := range results {
		r, err := parseResult(v.Elems[i+1])
		if err != nil {
			return false, nil, err
		}
		if r.Taken = 0; ok {
			r.Taken = t.takes[i].N
		}
		results[i] = r
	}
	return ok, results, nil
}

// decideLocally applies the Down policy of each limiter.
func (t *multiTake) decideLocally(cause error) (ok bool, results []Result, err error) {
	results = make([]Result, len(t.takes))
	ok = true
	for _, m := range []mode{modePeek, modeTake} {
		for i, x := range t.takes {
			if results[i], err = x.Limiter.decideLocally(t.plans[i], t.buckets[i], x.Key, x.N, m, cause); err != nil {
				return false, results, err
			}
			ok = ok && results[i].Allowed
		}
		if !ok {
			break
		}
	}
	return ok, results, nil
}

// nativeAll takes from all of several limiters of ebb or from none. ARGV has, for each key, the number of
// arguments of its RL.TAKE, and then these arguments.
var nativeAll = conn.NewScript(`
local at, calls, ok, reply = 1, {}, 1, {}
for i, key in ipairs(KEYS) do
  local n = tonumber(ARGV[at])
  calls[i] = {'RL.TAKE', key, unpack(ARGV, at + 1, at + n)}
  at = at + n + 1
  calls[i][n + 3] = 'PEEK'
  reply[i] = redis.call(unpack(calls[i]))
  calls[i][n + 3] = nil
  if reply[i][1] == 0 then ok = 0 end
end
if ok == 1 then
  for i, call in ipairs(calls) do reply[i] = redis.call(unpack(call)) end
end
return {ok, unpack(reply)}
`)
