package rueidisebb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlines holds the instants at which calls reach the driver's time limit. A thousand calls with a
// limit of a second share a few timers, which are late by less than deadlineStep, instead of a timer each.
type deadlines struct {
	since time.Time
	reply time.Duration            // the driver's limit, from the call on; 0 or less: none
	last  atomic.Pointer[deadline] // the one that was requested last

	mu  sync.Mutex // guards what follows
	all map[int64]*deadline
}

// deadline is an instant and its channel.
type deadline struct {
	step  int64
	c     chan struct{} // closed at the instant
	timer *time.Timer
}

// deadlineStep is the most by which a call may end after its limit.
const deadlineStep = 10 * time.Millisecond

// channels returns the channels that end a call: that of its context, and one for the driver's limit, which is nil if the
// context ends before.
func (d *deadlines) channels(ctx context.Context) (done, late <-chan struct{}) {
	limit, sooner := d.limit(ctx)
	if sooner {
		return ctx.Done(), nil
	}
	return ctx.Done(), d.at(int64(limit.Sub(d.since)/deadlineStep) + 1)
}

// limit returns the driver's limit for a call that begins now; sooner: there is none, or the context ends before.
func (d *deadlines) limit(ctx context.Context) (at time.Time, sooner bool) {
	if d.reply <= 0 {
		return at, true
	}
	at = time.Now().Add(d.reply)
	end, has := ctx.Deadline()
	return at, has && !end.After(at)
}

// bounded returns a context with which rueidis itself ends a call in time. It is the call's
// context if its deadline is before the driver's limit. Else it is a context with that
// limit, and a cancellation of the call's context has an effect only when the reply comes.
func (d *deadlines) bounded(ctx context.Context) context.Context {
	limit, sooner := d.limit(ctx)
	if sooner {
		return ctx
	}
	return &limited{ctx, limit, d.at(int64(limit.Sub(d.since)/deadlineStep) + 1)}
}

// limited is a context that ends at the driver's limit, and not when its parent ends.
type limited struct {
	context.Context
	at   time.Time
	late <-chan struct{}
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) { return l.at, true }

// Done implements context.Context.
func (l *limited) Done() <-chan struct{} { return l.late }

// Err implements context.Context.
func (l *limited) Err() error {
	select {
	case <-l.late:
		return context.DeadlineExceeded
	default:
		return l.Context.Err()
	}
}

// at returns the channel of a step.
func (d *deadlines) at(step int64) <-chan struct{} {
	if last := d.last.Load(); last != nil && last.step == step {
		return last.c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.all[step]
	if n == nil {
		n = &deadline{step: step, c: make(chan struct{})}
		n.timer = time.AfterFunc(time.Until(d.since.Add(time.Duration(step)*deadlineStep)), func() { d.expire(n) })
		if d.all == nil {
			d.all = map[int64]*deadline{}
		}
		d.all[step] = n
	}
	d.last.Store(n)
	return n.c
}

// expire closes the channel of an instant; its timer calls it.
func (d *deadlines) expire(n *deadline) {
	close(n.c)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, n.step)
}

// close stops the timers. The caller must have ended all other calls.
func (d *deadlines) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.all {
		n.timer.Stop()
	}
}
