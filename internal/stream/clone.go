package stream

import "slices"

// Clone returns a copy on its own chunks. Errors: ErrNoMemory. O(bytes + pending
// entries log n).
func (s *Stream) Clone() (*Stream, error) {
	c := *s
	c.groups, c.segs, c.bigs, c.cons, c.loan = nil, nil, nil, nil, nil
	c.segBytes, c.bigBytes, c.conBytes = 0, 0, 0
	c.noBigs = slices.Clone(s.noBigs)
	c.node.names, c.former.names = slices.Clone(s.node.names), slices.Clone(s.former.names)
	for i := range s.groups {
		c.groups = append(c.groups, dirGroup{ents: slices.Clone(s.groups[i].ents), live: s.groups[i].live})
	}
	for _, b := range s.bigs {
		b = slices.Clone(b)
		c.countBig(cap(b))
		c.bigs = append(c.bigs, b)
	}
	for i := range s.segs {
		sg := s.segs[i]
		if sg.ref != 0 {
			from := s.chunk(&sg)
			sg.lent, sg.outside = false, false
			if sg.ref = s.mem.AllocChunk(int(sg.size)); sg.ref == 0 {
				return nil, c.abandon()
			}
			copy(s.mem.Bytes(sg.ref, int(sg.size)), from)
			c.segBytes += int(sg.size)
		}
		c.segs = append(c.segs, sg)
	}
	for _, g := range s.cons {
		if err := c.cloneGroup(g); err != nil {
			return nil, c.abandon()
		}
	}
	return &c, nil
}

func (s *Stream) abandon() error {
	for s.FreeAll(1<<20) == 1<<20 {
	}
	return ErrNoMemory
}

func (s *Stream) cloneGroup(g *Group) error {
	n := s.AddGroup([]byte(g.name), g.Last, g.Read)
	for _, c := range g.cons {
		d, err := n.AddConsumer([]byte(c.name), c.Seen)
		if err != nil {
			return err
		}
		d.Active = c.Active
	}
	for it := g.PendingFrom(ID{}); it.Next(); {
		p := it.Pending()
		p.Consumer = n.Consumer([]byte(p.Consumer.name))
		if err := n.Put(p); err != nil {
			return err
		}
	}
	return nil
}
