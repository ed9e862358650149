package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// DefaultTTL is the lease if Options.TTL is 0. It outlasts a pause of the program or a failover
// of the backend, and is short enough to wait for after a crash.
const DefaultTTL = 30 * time.Second

var discard = slog.New(slog.DiscardHandler)

// minTTL is the shortest lease: below it the way to the backend would use it up.
const minTTL = 10 * time.Millisecond

// Options configures locks and leases. The zero value works.
type Options struct {
	// TTL is the length of a lease: the time for which others wait for a holder that has died, and
	// for which a holder may be unable to reach the backend. A lease is renewed at a third of it.
	// Default: 30 s; at least 10 ms.
	TTL time.Duration
	// Owner is the part of the owner's name that others see, for instance in LOCK.INFO: a host or
	// a worker. 32 random digits follow it. Default: "".
	Owner string
	// Later is the delay with which RunLater pushes work to its queue. Default: a third of TTL.
	Later time.Duration
	// UntilRelease lets a lease outlive the context that acquired it. The context then bounds the
	// acquisition alone, and the lease is renewed until Release or until it is lost. A lease that
	// the program forgets to release stays held while the process lives. Default: the context
	// bounds the life of the lease.
	UntilRelease bool
	// Logger gets lost leases, backends that do not reply, and leases whose context ended before
	// their Release. Default: no log.
	Logger *slog.Logger
}

// object is the part that all objects of this package share.
type object struct {
	c       *conn.Conn
	what    string // "lock"
	name    string
	opts    Options
	keys    keys
	wakeups wake.Channel

	ttl, fenceTTL string // in ms, as texts: the lease, and the time for which its token is kept
	logged        sync.Once
}

// init checks the arguments of a constructor; see setup.
func (o *object) init(c *conn.Conn, what, name string, opts []Options) error {
	o.what = what
	name, given, err := kit.Make(c, o.label(), name, opts)
	if err != nil {
		return err
	}
	return o.setup(c, what, name, given)
}

// setup completes and checks the options.
func (o *object) setup(c *conn.Conn, what, name string, opts Options) error {
	o.c, o.what, o.name, o.opts = c, what, name, opts
	switch {
	case o.opts.TTL == 0:
		o.opts.TTL = DefaultTTL
	case o.opts.TTL < minTTL:
		return o.argument("TTL is %v; it must be at least %v, or 0 for the default", o.opts.TTL, minTTL)
	}
	if o.opts.Later < 0 {
		return o.argument("Later is %v; it must be positive, or 0 for the default", o.opts.Later)
	}
	o.opts.Later = cmp.Or(o.opts.Later, o.opts.TTL/3)
	o.opts.Logger = cmp.Or(o.opts.Logger, discard)
	o.keys = keysOf(name)
	var room [40]byte
	ttl := kit.Millis(o.opts.TTL)
	first := strconv.AppendInt(room[:0], ttl, 10)
	both := string(strconv.AppendInt(first, ttl+fenceLife, 10))
	o.ttl, o.fenceTTL = both[:len(first)], both[len(first):]
	o.wakeups = wake.Channel{Conn: c, Name: o.keys.wake, Settles: true}
	return nil
}

// owner returns a new, unique owner.
func (o *object) owner() string {
	if o.opts.Owner == "" {
		return kit.ID()
	}
	return o.opts.Owner + ":" + kit.ID()
}

// describe returns the text of String: what the object is and how it runs.
func (o *object) describe(detail, native string) string {
	return fmt.Sprintf("%s %q (%s; %s)", o.what, o.name, detail, runsOn(o.c, native))
}

// runsOn names the command of ebb, or the server that runs a script.
func runsOn(c *conn.Conn, native string) string {
	caps := c.Capabilities()
	switch {
	case caps.Native && native != "":
		return native + " of ebb"
	case caps.Native:
		return "a Lua script on ebb"
	case caps.Version == "":
		return "a Lua script on " + caps.Server
	}
	return "a Lua script on " + caps.Server + " " + caps.Version
}

func (o *object) leases() string {
	return fmt.Sprintf("lease %v, renewed every %v", o.opts.TTL, (o.opts.TTL / 3).Round(time.Millisecond))
}

// logFirstUse logs, once, how the object runs.
func (o *object) logFirstUse(self fmt.Stringer) {
	if o.opts.Logger != discard {
		o.logged.Do(func() { o.opts.Logger.Debug("lock: first use", "object", self.String()) })
	}
}

// wrap adds the object and the operation to an error.
func (o *object) wrap(doing string, err error) error {
	return fmt.Errorf("%s %q: %s: %w", o.label(), o.name, doing, err)
}

// label is the package and the kind of the object, with which its errors begin.
func (o *object) label() string {
	if o.what == "lock" {
		return o.what
	}
	return "lock: " + o.what
}

// argument returns an error about an argument.
func (o *object) argument(format string, args ...any) error {
	return kit.Argument(o.label(), o.name, format, args...)
}

const (
	// maxAttempts bounds the attempts of a request after temporary errors: a driver notices only when it uses a connection that the
	// server has closed it.
	maxAttempts = 3
	// minPause is the first pause before another attempt. maxPause is the longest pause between two requests of a waiter, and far
	// below waiterTimeout.
	minPause, maxPause = 5 * time.Millisecond, time.Second
	// grace is the time after its end at which a backend may still reply to a wait.
	grace = time.Second
)

