package chunk

import (
	"encoding/binary"
	"math/bits"
)

const (
	granule    = 8
	headerSize = 2
	offsetBits = 13 // a 64 KiB chunk has 2^13 granules
	offsetMask = 1<<offsetBits - 1
	maxPieces  = 1 << (32 - offsetBits)

	liveBit     = 1 << 15
	bigBit      = 1 << 14
	markBit     = 1 << 13
	padShift    = 10
	sizeMask    = 1<<padShift - 1
	stubPayload = 4 // a big record's stub holds its number in the side table
)

// levels is the number of classes by dead share that pieces are filed under.
// Eighths: finer ones would refile a piece on every other Free, coarser ones
// would not tell a piece worth evacuating from one that is not.
const levels = 8

// Heap stores records of 0 bytes to whatever the Go heap holds. The zero Heap
// is not usable; see Init.
type Heap struct {
	mem    Memory
	pieces []piece // pieces[0] is unused: reference 0 means none
	unused uint32  // first of the free piece numbers, linked through next
	filed  [levels]uint32
	bump   uint32 // the piece being filled at its end, or 0
	refill cursor // the piece whose holes are being refilled
	victim cursor // the piece being evacuated
	misses uint8  // requests in a row that no hole near refill fitted
	filled bool   // some request was served from the refill piece

	resting uint16 // requests still to be served without looking for a hole

	records int
	total   int // bytes of all chunks
	live    int // bytes of living records, headers and padding included

	big      [][]byte // records larger than a chunk takes
	bigFree  []uint32
	bigBytes int

	loan    *Loan  // nil: nothing is lent
	lent    int    // pieces that are
	bigLent []bool // big records that are
}

// piece is one chunk of a Heap.
type piece struct {
	data       []byte
	mem        uint32
	used       uint32 // bytes from the start that hold records, live or dead
	dead       uint32 // of these, dead
	next, prev uint32 // in filed[level], or in the list of unused numbers
	level      int8   // -1: not filed
	lent       bool   // shared with a frozen copy, if the heap has a loan
}

// cursor is a place in a piece: always the start of a record, or used.
type cursor struct {
	piece uint32
	off   uint32
}

// Init makes h an empty heap on m. It allocates no chunk.
func (h *Heap) Init(m Memory) { *h = Heap{mem: m} }

// Alloc returns a new record of n bytes, unmarked, with unspecified contents,
// for the caller to fill through Edit; false when the Memory has no chunk
// left. Records of more than an eighth of the largest chunk live on the Go
// heap. Alloc moves nothing and costs O(1).
func (h *Heap) Alloc(n int) (ref uint32, ok bool) {
	if n <= h.maxInline() {
		return h.place(n, 0)
	}
	ref, ok = h.place(stubPayload, bigBit)
	if !ok {
		return 0, false
	}
	h.attach(ref, make([]byte, n))
	return ref, true
}

// Free gives a record back. Its bytes may be reused at once. It costs O(1).
func (h *Heap) Free(ref uint32) {
	if h.header(ref)&bigBit != 0 {
		h.detach(ref)
	}
	h.kill(ref)
}

// Bytes returns a record to read: the memory, not a copy, valid until the
// record is freed, resized or moved by Compact.
func (h *Heap) Bytes(ref uint32) []byte {
	b, _ := h.Look(ref)
	return b
}

// Look returns what Bytes and Marked return.
func (h *Heap) Look(ref uint32) (b []byte, marked bool) {
	data := h.pieces[ref>>offsetBits].data
	off := int(ref&offsetMask) * granule
	hdr := int(binary.LittleEndian.Uint16(data[off:]))
	body := data[off+headerSize : off+(hdr&sizeMask)*granule-hdr>>padShift&7]
	if hdr&bigBit != 0 {
		body = h.big[binary.LittleEndian.Uint32(body)]
	}
	return body, hdr&markBit != 0
}

// Edit returns a record to write to, under the rules of Bytes. What Bytes has
// returned before may be a frozen copy's from then on. O(1), or a chunk's copy
// once after Freeze.
func (h *Heap) Edit(ref uint32) []byte {
	if h.loan != nil {
		h.ownRecord(ref)
	}
	return h.Bytes(ref)
}

