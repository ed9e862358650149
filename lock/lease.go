package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// instant is a reading of the local monotonic clock, which counts leases. It does not follow a wall clock that is set, and differs from
// the server's clock by its drift alone, for which margin is subtracted.
type instant time.Time

func now() instant { return instant(time.Now()) }

func (m instant) elapsed() time.Duration { return time.Since(time.Time(m)) }

func (m instant) after(o instant) bool { return time.Time(m).After(time.Time(o)) }

// margin returns the time by which a lease counts as shorter than it is: clocks of computers differ by far less than 1 %, and a
// server counts milliseconds.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Lease is what one owner holds until Release, or until it is lost. One goroutine renews it in
// the background.
//
// Unless Options.UntilRelease is set, the context that acquired the lease bounds its life: when
// that context ends, Context and the renewals end, and the lease expires unless Release comes
// first. So a function that acquires with a context of its own, and defers the cancel function
// of that context, returns a lease that expires. Bound a wait by the argument wait, or set
// UntilRelease. The methods are safe for concurrent use.
type Lease struct {
	o        *object
	acquirer acquirer
	owner    string
	token    int64
	ttl      time.Duration

	parent       context.Context           // that the lease was acquired with
	firstRenewal *time.Timer               // calls renewLoop: a shorter lease needs no goroutine
	afterRelease func(ctx context.Context) // nil: nothing

	releasing    sync.Mutex // one Release at a time; taken before mu
	neverRenewed bool       // Release stopped firstRenewal in time

	mu         sync.Mutex              // guards what follows
	ctx        context.Context         // nil until its first use
	view       context.Context         // ctx as Context returns it
	cancel     context.CancelCauseFunc // ends it
	cause      error                   // why it ended before its first use
	stopped    bool                    // renewLoop has returned
	stopping   chan struct{}           // closed then; nil while no call waits for it
	expiry     *time.Timer             // ends the lease when it is no longer certain; nil before renewLoop
	sent       instant                 // before the last granted request
	lastErr    error                   // of the last renewal
	over       bool                    // released, or lost according to the backend
	unanswered bool                    // a release was sent and had no reply
}

// newLease returns a lease and begins to renew it. sent is the instant before the granted request: the server counts the lease from a
// later one.
func newLease(ctx context.Context, o *object, acq acquirer, owner string, token int64, sent instant) *Lease {
	if o.opts.UntilRelease {
		ctx = context.WithoutCancel(ctx)
	}
	l := &Lease{o: o, acquirer: acq, owner: owner, token: token, ttl: o.opts.TTL, sent: sent, parent: ctx}
	l.firstRenewal = time.AfterFunc(max(l.ttl/3-sent.elapsed(), 0), l.renewLoop)
	return l
}

// certainFor returns how much longer a lease is certain that was requested at sent.
func (l *Lease) certainFor(sent instant) time.Duration { return l.ttl - margin(l.ttl) - sent.elapsed() }

// Token returns the fencing token, which is greater than the token of every earlier holder.
// Pass it to the resource that the lock protects, and let the resource refuse smaller tokens.
func (l *Lease) Token() int64 { return l.token }

// Owner returns the name under which the backend knows the holder.
func (l *Lease) Owner() string { return l.owner }

// Context returns the context for the work. It ends when the lease is released or lost, or when
// the context that acquired it ends. context.Cause returns the reason: ErrLost with an
// explanation if the backend said that the lease is over, or if it could not be renewed in
// time. The local monotonic clock measures that time from before the last granted request was
// sent; a margin of 1 % and 2 ms is subtracted. After a pause of the process Done may be closed some time later than that; Err
// looks at the clock.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view == nil {
		l.view = leaseContext{l.context(), l}
	}
	return l.view
}

// leaseContext is a lease's context whose Err looks at the clock.
type leaseContext struct {
	context.Context
	l *Lease
}

func (c leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.l.checkClock()
	return c.Context.Err()
}

