package delayq

import (
	"slices"

	"github.com/ebbdb/ebb/internal/chunk"
)

// Freeze returns a read-only copy, with jobs, leases, marks, schedules and counts, under the rules of
// dict.Dict.Freeze. O(chunks + jobs larger than 8 KiB).
func (q *Queue) Freeze() *Queue {
	l, f := new(chunk.Loan), new(Queue)
	*f = *q
	f.DeadLetter, f.Deliver, f.frozen = slices.Clone(q.DeadLetter), slices.Clone(q.Deliver), l
	f.jobs = q.jobs.FreezeOn(l)
	f.due = q.due.Freeze(l, (*byDue)(f))
	f.events = q.events.Freeze(l, (*byEvent)(f))
	if q.marks != nil {
		f.marks = q.marks.FreezeOn(l)
	}
	f.timed = q.timed.freeze()
	return f
}

// Frozen reports whether there is a frozen copy that shares chunks with the queue.
func (q *Queue) Frozen() bool {
	return q.jobs.Frozen() || q.due.Frozen() || q.events.Frozen() || q.marks != nil && q.marks.Frozen()
}
