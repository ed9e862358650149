package routing

import (
	"context"
	"time"
)

// How often, and with which pauses, what did not run is tried again: in all for
// about 0.4 s, or for 1 s where the attempts themselves take time. A slot that
// moves takes less; a failover takes more, and a caller that has the time tries again
// with what it knows.
const (
	tries    = 8
	tryFirst = 4 * time.Millisecond
	tryMost  = 128 * time.Millisecond
	tryFor   = time.Second
)

// Retry counts tries of one call, which alone uses it. The zero value is before the
// first. Defer Stop.
type Retry struct {
	// Closed ends the pauses when the driver closes; nil: nothing does.
	Closed <-chan struct{}

	n    int
	over *time.Timer // since the second
}

// Next waits until it is time for another try, and reports whether it is: not when it
// was tried enough, or ctx ends meanwhile. The first is due at once.
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

// Stop ends it.
func (r *Retry) Stop() {
	if r.over != nil {
		r.over.Stop()
	}
}
