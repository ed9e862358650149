package delayq

import "github.com/ebbdb/ebb/internal/ordered/btree"

// EachEvent calls visit for every job whose lease ends at now or later, or that expires
// then without a consumer, earliest first, with the last ms before that, until visit
// returns false. O(log n + jobs visited). visit must not change the queue.
func (q *Queue) EachEvent(now int64, visit func(id []byte, at int64) bool) {
	for c := q.events.From(btree.Probe{Key: uint64(now), Side: -1}); c.OK(); c.Next() {
		at, ref := c.Entry()
		if !visit(q.jobs.Key(ref), int64(at)) {
			return
		}
	}
}
