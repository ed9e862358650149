package engine

import (
	"math"

	"github.com/ebbdb/ebb/internal/chunklist"
	"github.com/ebbdb/ebb/internal/packed"
)

// listBox is a large list.
type listBox struct{ *chunklist.List }

func (tx *Tx) newListBox() listBox {
	return listBox{chunklist.New(tx.db.chunks, chunklist.Config{Size: tx.db.layout.Load().ListSize, MaxChunk: tx.db.chunks.MaxChunk()})}
}

// Size implements box.
func (b listBox) Size() int { return b.Bytes() }

// Wasteful implements box. It is false because the list itself merges sparse blocks.
func (b listBox) Wasteful() bool { return false }

// Compact implements box.
func (b listBox) Compact(int) int { return 0 }

// NextDue implements dated.
func (b listBox) NextDue() int64 { return b.Earliest() }

// Clone implements box. It clones dead items too, as a replay of COPY does.
func (b listBox) Clone(*Tx) (box, error) {
	l, ok := b.List.Clone()
	if !ok {
		return nil, ErrFull
	}
	return listBox{l}, nil
}

func (b listBox) walk(now int64, visit func(Item)) {
	var buf []byte
	for it := b.Iter(now); it.Next(); {
		v := it.Value()
		if v.IsInt() {
			buf = v.Append(buf[:0])
			v.B = buf
		}
		visit(Item{Key: v.B, Deadline: it.Deadline()})
	}
}

// writeList looks up a list for a write, and removes its dead elements.
func (tx *Tx) writeList(key []byte) (hit, error) {
	h, err := tx.container(key, List)
	for err == nil && h.r != nil && !tx.replay && tx.dueIn(&h) && tx.lapse(&h, key, math.MaxInt) {
	}
	return h, err
}

// lapseList removes up to about budget dead elements of a list.
func (tx *Tx) lapseList(h *hit, key []byte, budget int) {
	log := placeLog{tx: tx, key: key}
	dead, left := 0, 0
	fire := func(at int, elem packed.Str, deadline int64) {
		log.add(at)
		tx.lapsed(h.sh, LevelElement, key, tx.text(2, elem), nil, deadline)
	}
	if b := h.box(); b != nil {
		l := b.(listBox)
		dead = l.Reap(tx.ms, budget, fire)
		if left = l.Stored(); left > 0 && dead > 0 {
			tx.settleShort(h, key)
		}
	} else {
		p := h.image()
		for it := p.Iter(0); it.Next(); {
			if d := it.Deadline(); d != 0 && tx.ms > d {
				fire(left, it.Key(), d)
				dead++
			} else {
				left++
			}
		}
		if dead > 0 && left > 0 {
			tx.shrunk(h, p.Reap(tx.ms, nil))
		}
	}
	log.flush()
	tx.lapsedItems(h, key, dead, left, EventList, "lexpired")
}

// push adds elements at an end of a list that writeList has looked up, or creates a list. It returns the
// number of elements that it added.
func (tx *Tx) push(h *hit, key []byte, end End, elems [][]byte, deadline int64) (done int, err error) {
	if h.r == nil || h.box() == nil {
		n := 0
		for _, e := range elems {
			n += len(e)
		}
		if !tx.outgrown(tx.imageOr(h, packed.KindList), n, len(elems)) {
			return tx.pushSmall(h, key, end, elems, deadline)
		}
		if _, err := tx.enlargeList(h, key); err != nil {
			return 0, err
		}
	}
	l := h.box().(listBox).List
	for ; done < len(elems); done++ {
		ok := false
		if end == Head {
			ok = l.PushFront(elems[done], deadline)
		} else {
			ok = l.PushBack(elems[done], deadline)
		}
		if !ok {
			err = ErrFull
			break
		}
	}
	if l.Stored() == 0 {
		tx.drop(h)
	} else {
		tx.wrote(h)
	}
	return done, err
}

// pushOne does the work of push for one element, which may be in tx.ebuf.
func (tx *Tx) pushOne(h *hit, key []byte, end End, elem []byte, deadline int64) error {
	tx.one[0] = elem
	_, err := tx.push(h, key, end, tx.one[:], deadline)
	tx.one[0] = nil
	return err
}

func (tx *Tx) pushSmall(h *hit, key []byte, end End, elems [][]byte, deadline int64) (done int, err error) {
	if end == Tail && deadline == 0 && len(elems) > 1 && tx.appendSmall(h, key, elems) {
		return len(elems), nil
	}
	for ; done < len(elems); done++ {
		p := tx.imageOr(h, packed.KindList)
		var e packed.Edit
		if end == Head {
			e = p.PushFront(elems[done], deadline)
		} else {
			e = p.PushBack(elems[done], deadline)
		}
		if err := tx.applyList(h, key, e); err != nil {
			return done, err
		}
	}
	return done, nil
}

// appendSmall adds elements at the tail of a small or missing list, all at once. It returns false, and changes nothing,
// if memory runs out.
func (tx *Tx) appendSmall(h *hit, key []byte, elems [][]byte) bool {
	p := tx.imageOr(h, packed.KindList)
	n := len(p)
	for _, e := range elems {
		c := packed.Encode(e)
		n += c.Size(0)
	}
	dst, err := tx.room(h, key, List, n)
	if err != nil {
		return false
	}
	p = append(dst[:0:n], p...)
	for _, e := range elems {
		p = p.Append(e)
	}
	return true
}

