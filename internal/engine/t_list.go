package engine

import (
	"math"

	"github.com/ebbdb/ebb/internal/chunklist"
	"github.com/ebbdb/ebb/internal/packed"
)

// A list has the small form, a packed image, up to Layout.ListSize, and is large, as chunks, beyond
// it. Unlike other containers it becomes small again when it has shrunk to half of ListSize. Each
// element can have a deadline: LSet clears it, LMove keeps it. A write first removes the dead
// elements. So the positions that it logs mean the same in a replay, which sees all stored
// elements.

// End is a side of a list.
type End uint8

// These are the ends.
const (
	Head End = iota // left
	Tail            // right
)

// pushed and popped have the events of each end.
var (
	pushed = [...]string{Head: "lpush", Tail: "rpush"}
	popped = [...]string{Head: "lpop", Tail: "rpop"}
)

// The effects of each end.
var (
	pushCommand = [...]string{Head: "LPUSH", Tail: "RPUSH"}
	popCommand  = [...]string{Head: "LPOP", Tail: "RPOP"}
	endNames    = [...][]byte{Head: []byte("LEFT"), Tail: []byte("RIGHT")}
)

// LPush adds elements, one after the other, at an end of a list and returns the list's length. With
// onlyThere, it does not create a missing key, and returns 0. Expected O(1) for each element; it allocates
// nothing. Errors: ErrWrongType; ErrFull, after LPush has added the elements before the one that did not fit.
func (tx *Tx) LPush(key []byte, end End, elems [][]byte, onlyThere bool) (n int, err error) {
	h, err := tx.writeList(key)
	if err != nil || h.r == nil && onlyThere {
		return 0, err
	}
	done, err := tx.push(&h, key, end, elems, 0)
	if done > 0 {
		tx.emitItems(pushCommand[end], key, elems[:done])
		tx.dirty += done - 1
		tx.changed(key, EventList, pushed[end])
	}
	if err != nil {
		return 0, err
	}
	v := tx.viewList(&h)
	return v.Len(), nil
}

// LPop removes up to count elements from an end, the outermost first. Before it removes them, it
// calls begin with their number, and then visit with each. It reports whether there is such a list.
// O(count). Errors: ErrWrongType.
func (tx *Tx) LPop(key []byte, end End, count int, begin func(n int), visit func(elem []byte)) (found bool, err error) {
	h, err := tx.writeList(key)
	if err != nil || h.r == nil {
		return false, err
	}
	v := tx.viewList(&h)
	length := v.Len()
	n := min(count, length)
	begin(n)
	if n == 0 {
		return true, nil
	}
	it := v.from(end)
	for range n {
		it.step(end)
		visit(tx.text(2, it.value()))
	}
	if n == 1 && length > 1 && it.large {
		v.large.Remove(&it.c)
		tx.settleShort(&h, key)
	} else {
		tx.cut(&h, key, end, n, length)
	}
	if tx.db.logging.Load() {
		if n == 1 {
			tx.emit(popCommand[end], key)
		} else {
			tx.emit(popCommand[end], key, tx.itoa(0, int64(n)))
		}
	}
	tx.shortened(&h, key, n, popped[end])
	return true, nil
}

// LMove moves an element from an end of a list to an end of another one, or of the same, with its
// deadline, and calls visit with it. It reports whether there was an element. O(1). Errors:
// ErrWrongType, ErrFull.
func (tx *Tx) LMove(from, to []byte, out, in End, visit func(elem []byte)) (found bool, err error) {
	src, err := tx.writeList(from)
	if err != nil || src.r == nil {
		return false, err
	}
	v := tx.viewList(&src)
	length, it := v.Len(), v.from(out)
	it.step(out)
	tx.ebuf = it.value().Append(tx.ebuf[:0])
	if string(from) == string(to) {
		err = tx.rotate(&src, from, out, in, it.deadline(), length)
	} else {
		err = tx.carry(&src, from, to, out, in, it.deadline(), length)
	}
	if err != nil {
		return false, err
	}
	visit(tx.ebuf)
	tx.emit("LMOVE", from, to, endNames[out], endNames[in])
	tx.changed(to, EventList, pushed[in])
	tx.dirty--
	tx.shortened(&src, from, 1, popped[out])
	return true, nil
}

