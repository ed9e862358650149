package delayq

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// EachEvent calls visit for every job whose lease ends at now or later, or that expires
// then without a consumer, earliest first, with the last ms before that, until visit
// returns false. It sees the queue as if all jobs due at now were handled: a job whose lease
// is over waits again, and may expire. O(log n + due jobs + jobs visited). visit must not
// change the queue.
func (q *Queue) EachEvent(now int64, visit func(id []byte, at int64) bool) {
	var again []Job // that wait again, and expire
	q.Unsettled(now, func(j, _ Job, f Fate) {
		if f == Again && j.Expires() != 0 {
			again = append(again, j)
		}
	})
	slices.SortStableFunc(again, func(a, b Job) int { return cmp.Compare(a.Expires(), b.Expires()) })
	for c := q.events.From(btree.Probe{Key: uint64(now), Side: -1}); c.OK(); c.Next() {
		at, ref := c.Entry()
		for ; len(again) > 0 && again[0].Expires() <= int64(at); again = again[1:] {
			if !visit(again[0].ID, again[0].Expires()) {
				return
			}
		}
		if !visit(q.jobs.Key(ref), int64(at)) {
			return
		}
	}
	for _, j := range again {
		if !visit(j.ID, j.Expires()) {
			return
		}
	}
}