// Marked reports the record's one bit that belongs to the owner.
func (h *Heap) Marked(ref uint32) bool { return h.header(ref)&markBit != 0 }

// SetMark sets the owner's bit. It moves with the record.
func (h *Heap) SetMark(ref uint32, on bool) {
	if h.loan != nil {
		h.own(ref >> offsetBits)
	}
	hdr := h.header(ref) &^ markBit
	if on {
		hdr |= markBit
	}
	h.setHeader(ref, hdr)
}

// Stretch makes the record n bytes long where it is and keeps its first bytes
// up to the shorter length, or reports false and changes nothing: it grows only
// into free room behind it, and stays on its side of what fits a chunk. It
// costs O(1), O(n) for records too large for a chunk.
func (h *Heap) Stretch(ref uint32, n int) bool {
	inline := n <= h.maxInline()
	if h.header(ref)&bigBit != 0 {
		if inline {
			return false
		}
		h.resizeBig(ref, n)
		return true
	}
	return inline && h.stretch(ref, n)
}

// Cut makes the record n bytes long, no longer than it is, where it is. It
// always succeeds: a record outside the chunks stays outside.
func (h *Heap) Cut(ref uint32, n int) {
	if h.header(ref)&bigBit != 0 {
		k := binary.LittleEndian.Uint32(h.stub(ref))
		h.big[k] = h.big[k][:n]
		return
	}
	h.stretch(ref, n)
}

// Resize does what Stretch does and moves the record if it must. It returns the
// record's reference, a new one if it moved; false, and nothing changed, when
// the Memory has no chunk left.
func (h *Heap) Resize(ref uint32, n int) (uint32, bool) {
	if h.Stretch(ref, n) {
		return ref, true
	}
	to, ok := h.Alloc(n)
	if !ok {
		return ref, false
	}
	copy(h.Edit(to), h.Bytes(ref))
	h.SetMark(to, h.Marked(ref))
	h.Free(ref)
	return to, true
}

// Reserve makes sure that the next Allocs and Resizes succeed as long as they
// ask for no more than n bytes in all (rounded up to granules, with a header
// each; a record too large for a chunk counts as one granule). n is at most
// half the largest chunk. False when the Memory has no chunk left.
func (h *Heap) Reserve(n int) bool {
	if h.bump != 0 {
		p := &h.pieces[h.bump]
		if len(p.data)-int(p.used) >= n {
			return true
		}
	}
	return h.addPiece(n)
}

// Memory returns where the heap's chunks come from.
func (h *Heap) Memory() Memory { return h.mem }

// Records returns the number of living records.
func (h *Heap) Records() int { return h.records }

// Size returns the bytes held: chunks, big records and bookkeeping.
func (h *Heap) Size() int {
	return h.total + h.bigBytes + cap(h.pieces)*48 + cap(h.big)*24 + cap(h.bigFree)*4
}

// Used returns the bytes of living records, headers and padding included.
func (h *Heap) Used() int { return h.live + h.bigBytes }

// FreeAll gives back up to budget chunks and returns how many; fewer than budget
// means that none is left, and that the heap is empty and usable again. Big
// records are dropped with the first call. The heap's records are gone once
// FreeAll has been called. O(budget).
func (h *Heap) FreeAll(budget int) (freed int) {
	if h.bigBytes > 0 {
		h.countBig(-h.bigBytes)
		h.big, h.bigFree = nil, nil
	}
	for len(h.pieces) > 0 {
		last := len(h.pieces) - 1
		if p := &h.pieces[last]; p.data != nil {
			if freed >= budget {
				return freed
			}
			freed++
			h.total -= len(p.data)
			letGo(h.mem, h.loan, p.lent, p.mem, len(p.data))
		}
		h.pieces = h.pieces[:last]
	}
	h.Init(h.mem)
	return freed
}

