package chunk

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// Freeze returns a copy of the heap for reading only: Bytes, Look, Marked, Records and Each. It
// shares the chunks, and does not change when h changes, because h copies a chunk before its first
// write to it. Another goroutine may read the copy until l is settled. The caller must not free the
// copy. h must have no other frozen copy. O(chunks + big records).
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

// own ensures that no frozen copy shares piece i. The heap has a loan.
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

// ownRecord ensures that no frozen copy shares the record's memory, so that it can be written to.
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

// returned notes that a piece or a big record is no longer lent.
func (h *Heap) returned() {
	if h.lent--; h.lent == 0 {
		h.loan, h.bigLent = nil, nil
	}
}

// bigReturned notes that no frozen copy shares the bytes of big record k.
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

// Own ensures that cell i can be written to through the next result of At. Earlier results of At
// may point to memory of the frozen copy. Push and Edit call Own themselves. O(1), or one copy of
// the chunk.
func (a *Array) Own(i uint32) {
	if a.loan != nil {
		a.own(i)
	}
}

// Edit does the work of At for writing. O(1), or one copy of the chunk.
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

// returned notes that a page is no longer lent.
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
