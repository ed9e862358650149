package locking

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Instant is a reading of the local monotonic clock, which counts leases. It does not follow a wall clock that is set, and differs from
// the server's clock by its drift alone, for which Margin is subtracted.
type Instant time.Time

// Now reads the clock.
func Now() Instant { return Instant(time.Now()) }

// Elapsed returns the time since m.
func (m Instant) Elapsed() time.Duration { return time.Since(time.Time(m)) }

// Margin returns the time by which a lease counts as shorter than it is: clocks of computers differ by far less than 1 %, and a
// server counts milliseconds.
func Margin(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Lease is a lease: see lock.Lease. Many are held for a moment, so what only a longer one needs is apart.
type Lease struct {
	object   atomic.Pointer[Object] // nil until something needs it: see Maker
	acquirer Acquirer
	owner    string
	token    int64
	ttl      time.Duration
	parent   context.Context // that the lease was acquired with

	id         [2 * idBytes]byte // the memory of owner, for a direct call
	requested  Instant           // before the request that was granted
	lane       *lane             // begins the renewals; nil: long.firstRenewal does
	prev, next *Lease            // lane.mu guards them, and
	listed     bool              // this: the lease is in lane

	neverRenewed bool       // Release came before the first renewal; a Release alone uses it
	releasing    sync.Mutex // one Release at a time; taken before mu

	mu         sync.Mutex    // guards what follows
	stopped    bool          // renewLoop has returned
	over       bool          // released, or lost according to the backend
	unanswered bool          // a release was sent and had no reply
	long       *longLease    // nil: nothing has needed it
	cause      error         // why the context ended before its first use
	renewed    time.Duration // from requested to the last granted request
}

// longLease is the part of a lease that it needs for a context or a renewal. Lease.mu guards it.
type longLease struct {
	firstRenewal *time.Timer               // calls renewLoop: a shorter lease needs no goroutine; nil: the lane does
	afterRelease func(ctx context.Context) // nil: nothing
	ctx          context.Context           // nil until its first use
	view         context.Context           // ctx as Context returns it
	cancel       context.CancelCauseFunc   // ends it
	stopping     chan struct{}             // closed when renewLoop has returned; nil while no call waits for it
	expiry       *time.Timer               // ends the lease when it is no longer certain; nil before renewLoop
	lastErr      error                     // of the last renewal
}

// newLease returns a lease and begins to renew it. sent is the instant before the granted request: the server counts the lease from a
// later one.
func newLease(ctx context.Context, o *Object, acq Acquirer, owner string, token int64, sent Instant) *Lease {
	if o.UntilRelease {
		ctx = context.WithoutCancel(ctx)
	}
	x := new(struct { // one allocation for both
		lease Lease
		long  longLease
	})
	l := &x.lease
	l.object.Store(o)
	l.acquirer, l.owner, l.token, l.ttl, l.requested, l.parent, l.long = acq, owner, token, o.TTL, sent, ctx, &x.long
	l.long.firstRenewal = time.AfterFunc(max(l.ttl/3-sent.Elapsed(), 0), l.renewLoop)
	return l
}

// idBytes is the length of the random part of an owner.
const idBytes = 16

// AcquireDirect acquires l, which is new, by a direct call. ok is false if the call has done nothing. prefix is the part of the owner's
// name before its random part; waits: a refusal is none.
func (l *Lease) AcquireDirect(ctx context.Context, o *Object, acq Direct, prefix string, waits bool) (granted, ok bool) {
	l.object.Store(o)
	l.ttl, l.acquirer = o.TTL, acq
	return l.acquireDirect(ctx, o.Conn, acq, prefix, waits, o.UntilRelease)
}

// AcquireOnce is AcquireDirect for an object that acq makes when something needs it: most such leases are released at once. A
// refusal is none.
func (l *Lease) AcquireOnce(ctx context.Context, c *conn.Conn, ttl time.Duration, acq Maker) (granted bool) {
	l.ttl, l.acquirer = ttl, acq
	granted, _ = l.acquireDirect(ctx, c, acq, "", true, false)
	return granted
}

func (l *Lease) acquireDirect(ctx context.Context, c *conn.Conn, acq Direct, prefix string, waits, untilRelease bool) (granted, ok bool) {
	if ctx.Err() != nil {
		return false, false
	}
	var random [idBytes]byte // as kit.ID, which reads from the system
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64())
	hex.Encode(l.id[:], random[:])
	l.owner = unsafe.String(&l.id[0], len(l.id))
	if prefix != "" {
		l.owner = prefix + ":" + l.owner
	}
	r := keptRenewals(c)
	l.requested = r.now()
	if l.token, granted, ok = acq.AcquireDirect(l.owner, waits); !granted {
		return false, ok
	}
	if l.requested.Elapsed() >= l.ttl/4 && !l.confirmDirect(ctx, acq) {
		return false, false
	}
	if l.parent = ctx; untilRelease {
		l.parent = context.WithoutCancel(ctx)
	}
	if all := r.of(l.ttl); all != nil {
		l.lane = &all[random[0]%lanes]
		l.lane.add(l)
	} else {
		l.long = &longLease{}
		l.long.firstRenewal = time.AfterFunc(max(l.ttl/3-l.requested.Elapsed(), 0), l.renewLoop)
	}
	return true, true
}

