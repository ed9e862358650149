package chunklist

import (
	"slices"

	"github.com/ebbdb/ebb/internal/chunk"
)

// Freeze returns a copy for reading only, which stays what it is whatever becomes
// of the list: it shares the chunks, and the list copies a block before it first
// writes to it. The copy may be read by another goroutine meanwhile, and is given
// back by Free; until then the list must not be frozen again. O(blocks): it copies
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

// own makes sure that a block, which is not big, can be written to: runs of it
// from before may be the frozen copy's. It always succeeds, so that no removal
// fails because there is a frozen copy: without a chunk the block goes to the Go
// heap. O(1), or the block's copy once.
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

// letGo gives back the memory of a block that is not big: to the frozen copy, if
// it shares it.
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
