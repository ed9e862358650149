package delayq

import "fmt"

// Check verifies the queue's invariants and returns the first one broken. It
// visits every job several times.
func (q *Queue) Check() error {
	if err := q.jobs.Check(); err != nil {
		return err
	}
	if err := q.due.Check(); err != nil {
		return fmt.Errorf("delayq: those who wait: %w", err)
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
		return fmt.Errorf("delayq: %d jobs have deadlines of the dict", q.jobs.Deadlines())
	}
	return q.checkJobs()
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