// confirmDirect renews a lease whose request took long, so that it counts from now. It reports false if it has given the lease back
// instead.
func (l *Lease) confirmDirect(ctx context.Context, acq Direct) bool {
	l.requested = Now()
	err := acq.Renew(ctx, l.owner, l.token)
	if err != nil && !errors.Is(err, ErrLost) {
		l.Object().TakeBack(ctx, func(ctx context.Context) error { _, err := acq.Release(ctx, l.owner, l.token); return err })
	}
	return err == nil
}

// stopFirstRenewal reports whether it came before the first renewal, of which there is none then.
func (l *Lease) stopFirstRenewal() bool {
	if l.lane != nil {
		return l.lane.remove(l)
	}
	return l.long.firstRenewal.Stop()
}

// Object returns what the lease is of.
func (l *Lease) Object() *Object {
	if o := l.object.Load(); o != nil {
		return o
	}
	l.object.CompareAndSwap(nil, l.acquirer.(Maker).Make())
	return l.object.Load()
}

// more returns long, and makes it if there is none yet. The caller holds mu.
func (l *Lease) more() *longLease {
	if l.long == nil {
		l.long = &longLease{}
	}
	return l.long
}

// AfterRelease has fn called after the release. It comes before the lease is used.
func (l *Lease) AfterRelease(fn func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more().afterRelease = fn
}

// certainFor returns how much longer the lease is certain if its last granted request was sent at an instant after requested.
func (l *Lease) certainFor(sent time.Duration) time.Duration {
	return l.ttl - Margin(l.ttl) - (l.requested.Elapsed() - sent)
}

// Token returns the fencing token.
func (l *Lease) Token() int64 { return l.token }

// Owner returns the name of the holder.
func (l *Lease) Owner() string { return l.owner }

// Context returns the context for the work.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.more()
	if m.view == nil {
		m.view = leaseContext{l.context(), l}
	}
	return m.view
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
	now := time.Now() // the reading in requested may be of a clock that was set since
	return now.Add(l.renewed + l.ttl - Margin(l.ttl) - now.Sub(time.Time(l.requested)))
}

// checkClock ends a lease that is no longer certain although its timer has not fired yet, as after a pause of the process.
func (l *Lease) checkClock() {
	l.mu.Lock()
	lapsed := !l.over && l.certainFor(l.renewed) <= 0
	l.mu.Unlock()
	if lapsed {
		l.expire()
	}
}

// context returns the context, and makes it if there is none yet: a lease that is held for a moment mostly needs none. The caller holds
// mu.
func (l *Lease) context() context.Context {
	m := l.more()
	switch {
	case m.ctx != nil:
	case l.cause != nil:
		m.ctx, m.cancel = context.WithCancelCause(context.WithoutCancel(l.parent))
		m.cancel(l.cause)
	default:
		m.ctx, m.cancel = context.WithCancelCause(l.parent)
	}
	return m.ctx
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
	case l.long != nil && l.long.ctx != nil:
		return context.Cause(l.long.ctx)
	case l.cause != nil:
		return l.cause
	}
	return context.Cause(l.parent)
}

// Stop ends the context. before is the cause with which it had ended already, or nil.
func (l *Lease) Stop(cause error) (before error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopLocked(cause)
}

// stopLocked does the work of Stop. The caller holds mu.
func (l *Lease) stopLocked(cause error) (before error) {
	if before = l.endCauseLocked(); before != nil {
		return before
	}
	if l.long != nil && l.long.ctx != nil {
		l.long.cancel(cause)
	} else {
		l.cause = cause
	}
	return nil
}

// String describes the lease.
func (l *Lease) String() string {
	o := l.Object()
	return fmt.Sprintf("lease of %s %q, token %d", o.What, o.Name, l.token)
}

