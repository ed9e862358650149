package chunk

import (
	"encoding/binary"
	"fmt"
)

// Each calls visit for every living record, piece by piece. It costs O(used
// bytes / record size). visit must not change the heap.
func (h *Heap) Each(visit func(ref uint32)) {
	for i := range h.pieces {
		p := &h.pieces[i]
		for off := uint32(0); off < p.used; {
			hdr := binary.LittleEndian.Uint16(p.data[off:])
			if hdr&liveBit != 0 {
				visit(uint32(i)<<offsetBits | off/granule)
			}
			off += uint32(hdr&sizeMask) * granule
		}
	}
}

// Check verifies the heap's invariants and returns the first one broken. It
// walks every record.
func (h *Heap) Check() error {
	records, live, total := 0, 0, 0
	for i := 1; i < len(h.pieces); i++ {
		p := &h.pieces[i]
		if p.data == nil {
			continue
		}
		n, alive, err := h.checkPiece(uint32(i))
		if err != nil {
			return err
		}
		records += n
		live += alive
		total += len(p.data)
	}
	bigs := 0
	for _, b := range h.big {
		bigs += cap(b)
	}
	switch {
	case records != h.records:
		return fmt.Errorf("chunk: %d records live, %d counted", records, h.records)
	case live != h.live:
		return fmt.Errorf("chunk: %d bytes live, %d counted", live, h.live)
	case total != h.total:
		return fmt.Errorf("chunk: %d bytes held, %d counted", total, h.total)
	case bigs != h.bigBytes:
		return fmt.Errorf("chunk: %d bytes in big records, %d counted", bigs, h.bigBytes)
	}
	return h.checkLists()
}

// checkPiece walks one piece.
func (h *Heap) checkPiece(i uint32) (records, live int, err error) {
	p := &h.pieces[i]
	dead, off := uint32(0), uint32(0)
	refillSeen, victimSeen := h.refill.piece != i, h.victim.piece != i
	for off < p.used {
		refillSeen = refillSeen || h.refill.off == off
		victimSeen = victimSeen || h.victim.off == off
		hdr := binary.LittleEndian.Uint16(p.data[off:])
		size := uint32(hdr&sizeMask) * granule
		if size == 0 || off+size > p.used {
			return 0, 0, fmt.Errorf("chunk: piece %d: record at %d has header %#x", i, off, hdr)
		}
		if hdr&liveBit != 0 {
			records++
			live += int(size)
		} else {
			dead += size
		}
		off += size
	}
	special := i == h.bump || i == h.refill.piece || i == h.victim.piece
	switch {
	case dead != p.dead:
		err = fmt.Errorf("chunk: piece %d: %d bytes dead, %d counted", i, dead, p.dead)
	case records == 0 && i != h.bump:
		err = fmt.Errorf("chunk: piece %d is dead and still held", i)
	case special == (p.level >= 0):
		err = fmt.Errorf("chunk: piece %d has the level %d; special pieces alone have none (special: %v)", i, p.level, special)
	case !special && p.level != p.deadLevel():
		err = fmt.Errorf("chunk: piece %d filed under %d, belongs to %d", i, p.level, p.deadLevel())
	case !refillSeen && h.refill.off != p.used, !victimSeen && h.victim.off != p.used:
		err = fmt.Errorf("chunk: piece %d: a cursor stands inside a record", i)
	}
	return records, live, err
}

// checkLists verifies that the lists hold exactly the pieces filed.
func (h *Heap) checkLists() error {
	filed := 0
	for l, head := range h.filed {
		prev := uint32(0)
		for i := head; i != 0; i = h.pieces[i].next {
			p := &h.pieces[i]
			if int(p.level) != l || p.prev != prev {
				return fmt.Errorf("chunk: piece %d is wrongly linked in level %d", i, l)
			}
			prev = i
			filed++
		}
	}
	for i := 1; i < len(h.pieces); i++ {
		if h.pieces[i].level >= 0 && h.pieces[i].data != nil {
			filed--
		}
	}
	if filed != 0 {
		return fmt.Errorf("chunk: lists hold %d pieces too many", filed)
	}
	return nil
}
