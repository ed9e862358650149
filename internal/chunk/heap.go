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

// levels is the number of classes of pieces by their share of dead bytes, in eighths. With more
// classes, every other Free would move a piece to another class. With fewer, a class would mix
// pieces that are worth evacuating with others.
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

	loan    *Loan  // nil: no chunk is lent
	lent    int    // the number of lent pieces
	bigLent []bool // which big records are lent
}

// piece is one chunk of a Heap.
type piece struct {
	data       []byte
	mem        uint32
	used       uint32 // bytes from the start that hold records, live or dead
	dead       uint32 // of these, dead
	next, prev uint32 // in filed[level], or in the list of unused numbers
	level      int8   // -1: not filed
	lent       bool   // a frozen copy shares the piece, if the heap has a loan
}

// cursor is a position in a piece: always the start of a record, or used.
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

// Free frees a record. Its bytes may be reused at once. O(1).
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

// Touch reads a byte of a record. A caller that is about to read several records touches them first: the cache misses overlap then.
func (h *Heap) Touch(ref uint32) byte {
	return h.pieces[ref>>offsetBits].data[int(ref&offsetMask)*granule]
}

// Edit returns a record to write to, under the rules of Bytes. Earlier results of Bytes may then
// point to memory of a frozen copy. O(1), or one copy of the chunk after Freeze.
func (h *Heap) Edit(ref uint32) []byte {
	if h.loan != nil {
		h.ownRecord(ref)
	}
	return h.Bytes(ref)
}

// Marked returns the one bit of the record that the owner may use.
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

// Stretch resizes the record to n bytes in place and keeps its first bytes up to the shorter
// length, or returns false and changes nothing. A record grows only into the free space after it,
// and cannot change between a record in a chunk and one on the Go heap. It costs O(1), O(n) for
// records too large for a chunk.
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

// Cut shortens the record to n bytes in place. It always succeeds: a record on the Go heap stays
// there.
func (h *Heap) Cut(ref uint32, n int) {
	if h.header(ref)&bigBit != 0 {
		k := binary.LittleEndian.Uint32(h.stub(ref))
		h.big[k] = h.big[k][:n]
		return
	}
	h.stretch(ref, n)
}

// Resize is Stretch, but moves the record if necessary. It returns the record's reference, which is
// new if the record moved. It returns false, and changes nothing, if the Memory has no chunk left.
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

// Reserve ensures that the next calls of Alloc and Resize succeed while they request at most n
// bytes in all (rounded up to granules, with a header each; a record too large for a chunk counts
// as one granule). n is at most half the largest chunk. Reserve returns false if the Memory has no
// chunk left.
func (h *Heap) Reserve(n int) bool {
	if h.bump != 0 {
		p := &h.pieces[h.bump]
		if len(p.data)-int(p.used) >= n {
			return true
		}
	}
	return h.addPiece(n)
}

// Memory returns the Memory of the heap's chunks.
func (h *Heap) Memory() Memory { return h.mem }

// Records returns the number of living records.
func (h *Heap) Records() int { return h.records }

// Size returns the bytes that the heap holds: chunks, big records and bookkeeping.
func (h *Heap) Size() int {
	return h.total + h.bigBytes + cap(h.pieces)*48 + cap(h.big)*24 + cap(h.bigFree)*4
}

// Used returns the bytes of living records, headers and padding included.
func (h *Heap) Used() int { return h.live + h.bigBytes }

// FreeAll frees up to budget chunks and returns their number. A result below budget means that none
// is left, and that the heap is empty and usable again. The first call frees the big records, and
// all records are invalid after it. O(budget).
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

// maxInline returns the largest payload that is stored in a chunk. An eighth of the largest chunk
// bounds the waste at the end of a chunk, and the header has 10 bits for the size.
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

// kill marks a record dead and frees its piece if no other record lives in it.
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

// absorb takes over the bytes from off to end of piece i if they are dead, and reports whether it
// did. The rest of the last dead record stays dead.
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

// addPiece starts a new bump piece with room for a record of size bytes. Its size is about an
// eighth of the living bytes, so that the container's slack stays near an eighth while the number
// of chunks grows logarithmically.
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

// retire adds the bump piece to the list of its level; the free bytes at its end become a hole.
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

// release frees piece i.
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

// file adds piece i to the list of its level.
func (h *Heap) file(i uint32) {
	p := &h.pieces[i]
	p.level = p.deadLevel()
	p.prev, p.next = 0, h.filed[p.level]
	if p.next != 0 {
		h.pieces[p.next].prev = i
	}
	h.filed[p.level] = i
}

// unfile removes piece i from its list.
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

// deadLevel returns the class of the piece by its share of dead bytes, in eighths.
func (p *piece) deadLevel() int8 {
	return int8(min(int(p.dead)*levels/len(p.data), levels-1))
}

// worst removes the piece with about the most dead bytes from the lists and returns it, or returns
// 0 if no piece is an eighth dead.
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
