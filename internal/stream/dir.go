package stream

import (
	"math/bits"
	"slices"
	"sort"
)

const (
	// groupMax is the greatest number of pieces in a group of the directory: removing one from the
	// middle moves 4 KiB on average.
	groupMax = 256
	// pieceEntries and pieceBytes bound a piece, because finding an entry reads
	// the lengths of those before it: 128 of them take 0.2 us.
	pieceEntries = 128
	pieceBytes   = 4 << 10
	// segmentMax is the size of a large stream's segments.
	segmentMax = 16 << 10
)

// piece is an entry of the directory.
type piece struct {
	first  ID     // the id of its first stored entry
	seg    uint32 // number of its segment; its index in bigs if it is big
	off    uint16 // in the segment
	size   uint16 // bytes; unused if it is big
	stored uint8  // entries
	live   uint8  // entries that are not deleted
	flags  uint8
}

const (
	pieceNode = 1 // the piece begins a node of Redis
	pieceBig  = 2 // the piece is one entry, on the Go heap
	pieceCut  = 4 // a piece of its node, before it or directly after it, was removed
)

// dirGroup is a part of the directory.
type dirGroup struct {
	ents []piece
	live int
}

// segment is a chunk that contains pieces. A segment whose chunk was freed stays in the list until
// all segments before it were freed.
type segment struct {
	ref  uint32 // 0: freed
	size uint32
	live uint32 // bytes of pieces

	lent    bool // a frozen copy shares the chunk, if the stream has a loan
	outside bool // the bytes are at index ref-1 of bigs, because there was no chunk
}

func (s *Stream) segment(n uint32) *segment { return &s.segs[n-s.segBase] }

// bytes returns a piece's data.
func (s *Stream) bytes(p *piece) []byte {
	if p.flags&pieceBig != 0 {
		return s.bigs[p.seg]
	}
	sg := s.segment(p.seg)
	b := s.chunk(sg)
	return b[p.off : int(p.off)+int(p.size) : int(p.off)+int(p.size)]
}

func (s *Stream) lastPiece() *piece {
	g := &s.groups[len(s.groups)-1]
	return &g.ents[len(g.ents)-1]
}

// find returns the position of the last piece whose first id is not above id, or of the first
// piece. The stream has a piece. O(log n).
func (s *Stream) find(id ID) (g, e int) {
	g = max(sort.Search(len(s.groups), func(i int) bool { return id.Less(s.groups[i].ents[0].first) })-1, 0)
	ents := s.groups[g].ents
	e = max(sort.Search(len(ents), func(i int) bool { return id.Less(ents[i].first) })-1, 0)
	return g, e
}

// reserve finds n bytes for a new piece: at the end of the last segment, or in
// a new one.
func (s *Stream) reserve(n int) bool {
	if k := len(s.segs); k > 0 && s.segs[k-1].ref != 0 && int(s.segs[k-1].size-s.segUsed) >= n {
		return true
	}
	size := chunkMin
	if want := s.segBytes / 8; want > size {
		size = min(1<<(bits.Len(uint(want))-1), s.largest())
	}
	for n > size || n*3 > size && n > pieceBytes {
		size *= 2
	}
	ref := s.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	s.segs = append(s.segs, segment{ref: ref, size: uint32(size)})
	s.segUsed = 0
	s.segBytes += size
	return true
}

// chunkMin is the smallest chunk.
const chunkMin = 1 << 10

// largest is the size of the segments of a large stream.
func (s *Stream) largest() int { return min(segmentMax, s.mem.MaxChunk()) }

// bigFrom returns the size in bytes from which on an entry lies on the Go heap: a third of the
// largest chunk. 16-bit offsets reach into chunks of 64 KiB.
func (s *Stream) bigFrom() int { return min(s.mem.MaxChunk(), 1<<16) / 3 }

// addPiece adds a piece at the end of the directory.
func (s *Stream) addPiece(p piece) {
	k := len(s.groups) - 1
	if k < 0 || len(s.groups[k].ents) == groupMax {
		s.groups = append(s.groups, dirGroup{})
		k++
	}
	gr := &s.groups[k]
	gr.ents = append(gr.ents, p)
	gr.live += int(p.live)
	s.pieces++
	s.length += int(p.live)
	if p.flags&pieceNode != 0 {
		s.nodes++
	}
}

// removePiece removes a piece from the directory and frees its memory.
func (s *Stream) removePiece(g, e int) {
	gr := &s.groups[g]
	p := gr.ents[e]
	last := g == len(s.groups)-1 && e == len(gr.ents)-1
	if g == 0 && e == 0 {
		s.head = cursor{}
	}
	s.drop(g, e, &p)
	gr.live -= int(p.live)
	s.length -= int(p.live)
	s.pieces--
	if p.flags&pieceNode != 0 {
		s.passMark(g, e)
	} else if prev, ok := s.before(place{g, e}); ok {
		s.at(prev).flags |= pieceCut
	}
	s.cut(g, e)
	if last {
		s.open = false
		if p.flags&pieceNode != 0 {
			s.recount()
		}
	}
}

