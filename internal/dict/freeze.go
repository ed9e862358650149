package dict

import "github.com/ebbdb/ebb/internal/chunk"

// Freeze returns a read-only copy that does not change when the dict changes. It shares the chunks,
// which the dict copies one by one before it writes to them. One goroutine may read the copy while
// another uses the dict. Free frees the copy after its last read; until then the caller must not
// freeze the dict again. O(chunks + items larger than 8 KiB).
func (d *Dict) Freeze() *Dict { return d.FreezeOn(new(chunk.Loan)) }

// FreezeOn does the work of Freeze for a dict that is part of a larger structure, which settles the loan when it
// frees its frozen copy.
func (d *Dict) FreezeOn(l *chunk.Loan) *Dict {
	f := &Dict{
		heap: d.heap.Freeze(l), prim: d.prim.Freeze(l), over: d.over.Freeze(l),
		low: d.low, chain: d.chain, earliest: d.earliest, seed: d.seed, fixed: d.fixed, loan: l,
	}
	if d.due != nil {
		f.due = d.due.Freeze(l, (*byDeadline)(f))
	}
	return f
}

// lent reports whether buckets may be shared with a frozen copy.
func (d *Dict) lent() bool { return d.prim.Lent() || d.over.Lent() }

// ownChain ensures that all buckets of a chain can be written to. Earlier pointers to buckets and
// slots are invalid afterwards.
func (d *Dict) ownChain(i uint32) {
	d.prim.Own(i)
	for b := d.primary(i); b.next != 0; b = d.after(b) {
		d.over.Own(b.next - 1)
	}
}

// ownSlot returns an item's slot for writing to it and to its chain.
func (d *Dict) ownSlot(s slot) slot {
	if !d.lent() {
		return s
	}
	ref := s.ref()
	h := d.hash(d.Key(ref))
	d.ownChain(d.bucketOf(h))
	return d.slotOf(h, ref)
}

// Frozen reports whether there is a frozen copy that shares chunks with the dict.
func (d *Dict) Frozen() bool {
	return d.heap.Frozen() || d.prim.Frozen() || d.over.Frozen() || d.due != nil && d.due.Frozen()
}