// repeat calls fn until it has no temporary error, at most the given number of times.
func repeat(ctx context.Context, times int, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !conn.Temporary(err) || n+1 >= times || kit.Sleep(ctx, kit.Backoff(minPause, maxPause, n)) != nil {
			return err
		}
	}
}

// attemptsOf returns the number of attempts that a request may have.
func attemptsOf(acq acquirer) int {
	if acq.repeatable() {
		return maxAttempts
	}
	return 1
}

// retryable returns a function that reports whether a request may be sent again after an error.
func retryable(acq acquirer) func(error) bool {
	if acq.repeatable() {
		return conn.Temporary
	}
	return func(err error) bool { return conn.Temporary(err) && certainlyNotRun(err) }
}

// abandon takes back what a failed request may have got. With a line, a request to the embedded engine without a reply has got
// nothing.
func (o *object) abandon(ctx context.Context, acq acquirer, owner string, failed error) {
	if _, queued := acq.(queuedAcquirer); queued && o.c.Capabilities().Embedded {
		return
	}
	if counting, ok := acq.(countingAcquirer); ok {
		late, _ := kit.Late(ctx, failed)
		if r, err := counting.read(late); err == nil && r.granted {
			o.takeBack(ctx, func(ctx context.Context) error { _, err := acq.release(ctx, owner, r.token); return err })
		}
		return
	}
	err := kit.Courtesy(ctx, failed, conn.Temporary, func(ctx context.Context) error { return acq.abandon(ctx, owner) })
	o.logKept(err)
}

// takeBack calls fn, which gives back what a failed request has got. A call that the backend may have run is not repeated.
func (o *object) takeBack(ctx context.Context, fn func(ctx context.Context) error) {
	o.logKept(kit.Courtesy(ctx, nil, func(err error) bool { return conn.Temporary(err) && certainlyNotRun(err) }, fn))
}

func (o *object) logKept(err error) {
	if err != nil {
		o.opts.Logger.Warn("lock: a failed request may keep the lock until its lease ends", "object", o.what, "name", o.name, "ttl", o.opts.TTL, "error", err)
	}
}

// tryAcquire sends one request, and returns its lease.
func (o *object) tryAcquire(ctx context.Context, acq acquirer, owner string) (*Lease, error) {
	var r reply
	var sent instant
	err := repeat(ctx, attemptsOf(acq), func() (err error) {
		sent = now()
		r, err = acq.try(ctx, owner, false)
		return err
	})
	switch {
	case err != nil:
		o.abandon(ctx, acq, owner, err)
		return nil, o.wrap("acquire", err)
	case !r.granted:
		return nil, o.wrap("acquire", ErrTaken)
	}
	return newLease(ctx, o, acq, owner, r.token, sent), nil
}

// acquire waits for the lease, for at most wait; 0: until the context ends.
func (o *object) acquire(ctx context.Context, acq acquirer, owner string, wait time.Duration) (*Lease, error) {
	if wait < 0 {
		return nil, o.argument("wait is %v; it must be positive, or 0 to wait as long as the context lasts (TryAcquire does not wait)", wait)
	}
	w := waiter{o: o, acquirer: acq, owner: owner, wait: wait, began: now()}
	var cancel context.CancelFunc = func() {}
	if w.ctx = ctx; wait > 0 {
		w.ctx, cancel = context.WithTimeout(ctx, min(wait, math.MaxInt64-grace)+grace)
	}
	defer cancel()
	token, sent, err := w.run()
	w.leave(err)
	switch {
	case err == nil:
		return newLease(ctx, o, acq, owner, token, sent), nil
	case !errors.Is(err, ErrTaken) || !w.endedByServer:
		o.abandon(ctx, acq, owner, err)
	}
	if kit.Overdue(ctx, w.ctx, err) {
		err = fmt.Errorf("no answer within %v: %w", wait, w.withLastError(conn.ErrUnavailable))
	}
	return nil, o.wrap("acquire", err)
}

// poll repeats request until it is granted, for at most wait, for objects without leases. mayRepeat: a request whose reply was lost may
// be sent again.
func (o *object) poll(ctx context.Context, wait time.Duration, mayRepeat bool, request func(context.Context) (reply, error)) (reply, error) {
	acq := &pollAcquirer{f: request, mayRepeat: mayRepeat}
	w := waiter{o: o, acquirer: acq, owner: kit.ID(), wait: wait, began: now(), ctx: ctx}
	_, _, err := w.waitByPolling()
	w.leave(err)
	return acq.last, err
}

// pollAcquirer is the acquirer of poll: it implements try and repeatable only.
type pollAcquirer struct {
	acquirer
	f         func(context.Context) (reply, error)
	mayRepeat bool
	last      reply
}

func (q *pollAcquirer) repeatable() bool { return q.mayRepeat }

func (q *pollAcquirer) try(ctx context.Context, _ string, _ bool) (r reply, err error) {
	q.last, err = q.f(ctx)
	return q.last, err
}