// cut removes entry e of group g, and the group if it is empty then.
func (s *Stream) cut(g, e int) {
	gr := &s.groups[g]
	if e == 0 {
		gr.ents = gr.ents[1:]
	} else {
		gr.ents = slices.Delete(gr.ents, e, e+1)
	}
	if len(gr.ents) > 0 {
		return
	}
	if g == 0 {
		s.groups[0] = dirGroup{}
		s.groups = s.groups[1:]
	} else {
		s.groups = slices.Delete(s.groups, g, g+1)
	}
	if len(s.groups) == 0 {
		s.groups = nil
	}
}

// passMark passes the mark of a piece that is about to be removed to the piece that continues its
// node. If there is none, the node is removed.
func (s *Stream) passMark(g, e int) {
	if next, ok := s.after(place{g, e}); ok && s.at(next).flags&pieceNode == 0 {
		s.at(next).flags |= pieceNode | pieceCut
		return
	}
	s.nodes--
}

// drop frees a piece's memory while the piece is still in the directory.
func (s *Stream) drop(g, e int, p *piece) {
	if p.flags&pieceBig != 0 {
		s.dropBig(p.seg)
		return
	}
	i := int(p.seg - s.segBase)
	sg := &s.segs[i]
	sg.live -= uint32(p.size)
	switch {
	case sg.live == 0:
		s.freeSegment(i)
		for len(s.segs) > 0 && s.segs[0].ref == 0 {
			s.segs = s.segs[1:]
			s.segBase++
		}
		if len(s.segs) == 0 {
			s.segs = nil
		}
	case i < len(s.segs)-1 && sg.live*4 <= sg.size && sg.size > chunkMin && !(g == 0 && e == 0):
		s.shrinkSegment(g, e, sg)
	}
}

// shrinkSegment moves the living pieces in the segment of piece e, which is about to be removed, to
// a smaller chunk.
func (s *Stream) shrinkSegment(g, e int, sg *segment) {
	size := max(chunkMin, 1<<bits.Len32(sg.live-1))
	ref := s.mem.AllocChunk(size)
	if ref == 0 {
		return
	}
	from, to := s.chunk(sg), s.mem.Bytes(ref, size)
	at := place{g, e}
	gone := s.at(at)
	for prev, ok := s.before(at); ok && s.at(prev).in(gone.seg); prev, ok = s.before(at) {
		at = prev
	}
	n := 0
	for ok := true; ok && s.at(at).in(gone.seg); at, ok = s.after(at) {
		if p := s.at(at); p != gone && p.flags&pieceBig == 0 {
			copy(to[n:], from[p.off:int(p.off)+int(p.size)])
			p.off = uint16(n)
			n += int(p.size)
		}
	}
	s.letGo(sg)
	s.segBytes += size - int(sg.size)
	sg.ref, sg.size = ref, uint32(size)
}

// in reports whether a piece is in a segment, or large and possibly between
// such pieces.
func (p *piece) in(seg uint32) bool { return p.flags&pieceBig != 0 || p.seg == seg }

// place is the position of a piece in the directory.
type place struct{ g, e int }

func (s *Stream) at(p place) *piece { return &s.groups[p.g].ents[p.e] }

// after returns the position of the piece after p, if there is one.
func (s *Stream) after(p place) (place, bool) {
	if p.e++; p.e == len(s.groups[p.g].ents) {
		p = place{p.g + 1, 0}
	}
	return p, p.g < len(s.groups)
}

// before returns the position of the piece before p, if there is one.
func (s *Stream) before(p place) (place, bool) {
	if p.e--; p.e < 0 {
		if p.g--; p.g < 0 {
			return p, false
		}
		p.e = len(s.groups[p.g].ents) - 1
	}
	return p, true
}

// freeSegment frees the chunk of segs[i].
func (s *Stream) freeSegment(i int) {
	sg := &s.segs[i]
	if sg.ref != 0 {
		s.letGo(sg)
		s.segBytes -= int(sg.size)
		*sg = segment{}
	}
}

func (s *Stream) countBig(delta int) {
	s.bigBytes += delta
	s.mem.Outside(delta)
}

// addBig stores bytes on the Go heap and returns their index in bigs.
func (s *Stream) addBig(b []byte) uint32 {
	s.countBig(cap(b))
	if k := len(s.noBigs); k > 0 {
		i := s.noBigs[k-1]
		s.noBigs = s.noBigs[:k-1]
		s.bigs[i] = b
		return i
	}
	s.bigs = append(s.bigs, b)
	return uint32(len(s.bigs) - 1)
}

func (s *Stream) dropBig(i uint32) {
	s.countBig(-cap(s.bigs[i]))
	s.bigs[i] = nil
	s.noBigs = append(s.noBigs, i)
	if len(s.noBigs) == len(s.bigs) {
		s.bigs, s.noBigs = nil, nil
	}
}

// Behind returns the number of entries from this id on, or up to a piece's entries more. O(groups
// of the directory).
func (s *Stream) Behind(id ID) (n int) {
	if s.pieces == 0 {
		return 0
	}
	g, e := s.find(id)
	for i := e; i < len(s.groups[g].ents); i++ {
		n += int(s.groups[g].ents[i].live)
	}
	for i := g + 1; i < len(s.groups); i++ {
		n += s.groups[i].live
	}
	return n
}
