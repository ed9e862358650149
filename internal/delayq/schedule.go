package delayq

import (
	"cmp"
	"container/heap"
	"slices"
	"unsafe"

	"github.com/ebbdb/ebb/internal/cron"
)

// This file has the schedules of a queue: rules that add a job again and again.
//
//	rules    map   name -> rule
//	order    heap  the same rules, the one that is due next first
//
// The caller handles each rule when it is due: Schedule.Tick computes what happens, and Queue.Ticked notes
// it. A rule that a frozen copy shares is never changed: Ticked replaces it.

// The arithmetic of schedules is that of package cron.
type (
	Schedule   = cron.Schedule
	Occurrence = cron.Occurrence
)

// The methods of Queue below manage its schedules.

// schedules are the schedules of a queue.
type schedules struct {
	rules map[string]*entry
	order []*entry
	size  int // the bytes of all schedules
}

// entry is the place of a schedule in the heap.
type entry struct {
	*Schedule
	pos int
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t *schedules) Len() int { return len(t.order) }

func (t *schedules) Less(i, j int) bool {
	a, b := t.order[i], t.order[j]
	if a.Next != b.Next {
		return a.Next < b.Next
	}
	return string(a.Name) < string(b.Name)
}

func (t *schedules) Swap(i, j int) {
	t.order[i], t.order[j] = t.order[j], t.order[i]
	t.order[i].pos, t.order[j].pos = i, j
}

func (t *schedules) Push(x any) {
	e := x.(*entry)
	e.pos = len(t.order)
	t.order = append(t.order, e)
}

func (t *schedules) Pop() any {
	e := t.order[len(t.order)-1]
	t.order = t.order[:len(t.order)-1]
	return e
}

// cost returns the bytes of a schedule.
func cost(s *Schedule) int {
	const places = 64 // in the map and the heap, and an expression
	return int(unsafe.Sizeof(*s)+unsafe.Sizeof(entry{})) + places + len(s.Name) + len(s.Payload) + len(s.Cron) + len(s.Zone)
}

// SetSchedule adds a schedule, or replaces the one with its name. The queue keeps s, which must have a
// Next. O(log n).
func (q *Queue) SetSchedule(s *Schedule) {
	if q.timed == nil {
		q.timed = &schedules{rules: map[string]*entry{}}
	}
	t := q.timed
	t.size += cost(s)
	if e := t.rules[string(s.Name)]; e != nil {
		t.size -= cost(e.Schedule)
		e.Schedule = s
		heap.Fix(t, e.pos)
		return
	}
	e := &entry{Schedule: s}
	t.rules[string(s.Name)] = e
	heap.Push(t, e)
}

// Unschedule removes a schedule and reports whether there was one with the name. O(log n).
func (q *Queue) Unschedule(name []byte) bool {
	s := q.Schedule(name)
	if s == nil {
		return false
	}
	t := q.timed
	heap.Remove(t, t.rules[string(name)].pos)
	delete(t.rules, string(name))
	t.size -= cost(s)
	if len(t.order) == 0 {
		q.timed = nil
	}
	return true
}

// Schedule returns the schedule with a name; nil: there is none. O(1).
func (q *Queue) Schedule(name []byte) *Schedule {
	if q.timed == nil {
		return nil
	}
	if e := q.timed.rules[string(name)]; e != nil {
		return e.Schedule
	}
	return nil
}

// Schedules returns the number of schedules. O(1).
func (q *Queue) Schedules() int {
	if q.timed == nil {
		return 0
	}
	return len(q.timed.order)
}

// NextSchedule returns the schedule that is due next; nil: there is none. O(1).
func (q *Queue) NextSchedule() *Schedule {
	if q.timed == nil {
		return nil
	}
	return q.timed.order[0].Schedule
}

// EachSchedule visits all schedules by name. O(n log n).
func (q *Queue) EachSchedule(visit func(s *Schedule)) {
	if q.timed == nil {
		return
	}
	all := slices.Clone(q.timed.order)
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(string(a.Name), string(b.Name)) })
	for _, e := range all {
		visit(e.Schedule)
	}
}

// Ticked notes a change of a schedule of the queue. A schedule without a next occurrence is
// removed. O(log n).
func (q *Queue) Ticked(s *Schedule, o Occurrence) {
	if o.Next == 0 {
		q.Unschedule(s.Name)
		return
	}
	q.SetSchedule(s.Ticked(o))
}

// freeze returns a copy that stays as it is. O(n).
func (t *schedules) freeze() *schedules {
	if t == nil {
		return nil
	}
	f := &schedules{size: t.size, order: make([]*entry, len(t.order))}
	all := make([]entry, len(t.order))
	for i, e := range t.order {
		all[i] = *e
		f.order[i] = &all[i]
	}
	return f
}

// tick returns the instant after which the next schedule is due; 0: there is none.
func (q *Queue) tick() int64 {
	if s := q.NextSchedule(); s != nil {
		return s.Next - 1
	}
	return 0
}
