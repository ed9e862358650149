package stream

import (
	"slices"

	"github.com/ebbdb/ebb/internal/chunk"
)

// Freeze returns a read-only copy, with groups, consumers and pending entries, that does not change
// when the stream changes. It shares the chunks, and the stream copies a segment before its first
// write to it. Another goroutine may read the copy. FreeAll frees it; until then the caller must
// not freeze the stream again. O(pieces + consumers), because it copies the directory.
func (s *Stream) Freeze() *Stream {
	if s.Frozen() {
		panic("stream: a stream frozen twice")
	}
	l, f := new(chunk.Loan), *s
	f.loan, f.frozen = nil, l
	f.segs, f.bigs, f.noBigs = slices.Clone(s.segs), slices.Clone(s.bigs), nil
	f.node.names, f.former.names = slices.Clone(s.node.names), slices.Clone(s.former.names)
	f.groups = make([]dirGroup, len(s.groups))
	for i := range s.groups {
		f.groups[i] = dirGroup{ents: slices.Clone(s.groups[i].ents), live: s.groups[i].live}
	}
	f.cons = make([]*Group, len(s.cons))
	for i, g := range s.cons {
		f.cons[i] = g.freeze(&f, l)
	}
	s.loan, s.lent = nil, 0
	for i := range s.segs {
		if sg := &s.segs[i]; sg.ref != 0 {
			sg.lent, s.loan = true, l
			s.lent++
		}
	}
	return &f
}

// Frozen reports whether there is a frozen copy that shares chunks with the
// stream. O(groups).
func (s *Stream) Frozen() bool {
	if s.loan != nil && !s.loan.Over() {
		return true
	}
	return slices.ContainsFunc(s.cons, func(g *Group) bool {
		return g.pel.cells.Frozen() || g.pel.byID.Frozen() || g.pel.byOwner.Frozen()
	})
}

// freeze returns the copy of a group for a frozen copy of its stream.
func (g *Group) freeze(s *Stream, l *chunk.Loan) *Group {
	f := *g
	f.s, f.spare = s, nil
	f.cons, f.number = make([]*Consumer, len(g.cons)), make([]*Consumer, len(g.number))
	for i, c := range g.cons {
		d := *c
		f.cons[i], f.number[c.number] = &d, &d
	}
	f.pel.freeze(&g.pel, l)
	return &f
}

// freeze makes l, a plain copy of from, a frozen copy.
func (l *pel) freeze(from *pel, loan *chunk.Loan) {
	l.cells = from.cells.Freeze(loan)
	l.byID = from.byID.Freeze(loan, (*idOrder)(l))
	l.byOwner = from.byOwner.Freeze(loan, (*ownerOrder)(l))
}

// chunk returns a segment's memory.
func (s *Stream) chunk(sg *segment) []byte {
	if sg.outside {
		return s.bigs[sg.ref-1]
	}
	return s.mem.Bytes(sg.ref, int(sg.size))
}

// own ensures that a segment can be written to. Earlier slices of its bytes may then belong to the
// frozen copy. It always succeeds, so that a frozen copy never makes a removal fail: if there is no
// chunk, the segment moves to the Go heap. O(1), or one copy of the segment.
func (s *Stream) own(sg *segment) {
	if s.loan != nil && sg.lent {
		s.copySegment(sg)
	}
}

func (s *Stream) copySegment(sg *segment) {
	if s.loan.Over() {
		s.loan = nil
		return
	}
	from, to := s.chunk(sg), *sg
	to.lent, to.outside = false, false
	if to.ref = s.mem.AllocChunk(int(sg.size)); to.ref != 0 {
		copy(s.chunk(&to), from)
	} else {
		to.ref, to.outside = s.addBig(slices.Clone(from))+1, true
	}
	s.letGo(sg)
	*sg = to
}

// letGo frees the memory of a segment, or leaves it to the frozen copy that shares it.
func (s *Stream) letGo(sg *segment) {
	isLent := s.loan != nil && sg.lent
	switch {
	case sg.outside: // a frozen copy has a reference of its own
		s.dropBig(sg.ref - 1)
	case !isLent || !s.loan.Leave(sg.ref, int(sg.size)):
		s.mem.FreeChunk(sg.ref, int(sg.size))
	}
	sg.lent, sg.outside = false, false
	if isLent {
		if s.lent--; s.lent == 0 {
			s.loan = nil
		}
	}
}
