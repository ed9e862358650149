package chunklist

import (
	"slices"

	"github.com/ebbdb/ebb/internal/chunk"
)

// Freeze returns a read-only copy that does not change when the list changes. It shares the chunks,
// and the list copies a block before its first write to it. Another goroutine may read the copy.
// Free frees it; until then the caller must not freeze the list again. O(blocks), because it copies
// the directory.
func (l *List) Freeze() *List {
	if l.Frozen() {
		panic("chunklist: a list frozen twice")
	}
	loan := new(chunk.Loan)
	f := *l
	f.groups, f.bigs, f.freeBigs = make([]group, len(l.groups)), slices.Clone(l.bigs), nil
	f.loan, f.frozen = nil, loan
	l.loan, l.lent = nil, 0
	for g := range l.groups {
		gr := &l.groups[g]
		f.groups[g] = group{ents: slices.Clone(gr.ents), totals: gr.totals}
		for e := range gr.ents {
			if ent := &gr.ents[e]; !ent.big() {
				ent.lent, l.loan = true, loan
				l.lent++
			}
		}
	}
	return &f
}

// Frozen reports whether there is a frozen copy that shares chunks with the list.
func (l *List) Frozen() bool { return l.loan != nil && !l.loan.Over() }

// own ensures that a block, which is not big, can be written to. Runs of it that were read before
// may then be the frozen copy's. It always succeeds, so that a frozen copy never makes a removal
// fail: if there is no chunk, the block moves to the Go heap. O(1), or one copy of the block.
func (l *List) own(ent *entry) {
	if l.loan != nil && ent.lent {
		l.copyBlock(ent)
	}
}

func (l *List) copyBlock(ent *entry) {
	if l.loan.Over() {
		l.loan = nil
		return
	}
	from, at := l.buf(ent), *ent
	if at.ref = l.mem.AllocChunk(ent.size()); at.ref != 0 {
		at.outside = false
		copy(l.buf(&at)[ent.off:], from[ent.off:ent.end])
	} else {
		at.outside = true
		at.ref = l.addBig(slices.Clone(from))
	}
	l.letGo(ent)
	ent.ref, ent.outside = at.ref, at.outside
}

// letGo frees the memory of a block that is not big, or leaves it to the frozen copy that shares
// it.
func (l *List) letGo(ent *entry) {
	isLent := l.loan != nil && ent.lent
	switch {
	case ent.outside: // a frozen copy has a reference of its own
		l.dropBig(ent.ref)
	case !isLent || !l.loan.Leave(ent.ref, ent.size()):
		l.mem.FreeChunk(ent.ref, ent.size())
	}
	ent.lent, ent.outside = false, false
	if isLent {
		if l.lent--; l.lent == 0 {
			l.loan = nil
		}
	}
}
