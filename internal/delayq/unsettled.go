package delayq

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// This file computes the state that a queue would have after all due jobs were handled. It is for a
// queue that must not be changed: on a replica, the master handles due jobs.

// Fate says what happens to a job at an instant.
type Fate uint8

// The fates of a job: nothing happens; it is due again because its lease is over; the
// queue has delivered it too often; no worker took it in time.
const (
	Stays Fate = iota
	Again
	Spent
	Expired
)

// Fate returns what happens to a job at now. It updates a job that waits again: the job is not
// leased, and has a new due instant.
func (q *Queue) Fate(j *Job, now int64) Fate {
	fate := Stays
	if j.Leased && now > j.Until {
		if q.MaxDeliveries != 0 && j.Deliveries >= q.MaxDeliveries {
			return Spent
		}
		fate = Again
		j.Leased, j.Due = false, j.Until+1
	}
	if e := j.Expires(); !j.Leased && e != 0 && now > e {
		return Expired
	}
	return fate
}

// Unsettled visits the jobs whose lease is over or that have expired at now, the earliest first,
// each in its new and its old state. visit must not change the queue. O(log n), and O(1) for each.
func (q *Queue) Unsettled(now int64, visit func(j Job, was Job, f Fate)) {
	for c := q.events.Seek(0); c.OK(); c.Next() {
		if key, _ := c.Entry(); now <= int64(key) {
			return
		}
		was := q.Job(c.Ref())
		j := was
		f := q.Fate(&j, now)
		visit(j, was, f)
	}
}

// inTurn compares two waiting jobs in the order of delivery, but not jobs that are due in the same
// ms.
func inTurn(a, b Job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due))
}

// WalkSettled is Walk as if all jobs due at now were handled. O(log n + due jobs), and O(1) for
// each.
func (q *Queue) WalkSettled(now int64, visit func(j Job) bool) {
	var again []Job
	q.Unsettled(now, func(j, _ Job, f Fate) {
		if f == Again {
			again = append(again, j)
		}
	})
	slices.SortStableFunc(again, inTurn)
	more := true
	flush := func(first func(a *Job) bool) {
		for more && len(again) > 0 && first(&again[0]) {
			more, again = visit(again[0]), again[1:]
		}
	}
	q.Walk(now, Place{}, func(ref uint32) bool {
		j := q.Job(ref)
		if q.Fate(&j, now) == Expired {
			return more
		}
		flush(func(a *Job) bool {
			return j.Due > now || a.Priority > j.Priority || a.Priority == j.Priority && a.Due < j.Due
		})
		more = more && visit(j)
		return more
	})
	flush(func(*Job) bool { return true })
}

// EachSettled is Each as if all jobs due at now were handled. O(n).
func (q *Queue) EachSettled(now int64, visit func(j Job)) {
	var again []Job
	q.Unsettled(now, func(j, _ Job, f Fate) {
		if f == Again {
			again = append(again, j)
		}
	})
	slices.SortStableFunc(again, inTurn)
	q.Each(func(j Job) bool {
		if q.Fate(&j, now) != Stays {
			return true
		}
		for len(again) > 0 && (j.Leased || inTurn(again[0], j) < 0) {
			visit(again[0])
			again = again[1:]
		}
		visit(j)
		return true
	})
	for _, j := range again {
		visit(j)
	}
}

// OldestSettled is Oldest as if all jobs due at now were handled. O(due jobs).
func (q *Queue) OldestSettled(now int64) (oldest int64) {
	note := func(due int64) {
		if oldest == 0 || due < oldest {
			oldest = due
		}
	}
	for p := range uint8(Priorities) {
		if q.waiting[p] == 0 {
			continue
		}
		for c := q.due.From(before(p, 0)); c.OK(); c.Next() {
			key, ref := c.Entry()
			if key > dueKey(p, now) {
				break
			}
			if j := q.Job(ref); q.Fate(&j, now) == Stays {
				note(j.Due)
				break
			}
		}
	}
	q.Unsettled(now, func(j, _ Job, f Fate) {
		if f == Again {
			note(j.Due)
		}
	})
	return oldest
}

// NextFrom is NextDue as if all jobs due at now were handled. O(due jobs).
func (q *Queue) NextFrom(now int64) (at int64) {
	note := func(ms int64) {
		if ms != 0 && (at == 0 || ms < at) {
			at = ms
		}
	}
	if due := q.Coming(now); due != 0 {
		note(due - 1)
	}
	if c := q.events.From(btree.Probe{Key: uint64(now), Side: -1}); c.OK() {
		key, _ := c.Entry()
		note(int64(key))
	}
	q.Unsettled(now, func(j, _ Job, f Fate) {
		if f == Again {
			note(j.Expires())
		}
	})
	if q.Paused(now) {
		note(q.pauseEnd())
	}
	if tick := q.tick(); tick >= now {
		note(tick)
	}
	if q.marks != nil {
		note(q.marks.NextFrom(now))
	}
	return at
}
