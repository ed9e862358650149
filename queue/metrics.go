package queue

import (
	"sync/atomic"
	"time"
)

// Metrics counts the operations of this Queue since New, on every backend. Other programs that use the queue
// count their own; Info describes the queue as a whole.
type Metrics struct {
	// Pushed counts the jobs that were added. Duplicates and Refused count the jobs that were not, because of
	// ErrDuplicate and ErrFull.
	Pushed, Duplicates, Refused int64
	// Delivered counts deliveries.
	Delivered int64
	// Acked, Nacked, Postponed and Buried count settled deliveries; a Fail counts as Nacked or Buried.
	Acked, Nacked, Postponed, Buried int64
	// Lost counts calls that got ErrLost.
	Lost int64
	// Running is the number of jobs that functions of Run and RunBatch handle now.
	Running int64
	// Handled is the total time that functions of Run and RunBatch have taken; a batch counts once.
	Handled time.Duration
}

// counts are the counters of a Queue.
type counts struct {
	pushed, duplicates, refused, delivered atomic.Int64
	acked, nacked, postponed, buried, lost atomic.Int64
	running, handled                       atomic.Int64
}

// Metrics returns the counts, without a round trip.
func (q *Queue[T]) Metrics() Metrics {
	c := &q.counts
	return Metrics{Pushed: c.pushed.Load(), Duplicates: c.duplicates.Load(), Refused: c.refused.Load(), Delivered: c.delivered.Load(),
		Acked: c.acked.Load(), Nacked: c.nacked.Load(), Postponed: c.postponed.Load(), Buried: c.buried.Load(), Lost: c.lost.Load(),
		Running: c.running.Load(), Handled: time.Duration(c.handled.Load())}
}

// settled counts a settled delivery.
func (c *counts) settled(what string) {
	switch what {
	case "ack":
		c.acked.Add(1)
	case "nack":
		c.nacked.Add(1)
	case "postpone":
		c.postponed.Add(1)
	case "bury":
		c.buried.Add(1)
	}
}

// stopwatch measures the time that a function takes, by the monotonic clock.
type stopwatch struct{ from time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

func (w stopwatch) elapsed() time.Duration { return time.Since(w.from) }

// begin counts the start of a function for jobs.
func (c *counts) begin(jobs int) stopwatch {
	c.running.Add(int64(jobs))
	return startWatch()
}

// end counts the end of the function.
func (c *counts) end(jobs int, started stopwatch) {
	c.running.Add(-int64(jobs))
	c.handled.Add(int64(started.elapsed()))
}
