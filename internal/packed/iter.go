package packed

// Iter walks the living items of a container in both directions. It stands between two items; Next
// passes the one after, Prev the one before, so Prev directly after Next returns the same item
// again. It holds no resources and is invalid once the container has changed. All reads of items go
// through it.
type Iter struct {
	run  Run
	now  int64
	off  int   // the separator it stands on
	prev uint8 // the tag of the cell before it
	pair bool
	cur  At
}

// Iter returns an iterator over a run of one-cell items, before the first.
func (r Run) Iter(now int64) Iter { return Iter{run: r, now: now} }

// IterBack returns an iterator over a run of one-cell items, after the last.
func (r Run) IterBack(now int64) Iter {
	it := Iter{run: r, now: now}
	it.end()
	return it
}

func (it *Iter) end() {
	it.off = len(it.run) - 1
	it.prev = it.run[it.off]
}

// Next passes the next living item and reports whether there was one. It costs
// O(1) plus the dead it skips.
func (it *Iter) Next() bool {
	r, off, prev := it.run, it.off, it.prev
	for off < len(r)-1 {
		tag := r[off] ^ prev
		start, end := off, off+1+int(tag)
		if tag > maxShort {
			end = off + 1 + r.size(off, tag)
		}
		off, prev = end, tag
		val, vtag := 0, uint8(0)
		if it.pair {
			val, vtag = end, r[end]^tag
			off = end + 1 + r.size(end, vtag)
			prev = vtag
		}
		if tag&tagTimed != 0 && it.now > getDeadline(r[start+1:]) {
			continue
		}
		cur := &it.cur
		cur.off, cur.val, cur.end, cur.tag, cur.vtag = start, val, off, tag, vtag
		it.off, it.prev = off, prev
		return true
	}
	it.off, it.prev = off, prev
	return false
}

// Prev passes the living item before the iterator and reports whether there
// was one. It costs O(1) plus the dead it skips.
func (it *Iter) Prev() bool {
	r := it.run
	for it.off > 0 {
		at := At{end: it.off, tag: it.prev}
		at.off = at.end - 1 - r.sizeBack(at.end, at.tag)
		if it.pair {
			at.val, at.vtag = at.off, at.tag
			at.tag ^= r[at.val]
			at.off = at.val - 1 - r.sizeBack(at.val, at.tag)
		}
		it.off = at.off
		it.prev = r[at.off] ^ at.tag
		if at.tag&tagTimed != 0 && it.now > getDeadline(r[at.off+1:]) {
			continue
		}
		it.cur = at
		return true
	}
	return false
}

// At returns the position of the item passed last.
func (it *Iter) At() At { return it.cur }

// Key returns the field, member or element passed last. It aliases the
// container.
func (it *Iter) Key() Str {
	if at := &it.cur; at.tag <= maxShort {
		end := at.off + 1 + int(at.tag)
		return Str{B: it.run[at.off+1 : end : end]}
	}
	return it.run.Key(it.cur)
}

// Value returns the hash value of the item passed last. It aliases the
// container.
func (it *Iter) Value() Str {
	if at := &it.cur; at.vtag <= maxShort {
		return Str{B: it.run[at.val+1 : at.end : at.end]}
	}
	return it.run.Value(it.cur)
}

// Score returns the score of the item passed last.
func (it *Iter) Score() float64 {
	at := &it.cur
	if at.vtag >= codeImm {
		return float64(at.vtag - codeImm)
	}
	return loadScore(it.run[at.val+1:at.end], at.vtag)
}

// Deadline returns the deadline of the item passed last, or 0.
func (it *Iter) Deadline() int64 {
	if it.cur.tag&tagTimed == 0 {
		return 0
	}
	return it.run.Deadline(it.cur)
}

// Equal reports whether the key of the item passed last is c. It is cheaper
// than comparing Key.
func (it *Iter) Equal(c *Cell) bool { return it.cur.tag&^tagTimed == c.code && it.run.equal(it.cur, c) }

// Off returns the offset of the separator the iterator stands on.
func (it *Iter) Off() int { return it.off }

// Beside returns an iterator before or after the one-cell item at. The iterator also shows dead
// items.
func (r Run) Beside(at At, after bool) Iter {
	if after {
		return Iter{run: r, off: at.end, prev: at.last()}
	}
	return Iter{run: r, off: at.off, prev: r[at.off] ^ at.tag}
}
