package stream

import "fmt"

// Check verifies the stream's invariants and returns the first one broken. It
// reads every entry and every pending list.
func (s *Stream) Check() error {
	var sum struct{ live, pieces, nodes, segBytes int }
	segLive := map[uint32]uint32{}
	var prev ID
	for g := range s.groups {
		gr := &s.groups[g]
		live := 0
		for e := range gr.ents {
			p := &gr.ents[e]
			if sum.pieces > 0 && !prev.Less(p.first) || sum.pieces == 0 && p.flags&pieceNode == 0 {
				return fmt.Errorf("stream: piece %d/%d begins at %v, after %v", g, e, p.first, prev)
			}
			last, n, err := s.checkPiece(place{g, e})
			if err != nil {
				return err
			}
			prev = last
			live += n
			sum.pieces++
			sum.nodes += int(p.flags & pieceNode)
			if p.flags&pieceBig == 0 {
				segLive[p.seg] += uint32(p.size)
			}
		}
		if len(gr.ents) == 0 || live != gr.live {
			return fmt.Errorf("stream: group %d has %d pieces and %d entries, %d counted", g, len(gr.ents), live, gr.live)
		}
		sum.live += live
	}
	for i := range s.segs {
		sg := &s.segs[i]
		sum.segBytes += int(sg.size)
		if sg.live != segLive[s.segBase+uint32(i)] || (sg.ref == 0) != (sg.live == 0) {
			return fmt.Errorf("stream: segment %d holds %d bytes, %d counted", i, segLive[s.segBase+uint32(i)], sg.live)
		}
	}
	if sum.live != s.length || sum.pieces != s.pieces || sum.nodes != s.nodes || sum.segBytes != s.segBytes {
		return fmt.Errorf("stream: %+v, counted %d, %d, %d, %d", sum, s.length, s.pieces, s.nodes, s.segBytes)
	}
	if s.Last.Less(prev) {
		return fmt.Errorf("stream: last id %v, but %v is stored", s.Last, prev)
	}
	for _, g := range s.cons {
		if err := g.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkPiece returns the last stored id of a piece and its living entries.
func (s *Stream) checkPiece(at place) (last ID, live int, err error) {
	p := s.at(at)
	data := s.bytes(p)
	var c cursor
	for c.start(p, data); c.n < int(p.stored); {
		if c.n > 0 {
			last = c.prev
		}
		flags, _ := c.next(data)
		if c.pos > len(data) || c.n > 1 && !last.Less(c.prev) || c.n == 1 && c.prev != p.first {
			return last, 0, fmt.Errorf("stream: entry %d of piece %v is wrong", c.n, at)
		}
		if flags&flagDeleted == 0 {
			live++
		} else if at == (place{}) && c.n == s.head.n+1 && s.head.pos != 0 {
			return last, 0, fmt.Errorf("stream: the head is at a deleted entry")
		}
	}
	if c.pos != len(data) || live != int(p.live) || live == 0 {
		return last, 0, fmt.Errorf("stream: piece %v has %d bytes of %d, %d entries, %d counted", at, c.pos, len(data), live, p.live)
	}
	return c.prev, live, nil
}

func (g *Group) check() error {
	l := &g.pel
	if err := l.byID.Check(); err != nil {
		return err
	}
	if err := l.byOwner.Check(); err != nil {
		return err
	}
	n := 0
	for _, c := range g.cons {
		k := 0
		for it := g.PendingOf(c, ID{}); it.Next(); {
			k++
		}
		if k != c.pending || g.number[c.number] != c {
			return fmt.Errorf("stream: consumer %q has %d pending, %d counted", c.name, k, c.pending)
		}
		n += k
	}
	free := 0
	for ref := l.unused; ref != none; ref = uint32(l.cell(ref).id.Seq) {
		free++
	}
	if n != l.byID.Len() || n != l.byOwner.Len() || n+free != l.cells.Len() || free != l.free {
		return fmt.Errorf("stream: %d pending, %d free; trees of %d and %d, %d cells, %d free counted", n, free, l.byID.Len(),
			l.byOwner.Len(), l.cells.Len(), l.free)
	}
	return nil
}
