package delayq

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/numeral"
)

// Check verifies the queue's invariants and returns the first one broken. It
// visits every job several times.
func (q *Queue) Check() error {
	if err := q.jobs.Check(); err != nil {
		return err
	}
	if err := q.due.Check(); err != nil {
		return fmt.Errorf("delayq: waiters: %w", err)
	}
	if err := q.events.Check(); err != nil {
		return fmt.Errorf("delayq: events: %w", err)
	}
	if q.marks != nil {
		if err := q.marks.Check(); err != nil {
			return fmt.Errorf("delayq: marks: %w", err)
		}
		if q.marks.Deadlines() != q.marks.Count() {
			return fmt.Errorf("delayq: %d marks, %d with a deadline", q.marks.Count(), q.marks.Deadlines())
		}
	}
	if q.jobs.Deadlines() != 0 {
		return fmt.Errorf("delayq: %d jobs have a deadline in the dict, where none may have one", q.jobs.Deadlines())
	}
	if err := q.timed.check(); err != nil {
		return err
	}
	return q.checkJobs()
}

// check verifies that the map and the heap hold the same schedules, each in its place.
func (t *schedules) check() error {
	if t == nil || t.rules == nil { // a frozen copy has no names
		return nil
	}
	if len(t.rules) != len(t.order) || len(t.order) == 0 {
		return fmt.Errorf("delayq: %d schedules by name, %d by time", len(t.rules), len(t.order))
	}
	size := 0
	for i, e := range t.order {
		size += cost(e.Schedule)
		if t.rules[string(e.Name)] != e || e.pos != i || i > 0 && t.Less(i, (i-1)/2) || e.Next <= 0 || !e.Parsed() {
			return fmt.Errorf("delayq: schedule %.100q, due at %d, is at %d in the heap and says %d", e.Name, e.Next, i, e.pos)
		}
	}
	if size != t.size {
		return fmt.Errorf("delayq: schedules have %d bytes, counted are %d", size, t.size)
	}
	return nil
}

// checkJobs verifies that every job is in the trees of its state, and that the
// trees hold nothing else.
func (q *Queue) checkJobs() error {
	var waiting [Priorities]uint32
	events, first := 0, int64(0)
	for it := range q.jobs.Iter(0) {
		if len(it.Value) < headSize {
			return fmt.Errorf("delayq: job %.100q has %d bytes", it.Key, len(it.Value))
		}
		j := read(it.Key, it.Value)
		if n, ok := numeral.ParseInt(j.ID); ok && !q.Passed(n) {
			return fmt.Errorf("delayq: job %d is above all numbers that have been ids, which end at %d", n, q.number)
		}
		if j.Priority >= Priorities {
			return fmt.Errorf("delayq: job %.100q has priority %d", j.ID, j.Priority)
		}
		if !j.Leased {
			waiting[j.Priority]++
			if c := q.due.From((*byDue)(q).Probe(it.Ref)); !c.OK() || c.Ref() != it.Ref {
				return fmt.Errorf("delayq: job %.100q waits and is in no line", j.ID)
			}
			if stamp := get56(it.Value[offStamp:]); stamp > q.stamp {
				return fmt.Errorf("delayq: job %.100q has stamp %d, the last one is %d", j.ID, stamp, q.stamp)
			}
		}
		if at := j.event(); at != 0 {
			events++
			if c := q.events.From((*byEvent)(q).Probe(it.Ref)); !c.OK() || c.Ref() != it.Ref {
				return fmt.Errorf("delayq: job %.100q has an event at %d that the tree of events lacks", j.ID, at)
			}
			if first == 0 || at < first {
				first = at
			}
		}
	}
	n := 0
	for _, k := range waiting {
		n += int(k)
	}
	switch at := q.NextDue(); {
	case n != q.due.Len() || waiting != q.waiting:
		return fmt.Errorf("delayq: %d jobs wait (%v), %d are in line (%v)", n, waiting, q.due.Len(), q.waiting)
	case events != q.events.Len():
		return fmt.Errorf("delayq: %d events, %d in the index", events, q.events.Len())
	case first != 0 && q.retry == 0 && (at == 0 || at > first):
		return fmt.Errorf("delayq: something happens at %d, NextDue says %d", first, at)
	}
	return nil
}
