package locking

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/ebbdb/ebb/internal/kit"
)

// Instant is a reading of the local monotonic clock, which counts leases. It does not follow a wall clock that is set, and differs from
// the server's clock by its drift alone, for which Margin is subtracted.
type Instant time.Time

// Now reads the clock.
func Now() Instant { return Instant(time.Now()) }

// Elapsed returns the time since m.
func (m Instant) Elapsed() time.Duration { return time.Since(time.Time(m)) }

func (m Instant) after(o Instant) bool { return time.Time(m).After(time.Time(o)) }

// Margin returns the time by which a lease counts as shorter than it is: clocks of computers differ by far less than 1 %, and a
// server counts milliseconds.
func Margin(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Lease is a lease: see lock.Lease.
type Lease struct {
	o        *Object
	acquirer Acquirer
	owner    string
	token    int64
	ttl      time.Duration

	parent       context.Context           // that the lease was acquired with
	firstRenewal *time.Timer               // calls renewLoop: a shorter lease needs no goroutine; nil: renewals do
	afterRelease func(ctx context.Context) // nil: nothing

	releasing    sync.Mutex // one Release at a time; taken before mu
	neverRenewed bool       // Release came before the first renewal

	id         [2 * idBytes]byte // the memory of owner, for a direct call
	requested  Instant           // before the request that was granted
	renewals   *renewalList      // nil: firstRenewal
	list       *renewalList      // renewals until the first renewal; its mu guards list, prev and next
	prev, next *Lease

	mu         sync.Mutex              // guards what follows
	ctx        context.Context         // nil until its first use
	view       context.Context         // ctx as Context returns it
	cancel     context.CancelCauseFunc // ends it
	cause      error                   // why it ended before its first use
	stopped    bool                    // renewLoop has returned
	stopping   chan struct{}           // closed then; nil while no call waits for it
	expiry     *time.Timer             // ends the lease when it is no longer certain; nil before renewLoop
	sent       Instant                 // before the last granted request
	lastErr    error                   // of the last renewal
	over       bool                    // released, or lost according to the backend
	unanswered bool                    // a release was sent and had no reply
}

// newLease returns a lease and begins to renew it. sent is the instant before the granted request: the server counts the lease from a
// later one.
func newLease(ctx context.Context, o *Object, acq Acquirer, owner string, token int64, sent Instant) *Lease {
	if o.UntilRelease {
		ctx = context.WithoutCancel(ctx)
	}
	l := &Lease{o: o, acquirer: acq, owner: owner, token: token, ttl: o.TTL, sent: sent, parent: ctx}
	l.firstRenewal = time.AfterFunc(max(l.ttl/3-sent.Elapsed(), 0), l.renewLoop)
	return l
}

// idBytes is the length of the random part of an owner.
const idBytes = 16

// AcquireDirect acquires l, which is new, by a direct call. ok is false if the call has done nothing. prefix is the part of the owner's
// name before its random part; waits: a refusal is none.
func (l *Lease) AcquireDirect(ctx context.Context, o *Object, acq Direct, prefix string, waits bool) (granted, ok bool) {
	if ctx.Err() != nil {
		return false, false
	}
	var random [idBytes]byte // as kit.ID, which reads from the system
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64())
	hex.Encode(l.id[:], random[:])
	owner := unsafe.String(&l.id[0], len(l.id))
	if prefix != "" {
		owner = prefix + ":" + owner
	}
	sent := Now()
	token, granted, ok := acq.AcquireDirect(owner, waits)
	if !granted {
		return false, ok
	}
	if sent.Elapsed() >= o.TTL/4 && !confirmDirect(ctx, o, acq, owner, token, &sent) {
		return false, false
	}
	if o.UntilRelease {
		ctx = context.WithoutCancel(ctx)
	}
	l.o, l.acquirer, l.owner, l.token, l.ttl, l.sent, l.requested, l.parent = o, acq, owner, token, o.TTL, sent, sent, ctx
	if l.renewals = renewalsOf(o.Conn, l.ttl); l.renewals != nil {
		l.renewals.add(l)
	} else {
		l.firstRenewal = time.AfterFunc(max(l.ttl/3-sent.Elapsed(), 0), l.renewLoop)
	}
	return true, true
}

// confirmDirect renews a lease whose request took long, so that it counts from sent, which it sets. It reports false if it has given
// the lease back instead.
func confirmDirect(ctx context.Context, o *Object, acq Direct, owner string, token int64, sent *Instant) bool {
	*sent = Now()
	err := acq.Renew(ctx, owner, token)
	if err != nil && !errors.Is(err, ErrLost) {
		o.TakeBack(ctx, func(ctx context.Context) error { _, err := acq.Release(ctx, owner, token); return err })
	}
	return err == nil
}

// stopFirstRenewal reports whether it came before the first renewal, of which there is none then.
func (l *Lease) stopFirstRenewal() bool {
	if l.renewals != nil {
		return l.renewals.remove(l)
	}
	return l.firstRenewal.Stop()
}

