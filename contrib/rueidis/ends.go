package rueidisebb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// ends are the instants at which calls with a time limit of their own are given up. A
// thousand calls that have a second each share some timers, which are late by less than
// endStep, instead of making one each.
type ends struct {
	since time.Time
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

// of returns what ends a context: its own channel, or its parent's and one for the time.
func (e *ends) of(ctx context.Context) (done, late <-chan struct{}) {
	b, ok := ctx.(*kit.Bound)
	if !ok {
		return ctx.Done(), nil
	}
	at, _ := b.Deadline()
	step := int64(at.Sub(e.since)/endStep) + 1
	if last := e.last.Load(); last != nil && last.step == step {
		return b.Parent().Done(), last.c
	}
	if time.Until(at) < endLeast {
		return ctx.Done(), nil
	}
	return b.Parent().Done(), e.at(step)
}

// at returns the channel of a step.
func (e *ends) at(step int64) <-chan struct{} {
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

// close stops the timers. Nobody calls any more.
func (e *ends) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.all {
		n.timer.Stop()
	}
}
