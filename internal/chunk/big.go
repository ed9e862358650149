package chunk

import "encoding/binary"

// attach makes b the contents of the big record whose stub is ref.
func (h *Heap) attach(ref uint32, b []byte) {
	n := uint32(len(h.big))
	if k := len(h.bigFree); k > 0 {
		n = h.bigFree[k-1]
		h.bigFree = h.bigFree[:k-1]
		h.big[n] = b
	} else {
		h.big = append(h.big, b)
	}
	binary.LittleEndian.PutUint32(h.stub(ref), n)
	h.countBig(cap(b))
}

// detach frees the contents of the big record whose stub is ref.
func (h *Heap) detach(ref uint32) {
	n := binary.LittleEndian.Uint32(h.stub(ref))
	h.countBig(-cap(h.big[n]))
	h.big[n] = nil
	h.bigReturned(n)
	h.bigFree = append(h.bigFree, n)
}

// resizeBig sets the length of a big record to n bytes. It keeps the allocation unless that is too
// small or more than twice the needed size.
func (h *Heap) resizeBig(ref uint32, n int) {
	k := binary.LittleEndian.Uint32(h.stub(ref))
	old := h.big[k]
	if n <= cap(old) && cap(old) <= 2*n {
		h.big[k] = old[:n]
		return
	}
	b := make([]byte, n)
	copy(b, old)
	h.big[k] = b
	h.bigReturned(k)
	h.countBig(cap(b) - cap(old))
}

func (h *Heap) countBig(delta int) {
	h.bigBytes += delta
	h.mem.Outside(delta)
}

// stub returns the side-table number stored in a big record's chunk.
func (h *Heap) stub(ref uint32) []byte {
	off := int(ref&offsetMask)*granule + headerSize
	return h.pieces[ref>>offsetBits].data[off : off+stubPayload]
}
