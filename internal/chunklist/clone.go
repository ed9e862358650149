package chunklist

// Clone returns a copy of all stored elements, including dead ones, on chunks of its own. If there
// is no memory, ok is false, and Clone has freed the copy. O(bytes).
func (l *List) Clone() (c *List, ok bool) {
	c = &List{mem: l.mem, limit: l.limit, items: l.items, maxChunk: l.maxChunk, totals: totals{earliest: none}}
	for g := range l.groups {
		for e := range l.groups[g].ents {
			if !c.appendCopy(l, l.at(g, e)) {
				for !c.Free(1 << 16) {
				}
				return nil, false
			}
		}
	}
	return c, true
}

// appendCopy adds a copy of a block of from at the tail.
func (l *List) appendCopy(from *List, ent *entry) bool {
	n := *ent
	n.lent, n.outside = false, false
	if ent.big() {
		b := append([]byte{}, from.bigs[ent.ref]...)
		l.bigBytes += cap(b)
		n.ref = uint32(len(l.bigs))
		l.bigs = append(l.bigs, b)
	} else {
		if n.ref = l.mem.AllocChunk(ent.size()); n.ref == 0 {
			return false
		}
		copy(l.buf(&n)[ent.off:], from.run(ent))
		l.chunkBytes += ent.size()
	}
	g := max(len(l.groups)-1, 0)
	e := 0
	if len(l.groups) > 0 {
		e = len(l.groups[g].ents)
	}
	l.insertEntry(g, e, n)
	return true
}
