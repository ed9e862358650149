package chunklist

import "github.com/ebbdb/ebb/internal/packed"

// Iter walks the living elements in both directions. It stands between two elements; Next passes
// the one after it, Prev the one before, so Prev directly after Next returns the same element
// again. It is invalid once the list has changed. All reads of elements go through it.
type Iter struct {
	l    *List
	now  int64
	g, e int
	in   packed.Iter
	big  *entry // the block, if it is a big element
	past bool   // the iterator stands after the big element
}

// Iter returns an iterator before the first element.
func (l *List) Iter(now int64) Iter {
	it := Iter{l: l, now: now}
	it.load(false)
	return it
}

// IterBack returns an iterator after the last element. The caller walks it with Prev.
func (l *List) IterBack(now int64) Iter {
	it := Iter{l: l, now: now}
	if l.blocks > 0 {
		it.g, it.e = l.end(false)
	}
	it.load(true)
	return it
}

// Seek returns an iterator whose Next returns living element i; a negative i counts from the end,
// and -1 is the last element. It returns false if there is no such element. To walk down from i,
// the caller calls Next once and then Prev, which returns i again. O(sqrt n) plus the due blocks.
func (l *List) Seek(i int, now int64) (Iter, bool) {
	if i < 0 {
		if i += l.Len(now); i < 0 {
			return Iter{}, false
		}
	}
	g, e, k, ok := l.locate(i, now)
	if !ok {
		return Iter{}, false
	}
	it := Iter{l: l, now: now, g: g, e: e}
	ent := l.at(g, e)
	if live := int(ent.count) - l.dead(ent, now); k > live/2 {
		it.load(true)
		for ; k < live; k++ {
			it.in.Prev()
		}
		return it, true
	}
	it.load(false)
	for n := k; n > 0; n-- {
		it.in.Next()
	}
	return it, true
}

// load enters the block at g, e.
func (it *Iter) load(back bool) {
	l := it.l
	it.big, it.past = nil, back
	if l.blocks == 0 {
		it.in = packed.Run(emptyRun).Iter(0)
		return
	}
	ent := l.at(it.g, it.e)
	switch {
	case ent.big():
		it.big = ent
	case back:
		it.in = l.run(ent).IterBack(it.now)
	default:
		it.in = l.run(ent).Iter(it.now)
	}
}

// Next passes the next living element and reports whether there was one. O(1)
// plus the dead it skips.
func (it *Iter) Next() bool {
	for {
		if it.big == nil {
			if it.in.Next() {
				return true
			}
		} else if !it.past {
			it.past = true
			if it.big.earliest >= it.now {
				return true
			}
		}
		switch groups := it.l.groups; {
		case len(groups) == 0:
			return false
		case it.e+1 < len(groups[it.g].ents):
			it.e++
		case it.g+1 < len(groups):
			it.g, it.e = it.g+1, 0
		default:
			return false
		}
		it.load(false)
	}
}

// Prev passes the living element before the iterator and reports whether there
// was one, as Next.
func (it *Iter) Prev() bool {
	for {
		if it.big == nil {
			if it.in.Prev() {
				return true
			}
		} else if it.past {
			it.past = false
			if it.big.earliest >= it.now {
				return true
			}
		}
		switch {
		case it.e > 0:
			it.e--
		case it.g > 0:
			it.g--
			it.e = len(it.l.groups[it.g].ents) - 1
		default:
			return false
		}
		it.load(true)
	}
}

// Value returns the element passed last. It aliases the list's memory.
func (it *Iter) Value() packed.Str {
	if it.big != nil {
		return packed.Str{B: it.l.bigs[it.big.ref]}
	}
	return it.in.Key()
}

// Deadline returns the deadline of the element passed last, or 0.
func (it *Iter) Deadline() int64 {
	if it.big != nil {
		if it.big.timed == 0 {
			return 0
		}
		return it.big.earliest
	}
	return it.in.Deadline()
}

// Equal reports whether the element passed last is elem, given as c too; it is
// cheaper than comparing Value.
func (it *Iter) Equal(elem []byte, c *packed.Cell) bool {
	if it.big != nil {
		return string(it.l.bigs[it.big.ref]) == string(elem)
	}
	return it.in.Equal(c)
}

// index returns how many stored elements of its block are before the one
// passed last. O(block).
func (it *Iter) index() int {
	if it.big != nil {
		return 0
	}
	k, off := 0, it.in.At().Off()
	for in := it.l.run(it.l.at(it.g, it.e)).Iter(0); in.Off() < off; k++ {
		in.Next()
	}
	return k
}

// EachBlock calls block for the elements of each block, dead ones included, and big for each element that is not in a block, in
// the order of the list.
func (l *List) EachBlock(block func(packed.Run), big func(elem []byte)) {
	for g := range l.groups {
		for e := range l.groups[g].ents {
			if ent := l.at(g, e); ent.big() {
				big(l.bigs[ent.ref])
			} else {
				block(l.run(ent))
			}
		}
	}
}
