package delayq

import "github.com/ebbdb/ebb/internal/ordered/btree"

// dueBits is the width of an instant in a key of due.
const dueBits = 48

// dueKey returns the key of a priority and an instant in the order of the waiting jobs.
func dueKey(priority uint8, due int64) uint64 {
	return uint64(Priorities-1-priority)<<dueBits | uint64(due)
}

func dueOf(key uint64) int64 { return int64(key & (1<<dueBits - 1)) }

// before and after return the positions before and after the jobs of a priority that are due at an
// instant.
func before(priority uint8, due int64) btree.Probe {
	return btree.Probe{Key: dueKey(priority, due), Side: -1}
}

func after(priority uint8, due int64) btree.Probe {
	return btree.Probe{Key: dueKey(priority, due), Side: 1}
}

// byDue is the order of the waiting jobs: by priority, instant, stamp.
type byDue Queue

func (o *byDue) Key(ref uint32) uint64 {
	b := o.jobs.Value(ref)
	return dueKey(b[0]&priorityMask, get48(b[offDue:]))
}

func (o *byDue) Tie(ref uint32, p btree.Probe) int { return (*Queue)(o).tie(ref, p.Ref) }

func (o *byDue) Probe(ref uint32) btree.Probe { return btree.Probe{Key: o.Key(ref), Ref: ref} }

// byEvent is the order of the timed events: by instant, stamp.
type byEvent Queue

func (o *byEvent) Key(ref uint32) uint64 {
	j := read(nil, o.jobs.Value(ref))
	return uint64(j.event())
}

func (o *byEvent) Tie(ref uint32, p btree.Probe) int { return (*Queue)(o).tie(ref, p.Ref) }

func (o *byEvent) Probe(ref uint32) btree.Probe { return btree.Probe{Key: o.Key(ref), Ref: ref} }

// tie orders two jobs with the same key: waiting jobs first, then by stamp. The stamps of waiting
// jobs are unique, and so are tokens.
func (q *Queue) tie(a, b uint32) int {
	if a == b {
		return 0
	}
	x, y := q.jobs.Value(a), q.jobs.Value(b)
	s, t := get56(x[offStamp:])|int64(x[0]&flagLeased)<<56, get56(y[offStamp:])|int64(y[0]&flagLeased)<<56
	switch {
	case s < t:
		return -1
	case s > t:
		return 1
	}
	return 0
}
