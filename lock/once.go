package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// Outcome is the result of a call of Once.Do. The zero value means that it is unknown.
type Outcome int

const (
	Did   Outcome = iota + 1 // this call did the work
	Doing                    // another call does the work now, or died in it
	Done                     // the work was done before
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case Did:
		return "did it"
	case Doing:
		return "another call does it"
	case Done:
		return "done before"
	}
	return "unknown"
}

// Once is work that one program does at most once in each span of time. Its state is one key
// with the value "doing:owner" and then "done:owner", which expires after the span.
type Once struct{ object }

// NewOnce returns the work of that name, which runs at most once per ttl. The span begins when
// the work begins. NewOnce sends nothing to the backend. Errors: ebb.ErrArgument.
func NewOnce(c *conn.Conn, name string, ttl time.Duration, opts ...Options) (*Once, error) {
	o := &Once{}
	name, opt, err := kit.Make(c, "lock: once", name, opts)
	if err != nil {
		return nil, err
	}
	opt.TTL = ttl
	if ttl <= 0 {
		return nil, kit.Argument("lock: once", name, "the span is %v; it must be positive", ttl)
	}
	if err := o.setup(c, "lock: once", name, opt); err != nil {
		return nil, err
	}
	return o, nil
}

var beginScript = conn.NewScript(`
local state = redis.call('GET', KEYS[1])
if not state then
  redis.call('SET', KEYS[1], 'doing:' .. ARGV[1], 'PX', ARGV[2])
  return 1
end
if state == 'doing:' .. ARGV[1] then
  redis.call('SET', KEYS[1], state, 'KEEPTTL') -- a write, so that the call can wait for replicas
  return 1
end
if string.sub(state, 1, 6) == 'doing:' then return 2 end
return 3
`)

var finishScript = conn.NewScript(`
local state = redis.call('GET', KEYS[1])
if state ~= 'doing:' .. ARGV[1] and state ~= 'done:' .. ARGV[1] then return 0 end
if ARGV[2] == '1' then
  redis.call('SET', KEYS[1], 'done:' .. ARGV[1], 'KEEPTTL')
else
  redis.call('DEL', KEYS[1])
end
return 1
`)

// Do calls fn unless a call here or elsewhere has called it within the span. In that case it
// returns Doing or Done at once. fn's context ends before the span does. If fn fails, Do
// returns its error with Did, and the next call may try. If the program dies in fn, or fn
// panics, no call runs the work before the span is over, because the package cannot know how
// far fn came. If fn succeeded and the backend did not get the result, Do returns Did with an
// error that is not fn's; for other calls the Outcome is Doing until the span is over.
func (o *Once) Do(ctx context.Context, fn func(context.Context) error) (Outcome, error) {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return 0, o.wrap("do", err)
	}
	o.logFirstUse(o)
	owner, ttl := o.owner(), kit.Millis(o.opts.TTL)
	sent := locking.Now() // before the first attempt: a later one does not begin the span again
	var state int64
	err := locking.Repeat(ctx, locking.MaxAttempts, func() error {
		v, err := o.c.Script(ctx, beginScript, []string{o.name}, owner, ttl)
		if err == nil {
			state, err = v.AsInt()
		}
		return err
	})
	switch {
	case err != nil:
		_ = kit.ReleaseBriefly(ctx, err, conn.Temporary, func(ctx context.Context) error { return o.finish(ctx, owner, false) })
		return 0, o.wrap("begin", err)
	case Outcome(state) != Did:
		return Outcome(state), nil
	}
	workCtx, cancel := context.WithTimeoutCause(ctx, o.opts.TTL-locking.Margin(o.opts.TTL)-sent.Elapsed(),
		o.wrap("do", fmt.Errorf("%w: its span is over", ErrLost)))
	defer cancel()
	err = fn(workCtx)
	releaseErr := kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) error { return o.finish(ctx, owner, err == nil) })
	switch {
	case err != nil:
		return Did, err
	case releaseErr != nil:
		return Did, o.wrap("finish", releaseErr)
	}
	return Did, nil
}

func (o *Once) finish(ctx context.Context, owner string, done bool) error {
	_, err := o.c.Script(ctx, finishScript, []string{o.name}, owner, done)
	return err
}

// State returns Done or Doing for the present span; 0 if the work was not begun.
func (o *Once) State(ctx context.Context) (Outcome, error) {
	switch s, err := o.c.Get(ctx, o.name); {
	case err == conn.ErrNil:
		return 0, nil
	case err != nil:
		return 0, o.wrap("look at", err)
	case len(s) > 6 && s[:6] == "doing:":
		return Doing, nil
	}
	return Done, nil
}

// String describes the work.
func (o *Once) String() string { return o.describe(fmt.Sprintf("per %v", o.opts.TTL), "") }
