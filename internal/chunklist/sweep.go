package chunklist

import "github.com/ebbdb/ebb/internal/packed"

// Reap removes dead elements, first to last, calls fire (if not nil) for each, and returns their
// number. It ends after about budget of them; each block that it looks at also counts as one. If
// Earliest() < now then, there is more to do. index is the element's index among the stored ones
// after the removal of those fired before. fire must not use the list or change elem. O(groups +
// blocks + elements of due blocks), O(1) if no element is due.
func (l *List) Reap(now int64, budget int, fire func(index int, elem packed.Str, deadline int64)) int {
	total, index := 0, 0
	for g := 0; g < len(l.groups) && l.earliest < now && budget > 0; {
		if gr := &l.groups[g]; gr.earliest >= now {
			index += gr.count
			g++
			continue
		}
		n, kept, gone := l.reapGroup(g, now, &budget, index, fire)
		total += n
		index += kept
		if !gone {
			l.groups[g].resum()
			g++
		}
	}
	l.resum()
	l.repack()
	return total
}

// reapGroup is Reap for a group. It returns how many elements it removed and kept, and whether it
// removed the group.
func (l *List) reapGroup(g int, now int64, budget *int, index int, fire func(int, packed.Str, int64)) (n, kept int, gone bool) {
	for e := 0; e < len(l.groups[g].ents) && *budget > 0; {
		ent := l.at(g, e)
		if ent.earliest >= now {
			kept += int(ent.count)
			e++
			continue
		}
		*budget--
		here := index + kept
		m := l.filter(g, e, func(v packed.Str, deadline int64) bool {
			if deadline == 0 || now <= deadline || *budget <= 0 {
				here++
				return false
			}
			*budget--
			if fire != nil {
				fire(here, v, deadline)
			}
			return true
		})
		n += m
		ent = l.at(g, e)
		kept += int(ent.count)
		if ent.count == 0 {
			if l.removeEntry(g, e) {
				return n, kept, true
			}
		} else if m == 0 || !l.merge(g, e-1) {
			e++
		}
	}
	return n, kept, false
}

// resum computes the list's bound from its groups.
func (l *List) resum() {
	l.earliest = none
	for g := range l.groups {
		l.earliest = min(l.earliest, l.groups[g].earliest)
	}
}

// filter removes the elements of a block for which drop is true and returns their number. The sums
// are exact afterwards; the block may be empty.
func (l *List) filter(g, e int, drop func(v packed.Str, deadline int64) bool) int {
	ent := l.at(g, e)
	was, n := int(ent.timed), 0
	if ent.big() {
		it := Iter{l: l, big: ent}
		if !drop(it.Value(), it.Deadline()) {
			return 0
		}
		l.account(g, e, -1, -was, 0)
		return 1
	}
	l.own(ent)
	r := l.run(ent)
	left := r.Filter(false, func(at packed.At) bool {
		if !drop(r.Key(at), r.Deadline(at)) {
			return false
		}
		n++
		return true
	})
	ent.end = ent.off + uint32(len(left))
	if was > 0 {
		timed, earliest := left.Timed(false)
		l.account(g, e, -n, timed-was, 0)
		if ent.earliest = none; timed > 0 {
			ent.earliest = earliest
		}
	} else {
		l.account(g, e, -n, 0, 0)
	}
	return n
}

// RemoveEqual removes living elements equal to elem: the first count of them, the last -count if
// count is negative, or all if it is 0. It returns their number. O(n), in one pass per block.
func (l *List) RemoveEqual(elem []byte, count int, now int64) int {
	c := packed.Encode(elem)
	if count == 1 || count == -1 {
		return l.removeOne(elem, &c, count < 0, now)
	}
	back, left, total := count < 0, max(count, -count), 0
	if count == 0 {
		left = l.count
	}
	g, e := 0, 0
	if back && l.blocks > 0 {
		g, e = l.end(false)
	}
	for g >= 0 && g < len(l.groups) && left > 0 {
		n := l.removeIn(g, e, elem, &c, back, left, now)
		left, total = left-n, total+n
		gone := false
		switch {
		case n > 0 && l.at(g, e).count == 0:
			if gone = l.removeEntry(g, e); !gone && !back {
				e--
			}
		case n > 0 && back:
			l.merge(g, e)
		case n > 0 && l.merge(g, e-1):
			e--
		}
		g, e = l.following(g, e, back, gone)
	}
	l.repack()
	return total
}

// removeOne is RemoveEqual for one element, at which it ends.
func (l *List) removeOne(elem []byte, c *packed.Cell, back bool, now int64) int {
	it, step := l.Iter(now), (*Iter).Next
	if back {
		it, step = l.IterBack(now), (*Iter).Prev
	}
	for step(&it) {
		if it.Equal(elem, c) {
			l.Remove(&it)
			return 1
		}
	}
	return 0
}