// maxInline is the largest payload stored in a chunk: an eighth of the largest
// chunk bounds what the end of a chunk wastes, and 10 bits bound the header.
func (h *Heap) maxInline() int {
	return min(largest(h.mem)/8, sizeMask*granule) - headerSize
}

// granules returns the size of a record with n bytes of payload.
func granules(n int) int { return (n + headerSize + granule - 1) / granule }

// place puts a record of n bytes into a hole or at the end of the bump piece.
func (h *Heap) place(n int, flags uint16) (uint32, bool) {
	g := granules(n)
	size := g * granule
	ref := h.fromHole(g)
	if ref == 0 {
		if h.bump == 0 || len(h.pieces[h.bump].data)-int(h.pieces[h.bump].used) < size {
			if !h.addPiece(size) {
				return 0, false
			}
		}
		p := &h.pieces[h.bump]
		ref = h.bump<<offsetBits | p.used/granule
		p.used += uint32(size)
	}
	if h.loan != nil {
		h.own(ref >> offsetBits)
	}
	pad := size - headerSize - n
	h.setHeader(ref, liveBit|flags|uint16(pad<<padShift)|uint16(g))
	h.live += size
	h.records++
	return ref, true
}

// kill marks a record dead and gives its piece back when nothing else lives
// in it.
func (h *Heap) kill(ref uint32) {
	if h.loan != nil {
		h.own(ref >> offsetBits)
	}
	size := uint32(h.header(ref)&sizeMask) * granule
	h.setHeader(ref, uint16(size/granule))
	h.live -= int(size)
	h.records--
	h.addDead(ref>>offsetBits, size)
}

// addDead counts size more dead bytes in piece i.
func (h *Heap) addDead(i, size uint32) {
	p := &h.pieces[i]
	p.dead += size
	switch {
	case p.dead == p.used && i == h.bump:
		p.used, p.dead = 0, 0
	case p.dead == p.used:
		h.release(i)
	case p.level >= 0 && p.level != p.deadLevel():
		h.unfile(i)
		h.file(i)
	}
}

// stretch makes the record n bytes long in place if that is possible.
func (h *Heap) stretch(ref uint32, n int) bool {
	if h.loan != nil {
		h.own(ref >> offsetBits)
	}
	hdr := h.header(ref)
	i, off := ref>>offsetBits, ref&offsetMask*granule
	have, want := uint32(hdr&sizeMask)*granule, uint32(granules(n))*granule
	p := &h.pieces[i]
	if want > have {
		end := off + want
		switch {
		case off+have == p.used && i == h.bump && end <= uint32(len(p.data)):
			p.used = end
		case !h.absorb(i, off+have, end):
			return false
		}
	}
	pad := int(want) - headerSize - n
	h.setHeader(ref, hdr&(liveBit|bigBit|markBit)|uint16(pad<<padShift)|uint16(want/granule))
	h.live += int(want) - int(have)
	if want < have {
		h.setDead(i, off+want, have-want)
		h.addDead(i, have-want)
	}
	return true
}

// absorb takes the bytes from off to end of piece i if they are dead, and
// leaves the rest of the last dead record dead.
func (h *Heap) absorb(i, off, end uint32) bool {
	p := &h.pieces[i]
	at := off
	for at < end {
		if at >= p.used {
			return false
		}
		hdr := binary.LittleEndian.Uint16(p.data[at:])
		if hdr&liveBit != 0 {
			return false
		}
		at += uint32(hdr&sizeMask) * granule
	}
	if at > end {
		h.setDead(i, end, at-end)
	}
	for _, c := range []*cursor{&h.refill, &h.victim} {
		if c.piece == i && c.off >= off && c.off < at {
			c.off = end
		}
	}
	p.dead -= end - off
	if p.level >= 0 && p.level != p.deadLevel() {
		h.unfile(i)
		h.file(i)
	}
	return true
}

