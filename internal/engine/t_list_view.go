package engine

import (
	"github.com/ebbdb/ebb/internal/chunklist"
	"github.com/ebbdb/ebb/internal/packed"
)

// ListView reads the living elements of a list at the transaction's instant. It is valid until the
// next write. Elements that it returns are valid until the next call of one of its methods, or the
// next write.
type ListView struct {
	tx    *Tx
	now   int64
	small packed.Packed
	large *chunklist.List // small and large are both nil if there is no list
}

// List looks a list up for reading. A missing list has no elements. Errors: ErrWrongType.
func (tx *Tx) List(key []byte) (ListView, error) {
	h, err := tx.open(key, List)
	if err != nil {
		return ListView{}, err
	}
	return tx.viewList(&h), nil
}

// ListBytes estimates the bytes of a list, and so the cost of a walk over it; 0 if there is none.
// It does not count as an access. O(1).
func (tx *Tx) ListBytes(key []byte) int {
	h, err := tx.container(key, List)
	if err != nil || h.r == nil {
		return 0
	}
	v := tx.viewList(&h)
	return v.Bytes()
}

func (tx *Tx) viewList(h *hit) ListView {
	v := ListView{tx: tx, now: tx.itemTime()}
	if h.r == nil {
		return v
	}
	if b := h.box(); b != nil {
		v.large = b.(listBox).List
	} else {
		v.small = h.image()
	}
	return v
}

// Exists reports whether there is a list.
func (v *ListView) Exists() bool { return v.small != nil || v.large != nil }

// Bytes returns the approximate memory of the list.
func (v *ListView) Bytes() int {
	if v.large != nil {
		return v.large.Bytes()
	}
	return len(v.small)
}

// Len returns the number of elements. O(1) if none is dead.
func (v *ListView) Len() int {
	switch {
	case v.large != nil:
		return v.large.Len(v.now)
	case v.small != nil:
		return v.small.Len(v.now)
	}
	return 0
}

// Index returns the element at a position, negative from the tail; ok is false
// if there is none. O(sqrt n).
func (v *ListView) Index(index int64) (elem []byte, ok bool) {
	i, ok := position(index)
	if !ok || !v.Exists() {
		return nil, false
	}
	it, ok := v.seek(i)
	if !ok || !it.next() {
		return nil, false
	}
	return v.tx.text(2, it.value()), true
}

// Span converts start and stop, negative from the tail, to the range of positions from..to; to <
// from if the range is empty.
func (v *ListView) Span(start, stop int64) (from, to int) { return span(start, stop, v.Len()) }

// Range visits the elements at the positions from..to that Span has returned.
// O(sqrt n) and O(1) for each.
func (v *ListView) Range(from, to int, visit func(elem []byte)) {
	if to < from {
		return
	}
	it, ok := v.seek(from)
	if !ok {
		return
	}
	if it.large { // a separate loop for the usual case
		for n := to - from; n >= 0 && it.c.Next(); n-- {
			visit(v.tx.text(2, it.c.Value()))
		}
		return
	}
	for n := to - from; n >= 0 && it.p.Next(); n-- {
		visit(v.tx.text(2, it.p.Key()))
	}
}

// Positions visits the positions of elements that equal elem, from the rank-th match on; negative ranks count
// from the tail. It visits at most count matches, or all if count is 0. It compares at most limit elements,
// or all if limit is 0. O(n).
func (v *ListView) Positions(elem []byte, rank, count, limit int64, visit func(pos int)) {
	if !v.Exists() {
		return
	}
	if rank == 1 && count == 1 && limit == 0 { // a faster walk for the usual case
		if pos, ok := v.first(elem); ok {
			visit(pos)
		}
		return
	}
	end, pos, step := Head, 0, 1
	skip := rank - 1
	if rank < 0 {
		end, pos, step = Tail, v.Len()-1, -1
		skip = -(rank + 1)
	}
	c, found := packed.Encode(elem), int64(0)
	it := v.from(end)
	for seen := int64(0); (limit == 0 || seen < limit) && it.step(end); seen++ {
		if it.equal(elem, &c) {
			if skip--; skip < 0 {
				visit(pos)
				if found++; found == count {
					return
				}
			}
		}
		pos += step
	}
}

// first returns the position of the first element that equals elem.
func (v *ListView) first(elem []byte) (pos int, ok bool) {
	if v.large != nil {
		return v.large.Find(elem, v.now)
	}
	pos, _, ok = v.small.Rank(elem, v.now)
	return pos, ok
}

// listIter walks a small or a large list.
type listIter struct {
	large bool
	p     packed.Iter
	c     chunklist.Iter
}

// from returns an iterator before the first element at an end. The caller advances it with step.
func (v *ListView) from(end End) (it listIter) {
	switch {
	case v.large != nil && end == Head:
		it.large, it.c = true, v.large.Iter(v.now)
	case v.large != nil:
		it.large, it.c = true, v.large.IterBack(v.now)
	case end == Head:
		it.p = v.small.Iter(v.now)
	default:
		it.p = v.small.IterBack(v.now)
	}
	return it
}

// seek returns an iterator whose next call of Next returns the element at position i; ok is false
// if there is none.
func (v *ListView) seek(i int) (it listIter, ok bool) {
	if v.large != nil {
		it.large = true
		it.c, ok = v.large.Seek(i, v.now)
	} else {
		it.p, ok = v.small.Seek(i, v.now)
	}
	return it, ok
}

func (it *listIter) next() bool {
	if it.large {
		return it.c.Next()
	}
	return it.p.Next()
}

// step moves one element away from the end from, and reports whether there is one.
func (it *listIter) step(from End) bool {
	switch {
	case from == Head:
		return it.next()
	case it.large:
		return it.c.Prev()
	}
	return it.p.Prev()
}

func (it *listIter) value() packed.Str {
	if it.large {
		return it.c.Value()
	}
	return it.p.Key()
}

func (it *listIter) deadline() int64 {
	if it.large {
		return it.c.Deadline()
	}
	return it.p.Deadline()
}

func (it *listIter) equal(elem []byte, c *packed.Cell) bool {
	if it.large {
		return it.c.Equal(elem, c)
	}
	return it.p.Equal(c)
}
