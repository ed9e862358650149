package stream

// Delete removes an entry, notes its id if it is the largest deleted one so far, and reports
// whether the entry existed. O(log n + entries of a piece).
func (s *Stream) Delete(id ID) bool {
	if s.pieces == 0 {
		return false
	}
	var at place
	at.g, at.e = s.find(id)
	p := s.at(at)
	data := s.bytes(p)
	var c cursor
	if at == (place{}) {
		c = s.head
	}
	for c.start(p, data); c.n < int(p.stored); {
		pos := c.pos
		flags, _ := c.next(data)
		if c.prev.Less(id) {
			continue
		}
		if c.prev != id || flags&flagDeleted != 0 {
			return false
		}
		s.mark(at, p, pos)
		if s.MaxDeleted.Less(id) {
			s.MaxDeleted = id
		}
		if p.live == 0 {
			s.removePiece(at.g, at.e)
		} else if at == (place{}) {
			s.advance()
		}
		return true
	}
	return false
}

// mark marks the entry at pos of a piece's data as deleted; for a large entry it removes the piece.
// Earlier data of the piece may belong to a frozen copy afterwards.
func (s *Stream) mark(at place, p *piece, pos int) {
	if p.flags&pieceBig == 0 {
		s.own(s.segment(p.seg))
		s.bytes(p)[pos] |= flagDeleted
	}
	p.live--
	s.groups[at.g].live--
	s.length--
}

// advance moves the head over the deleted entries at the start of the first piece, which has a
// living entry.
func (s *Stream) advance() {
	p := s.at(place{})
	data := s.bytes(p)
	s.head.start(p, data)
	for {
		if v, _ := uvarint(data, s.head.pos); v&flagDeleted == 0 {
			return
		}
		s.head.next(data)
	}
}

// Trim selects the entries that XTRIM and XADD remove from the start.
type Trim struct {
	ByID   bool   // trim by MINID, else by MAXLEN
	Len    uint64 // the greatest number of entries to keep
	MinID  ID     // the smallest id to keep
	Approx bool   // remove only whole nodes of Redis
	Limit  int    // the greatest number of entries to remove; 0: no bound
}

// done reports whether the stream satisfies the trim, without regard to Limit.
func (t *Trim) done(s *Stream) bool {
	return s.length == 0 || !t.ByID && uint64(s.length) <= t.Len
}

// Trim removes entries from the start and returns their number. O(pieces removed + entries of a
// node).
func (s *Stream) Trim(t Trim) (removed int) {
	for !t.done(s) {
		count, last := s.firstNode()
		if t.Limit > 0 && removed+count > t.Limit {
			break
		}
		whole := uint64(s.length-count) >= t.Len
		if t.ByID {
			whole = s.nodeBelow(last, t.MinID)
		}
		if !whole {
			if !t.Approx {
				removed += s.trimWithin(&t)
			}
			break
		}
		s.removeFirst(last)
		removed += count
	}
	return removed
}

// firstNode returns the number of living entries of the first node, and the
// number of its pieces.
func (s *Stream) firstNode() (live, pieces int) {
	at, ok := place{}, true
	for ok && (pieces == 0 || s.at(at).flags&pieceNode == 0) {
		live += int(s.at(at).live)
		pieces++
		at, ok = s.after(at)
	}
	return live, pieces
}

// nodeBelow reports whether all ids stored in the first node, which has this
// many pieces, are below id.
func (s *Stream) nodeBelow(pieces int, id ID) bool {
	at, ok := place{}, true
	var last *piece
	for range pieces {
		last = s.at(at)
		at, ok = s.after(at)
	}
	if ok && !id.Less(s.at(at).first) {
		return true // the next piece begins at or below id
	}
	if !last.first.Less(id) {
		return false
	}
	if !ok && (s.open || last.flags&pieceCut != 0) {
		return s.tail.Less(id)
	}
	if last.flags&pieceCut != 0 {
		return false // the removed piece may have had ids above id
	}
	data := s.bytes(last)
	var c cursor
	for c.start(last, data); c.n < int(last.stored); {
		c.next(data)
	}
	return c.prev.Less(id)
}

// removeFirst removes the first pieces.
func (s *Stream) removeFirst(pieces int) {
	for range pieces {
		s.removePiece(0, 0)
	}
}

// trimWithin removes entries one by one.
func (s *Stream) trimWithin(t *Trim) (removed int) {
	for s.length > 0 {
		p := s.at(place{})
		data := s.bytes(p)
		for s.head.start(p, data); p.live > 0 && s.trims(t, data); {
			pos := s.head.pos
			if flags, _ := s.head.next(data); flags&flagDeleted == 0 {
				s.mark(place{}, p, pos)
				data = s.bytes(p)
				removed++
			}
		}
		if p.live > 0 {
			s.advance()
			return removed
		}
		s.removePiece(0, 0)
	}
	return removed
}

// trims reports whether the trim removes the entry at the head.
func (s *Stream) trims(t *Trim, data []byte) bool {
	if !t.ByID {
		return uint64(s.length) > t.Len
	}
	c := s.head
	c.next(data)
	return c.prev.Less(t.MinID)
}
