package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// DefaultTTL is the lease if Object.TTL is 0.
const DefaultTTL = 30 * time.Second

// MinTTL is the shortest lease: below it the way to the backend would use it up.
const MinTTL = 10 * time.Millisecond

// Discard is the Logger of an object without a log.
var Discard = slog.New(slog.DiscardHandler)

// Object is an object that is acquired, whatever its layout. The caller sets the fields, and calls Check.
type Object struct {
	Conn         *conn.Conn
	Label        string // with which its errors begin: "lock: leader"
	What         string // the kind in its texts: "leader"
	Name         string
	TTL          time.Duration // of a lease; 0: DefaultTTL
	UntilRelease bool          // a lease outlives the context that acquired it
	Logger       *slog.Logger  // nil: no log
	Wakeups      wake.Channel

	logged sync.Once
}

// Check completes and checks the options.
func (o *Object) Check() error {
	switch {
	case o.TTL == 0:
		o.TTL = DefaultTTL
	case o.TTL < MinTTL:
		return o.Argument("TTL is %v; it must be at least %v, or 0 for the default", o.TTL, MinTTL)
	}
	if o.Logger == nil {
		o.Logger = Discard
	}
	return nil
}

// Describe returns the text of String: what the object is and how it runs.
func (o *Object) Describe(detail, native string) string {
	return fmt.Sprintf("%s %q (%s; %s)", o.What, o.Name, detail, RunsOn(o.Conn, native))
}

// RunsOn names the command of ebb, or the server that runs a script.
func RunsOn(c *conn.Conn, native string) string {
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

// Leases describes the leases for Describe.
func (o *Object) Leases() string {
	return fmt.Sprintf("lease %v, renewed every %v", o.TTL, (o.TTL / 3).Round(time.Millisecond))
}

// LogFirstUse logs, once, how the object runs.
func (o *Object) LogFirstUse(self fmt.Stringer) {
	if o.Logger != Discard {
		o.logged.Do(func() { o.Logger.Debug("lock: first use", "object", self.String()) })
	}
}

// Wrap adds the object and the operation to an error.
func (o *Object) Wrap(doing string, err error) error {
	return fmt.Errorf("%s %q: %s: %w", o.Label, o.Name, doing, err)
}

// Argument returns an error about an argument.
func (o *Object) Argument(format string, args ...any) error {
	return kit.Argument(o.Label, o.Name, format, args...)
}

const (
	// MaxAttempts bounds the attempts of a request after temporary errors: a driver notices only when it uses a connection that the
	// server has closed it.
	MaxAttempts = 3
	// MinPause is the first pause before another attempt. MaxPause is the longest pause between two requests of a waiter, and far
	// below the time after which scripts of package lock remove a waiter.
	MinPause, MaxPause = 5 * time.Millisecond, time.Second
	// grace is the time after its end at which a backend may still reply to a wait.
	grace = time.Second
)

// Repeat calls fn until it has no temporary error, at most the given number of times.
func Repeat(ctx context.Context, times int, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !conn.Temporary(err) || n+1 >= times || kit.Sleep(ctx, kit.Backoff(MinPause, MaxPause, n)) != nil {
			return err
		}
	}
}

// attemptsOf returns the number of attempts that a request may have.
func attemptsOf(acq Acquirer) int {
	if acq.Repeatable() {
		return MaxAttempts
	}
	return 1
}

// retryable returns a function that reports whether a request may be sent again after an error.
func retryable(acq Acquirer) func(error) bool {
	if acq.Repeatable() {
		return conn.Temporary
	}
	return func(err error) bool { return conn.Temporary(err) && CertainlyNotRun(err) }
}

// abandon takes back what a failed request may have been granted. The embedded engine grants nothing to a request that it does not
// reply to, if requests wait in a line (Queued).
func (o *Object) abandon(ctx context.Context, acq Acquirer, owner string, failed error) {
	if _, queued := acq.(Queued); queued && o.Conn.Capabilities().Embedded {
		return
	}
	if counting, ok := acq.(Counting); ok {
		late, _ := kit.Late(ctx, failed)
		if r, err := counting.Read(late); err == nil && r.Granted {
			o.TakeBack(ctx, func(ctx context.Context) error { _, err := acq.Release(ctx, owner, r.Token); return err })
		}
		return
	}
	err := kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error { return acq.Abandon(ctx, owner) })
	o.logKept(err)
}