// Find returns the position of the first living element equal to elem. O(n).
func (l *List) Find(elem []byte, now int64) (pos int, ok bool) {
	c := packed.Encode(elem)
	for g := range l.groups {
		for e := range l.groups[g].ents {
			if ent := l.at(g, e); !ent.big() && l.dead(ent, now) == 0 {
				if i, ok := l.run(ent).Index(&c); ok {
					return pos + i, true
				}
				pos += int(ent.count)
				continue
			}
			in := Iter{l: l, now: now, g: g, e: e}
			for in.load(false); in.nextHere(); pos++ {
				if in.Equal(elem, &c) {
					return pos, true
				}
			}
		}
	}
	return 0, false
}

// following returns the block after e, or the one before it. gone says that e was removed with its
// group.
func (l *List) following(g, e int, back, gone bool) (int, int) {
	switch {
	case back && !gone && e > 0:
		return g, e - 1
	case back && g > 0:
		return g - 1, len(l.groups[g-1].ents) - 1
	case back:
		return -1, 0
	case gone:
		return g, 0
	case e+1 < len(l.groups[g].ents):
		return g, e + 1
	}
	return g + 1, 0
}

// removeIn removes up to left living elements equal to elem from a block.
func (l *List) removeIn(g, e int, elem []byte, c *packed.Cell, back bool, left int, now int64) int {
	found, in := 0, Iter{l: l, now: now, g: g, e: e}
	for in.load(false); in.nextHere(); {
		if in.Equal(elem, c) {
			found++
		}
	}
	if found == 0 {
		return 0
	}
	skip := 0
	if back {
		skip = max(0, found-left)
	}
	return l.filter(g, e, func(v packed.Str, deadline int64) bool {
		if left == 0 || deadline != 0 && now > deadline || v.Compare(elem) != 0 {
			return false
		}
		if skip--; skip >= 0 {
			return false
		}
		left--
		return true
	})
}

// nextHere is Next within the block.
func (it *Iter) nextHere() bool {
	if it.big == nil {
		return it.in.Next()
	}
	was := it.past
	it.past = true
	return !was && it.big.earliest >= it.now
}

// Trim keeps the living elements from index from to index to, and removes all others; 0 <= from,
// and to < from empties the list. It also removes dead elements next to removed ones, without
// calling a function for them, so the caller calls Reap first. O(blocks removed + block).
func (l *List) Trim(from, to int, now int64) {
	n := l.Len(now)
	if from >= n || to < from {
		from, to = n, n-1
	}
	l.cutBack(n-1-min(to, n-1), now)
	l.cutFront(from, now)
	if from == n {
		for l.blocks > 0 {
			l.removeEntry(l.end(false))
		}
	}
	l.repack()
}

// cutFront removes the first n living elements; the list has at least n.
func (l *List) cutFront(n int, now int64) {
	for n > 0 && l.blocks > 0 {
		ent := l.at(0, 0)
		if live := int(ent.count) - l.dead(ent, now); live <= n {
			l.removeEntry(0, 0)
			n -= live
			continue
		}
		l.own(ent)
		r := l.run(ent)
		it := r.Iter(now)
		for ; n >= 0; n-- {
			it.Next()
		}
		at := it.At()
		l.uncount(0, 0, r.Iter(0), at.Off())
		r.CutFront(at)
		ent.off += uint32(at.Off())
		return
	}
}

// cutBack removes the last n living elements.
func (l *List) cutBack(n int, now int64) {
	for n > 0 && l.blocks > 0 {
		g, e := l.end(false)
		ent := l.at(g, e)
		if live := int(ent.count) - l.dead(ent, now); live <= n {
			l.removeEntry(g, e)
			n -= live
			continue
		}
		l.own(ent)
		r := l.run(ent)
		it := r.IterBack(now)
		for ; n > 0; n-- {
			it.Prev()
		}
		at, raw := it.At(), r.Iter(0)
		for raw.Off() < at.Off() {
			raw.Next()
		}
		l.uncount(g, e, raw, len(r)-1)
		ent.end = ent.off + uint32(len(r.CutBack(at)))
		return
	}
}

// uncount subtracts the elements from it to the offset end from the sums.
func (l *List) uncount(g, e int, it packed.Iter, end int) {
	for it.Off() < end && it.Next() {
		l.add(g, e, -1, it.Deadline())
	}
}

// Free frees up to budget blocks, last to first, and reports whether it has freed all. After the
// first call, the list must only be used to call Free again.
func (l *List) Free(budget int) (done bool) {
	if l.frozen != nil {
		return l.frozen.Settle(l.mem, budget) < budget
	}
	for ; budget > 0 && l.blocks > 0; budget-- {
		l.removeEntry(l.end(false))
	}
	return l.blocks == 0
}
