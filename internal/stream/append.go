package stream

import "encoding/binary"

// Append adds an entry: field names and values in turn, at least one pair. Errors: ErrOrder,
// ErrNoMemory. O(size of the entry).
func (s *Stream) Append(id ID, pairs [][]byte, node Node) error {
	if !s.Last.Less(id) {
		return ErrOrder
	}
	if s.pieces == 0 || !s.inNode(pairs, node) {
		if err := s.appendPiece(id, pairs, pieceNode); err != nil {
			return err
		}
		s.beginNode(id, s.bytes(s.lastPiece()))
	} else if err := s.appendEntry(id, pairs); err != nil {
		return err
	}
	s.countInNode(id, pairs)
	s.tail, s.Last = id, id
	s.Added++
	return nil
}

// appendEntry adds an entry to the last piece, or to one that continues it.
func (s *Stream) appendEntry(id ID, pairs [][]byte) error {
	p := s.lastPiece()
	if s.open && p.stored < pieceEntries && s.tail.Less(id) && id.Ms-s.tail.Ms < maxStep {
		s.own(s.segment(p.seg))
		m := names(s.bytes(p))
		same := m.same(pairs)
		n := s.entryBound(id, pairs, same)
		if room := s.segs[len(s.segs)-1].size - s.segUsed; int(p.size)+n <= pieceBytes && n <= int(room) {
			s.extend(p, s.put(n, m, id, pairs, same))
			return nil
		}
	}
	return s.appendPiece(id, pairs, 0)
}

// entryBound returns an upper bound of the bytes of an entry. It is exact if none of the values is
// an integer.
func (s *Stream) entryBound(id ID, pairs [][]byte, same bool) int {
	code, seq := step(s.tail, id)
	n := varintLen(code)
	if code&1 != 0 {
		n += varintLen(seq)
	}
	for i := 1; i < len(pairs); i += 2 {
		n += valueBound(pairs[i])
	}
	if !same {
		n += otherSize(pairs)
	}
	return n + varintLen(uint64(n)<<flagBits)
}

// put writes an entry of at most n bytes after the last piece and returns its length.
func (s *Stream) put(n int, m names, id ID, pairs [][]byte, same bool) int {
	sg := &s.segs[len(s.segs)-1]
	b := s.chunk(sg)[s.segUsed : int(s.segUsed)+n]
	return putEntry(b, s.tail, m, id, pairs, same)
}

// putEntry writes an entry to the start of b, which has space for its bound.
func putEntry(b []byte, prev ID, m names, id ID, pairs [][]byte, same bool) int {
	head := varintLen(uint64(len(b)) << flagBits)
	head = varintLen(uint64(len(b)-head) << flagBits) // as long as entryBound has counted
	q := head
	code, seq := step(prev, id)
	q += binary.PutUvarint(b[q:], code)
	if code&1 != 0 {
		q += binary.PutUvarint(b[q:], seq)
	}
	flags := uint64(0)
	if !same {
		flags = flagOther
		q = putOther(b, q, m, pairs)
	}
	for i := 1; i < len(pairs); i += 2 {
		q = putValue(b, q, pairs[i])
	}
	v := uint64(q-head)<<flagBits | flags
	if need := varintLen(v); need < head {
		copy(b[need:], b[head:q])
		q -= head - need
	}
	binary.PutUvarint(b, v)
	return q
}

// extend counts a further entry of n bytes in the last piece.
func (s *Stream) extend(p *piece, n int) {
	p.size += uint16(n)
	p.stored++
	p.live++
	s.segUsed += uint32(n)
	s.segs[len(s.segs)-1].live += uint32(n)
	s.groups[len(s.groups)-1].live++
	s.length++
}

// appendPiece adds an entry as the first of a new piece, which begins a node or
// continues one.
func (s *Stream) appendPiece(id ID, pairs [][]byte, flags uint8) error {
	tail := s.tail
	s.tail = id // the first entry of a piece is encoded against itself
	n := namesSize(pairs) + s.entryBound(id, pairs, true)
	p := piece{first: id, stored: 1, live: 1, flags: flags}
	if n > s.bigFrom() {
		b := make([]byte, n)
		q := putNames(b, 0, pairs)
		q += putEntry(b[q:], id, nil, id, pairs, true)
		p.flags |= pieceBig
		p.seg = s.addBig(b[:q])
		s.open = false
		s.addPiece(p)
		return nil
	}
	if !s.reserve(n) {
		s.tail = tail
		return ErrNoMemory
	}
	k := len(s.segs) - 1
	sg := &s.segs[k]
	p.seg, p.off = s.segBase+uint32(k), uint16(s.segUsed)
	s.own(sg)
	b := s.chunk(sg)[s.segUsed : int(s.segUsed)+n]
	q := putNames(b, 0, pairs)
	q += putEntry(b[q:], id, names(b[:q]), id, pairs, true)
	p.size = uint16(q)
	sg.live += uint32(q)
	s.segUsed += uint32(q)
	s.open = true
	s.addPiece(p)
	return nil
}