// Object returns what the lease is of.
func (l *Lease) Object() *Object { return l.o }

// AfterRelease has fn called after the release. It comes before the lease is used.
func (l *Lease) AfterRelease(fn func(ctx context.Context)) { l.afterRelease = fn }

// certainFor returns how much longer a lease is certain that was requested at sent.
func (l *Lease) certainFor(sent Instant) time.Duration { return l.ttl - Margin(l.ttl) - sent.Elapsed() }

// Token returns the fencing token.
func (l *Lease) Token() int64 { return l.token }

// Owner returns the name of the holder.
func (l *Lease) Owner() string { return l.owner }

// Context returns the context for the work.
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

// Valid reports whether the lease is certain to be held now.
func (l *Lease) Valid() bool {
	l.checkClock()
	return l.endCause() == nil
}

// Until returns the local time up to which the lease is certain to be held.
func (l *Lease) Until() time.Time {
	if !l.Valid() {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Time(l.sent).Add(l.ttl - Margin(l.ttl))
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

// Stop ends the context. before is the cause with which it had ended already, or nil.
func (l *Lease) Stop(cause error) (before error) {
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
	return fmt.Sprintf("lease of %s %q, token %d", l.o.What, l.o.Name, l.token)
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
			l.o.Logger.Warn("lock: renewal failed, trying again", "object", l.o.What, "name", l.o.Name, "error", err)
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
	t := time.NewTimer(kit.GraceAfterEnd)
	defer t.Stop()
	select {
	case <-stopping:
	case <-t.C:
	}
}

// Renew renews the lease now.
func (l *Lease) Renew(ctx context.Context) error {
	if cause := l.endCause(); cause != nil {
		return l.o.Wrap("renew", cause)
	}
	// A renewal that hangs ends early enough for another one.
	bounded, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	sent := Now()
	err := l.acquirer.Renew(bounded, l.owner, l.token)
	switch {
	case errors.Is(err, ErrLost):
		err = l.o.Wrap("renew", err)
		l.lost(err)
		return err
	case kit.Overdue(ctx, bounded, err):
		err = kit.NoReply(l.ttl / 3)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastErr = err; err != nil {
		return l.o.Wrap("renew", err)
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
		l.o.Logger.Warn("lock: a lease has run out: the context that it was acquired with ended before Release",
			"object", l.o.What, "name", l.o.Name, "token", l.token, "error", context.Cause(l.parent))
		return
	}
	l.mu.Lock()
	err := l.lastErr
	l.mu.Unlock()
	if err == nil {
		err = errors.New("no reply")
	}
	err = l.o.Wrap("renew", fmt.Errorf("%w: no renewal has succeeded for %v: %w", ErrLost, l.ttl, err))
	if l.Stop(err) == nil {
		l.o.Logger.Error("lock: lease lost", "object", l.o.What, "name", l.o.Name, "token", l.token, "error", err)
	}
}

// lost ends a lease that is over according to the backend.
func (l *Lease) lost(err error) {
	l.finish()
	if l.Stop(err) == nil { // otherwise the program has released it meanwhile
		l.o.Logger.Error("lock: lease lost", "object", l.o.What, "name", l.o.Name, "token", l.token, "error", err)
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

// Release gives the lease back.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	cause := l.Stop(context.Canceled)
	l.neverRenewed = l.neverRenewed || l.stopFirstRenewal()
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over {
		if errors.Is(cause, ErrLost) {
			return l.o.Wrap("release", cause)
		}
		return nil
	}
	was, err := l.release(ctx)
	if err != nil {
		return l.o.Wrap("release", err)
	}
	if !l.neverRenewed {
		l.waitForRenewals()
	}
	if !was {
		return l.o.Wrap("release", ErrLost)
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
	direct, done := l.acquirer.(Direct)
	if done {
		was, done = direct.ReleaseDirect(l.owner, l.token)
	}
	if !done {
		was, err = l.sendRelease(ctx)
	}
	if err != nil {
		return false, err
	}
	l.finish()
	if _, plain := l.acquirer.(NoLine); plain {
		if d := l.o.Wakeups.Find(); d != nil {
			d.Wake("") // a release in this process needs no message
		}
	}
	if l.afterRelease != nil {
		_ = kit.ReleaseBriefly(ctx, nil, func(error) bool { return false }, func(ctx context.Context) error {
			l.afterRelease(ctx)
			return nil
		})
	}
	return was || l.unanswered, nil
}

// sendRelease sends the release until the backend answers; see kit.Release.
func (l *Lease) sendRelease(ctx context.Context) (was bool, err error) {
	err = kit.Release(ctx, nil, retryable(l.acquirer), func(ctx context.Context) (err error) {
		was, err = l.acquirer.Release(ctx, l.owner, l.token)
		l.unanswered = l.unanswered || err != nil
		return err
	})
	return was, err
}