// carry moves the element in ebuf to another list. It adds before it removes, so that nothing has
// changed if memory runs out.
func (tx *Tx) carry(src *hit, from, to []byte, out, in End, deadline int64, length int) error {
	dst, err := tx.writeList(to)
	if err == nil {
		err = tx.pushOne(&dst, to, in, tx.ebuf, deadline)
	}
	if err != nil {
		return err
	}
	tx.date(&dst)
	*src = tx.find(from) // the push may have moved the position of the source
	tx.cut(src, from, out, 1, length)
	return nil
}

// rotate moves the element in ebuf within a list.
func (tx *Tx) rotate(h *hit, key []byte, out, in End, deadline int64, length int) error {
	if length == 1 || out == in {
		return nil
	}
	if h.box() == nil { // cannot fail: the same bytes fit again
		tx.cut(h, key, out, 1, length)
		return tx.pushOne(h, key, in, tx.ebuf, deadline)
	}
	if err := tx.pushOne(h, key, in, tx.ebuf, deadline); err != nil {
		return err
	}
	tx.cut(h, key, out, 1, length+1)
	return nil
}

// LSet replaces the element at a position, negative from the tail, and clears
// its deadline. O(sqrt n). Errors: ErrWrongType, ErrNoKey, ErrIndex, ErrFull.
func (tx *Tx) LSet(key []byte, index int64, elem []byte) error {
	h, err := tx.writeList(key)
	if err != nil {
		return err
	}
	if h.r == nil {
		return ErrNoKey
	}
	if err := tx.enlargeFor(&h, key, elem); err != nil {
		return err
	}
	i, ok := position(index)
	if b := h.box(); b != nil {
		l := b.(listBox).List
		it, found := l.Seek(i, tx.itemTime())
		if !ok || !found || !it.Next() {
			return ErrIndex
		}
		if !l.Replace(&it, elem, 0) {
			return ErrFull
		}
		tx.settleShort(&h, key)
	} else {
		p := h.image()
		at, found := p.Index(i, tx.itemTime())
		if !ok || !found {
			return ErrIndex
		}
		if err := tx.applyList(&h, key, p.Replace(at, elem, 0)); err != nil {
			return err
		}
	}
	tx.emit("LSET", key, tx.itoa(0, index), elem)
	tx.changed(key, EventList, "lset")
	return nil
}

// enlargeFor makes a small list large if one more element would exceed its limit. As in Redis, this
// happens before the command knows whether it adds the element, replaces another one, or does
// neither.
func (tx *Tx) enlargeFor(h *hit, key, elem []byte) error {
	if h.box() != nil || !tx.outgrown(h.image(), len(elem), 1) {
		return nil
	}
	if _, err := tx.enlargeList(h, key); err != nil {
		return err
	}
	tx.wrote(h)
	return nil
}

