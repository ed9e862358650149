//go:build !linux

package loadgen

import "time"

// pacer sleeps; where this is all there is, open-loop latencies include up to
// a millisecond of our own.
type pacer struct{}

func newPacer() *pacer { return &pacer{} }

func (*pacer) close() {}

// until sleeps until t.
func (*pacer) until(t time.Time) { time.Sleep(time.Until(t)) }