// addPiece starts a new bump piece with room for a record of size bytes. Its
// size is about an eighth of what lives already, so that the container's slack
// stays near an eighth while the number of chunks grows with its logarithm.
func (h *Heap) addPiece(size int) bool {
	n := h.pieceSize()
	for n < size {
		n *= 2
	}
	if h.unused == 0 && len(h.pieces) >= maxPieces {
		return false
	}
	mem := h.mem.AllocChunk(n)
	if mem == 0 {
		return false
	}
	h.retire()
	if h.pieces == nil {
		h.pieces = make([]piece, 1, 4)
	}
	i := h.unused
	if i != 0 {
		h.unused = h.pieces[i].next
	} else {
		i = uint32(len(h.pieces))
		h.pieces = append(h.pieces, piece{})
	}
	h.pieces[i] = piece{data: h.mem.Bytes(mem, n), mem: mem, level: -1}
	h.total += n
	h.bump = i
	return true
}

// pieceSize returns the size of the next piece.
func (h *Heap) pieceSize() int {
	n := MinSize
	if want := h.live / 8; want > n {
		n = 1 << (bits.Len(uint(want)) - 1)
	}
	return min(n, largest(h.mem))
}

// retire files the bump piece; what is left at its end becomes a hole.
func (h *Heap) retire() {
	i := h.bump
	if i == 0 {
		return
	}
	h.bump = 0
	p := &h.pieces[i]
	if rest := uint32(len(p.data)) - p.used; rest > 0 {
		if h.loan != nil {
			h.own(i)
		}
		h.setDead(i, p.used, rest)
		p.used += rest
		p.dead += rest
	}
	if p.dead == p.used {
		h.release(i)
		return
	}
	h.file(i)
}

// release gives piece i back to the Memory.
func (h *Heap) release(i uint32) {
	p := &h.pieces[i]
	if p.level >= 0 {
		h.unfile(i)
	}
	if h.refill.piece == i {
		h.refill = cursor{}
	}
	if h.victim.piece == i {
		h.victim = cursor{}
	}
	h.total -= len(p.data)
	letGo(h.mem, h.loan, p.lent, p.mem, len(p.data))
	if h.loan != nil && p.lent {
		h.returned()
	}
	*p = piece{next: h.unused, level: -1}
	h.unused = i
}

// file puts piece i into the list of its level.
func (h *Heap) file(i uint32) {
	p := &h.pieces[i]
	p.level = p.deadLevel()
	p.prev, p.next = 0, h.filed[p.level]
	if p.next != 0 {
		h.pieces[p.next].prev = i
	}
	h.filed[p.level] = i
}

// unfile takes piece i out of its list.
func (h *Heap) unfile(i uint32) {
	p := &h.pieces[i]
	if p.prev != 0 {
		h.pieces[p.prev].next = p.next
	} else {
		h.filed[p.level] = p.next
	}
	if p.next != 0 {
		h.pieces[p.next].prev = p.prev
	}
	p.next, p.prev, p.level = 0, 0, -1
}

// deadLevel returns the eighth the piece's dead share falls in.
func (p *piece) deadLevel() int8 {
	return int8(min(int(p.dead)*levels/len(p.data), levels-1))
}

// worst takes the piece with about the most dead bytes off the lists, or
// returns 0 when no piece is an eighth dead.
func (h *Heap) worst() uint32 {
	for l := levels - 1; l > 0; l-- {
		if i := h.filed[l]; i != 0 {
			h.unfile(i)
			return i
		}
	}
	return 0
}

func (h *Heap) header(ref uint32) uint16 {
	return binary.LittleEndian.Uint16(h.pieces[ref>>offsetBits].data[ref&offsetMask*granule:])
}

func (h *Heap) setHeader(ref uint32, hdr uint16) {
	binary.LittleEndian.PutUint16(h.pieces[ref>>offsetBits].data[ref&offsetMask*granule:], hdr)
}

// setDead writes the headers of dead records over size bytes at off of piece
// i; one header spans at most 1,023 granules. The caller counts the bytes.
func (h *Heap) setDead(i, off, size uint32) {
	for size > 0 {
		n := min(size, sizeMask*granule)
		binary.LittleEndian.PutUint16(h.pieces[i].data[off:], uint16(n/granule))
		off += n
		size -= n
	}
}
