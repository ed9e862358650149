package packed

// Change is one replacement in a run: at most one new item replaces the items between two
// separators. Every write consists of Changes.
type Change struct {
	off, end   int   // the separators around the replaced items
	prev, next uint8 // the tags of the cells around them
	n          int   // cells of the new item: 0, 1 or 2
	cells      [2]Cell
	deadline   int64
	stamp      int // not 0: change only the deadline of the cell that ends here and has the tag next
}

// Insert returns the change that inserts c before the item the iterator's Next
// would meet (dead or alive).
func (it *Iter) Insert(c Cell, deadline int64) (ch Change) {
	ch.between(it.off, it.prev, it.run[it.off]^it.prev)
	ch.set(&c, deadline)
	return ch
}

// Replace returns the change that puts c in the place of the one-cell item at.
func (r Run) Replace(at At, c Cell, deadline int64) (ch Change) {
	ch.cover(r, at, at)
	ch.set(&c, deadline)
	return ch
}

// Remove returns the change that removes the item at.
func (r Run) Remove(at At) (ch Change) {
	ch.cover(r, at, at)
	return ch
}

// Stamp returns the change that sets the deadline of the item at; 0 removes it. The item's strings
// do not change.
func (r Run) Stamp(at At, deadline int64) (ch Change) {
	ch.stampAt(r, at, deadline)
	return ch
}

// between makes the change insert at the separator off, between cells with the
// tags prev and next.
func (ch *Change) between(off int, prev, next uint8) {
	ch.off, ch.end, ch.prev, ch.next = off, off, prev, next
}

// cover makes the change replace the items from first to last.
func (ch *Change) cover(r Run, first, last At) {
	ch.off, ch.prev = first.off, r[first.off]^first.tag
	ch.end, ch.next = last.end, r[last.end]^last.last()
}

func (ch *Change) stampAt(r Run, at At, deadline int64) {
	ch.between(at.off, r[at.off]^at.tag, at.tag)
	ch.deadline, ch.stamp = deadline, at.end
	if at.val != 0 {
		ch.stamp = at.val
	}
	if at.Timed() {
		ch.end += deadlineSize
	}
}

// Put makes the change insert an item of one cell, which is not yet placed.
func (ch *Change) Put(elem []byte, deadline int64) {
	ch.cells[0].Set(elem)
	ch.n, ch.deadline = 1, deadline
}

// PlaceAt places an item of Put at an end of a run: before all items if front is set, else after them.
func (ch *Change) PlaceAt(r Run, front bool) {
	if front {
		ch.between(0, 0, r[0])
		return
	}
	ch.between(len(r)-1, r[len(r)-1], 0)
}

func (ch *Change) set(c *Cell, deadline int64) {
	ch.cells[0], ch.n, ch.deadline = *c, 1, deadline
}

func (ch *Change) setPair(k, v *Cell, deadline int64) {
	ch.cells[0], ch.cells[1], ch.n, ch.deadline = *k, *v, 2, deadline
}

// span returns the number of bytes from the first to the second separator, both included, after the
// change.
func (ch *Change) span() int {
	n := 1
	if ch.stamp != 0 && ch.deadline != 0 {
		n += deadlineSize
	}
	if ch.n > 0 {
		n += ch.cells[0].Size(ch.deadline)
	}
	if ch.n > 1 {
		n += ch.cells[1].Size(0)
	}
	return n
}

// Grow returns the bytes by which the run grows; negative if it shrinks.
func (ch *Change) Grow() int { return ch.span() - (ch.end - ch.off + 1) }

// Apply writes the changed run to dst, which has its exact length. dst is other memory than src, or
// overlaps it; then right says whether dst begins at or after the start of src. The new item's
// bytes must lie outside of both.
func (ch *Change) Apply(dst, src Run, right bool) {
	tail := dst[ch.off+ch.span():]
	if right {
		move(tail, src[ch.end+1:])
		move(dst, src[:ch.off])
	} else {
		move(dst, src[:ch.off])
		move(tail, src[ch.end+1:])
	}
	if ch.stamp != 0 {
		ch.putStamp(dst)
		return
	}
	ch.put(dst[ch.off:])
}

func (ch *Change) putStamp(dst Run) {
	tag := ch.next &^ tagTimed
	if ch.deadline != 0 {
		tag |= tagTimed
		putDeadline(dst[ch.off+1:], ch.deadline)
	}
	dst[ch.off] = ch.prev ^ tag
	dst[ch.stamp+ch.Grow()] ^= tag ^ ch.next
}

func (ch *Change) put(b []byte) {
	tag, off := ch.prev, 0
	for i := range ch.cells[:ch.n] {
		c, deadline := &ch.cells[i], ch.deadline
		if i > 0 {
			deadline = 0
		}
		b[off] = tag ^ c.tag(deadline)
		tag = c.tag(deadline)
		off += 1 + c.put(b[off+1:], deadline)
	}
	b[off] = tag ^ ch.next
}

// move is copy, but free when the bytes are in place already.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}

// Off returns the offset of the separator where the change begins.
func (ch *Change) Off() int { return ch.off }
