package chunk

import "encoding/binary"

// window is the number of records that one request looks at for a hole. It is also the number of
// requests in a row that may find none before the heap skips the nearest hole until the piece's
// next turn. It is small, because a request that fits no hole can use the end of the bump piece. It
// is not smaller, because a piece that is an eighth dead has a hole every eight records.
const (
	window    = 16
	maxMisses = 8
)

// pause is the number of requests that do not look for holes after a whole piece had none that
// fits: its holes are too small for the stored records, and only Compact can join them.
const pause = 256

// fromHole returns space for g granules among the dead records of the piece being refilled, or 0.
// The heap refills before it grows, so a container that deletes as much as it inserts needs no
// compaction. The caller writes the header.
func (h *Heap) fromHole(g int) uint32 {
	if h.resting > 0 {
		h.resting--
		return 0
	}
	if h.refill.piece == 0 {
		i := h.worst()
		if i == 0 {
			return 0
		}
		h.refill = cursor{piece: i}
		h.misses, h.filled = 0, false
	}
	i := h.refill.piece
	if h.loan != nil {
		h.own(i) // span joins holes, which writes to the piece
	}
	p := &h.pieces[i]
	off, skip := h.refill.off, uint32(0) // skip is the end of the first hole seen
	for steps := 0; steps < window && off < p.used; steps++ {
		size, live := p.span(off)
		switch {
		case live:
		case size >= uint32(g)*granule:
			want := uint32(g) * granule
			if size > want {
				h.setDead(i, off+want, size-want)
			}
			p.dead -= want
			h.misses, h.filled = 0, true
			if skip == 0 {
				h.refill.off = off + want
			}
			return i<<offsetBits | off/granule
		case skip == 0:
			skip = off + size
		}
		off += size
		if skip == 0 {
			h.refill.off = off
		}
	}
	h.miss(skip)
	return 0
}

// miss notes that a request found no hole. After maxMisses it skips the first hole, and at the end
// of the piece it ends the refilling.
func (h *Heap) miss(skip uint32) {
	if h.misses++; h.misses >= maxMisses && skip != 0 {
		h.refill.off = skip
		h.misses = 0
	}
	if p := &h.pieces[h.refill.piece]; h.refill.off >= p.used {
		h.file(h.refill.piece)
		h.refill = cursor{}
		if !h.filled {
			h.resting = pause
		}
	}
}

// span returns the size of the record at off and whether it lives. It joins adjacent dead records
// into one, up to the greatest size of a header.
func (p *piece) span(off uint32) (size uint32, live bool) {
	hdr := binary.LittleEndian.Uint16(p.data[off:])
	size = uint32(hdr&sizeMask) * granule
	if hdr&liveBit != 0 {
		return size, true
	}
	joined := size
	for off+joined < p.used {
		next := binary.LittleEndian.Uint16(p.data[off+joined:])
		if next&liveBit != 0 || joined/granule+uint32(next&sizeMask) > sizeMask {
			break
		}
		joined += uint32(next&sizeMask) * granule
	}
	if joined != size {
		binary.LittleEndian.PutUint16(p.data[off:], uint16(joined/granule))
	}
	return joined, false
}

// Wasteful reports whether Compact pays: more than a fifth of the chunks' bytes are dead, or the
// piece being filled is far too large for the remaining records. At a fifth, evacuating the worst
// piece copies at most four bytes for each one it frees, and the heap stays within 1.25 times its
// living records.
func (h *Heap) Wasteful() bool {
	if h.victim.piece != 0 || h.oversized() {
		return true
	}
	tail := 0
	if h.bump != 0 {
		tail = len(h.pieces[h.bump].data) - int(h.pieces[h.bump].used)
	}
	return h.total > 4*MinSize && (h.total-h.live-tail)*5 > h.total && h.hasWorst()
}

// Compact moves living records out of the pieces with the most dead bytes until the heap is no
// longer Wasteful or it has looked at budget records. It returns how many it looked at. After it
// has copied a record's bytes, it calls moved(old, new): both are readable during the call, and
// Compact frees old after it. If moved returns false, or the Memory has no chunk left, Compact
// undoes that move and returns. moved must not touch the heap otherwise.
func (h *Heap) Compact(budget int, moved func(old, new uint32) bool) (looked int) {
	for looked < budget && h.Wasteful() {
		if h.victim.piece == 0 && !h.pickVictim() {
			return looked
		}
		n, ok := h.evacuate(budget-looked, moved)
		looked += n
		if !ok {
			return looked
		}
	}
	return looked
}

// evacuate moves up to budget records out of the victim.
func (h *Heap) evacuate(budget int, moved func(old, new uint32) bool) (looked int, ok bool) {
	i := h.victim.piece
	if h.loan != nil {
		h.own(i) // span joins holes, which writes to the piece
	}
	for looked < budget && h.victim.piece == i {
		p := &h.pieces[i]
		if h.victim.off >= p.used {
			h.file(i) // a record was resized into the part that was already passed
			h.victim = cursor{}
			return looked + 1, true
		}
		size, live := p.span(h.victim.off)
		looked++
		if live && !h.move(i<<offsetBits|h.victim.off/granule, moved) {
			return looked, false
		}
		if h.victim.piece == i {
			h.victim.off += size
		}
	}
	return looked, true
}

// move copies one record elsewhere and frees its old place.
func (h *Heap) move(old uint32, moved func(old, new uint32) bool) bool {
	hdr := h.header(old)
	n := int(hdr&sizeMask)*granule - headerSize - int(hdr>>padShift&7)
	to, ok := h.place(n, hdr&(bigBit|markBit))
	if !ok {
		return false
	}
	from, dst := &h.pieces[old>>offsetBits], &h.pieces[to>>offsetBits]
	at, dstAt := int(old&offsetMask)*granule+headerSize, int(to&offsetMask)*granule+headerSize
	copy(dst.data[dstAt:dstAt+n], from.data[at:at+n])
	if !moved(old, to) {
		h.kill(to)
		return false
	}
	h.kill(old)
	return true
}

// pickVictim chooses the piece to evacuate next.
func (h *Heap) pickVictim() bool {
	if h.oversized() {
		h.retire()
	}
	i := h.worst()
	if i == 0 && h.refill.piece != 0 && h.pieces[h.refill.piece].deadLevel() > 0 {
		i, h.refill = h.refill.piece, cursor{}
	}
	if i == 0 {
		return false
	}
	h.victim = cursor{piece: i}
	return true
}

// hasWorst reports whether pickVictim would find a piece.
func (h *Heap) hasWorst() bool {
	for l := 1; l < levels; l++ {
		if h.filed[l] != 0 {
			return true
		}
	}
	return h.refill.piece != 0 && h.pieces[h.refill.piece].deadLevel() > 0
}

// oversized reports whether the bump piece is so much larger than the next one
// would be, and so empty, that it is worth moving its records.
func (h *Heap) oversized() bool {
	if h.bump == 0 {
		return false
	}
	p := &h.pieces[h.bump]
	return len(p.data) >= 4*h.pieceSize() && int(p.used-p.dead)*4 < len(p.data)
}
