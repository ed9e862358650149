package routing

import (
	"context"
	"time"
)

// The number of tries of a command that did not run, and the pauses between them: about
// 0.4 s in all, or 1 s if the tries themselves take time. The move of a slot takes less. A
// failover takes more, and a caller with enough time must try again itself.
const (
	tries    = 8
	tryFirst = 4 * time.Millisecond
	tryMost  = 128 * time.Millisecond
	tryFor   = time.Second
)

// Retry counts the tries of one call. Only that call uses it. The zero value is the state
// before the first try. The caller defers Stop.
type Retry struct {
	// Closed ends the pauses when the driver closes; nil: nothing does.
	Closed <-chan struct{}

	n    int
	over *time.Timer // since the second
}

// Next waits until the next try is due, and reports true. It reports false after the last
// try, or when ctx ends meanwhile. The first try is due at once.
func (r *Retry) Next(ctx context.Context) bool {
	r.n++
	switch {
	case r.n == 1:
		return true
	case r.n > tries:
		return false
	case r.over == nil:
		r.over = time.NewTimer(tryFor)
	}
	pause := time.NewTimer(min(tryFirst<<(r.n-2), tryMost))
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-r.over.C:
	case <-ctx.Done():
	case <-r.Closed:
	}
	return false
}

// Stop releases the timer.
func (r *Retry) Stop() {
	if r.over != nil {
		r.over.Stop()
	}
}