// applyList applies the plan of a write to a small list.
func (tx *Tx) applyList(h *hit, key []byte, e packed.Edit) error {
	dst, err := tx.room(h, key, List, e.Size())
	if err == nil {
		e.Apply(dst)
	}
	return err
}

// enlargeList makes a small or missing list large; the list may still be empty.
func (tx *Tx) enlargeList(h *hit, key []byte) (*chunklist.List, error) {
	b := tx.newListBox()
	if h.r != nil {
		for it := h.image().Iter(0); it.Next(); {
			if !b.PushBack(tx.text(2, it.Key()), it.Deadline()) {
				discard(b)
				return nil, ErrFull
			}
		}
	}
	if err := tx.enlarge(h, key, List, b); err != nil {
		discard(b)
		return nil, err
	}
	return b.List, nil
}

// cut removes n of a list's length elements at an end; n may be 0. It drops the key of an
// empty list.
func (tx *Tx) cut(h *hit, key []byte, end End, n, length int) {
	switch b := h.box(); {
	case n == 0:
	case n == length:
		tx.drop(h)
	case b != nil:
		l := b.(listBox).List
		switch {
		case n == 1 && end == Head:
			it := l.Iter(tx.itemTime())
			it.Next()
			l.Remove(&it)
		case n == 1:
			it := l.IterBack(tx.itemTime())
			it.Prev()
			l.Remove(&it)
		case end == Head:
			l.Trim(n, length-1, tx.itemTime())
		default:
			l.Trim(0, length-1-n, tx.itemTime())
		}
		tx.settleShort(h, key)
	default:
		p := h.image()
		first, last := 0, n-1
		if end == Tail {
			first, last = length-n, length-1
		}
		from, _ := p.Index(first, tx.itemTime())
		to := from
		if last != first {
			to, _ = p.Index(last, tx.itemTime())
		}
		tx.shrunk(h, p.DeleteRange(from, to))
	}
}

// shortened counts and reports the removal of n elements.
func (tx *Tx) shortened(h *hit, key []byte, n int, event string) {
	tx.dirty += n - 1
	tx.changed(key, EventList, event)
	if h.r == nil {
		tx.gone(key)
	}
}

// settleShort finishes a write that may have made a large list shorter. The list becomes small when Redis 7.2
// would make it a listpack: at half the limit.
func (tx *Tx) settleShort(h *hit, key []byte) {
	if h.r == nil || h.box() == nil {
		return
	}
	l := h.box().(listBox).List
	n, ok := l.OneBlock()
	bytes, count := listLimit(tx.db.layout.Load().ListSize)
	if !ok || l.Stored() > count/2 || n-3*l.Stored() > bytes/2 || tx.listpackBytes(l) > bytes/2 {
		tx.wrote(h)
		return
	}
	p := packed.New(tx.vbuf, packed.KindList)
	for it := l.Iter(0); it.Next(); {
		e := p.PushBack(tx.text(2, it.Value()), it.Deadline())
		if e.Size() > cap(p) {
			p = append(make([]byte, 0, 2*e.Size()), p...)
		}
		p = e.Apply(p[:e.Size()])
	}
	tx.vbuf = p
	if dst, err := tx.room(h, key, List, len(p)); err == nil {
		copy(dst, p)
	}
}

// The functions below are Redis's rules for the size of a listpack in a list.

// listLimit returns the bytes and elements that list-max-listpack-size allows.
func listLimit(size int) (bytes, count int) {
	switch {
	case size > 0:
		return 8192, size
	case size == 0:
		return 8192, 1
	}
	return 4096 << (min(-size, 5) - 1), math.MaxInt
}

// outgrown reports whether a small list is too large for n more elements with
// this many bytes.
func (tx *Tx) outgrown(p packed.Packed, bytes, n int) bool {
	most, count := listLimit(tx.db.layout.Load().ListSize)
	have := p.Count()
	switch {
	case have+n > min(count, packed.MaxItems), len(p)+bytes > maxSmall:
		return true
	case len(p)+4*have+bytes+8 <= most: // a lower bound of the size is within the limit
		return false
	case len(p)-have+bytes-16 > most && p.Timed() == 0:
		return true
	}
	total := listpackHead + bytes
	for it := p.Iter(0); it.Next(); {
		total += packed.ListpackStr(it.Key())
	}
	return total > most
}

// outgrownAt does the work of outgrown for one more element, for a listpack of the given length. O(1).
func (tx *Tx) outgrownAt(p packed.Packed, have, bytes int) bool {
	most, count := listLimit(tx.db.layout.Load().ListSize)
	return p.Count() >= min(count, packed.MaxItems) || len(p)+bytes > maxSmall || have+bytes > most
}

// textOf returns a string in the form in which an image would hold it.
func textOf(s []byte) packed.Str {
	if n, ok := packed.ParseInt(s); ok {
		return packed.Str{N: n}
	}
	return packed.Str{B: s}
}

// listpackBytes returns the length of the listpack that Redis would use for a list.
func (tx *Tx) listpackBytes(l *chunklist.List) int {
	n := listpackHead
	for it := l.Iter(0); it.Next(); {
		n += packed.ListpackStr(it.Value())
	}
	return n
}

// listpackHead is the length of an empty listpack.
const listpackHead = 7