// LInsert inserts an element before or after the first element that equals pivot. It returns the
// list's length, 0 if there is no such list, or -1 if there is no pivot. O(n). Errors:
// ErrWrongType, ErrFull.
func (tx *Tx) LInsert(key []byte, before bool, pivot, elem []byte) (n int, err error) {
	h, err := tx.writeList(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	if err := tx.enlargeFor(&h, key, elem); err != nil {
		return 0, err
	}
	if b := h.box(); b != nil {
		n, err = tx.insertLarge(&h, b.(listBox).List, before, pivot, elem)
	} else {
		n, err = tx.insertSmall(&h, key, before, pivot, elem)
	}
	if err != nil || n < 0 {
		return n, err
	}
	where := "AFTER"
	if before {
		where = "BEFORE"
	}
	if tx.db.logging.Load() {
		tx.emit("LINSERT", key, []byte(where), pivot, elem)
	}
	tx.changed(key, EventList, "linsert")
	return n, nil
}

func (tx *Tx) insertLarge(h *hit, l *chunklist.List, before bool, pivot, elem []byte) (int, error) {
	c, it := packed.Encode(pivot), l.Iter(tx.itemTime())
	for {
		if !it.Next() {
			return -1, nil
		}
		if it.Equal(pivot, &c) {
			break
		}
	}
	ok := false
	if before {
		ok = l.InsertBefore(&it, elem, 0)
	} else {
		ok = l.InsertAfter(&it, elem, 0)
	}
	if !ok {
		return 0, ErrFull
	}
	tx.wrote(h)
	return l.Len(tx.itemTime()), nil
}

func (tx *Tx) insertSmall(h *hit, key []byte, before bool, pivot, elem []byte) (int, error) {
	p := h.image()
	at, ok := p.Find(pivot, tx.itemTime())
	if !ok {
		return -1, nil
	}
	var e packed.Edit
	if before {
		e = p.InsertBefore(at, elem, 0)
	} else {
		e = p.InsertAfter(at, elem, 0)
	}
	if err := tx.applyList(h, key, e); err != nil {
		return 0, err
	}
	return h.image().Len(tx.itemTime()), nil
}

// LRem removes the first count elements that equal elem, the last -count if count is negative, or
// all if it is 0. It returns the number of removed elements. O(n). Errors: ErrWrongType.
func (tx *Tx) LRem(key []byte, count int64, elem []byte) (n int, err error) {
	h, err := tx.writeList(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	most := int(max(min(count, math.MaxInt32), -math.MaxInt32))
	if b := h.box(); b != nil {
		l := b.(listBox).List
		if n = l.RemoveEqual(elem, most, tx.itemTime()); n > 0 && l.Stored() == 0 {
			tx.drop(&h)
		} else if n > 0 {
			tx.settleShort(&h, key)
		}
	} else {
		var p packed.Packed
		if p, n = removeEqual(h.image(), elem, most, tx.itemTime()); n > 0 && p.Count() == 0 {
			tx.drop(&h)
		} else if n > 0 {
			tx.shrunk(&h, p)
		}
	}
	if n == 0 {
		return 0, nil
	}
	if tx.db.logging.Load() {
		tx.emit("LREM", key, tx.itoa(0, count), elem)
	}
	tx.shortened(&h, key, n, "lrem")
	return n, nil
}

// removeEqual is LRem on a small list, in place.
func removeEqual(p packed.Packed, elem []byte, count int, now int64) (packed.Packed, int) {
	n, most := 0, max(count, -count)
	if count == 0 {
		most = math.MaxInt
	}
	c := packed.Encode(elem)
	for n < most {
		found := false
		var at packed.At
		if count >= 0 {
			at, found = p.Find(elem, now)
		} else {
			for it := p.IterBack(now); !found && it.Prev(); {
				found, at = it.Equal(&c), it.At()
			}
		}
		if !found {
			break
		}
		p = p.Delete(at)
		n++
	}
	return p, n
}

// LTrim removes all elements except those from position start to stop, both included. Negative positions
// count from the tail. O(removed). Errors: ErrWrongType.
func (tx *Tx) LTrim(key []byte, start, stop int64) error {
	h, err := tx.writeList(key)
	if err != nil || h.r == nil {
		return err
	}
	v := tx.viewList(&h)
	length := v.Len()
	from, to := span(start, stop, length)
	kept := max(to-from+1, 0)
	switch {
	case kept == 0:
		tx.drop(&h)
	case kept < length:
		tx.cut(&h, key, Tail, length-1-to, length)
		tx.cut(&h, key, Head, from, to+1)
	}
	if kept < length && tx.db.logging.Load() {
		tx.emit("LTRIM", key, tx.itoa(0, start), tx.itoa(1, stop))
	}
	tx.shortened(&h, key, length-kept, "ltrim")
	return nil
}

// span converts positions, which may be negative, to the range from..to of a list; to < from if the
// range is empty.
func span(start, stop int64, length int) (from, to int) {
	n := int64(length)
	if start < 0 {
		start = max(start+n, 0)
	}
	if stop < 0 {
		stop += n
	}
	stop = min(stop, n-1)
	if start > stop {
		return 0, -1
	}
	return int(start), int(stop)
}

// position returns an index as an int; ok is false if it is outside of every possible list.
func position(index int64) (i int, ok bool) {
	return int(index), index >= math.MinInt32 && index <= math.MaxInt32
}
