package chunk

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// Freeze returns a copy of the heap for reading only: Bytes, Look, Marked,
// Records and Each. It shares the chunks, and stays what it is whatever becomes
// of h, which copies a chunk before it first writes to it. The copy may be read
// by another goroutine meanwhile, until l is settled; it is not to be freed. h
// must have no other frozen copy. O(chunks + big records).
func (h *Heap) Freeze(l *Loan) Heap {
	if h.Frozen() {
		panic("chunk: a heap frozen twice")
	}
	h.loan, h.lent, h.bigLent = nil, 0, nil
	for i := range h.pieces {
		if p := &h.pieces[i]; p.data != nil {
			p.lent = true
			h.lent++
		}
	}
	f := *h
	f.pieces, f.big, f.bigFree = slices.Clone(h.pieces), slices.Clone(h.big), nil
	if len(h.big) > 0 {
		h.bigLent = make([]bool, len(h.big))
	}
	for i := range h.big {
		if h.big[i] != nil {
			h.bigLent[i] = true
			h.lent++
		}
	}
	if h.lent > 0 {
		h.loan = l
	}
	return f
}

// own makes sure that piece i is the heap's alone. Only with a loan.
func (h *Heap) own(i uint32) {
	p := &h.pieces[i]
	if h.loan == nil || !p.lent {
		return
	}
	if h.loan.Over() {
		h.loan, h.bigLent = nil, nil
		return
	}
	data, ref := copyChunk(h.mem, p.data)
	letGo(h.mem, h.loan, true, p.mem, len(p.data))
	p.data, p.mem = data, ref
	p.lent = false
	h.returned()
}

// ownRecord makes sure that the record can be written to.
func (h *Heap) ownRecord(ref uint32) {
	if h.header(ref)&bigBit == 0 {
		h.own(ref >> offsetBits)
		return
	}
	k := binary.LittleEndian.Uint32(h.stub(ref))
	if int(k) < len(h.bigLent) && h.bigLent[k] {
		if h.loan.Over() {
			h.loan, h.bigLent = nil, nil
			return
		}
		b := slices.Clone(h.big[k])
		h.countBig(cap(b) - cap(h.big[k]))
		h.big[k] = b
		h.bigReturned(k)
	}
}

// returned notes that a lent piece or big record is lent no more.
func (h *Heap) returned() {
	if h.lent--; h.lent == 0 {
		h.loan, h.bigLent = nil, nil
	}
}

// bigReturned notes that the bytes of big record k are the heap's alone.
func (h *Heap) bigReturned(k uint32) {
	if int(k) < len(h.bigLent) && h.bigLent[k] {
		h.bigLent[k] = false
		h.returned()
	}
}

// Freeze returns a copy of the array for reading only: Len and At. The rules are
// those of Heap.Freeze. O(chunks).
func (a *Array) Freeze(l *Loan) Array {
	if a.Frozen() {
		panic("chunk: an array frozen twice")
	}
	f := *a
	f.pages, f.loan = slices.Clone(a.pages), nil
	a.loan, a.lent = nil, len(a.pages)
	for i := range a.pages {
		a.pages[i].lent = true
		a.loan = l
	}
	return f
}

// Lent reports whether there is, or was not long ago, a frozen copy that shares
// chunks with the array.
func (a *Array) Lent() bool { return a.loan != nil }

// Own makes sure that cell i can be written to through what At returns from now
// on: what it has returned before may be the frozen copy's. Push and Edit do it
// themselves. O(1), or a chunk's copy once.
func (a *Array) Own(i uint32) {
	if a.loan != nil {
		a.own(i)
	}
}

// Edit is At for writing. O(1), or a chunk's copy once.
func (a *Array) Edit(i uint32) unsafe.Pointer {
	if a.loan != nil {
		a.own(i)
	}
	return a.At(i)
}

func (a *Array) own(i uint32) {
	k, _ := a.locate(i)
	p := &a.pages[k]
	if !p.lent {
		return
	}
	if a.loan.Over() {
		a.loan = nil
		return
	}
	size := p.bytes()
	data, ref := copyChunk(a.mem, unsafe.Slice((*byte)(p.base), size))
	letGo(a.mem, a.loan, true, p.mem, size)
	p.base, p.mem = unsafe.Pointer(unsafe.SliceData(data)), ref
	a.returned(p)
}

// returned notes that a lent page is lent no more.
func (a *Array) returned(p *page) {
	p.lent = false
	if a.lent--; a.lent == 0 {
		a.loan = nil
	}
}

// Frozen reports whether there is a frozen copy that shares chunks with the heap.
func (h *Heap) Frozen() bool { return h.loan.open() }

// Frozen reports whether there is a frozen copy that shares chunks with the array.
func (a *Array) Frozen() bool { return a.loan.open() }
