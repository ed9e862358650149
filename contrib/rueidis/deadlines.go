package rueidisebb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ends holds the instants at which calls reach the driver's time limit. A thousand calls with a
// limit of a second share a few timers, which are late by less than endStep, instead of a timer each.
type ends struct {
	since time.Time
	reply time.Duration       // the driver's limit, from the call on; 0 or less: none
	last  atomic.Pointer[end] // the one that was requested last

	mu  sync.Mutex // guards what follows
	all map[int64]*end
}

// end is an instant and its channel.
type end struct {
	step  int64
	c     chan struct{} // closed at the instant
	timer *time.Timer
}

// endStep is the most by which a call may end after its limit.
const endStep = 10 * time.Millisecond

// of returns the channels that end a call: that of its context, and one for the driver's limit, which is nil if the context ends before.
func (e *ends) of(ctx context.Context) (done, late <-chan struct{}) {
	limit, sooner := e.limit(ctx)
	if sooner {
		return ctx.Done(), nil
	}
	return ctx.Done(), e.at(int64(limit.Sub(e.since)/endStep) + 1)
}

// limit returns the driver's limit for a call that begins now; sooner: there is none, or the context ends before.
func (e *ends) limit(ctx context.Context) (at time.Time, sooner bool) {
	if e.reply <= 0 {
		return at, true
	}
	at = time.Now().Add(e.reply)
	end, has := ctx.Deadline()
	return at, has && !end.After(at)
}

// here returns a context with which rueidis itself ends a call in time. It is the call's
// context if its deadline is before the driver's limit. Else it is a context with that
// limit, and a cancellation of the call's context has an effect only when the reply comes.
func (e *ends) here(ctx context.Context) context.Context {
	limit, sooner := e.limit(ctx)
	if sooner {
		return ctx
	}
	return &limited{ctx, limit, e.at(int64(limit.Sub(e.since)/endStep) + 1)}
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
func (e *ends) at(step int64) <-chan struct{} {
	if last := e.last.Load(); last != nil && last.step == step {
		return last.c
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.all[step]
	if n == nil {
		n = &end{step: step, c: make(chan struct{})}
		n.timer = time.AfterFunc(time.Until(e.since.Add(time.Duration(step)*endStep)), func() { e.come(n) })
		if e.all == nil {
			e.all = map[int64]*end{}
		}
		e.all[step] = n
	}
	e.last.Store(n)
	return n.c
}

// come closes the channel of an instant; its timer calls it.
func (e *ends) come(n *end) {
	close(n.c)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, n.step)
}

// close stops the timers. The caller must have ended all other calls.
func (e *ends) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.all {
		n.timer.Stop()
	}
}