// Valid reports whether the lease is certain to be held at this moment, by the local monotonic clock, also just after a pause of
// the process. It sends nothing: Renew asks the backend.
func (l *Lease) Valid() bool {
	l.checkClock()
	return l.endCause() == nil
}

// Until returns the local time up to which the lease is certain to be held, if it is not renewed before; the zero Time if it is
// over. Each renewal moves it.
func (l *Lease) Until() time.Time {
	if !l.Valid() {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Time(l.sent).Add(l.ttl - margin(l.ttl))
}

// checkClock ends a lease that is no longer certain although its timer has not fired yet, as after a pause of the process.
func (l *Lease) checkClock() {
	l.mu.Lock()
	lapsed := !l.over && l.certainFor(l.sent) <= 0
	l.mu.Unlock()
	if lapsed {
		l.expire()
	}
}

// context returns the context, and makes it if there is none yet: a lease that is held for a moment mostly needs none. The caller holds
// mu.
func (l *Lease) context() context.Context {
	switch {
	case l.ctx != nil:
	case l.cause != nil:
		l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(l.parent))
		l.cancel(l.cause)
	default:
		l.ctx, l.cancel = context.WithCancelCause(l.parent)
	}
	return l.ctx
}

// endCause returns the cause with which the context has ended, nil if it has not.
func (l *Lease) endCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endCauseLocked()
}

// endCauseLocked does the work of endCause. The caller holds mu.
func (l *Lease) endCauseLocked() error {
	switch {
	case l.ctx != nil:
		return context.Cause(l.ctx)
	case l.cause != nil:
		return l.cause
	}
	return context.Cause(l.parent)
}

// stop ends the context. before is the cause with which it had ended already, or nil.
func (l *Lease) stop(cause error) (before error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before = l.endCauseLocked(); before != nil {
		return before
	}
	if l.ctx != nil {
		l.cancel(cause)
	} else {
		l.cause = cause
	}
	return nil
}

// String describes the lease.
func (l *Lease) String() string {
	return fmt.Sprintf("lease of %s %q, token %d", l.o.what, l.o.name, l.token)
}

// renewLoop renews the lease every TTL/3 until the context ends. The caller has already waited the first third. When the context ends,
// the lease expires; renewLoop does not release it, because the work may still be on its way to Release.
func (l *Lease) renewLoop() {
	defer l.stopRenewing()
	l.mu.Lock()
	ctx := l.context()
	if !l.over {
		l.expiry = time.AfterFunc(l.certainFor(l.sent), l.expire)
	}
	l.mu.Unlock()
	for failed := 0; ctx.Err() == nil; {
		err := l.Renew(ctx)
		pause := l.ttl / 3
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return
		default:
			l.o.opts.Logger.Warn("lock: renewal failed, trying again", "object", l.o.what, "name", l.o.name, "error", err)
			pause = kit.Backoff(l.ttl/64, l.ttl/12, failed)
			failed++
		}
		if kit.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// stopRenewing notes that renewLoop has returned.
func (l *Lease) stopRenewing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped = true; l.stopping != nil {
		close(l.stopping)
	}
}

// waitForRenewals waits up to a second until renewLoop has returned. A renewal that hangs for longer renews nothing, because the lease is
// released.
func (l *Lease) waitForRenewals() {
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return
	}
	if l.stopping == nil {
		l.stopping = make(chan struct{})
	}
	stopping := l.stopping
	l.mu.Unlock()
	t := time.NewTimer(kit.Farewell)
	defer t.Stop()
	select {
	case <-stopping:
	case <-t.C:
	}
}

