package delayq

import (
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// retryAfter is the number of ms that the queue waits before its next attempt when memory is used
// up.
const retryAfter = 100

// NextDue returns the instant, in ms since 1970, after which the owner should call
// LapseNext, Awake, Forget, Resume and Tick, or deliver due jobs, or an earlier one; 0 for never. O(1);
// O(log n) for a queue that delivers.
func (q *Queue) NextDue() int64 {
	at := q.wake
	if first, _, ok := q.events.First(); ok && (at == 0 || int64(first) < at) {
		at = int64(first)
	}
	if q.marks != nil {
		if first, ok := q.marks.Earliest(); ok && (at == 0 || first < at) {
			at = first
		}
	}
	if end := q.pauseEnd(); end != 0 && (at == 0 || end < at) {
		at = end
	}
	if tick := q.tick(); tick != 0 && (at == 0 || tick < at) {
		at = tick
	}
	if first := q.firstDelivery(); first != 0 && (at == 0 || first < at) {
		at = first
	}
	if at != 0 && at < q.retry {
		return q.retry
	}
	return at
}

// firstDelivery returns the instant after which the first waiting job can be delivered; 0: the queue has
// no job, does not deliver, or is paused.
func (q *Queue) firstDelivery() (at int64) {
	if len(q.Deliver) == 0 || q.PausedUntil != 0 {
		return 0
	}
	for p := range uint8(Priorities) {
		if q.waiting[p] == 0 {
			continue
		}
		c := q.due.From(before(p, 0))
		key, _ := c.Entry()
		if d := max(dueOf(key)-1, 1); at == 0 || d < at {
			at = d
		}
	}
	if at != 0 {
		at = max(at, q.held)
	}
	return at
}

// Held notes that the stream takes no job. NextDue then delays the next attempt by retryAfter.
func (q *Queue) Held(now int64) { q.held = now + retryAfter }

// pauseEnd returns the last ms of a pause that ends by itself; 0: there is none.
func (q *Queue) pauseEnd() int64 {
	if q.PausedUntil == MaxTime {
		return 0
	}
	return q.PausedUntil
}

// Resume ends a pause whose time is over, and reports whether it did.
func (q *Queue) Resume(now int64) bool {
	over := q.PausedUntil != 0 && !q.Paused(now)
	if over {
		q.PausedUntil = 0
	}
	return over
}

// LapseNext returns the job whose lease ended, or that expired, first; ok is false if there is none
// at now. O(1).
func (q *Queue) LapseNext(now int64) (ref uint32, ok bool) {
	first, ref, ok := q.events.First()
	return ref, ok && now > int64(first)
}

// Stuck notes that memory is used up. NextDue then delays the next attempt by retryAfter.
func (q *Queue) Stuck(now int64) { q.retry = now + retryAfter }

// Awake notes that the waiting clients know of the jobs that are due at now: NextDue no
// longer returns their instants. O(log n).
func (q *Queue) Awake(now int64) {
	if q.retry <= now {
		q.retry = 0
	}
	if q.wake == 0 || now <= q.wake {
		return
	}
	q.wake = 0
	for p := range uint8(Priorities) {
		if due := q.firstAfter(p, now); due != 0 && (q.wake == 0 || due-1 < q.wake) {
			q.wake = due - 1
		}
	}
}

// firstAfter returns the next instant at which a job of a priority falls due after now; 0 if there
// is none.
func (q *Queue) firstAfter(p uint8, now int64) int64 {
	if q.waiting[p] == 0 {
		return 0
	}
	c := q.due.From(after(p, now))
	if !c.OK() {
		return 0
	}
	key, _ := c.Entry()
	if key >= dueKey(p, 0)+1<<dueBits {
		return 0 // the next priority begins
	}
	return dueOf(key)
}

// Oldest returns the earliest due instant of the ready jobs, in ms; 0 if no job is ready. O(log n).
func (q *Queue) Oldest(now int64) (due int64) {
	for p := range uint8(Priorities) {
		if q.waiting[p] == 0 {
			continue
		}
		c := q.due.From(before(p, 0))
		key, _ := c.Entry()
		if d := dueOf(key); d <= now && (due == 0 || d < due) {
			due = d
		}
	}
	return due
}

// Coming returns the next due instant of the delayed jobs, in ms; 0 if there are none. O(log n).
func (q *Queue) Coming(now int64) (due int64) {
	for p := range uint8(Priorities) {
		if d := q.firstAfter(p, now); d != 0 && (due == 0 || d < due) {
			due = d
		}
	}
	return due
}

// Place is the place where a walk begins: at the first job (the zero Place), or behind a job. All jobs have one order: the
// waiting ones in the order of Walk, then the leased ones in that of WalkLeased.
type Place struct {
	job Job
	ref uint32
	set bool
}

// Behind returns the Place behind a job. It is valid until the queue changes.
func (q *Queue) Behind(ref uint32) Place { return Place{job: q.Job(ref), ref: ref, set: true} }

// Walk visits the waiting jobs in the order of their delivery, until visit returns false: the due
// jobs in the order of Next, then the others by instant, with the highest priority first within a
// ms. visit must not change the queue. O(log n), and O(1) for each.
func (q *Queue) Walk(now int64, from Place, visit func(ref uint32) bool) {
	first := Priorities - 1
	if from.set {
		if from.job.Leased || from.job.Due > now {
			first = -1 // no due job is behind it
		} else {
			first = int(from.job.Priority)
		}
	}
	for p := first; p >= 0; p-- {
		if q.waiting[p] == 0 {
			continue
		}
		c := q.due.From(before(uint8(p), 0))
		if from.set && p == first {
			c = q.behind(from)
		}
		for ; c.OK(); c.Next() {
			key, ref := c.Entry()
			if key > dueKey(uint8(p), now) {
				break
			}
			if !visit(ref) {
				return
			}
		}
	}
	q.WalkDelayed(now, from, visit)
}

// behind returns a cursor behind a waiting job in the order of due.
func (q *Queue) behind(from Place) btree.Cursor {
	c := q.due.From((*byDue)(q).Probe(from.ref))
	c.Next()
	return c
}

// WalkDelayed visits the jobs that are not due, as Walk does after those that are. It merges the jobs of all
// priorities. O(log n), and O(1) for each.
func (q *Queue) WalkDelayed(now int64, from Place, visit func(ref uint32) bool) {
	if from.set && from.job.Leased {
		return
	}
	var cs [Priorities]btree.Cursor
	for p := range uint8(Priorities) {
		switch j := from.job; {
		case q.waiting[p] == 0:
		case !from.set || j.Due <= now:
			cs[p] = q.due.From(after(p, now))
		case p > j.Priority:
			cs[p] = q.due.From(after(p, j.Due))
		case p < j.Priority:
			cs[p] = q.due.From(before(p, j.Due))
		default:
			cs[p] = q.behind(from)
		}
	}
	for {
		best, at, next := -1, int64(0), uint32(0)
		for p := Priorities - 1; p >= 0; p-- {
			if !cs[p].OK() {
				continue
			}
			key, ref := cs[p].Entry()
			if key >= dueKey(uint8(p), 0)+1<<dueBits {
				cs[p] = btree.Cursor{}
				continue
			}
			if d := dueOf(key); best < 0 || d < at {
				best, at, next = p, d, ref
			}
		}
		if best < 0 || !visit(next) {
			return
		}
		cs[best].Next()
	}
}

// WalkLeased visits the leased jobs by the ends of their leases, until visit returns false. It visits those whose
// lease is over too. visit must not change the queue. O(log n), and O(1) for each leased job and for each waiting
// one that expires before the last job that it visits.
func (q *Queue) WalkLeased(from Place, visit func(ref uint32) bool) {
	c := q.events.Seek(0)
	if from.set && from.job.Leased {
		c = q.events.From((*byEvent)(q).Probe(from.ref))
		c.Next()
	}
	for ; c.OK(); c.Next() {
		if ref := c.Ref(); q.Job(ref).Leased && !visit(ref) {
			return
		}
	}
}

// Hollow reports whether the queue would be empty after the owner has handled all due jobs: all
// jobs have expired, and the queue has no configuration, no mark and no schedule. O(1) if the first job that it
// looks at lives, else O(jobs).
func (q *Queue) Hollow(now int64) bool {
	hollow := q.IsZero(now) && q.Marks(now) == 0 && q.timed == nil
	if hollow {
		q.Each(func(j Job) bool {
			hollow = q.Fate(&j, now) >= Expired
			return hollow
		})
	}
	return hollow
}

// Each visits all jobs: the waiting jobs in the order of the tree, then the leased jobs by the ends
// of their leases. visit must not change the queue. O(n).
func (q *Queue) Each(visit func(j Job) bool) {
	for c := q.due.Seek(0); c.OK(); c.Next() {
		if !visit(q.Job(c.Ref())) {
			return
		}
	}
	q.WalkLeased(Place{}, func(ref uint32) bool { return visit(q.Job(ref)) })
}

// Mark notes that jobs with this key must not be added until a deadline, in ms, has passed. O(log
// n). Errors: ErrNoMemory.
func (q *Queue) Mark(key []byte, deadline, now int64) error {
	if q.marks == nil {
		q.marks = dict.New(dict.Config{Memory: q.memory, Seed: q.seed})
	}
	_, err := q.marks.Put(key, nil, min(deadline, MaxTime), now)
	return err
}

// Marked reports whether a key has a mark. O(1).
func (q *Queue) Marked(key []byte, now int64) bool { return q.marks != nil && q.marks.Has(key, now) }

// Marks returns the number of marks. O(log n).
func (q *Queue) Marks(now int64) int {
	if q.marks == nil {
		return 0
	}
	return q.marks.Len(now)
}

// EachMark visits all marks, including those that are over, in no order.
func (q *Queue) EachMark(visit func(key []byte, deadline int64)) {
	if q.marks != nil {
		for it := range q.marks.Iter(0) {
			visit(it.Key, it.Deadline)
		}
	}
}

// Forget removes about budget marks whose deadlines have passed. It removes all marks of a ms or
// none. It returns the last of these deadlines, 0 if there was none; ForgetThrough with this
// deadline removes the same marks.
func (q *Queue) Forget(now int64, budget int) (through int64) {
	if q.marks == nil {
		return 0
	}
	q.marks.Reap(now, budget, func(it dict.Item) { through = it.Deadline })
	q.ForgetThrough(through)
	return through
}

// ForgetThrough removes the marks with deadlines up to the given one.
func (q *Queue) ForgetThrough(deadline int64) {
	if q.marks != nil {
		for q.marks.Reap(deadline+1, 1<<16, func(dict.Item) {}) > 0 {
		}
	}
}
