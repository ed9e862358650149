package instance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// pulse detects whether the network loops run and their reclaimers work.
type pulse struct {
	turns   []turns
	reclaim []func() time.Duration // runs a slice of the work of each loop's reclaimer
}

// turns counts the runs of a network loop's idle work. The loops write on different processors, so each counter has
// its own cache line.
type turns struct {
	atomic.Int64
	_ [56]byte
}

// idle runs a loop's reclaimer, and then counts the turn. It returns the time for which the loop may sleep.
func (p *pulse) idle(loop int) time.Duration {
	next := p.reclaim[loop]()
	p.turns[loop].Add(1)
	return next
}

// alive calls nudge for each of the first loops, and returns when all of them have finished their idle work. If ctx
// ends first, it returns an error that names a loop that has not.
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
