package rueidisebb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// ends are the instants at which calls are given up that have a time limit of their own,
// or none and so the driver's. A thousand calls that have a second each share some
// timers, which are late by less than endStep, instead of making one each.
type ends struct {
	since time.Time
	reply time.Duration       // the driver's limit, from the call on; 0 or less: none
	last  atomic.Pointer[end] // the one that was asked for last

	mu  sync.Mutex // guards what follows
	all map[int64]*end
}

// end is an instant.
type end struct {
	step  int64
	c     chan struct{} // closed when it has come
	timer *time.Timer
}

const (
	// endStep is how much later than its limit a call may be given up.
	endStep = 10 * time.Millisecond
	// endLeast is the limit from which that is little.
	endLeast = 100 * time.Millisecond
)

// of returns what ends a call: its context's channel, or that of the context's parent,
// and one for the time. silent says that the time is the driver's limit.
func (e *ends) of(ctx context.Context) (done, late <-chan struct{}, silent bool) {
	b, bound := ctx.(*kit.Bound)
	at, has := ctx.Deadline()
	if e.reply > 0 {
		if limit := time.Now().Add(e.reply); !has || at.After(limit) {
			at, silent = limit, true
		}
	}
	if !bound && !silent {
		return ctx.Done(), nil, false
	}
	step := int64(at.Sub(e.since)/endStep) + 1
	if bound {
		last := e.last.Load()
		if !silent && (last == nil || last.step != step) && time.Until(at) < endLeast {
			return ctx.Done(), nil, false
		}
		ctx = b.Parent() // whose channel is there, and needs no timer
	}
	return ctx.Done(), e.at(step), silent
}

// here returns a context with which rueidis ends a call in time by itself: the call's,
// where its deadline comes before the driver's limit, or else one with that limit, of
// which a cancellation is noticed with the reply only.
func (e *ends) here(ctx context.Context) context.Context {
	if e.reply <= 0 {
		return ctx
	}
	limit := time.Now().Add(e.reply)
	if at, has := ctx.Deadline(); has && !at.After(limit) {
		return ctx
	}
	return &limited{ctx, limit, e.at(int64(limit.Sub(e.since)/endStep) + 1)}
}

// limited is a context with the driver's limit in the place of its own end.
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

// come is called when an instant has.
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
