package remote

import (
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// Replicas says what a write waits for: acknowledgements of N replicas, for at most
// Within.
type Replicas struct {
	N      int
	Within time.Duration
}

// Millis returns Within for WAIT, in milliseconds and at least 1, because 0 would wait
// without end.
func (w Replicas) Millis() int64 {
	return int64(max((w.Within+time.Millisecond-1)/time.Millisecond, 1))
}

// Check combines the answer of a write with the answer of its WAIT.
func (w Replicas) Check(a, waited Answer) Answer {
	switch {
	case !a.Ran || a.Err != nil || a.V.Err() != nil:
	case waited.Err != nil:
		a.Err = fmt.Errorf("%w: %w: %w", conn.ErrNotReplicated, conn.ErrUnavailable, waited.Err)
	case waited.V.Err() != nil:
		a.Err = fmt.Errorf("%w: %w", conn.ErrNotReplicated, waited.V.Err())
	case waited.V.Int < int64(w.N):
		a.Err = fmt.Errorf("%w: %w: on %d of %d replicas after %v", conn.ErrNotReplicated, conn.ErrUnavailable, waited.V.Int, w.N, w.Within)
	}
	return a
}