// Renew renews the lease for its full time, now. nil proves that the caller holds the lease at
// this moment. ErrLost ends the lease and its Context. The package renews leases by itself;
// call Renew before a step that cannot be fenced.
func (l *Lease) Renew(ctx context.Context) error {
	if cause := l.endCause(); cause != nil {
		return l.o.wrap("renew", cause)
	}
	// A renewal that hangs ends early enough for another one.
	bounded, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	sent := now()
	err := l.acquirer.renew(bounded, l.owner, l.token)
	switch {
	case errors.Is(err, ErrLost):
		err = l.o.wrap("renew", err)
		l.lost(err)
		return err
	case kit.Overdue(ctx, bounded, err):
		err = fmt.Errorf("%w: no answer within %v", conn.ErrUnavailable, l.ttl/3)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastErr = err; err != nil {
		return l.o.wrap("renew", err)
	}
	if !l.over && sent.after(l.sent) {
		l.sent = sent
		if l.expiry != nil {
			l.expiry.Reset(l.certainFor(sent))
		}
	}
	return nil
}

// expire ends a lease that is no longer certain.
func (l *Lease) expire() {
	if l.parent.Err() != nil {
		l.o.opts.Logger.Warn("lock: a lease has run out: the context that it was acquired with ended before Release",
			"object", l.o.what, "name", l.o.name, "token", l.token, "error", context.Cause(l.parent))
		return
	}
	l.mu.Lock()
	err := l.lastErr
	l.mu.Unlock()
	if err == nil {
		err = errors.New("no answer")
	}
	err = l.o.wrap("renew", fmt.Errorf("%w: no renewal has succeeded for %v: %w", ErrLost, l.ttl, err))
	if l.stop(err) == nil {
		l.o.opts.Logger.Error("lock: lease lost", "object", l.o.what, "name", l.o.name, "token", l.token, "error", err)
	}
}

// lost ends a lease that is over according to the backend.
func (l *Lease) lost(err error) {
	l.finish()
	if l.stop(err) == nil { // otherwise the program has released it meanwhile
		l.o.opts.Logger.Error("lock: lease lost", "object", l.o.what, "name", l.o.name, "token", l.token, "error", err)
	}
}

// finish marks the lease as over, and reports whether it was before.
func (l *Lease) finish() (before bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.over = l.over, true
	if l.expiry != nil {
		l.expiry.Stop()
	}
	return before
}

// Release ends Context and the renewals, and gives the lease back. It returns nil if the lease
// was held until now, and for further calls; ErrLost if the lease was over before. Any other
// error means that the backend did not reply: call Release again, or let the lease expire.
//
// The end of ctx does not end Release at once, so that deferred calls do their work. It tries
// until the backend replies, for at most 3 seconds and at most 1 second beyond the end of ctx.
// In Redisson's layout it does not try again if the backend may have received the request.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	cause := l.stop(context.Canceled)
	l.neverRenewed = l.neverRenewed || l.firstRenewal.Stop()
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over {
		if errors.Is(cause, ErrLost) {
			return l.o.wrap("release", cause)
		}
		return nil
	}
	was, err := l.release(ctx)
	if err != nil {
		return l.o.wrap("release", err)
	}
	if !l.neverRenewed {
		l.waitForRenewals()
	}
	if !was {
		return l.o.wrap("release", ErrLost)
	}
	return nil
}

// release releases the lease, and reports whether it was held until then, as far as the package can know. The caller holds releasing.
func (l *Lease) release(ctx context.Context) (was bool, err error) {
	l.mu.Lock()
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.mu.Unlock()
	err = kit.Release(ctx, nil, retryable(l.acquirer), func(ctx context.Context) (err error) {
		was, err = l.acquirer.release(ctx, l.owner, l.token)
		l.unanswered = l.unanswered || err != nil
		return err
	})
	if err != nil {
		return false, err
	}
	l.finish()
	if _, plain := l.acquirer.(scriptLock); plain {
		if d := l.o.wakeups.Find(); d != nil {
			d.Wake("") // a release in this process needs no message
		}
	}
	if l.afterRelease != nil {
		_ = kit.Courtesy(ctx, nil, func(error) bool { return false }, func(ctx context.Context) error {
			l.afterRelease(ctx)
			return nil
		})
	}
	return was || l.unanswered, nil
}