// renewLoop renews the lease every TTL/3 until the context ends. The caller has already waited the first third. When the context ends,
// the lease expires; renewLoop does not release it, because the work may still be on its way to Release.
func (l *Lease) renewLoop() {
	defer l.stopRenewing()
	l.mu.Lock()
	ctx := l.context()
	if !l.over {
		l.long.expiry = time.AfterFunc(l.certainFor(l.renewed), l.expire)
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
			o := l.Object()
			o.Logger.Warn("lock: renewal failed, trying again", "object", o.What, "name", o.Name, "error", err)
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
	if l.stopped = true; l.long.stopping != nil {
		close(l.long.stopping)
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
	m := l.more()
	if m.stopping == nil {
		m.stopping = make(chan struct{})
	}
	stopping := m.stopping
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
		return l.Object().Wrap("renew", cause)
	}
	// A renewal that hangs ends early enough for another one.
	bounded, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	sent := l.requested.Elapsed()
	err := l.acquirer.Renew(bounded, l.owner, l.token)
	switch {
	case errors.Is(err, ErrLost):
		err = l.Object().Wrap("renew", err)
		l.lost(err)
		return err
	case kit.Overdue(ctx, bounded, err):
		err = kit.NoReply(l.ttl / 3)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.more().lastErr = err
		return l.Object().Wrap("renew", err)
	}
	if l.long != nil {
		l.long.lastErr = nil
	}
	if !l.over && sent > l.renewed {
		l.renewed = sent
		if l.long != nil && l.long.expiry != nil {
			l.long.expiry.Reset(l.certainFor(sent))
		}
	}
	return nil
}

// expire ends a lease that is no longer certain.
func (l *Lease) expire() {
	if l.parent.Err() != nil {
		o := l.Object()
		o.Logger.Warn("lock: a lease has run out: the context that it was acquired with ended before Release",
			"object", o.What, "name", o.Name, "token", l.token, "error", context.Cause(l.parent))
		return
	}
	err := errors.New("no reply")
	l.mu.Lock()
	if l.long != nil && l.long.lastErr != nil {
		err = l.long.lastErr
	}
	l.mu.Unlock()
	err = l.Object().Wrap("renew", fmt.Errorf("%w: no renewal has succeeded for %v: %w", ErrLost, l.ttl, err))
	if l.Stop(err) == nil {
		l.logLost(err)
	}
}

func (l *Lease) logLost(err error) {
	o := l.Object()
	o.Logger.Error("lock: lease lost", "object", o.What, "name", o.Name, "token", l.token, "error", err)
}

// lost ends a lease that is over according to the backend.
func (l *Lease) lost(err error) {
	l.finish()
	if l.Stop(err) == nil { // otherwise the program has released it meanwhile
		l.logLost(err)
	}
}

// finish marks the lease as over, and returns what AfterRelease has set.
func (l *Lease) finish() (afterRelease func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.stopExpiry()
	if l.long != nil {
		afterRelease = l.long.afterRelease
	}
	return afterRelease
}

// stopExpiry stops the timer of expire. The caller holds mu.
func (l *Lease) stopExpiry() {
	if l.long != nil && l.long.expiry != nil {
		l.long.expiry.Stop()
	}
}

// Release gives the lease back.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	l.neverRenewed = l.neverRenewed || l.stopFirstRenewal()
	l.mu.Lock()
	cause, over := l.stopLocked(context.Canceled), l.over
	l.stopExpiry()
	l.mu.Unlock()
	if over {
		if errors.Is(cause, ErrLost) {
			return l.Object().Wrap("release", cause)
		}
		return nil
	}
	was, err := l.release(ctx)
	if err != nil {
		return l.Object().Wrap("release", err)
	}
	if !l.neverRenewed {
		l.waitForRenewals()
	}
	if !was {
		return l.Object().Wrap("release", ErrLost)
	}
	return nil
}

// release releases the lease, and reports whether it was held until then, as far as the package can know. The caller holds releasing.
func (l *Lease) release(ctx context.Context) (was bool, err error) {
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
	afterRelease := l.finish()
	if _, plain := l.acquirer.(NoLine); plain {
		if d := l.Object().Wakeups.Find(); d != nil {
			d.Wake("") // a release in this process needs no message
		}
	}
	if afterRelease != nil {
		_ = kit.ReleaseBriefly(ctx, nil, func(error) bool { return false }, func(ctx context.Context) error {
			afterRelease(ctx)
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
