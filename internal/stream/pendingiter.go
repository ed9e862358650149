package stream

import "github.com/ebbdb/ebb/internal/ordered/btree"

// PendingIter walks pending entries upwards by id. It is valid until an entry becomes pending,
// stops being pending, or changes its consumer. Update does not invalidate it.
type PendingIter struct {
	g     *Group
	owner uint32 // noOwner: all consumers
	cur   btree.Cursor
	begun bool
	ref   uint32
}

// PendingFrom returns an iterator before the first pending entry of the group
// whose id is at least from. O(log n).
func (g *Group) PendingFrom(from ID) PendingIter {
	l := &g.pel
	return PendingIter{g: g, owner: noOwner, cur: l.byID.Seek(l.byID.Rank(l.idProbe(from)))}
}

// PendingOf does the work of PendingFrom for one consumer. O(log n).
func (g *Group) PendingOf(c *Consumer, from ID) PendingIter {
	l := &g.pel
	return PendingIter{g: g, owner: c.number, cur: l.byOwner.Seek(l.byOwner.Rank(l.ownerProbe(c.number, from)))}
}

// Next moves to the next pending entry; false if there is none. Amortised O(1).
func (it *PendingIter) Next() bool {
	if it.begun && it.cur.OK() {
		it.cur.Next()
	}
	it.begun = true
	if !it.cur.OK() {
		return false
	}
	it.ref = it.cur.Ref()
	if it.owner != noOwner && it.g.pel.cell(it.ref).owner != it.owner {
		it.cur = btree.Cursor{}
		return false
	}
	return true
}

// ID returns the id the iterator is at.
func (it *PendingIter) ID() ID { return it.g.pel.cell(it.ref).id }

// Pending returns the entry the iterator is at.
func (it *PendingIter) Pending() Pending { return it.g.pending(it.ref) }

// Update sets the time and the number of deliveries of the entry the iterator
// is at.
func (it *PendingIter) Update(time int64, count uint32) {
	n := it.g.pel.edit(it.ref)
	n.time, n.count = time, count
}