// TakeBack calls fn, which releases what a failed request may have acquired; it takes a second at most. A call that the backend may
// have run is not repeated.
func (o *Object) TakeBack(ctx context.Context, fn func(ctx context.Context) error) {
	o.logKept(kit.ReleaseBriefly(ctx, nil, func(err error) bool { return conn.Temporary(err) && CertainlyNotRun(err) }, fn))
}

func (o *Object) logKept(err error) {
	if err != nil {
		o.Logger.Warn("lock: a failed request may keep what it got until its lease ends",
			"object", o.What, "name", o.Name, "ttl", o.TTL, "error", err)
	}
}

// TryAcquire sends one request, and returns its lease.
func (o *Object) TryAcquire(ctx context.Context, acq Acquirer, owner string) (*Lease, error) {
	var r Reply
	var sent Instant
	err := Repeat(ctx, attemptsOf(acq), func() (err error) {
		sent = Now()
		r, err = acq.Try(ctx, owner, false)
		return err
	})
	switch {
	case err != nil:
		o.abandon(ctx, acq, owner, err)
		return nil, o.Wrap("acquire", err)
	case !r.Granted:
		return nil, o.Wrap("acquire", ErrTaken)
	}
	return newLease(ctx, o, acq, owner, r.Token, sent), nil
}

// Acquire waits for the lease, for at most wait; 0: until the context ends.
func (o *Object) Acquire(ctx context.Context, acq Acquirer, owner string, wait time.Duration) (*Lease, error) {
	if wait < 0 {
		return nil, o.Argument("wait is %v; it must be positive, or 0 to wait as long as the context lasts (TryAcquire does not wait)", wait)
	}
	w := waiter{o: o, acquirer: acq, owner: owner, wait: wait, began: Now()}
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
		err = fmt.Errorf("no reply within %v: %w", wait, w.withLastError(conn.ErrUnavailable))
	}
	return nil, o.Wrap("acquire", err)
}

// Poll repeats request until it is granted, for at most wait, for objects without leases. mayRepeat: a request whose reply was lost may
// be sent again.
func (o *Object) Poll(ctx context.Context, wait time.Duration, mayRepeat bool, request func(context.Context) (Reply, error)) (
	Reply, error) {
	acq := &pollAcquirer{f: request, mayRepeat: mayRepeat}
	w := waiter{o: o, acquirer: acq, owner: kit.ID(), wait: wait, began: Now(), ctx: ctx}
	_, _, err := w.waitByPolling()
	w.leave(err)
	return acq.last, err
}

// pollAcquirer is the acquirer of Poll: it implements Try and Repeatable only.
type pollAcquirer struct {
	Acquirer
	f         func(context.Context) (Reply, error)
	mayRepeat bool
	last      Reply
}

func (q *pollAcquirer) Repeatable() bool { return q.mayRepeat }

func (q *pollAcquirer) Try(ctx context.Context, _ string, _ bool) (r Reply, err error) {
	q.last, err = q.f(ctx)
	return q.last, err
}

// DeleteScript removes KEYS, and publishes ARGV[2] on the channel ARGV[1].
var DeleteScript = conn.NewScript(`
redis.call('DEL', unpack(KEYS))
redis.pcall('PUBLISH', ARGV[1], ARGV[2])
return 1
`)

// DeleteKeys runs DeleteScript, or another script of that kind, and so publishes a message to the waiters.
func (o *Object) DeleteKeys(ctx context.Context, s *conn.Script, message string, keys ...string) error {
	if _, err := o.Conn.Script(ctx, s, keys, o.Wakeups.Name, message); err != nil {
		return o.Wrap("delete", err)
	}
	return nil
}
