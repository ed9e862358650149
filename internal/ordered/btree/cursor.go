package btree

// Cursor walks a tree in either direction. It stays valid until the tree
// changes; the zero Cursor is at no entry.
type Cursor struct {
	t   *Tree
	way path
}

// Seek returns a cursor at a rank; a rank outside 0 to Len-1 gives one that is
// not OK. O(log n).
func (t *Tree) Seek(rank int) (c Cursor) {
	if rank < 0 || rank >= t.n {
		return c
	}
	c.t = t
	at := t.root
	for l := t.levels - 1; l > 0; l-- {
		in := t.inner(at)
		i := 0
		for rank >= int(in.count[i]) {
			rank -= int(in.count[i])
			i++
		}
		c.way[l] = step{at, i}
		at = in.child[i]
	}
	c.way[0] = step{at, rank}
	return c
}

// OK reports whether the cursor is at an entry.
func (c *Cursor) OK() bool { return c.t != nil }

// Entry returns the entry the cursor is at. O(1).
func (c *Cursor) Entry() (key uint64, ref uint32) {
	s := c.way[0]
	return c.t.keyAt(s.node, s.i), c.t.refs(s.node)[s.i]
}

// Ref returns the record the cursor is at. O(1), also for bare trees.
func (c *Cursor) Ref() uint32 { return c.t.refs(c.way[0].node)[c.way[0].i] }

// Next moves to the following entry; past the last one the cursor is not OK.
// Amortized O(1).
func (c *Cursor) Next() {
	for l := range c.t.levels {
		s := &c.way[l]
		if s.i++; s.i < int(c.t.head(s.node).n) {
			c.fall(l, false)
			return
		}
	}
	c.t = nil
}

// Prev moves to the preceding entry; past the first one the cursor is not OK.
// Amortized O(1).
func (c *Cursor) Prev() {
	for l := range c.t.levels {
		s := &c.way[l]
		if s.i--; s.i >= 0 {
			c.fall(l, true)
			return
		}
	}
	c.t = nil
}

// fall descends from level l to the first or last entry below.
func (c *Cursor) fall(l int, last bool) {
	for ; l > 0; l-- {
		at := c.t.inner(c.way[l].node).child[c.way[l].i]
		i := 0
		if last {
			i = int(c.t.head(at).n) - 1
		}
		c.way[l-1] = step{at, i}
	}
}

// From returns a cursor at the first entry that is not before p; it is not OK if
// there is none. O(log n).
func (t *Tree) From(p Probe) (c Cursor) {
	if t.n == 0 {
		return c
	}
	c.t = t
	t.descend(&c.way, p)
	c.way[0].i = t.leafPos(c.way[0].node, p) - 1
	c.Next()
	return c
}

// Leaf returns the entries of the leaf that the cursor is in, and its place among
// them: for walks that go over many. Keyed trees only.
func (c *Cursor) Leaf() (keys []uint64, refs []uint32, i int) {
	l := (*keyedLeaf)(c.t.nodes.At(c.way[0].node))
	return l.key[:l.n], l.ref[:l.n], c.way[0].i
}

// NextLeaf moves to the first entry of the following leaf, as Next does past the
// last one of a leaf.
func (c *Cursor) NextLeaf() {
	c.way[0].i = int(c.t.head(c.way[0].node).n) - 1
	c.Next()
}

// PrevLeaf moves to the last entry of the preceding leaf.
func (c *Cursor) PrevLeaf() {
	c.way[0].i = 0
	c.Prev()
}
