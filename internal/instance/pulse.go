package instance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// pulse shows whether the network loops turn and their reclaimers work.
type pulse struct {
	turns   []turns
	reclaim []func() time.Duration // a slice of the work of each loop's reclaimer
}

// turns counts how often a network loop has run its idle work. The loops write on different processors, so each has a
// cache line of its own.
type turns struct {
	atomic.Int64
	_ [56]byte
}

// idle runs a loop's reclaimer, and counts the turn when that has returned. It returns how long the loop may sleep.
func (p *pulse) idle(loop int) time.Duration {
	next := p.reclaim[loop]()
	p.turns[loop].Add(1)
	return next
}

// alive calls nudge for each of the first loops, and returns when all of them have ended their idle work. When ctx ends first, it returns
// an error that names one that has not.
func (p *pulse) alive(ctx context.Context, loops int, nudge func(loop int)) error {
	before := make([]int64, loops)
	for i := range before {
		before[i] = p.turns[i].Load()
		nudge(i)
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for i := range before {
		for p.turns[i].Load() == before[i] {
			select {
			case <-ctx.Done():
				return fmt.Errorf("network loop %d of %d, or its reclaimer, does not respond: %w", i, loops, context.Cause(ctx))
			case <-pause.C:
			}
		}
	}
	return nil
}
