package bloom

import (
	"slices"

	"github.com/ebbdb/ebb/internal/chunk"
)

// Freeze returns a read-only copy that does not change when the filter changes. It shares the
// pieces, and the filter copies a piece before it first sets a bit of it. Another goroutine may
// read the copy. FreeAll frees it; until then the caller must not freeze the filter again.
// O(pieces).
func (f *Filter) Freeze() *Filter {
	if f.Frozen() {
		panic("bloom: a filter frozen twice")
	}
	f.loan = new(chunk.Loan)
	c := &Filter{cfg: f.cfg, mem: f.mem, gens: slices.Clone(f.gens), held: f.held, frozen: f.loan}
	for i := range c.gens {
		g := &c.gens[i]
		g.layers = slices.Clone(g.layers)
		for j := range g.layers {
			l := &g.layers[j]
			for p := range l.pieces {
				l.pieces[p].lent = true
			}
			l.pieces = slices.Clone(l.pieces)
		}
	}
	return c
}

// Frozen reports whether there is a frozen copy that shares pieces with the filter.
func (f *Filter) Frozen() bool { return f.loan != nil && !f.loan.Over() }

// own ensures that bits of a piece can be set. It always succeeds: if there is no chunk, the copy
// lies on the Go heap. O(1), or one copy of the piece.
func (f *Filter) own(x *piece) {
	if f.loan == nil || !x.lent {
		return
	}
	if f.loan.Over() {
		f.loan = nil
		return
	}
	was := *x
	*x = piece{}
	if was.ref != 0 {
		x.ref = f.mem.AllocChunk(pieceBytes)
	}
	if x.ref != 0 {
		x.bits = f.mem.Bytes(x.ref, pieceBytes)
	} else {
		x.bits = make([]byte, len(was.bits))
		f.mem.Outside(len(x.bits))
	}
	copy(x.bits, was.bits)
	f.releaseBits(&was)
}

// releaseBits frees a piece's bits, or leaves them to the frozen copy that shares them.
func (f *Filter) releaseBits(x *piece) {
	switch {
	case x.ref == 0: // a frozen copy has a reference of its own
		f.mem.Outside(-len(x.bits))
	case f.loan == nil || !x.lent || !f.loan.Leave(x.ref, pieceBytes):
		f.mem.FreeChunk(x.ref, pieceBytes)
	}
}
