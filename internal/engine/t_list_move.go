package engine

import (
	"slices"

	"github.com/ebbdb/ebb/internal/packed"
)

// This file moves several elements at once.

// ListMove selects the elements that LMoveMany moves, and their order.
type ListMove struct {
	From, To End  // the end of the source, and the end of the destination
	Count    int  // the greatest number of elements to move, at least 1
	Exactly  bool // move Count elements or none
	OneByOne bool // the order of Count calls of LMove; otherwise the elements keep their order
}

// LMoveMany moves elements with their deadlines from an end of a list to an end of another list, or of the
// same one. It returns the number of moved elements: 0 if there is no source, or if Exactly is set and the
// source has fewer than Count. If there are any, it calls begin with their number and then visit with each,
// from the destination's left to its right. It moves all or, after an error, none. On one list it changes
// nothing if the elements keep their order and their end. O(count); O(count sqrt n) if they are reversed in
// place at one end of a large list. Errors: ErrWrongType, ErrFull.
func (tx *Tx) LMoveMany(from, to []byte, m ListMove, begin func(n int), visit func(elem []byte)) (n int, err error) {
	src, err := tx.writeList(from)
	if err != nil || src.r == nil {
		return 0, err
	}
	v := tx.viewList(&src)
	length := v.Len()
	if n = min(m.Count, length); m.Exactly && n < m.Count {
		return 0, nil
	}
	if n == 1 {
		_, err := tx.LMove(from, to, m.From, m.To, func(elem []byte) { begin(1); visit(elem) })
		return n, err
	}

	same := string(from) == string(to)
	b := tx.block(&v, m, n, length, same)
	switch {
	case !same:
		err = tx.carryMany(&src, from, to, b, m.From, length)
	case !b.still:
		err = tx.rotateMany(&src, from, b, m, length)
	}
	if err != nil {
		return 0, err
	}
	begin(n)
	for i := range n {
		visit(b.elem(i))
	}
	if b.still {
		return n, nil
	}
	tx.emitMoved(from, to, b, m.From, length)
	tx.changed(to, EventList, pushed[m.To])
	tx.dirty--
	tx.shortened(&src, from, n, popped[m.From])
	return n, nil
}

// movedBlock holds copies of the elements that a move pushes at an end of a list, in the order of
// the pushes.
type movedBlock struct {
	elems     [][]byte
	deadlines []int64 // nil if no element has one
	end       End     // the end at which they are pushed
	still     bool    // the move changes nothing
}

// block copies n elements at an end of a list, and selects the end at which they are pushed. If a move within
// one list involves all elements, they may be pushed at the other end, so that the list is never empty in
// between.
func (tx *Tx) block(v *ListView, m ListMove, n, length int, same bool) movedBlock {
	b := movedBlock{end: m.To, still: same && m.From == m.To && !m.OneByOne}
	if same && n == length {
		b.end = Head + Tail - m.From
	}
	tx.z.reset()
	first := 0
	if m.From == Tail {
		first = length - n
	}
	it, _ := v.seek(first)
	for i := range n {
		it.next()
		at := len(tx.z.flat)
		tx.z.flat = it.value().Append(tx.z.flat)
		tx.z.args = append(tx.z.args, tx.z.since(at))
		if d := it.deadline(); d != 0 {
			if b.deadlines == nil {
				b.deadlines = make([]int64, n)
			}
			b.deadlines[i] = d
		}
	}
	b.elems = tx.z.args
	if reversed := m.OneByOne && m.From == m.To; reversed != (b.end == Head) { // both reversals cancel out
		slices.Reverse(b.elems)
		slices.Reverse(b.deadlines)
	}
	return b
}

// elem returns the i-th element from the left, in the order after the pushes.
func (b *movedBlock) elem(i int) []byte {
	if b.end == Head {
		i = len(b.elems) - 1 - i
	}
	return b.elems[i]
}

// deadline returns the deadline of the i-th pushed element, 0 for none.
func (b *movedBlock) deadline(i int) int64 {
	if b.deadlines == nil {
		return 0
	}
	return b.deadlines[i]
}

// addBlock pushes all elements of a block or, if memory runs out, none. A run of elements with one
// deadline is one push.
func (tx *Tx) addBlock(h *hit, key []byte, b movedBlock) error {
	v := tx.viewList(h)
	had := v.Len()
	for done := 0; done < len(b.elems); {
		end := done + 1
		for end < len(b.elems) && b.deadline(end) == b.deadline(done) {
			end++
		}
		n, err := tx.push(h, key, b.end, b.elems[done:end], b.deadline(done))
		if done += n; err != nil {
			if done > 0 {
				tx.cut(h, key, b.end, done, had+done)
			}
			return err
		}
	}
	tx.date(h)
	return nil
}

// carryMany moves a block from an end of a list to another list. It adds before it removes, so that
// nothing has changed if memory runs out.
func (tx *Tx) carryMany(src *hit, from, to []byte, b movedBlock, out End, length int) error {
	dst, err := tx.writeList(to)
	if err == nil {
		err = tx.addBlock(&dst, to, b)
	}
	if err != nil {
		return err
	}
	*src = tx.find(from) // the push may have moved the position of the source
	tx.cut(src, from, out, len(b.elems), length)
	return nil
}

// rotateMany moves a block within a list.
func (tx *Tx) rotateMany(h *hit, key []byte, b movedBlock, m ListMove, length int) error {
	n := len(b.elems)
	if h.box() == nil {
		return tx.rearrange(h, key, b, m.From, length)
	}
	if err := tx.addBlock(h, key, b); err != nil {
		return err
	}
	if b.end != m.From {
		tx.cut(h, key, m.From, n, length+n)
	} else {
		places := make([]int, n)
		for i := range places {
			places[i] = n + i
			if b.end == Tail {
				places[i] = length - n + i
			}
		}
		tx.removePlaces(h, key, places)
	}
	tx.date(h)
	return nil
}

// rearrange is rotateMany for a small list. It writes the image again, which has the same length.
func (tx *Tx) rearrange(h *hit, key []byte, b movedBlock, out End, length int) error {
	n, from := len(b.elems), 0
	if out == Head {
		from = n
	}
	v := tx.viewList(h)
	p := packed.New(tx.vbuf, packed.KindList)
	add := func(elem []byte, deadline int64) {
		e := p.PushBack(elem, deadline)
		if e.Size() > cap(p) {
			p = append(make([]byte, 0, 2*e.Size()), p...)
		}
		p = e.Apply(p[:e.Size()])
	}
	rest := func() {
		if n == length {
			return
		}
		it, _ := v.seek(from)
		for range length - n {
			it.next()
			add(tx.text(2, it.value()), it.deadline())
		}
	}
	if b.end == Tail {
		rest()
		for i, e := range b.elems {
			add(e, b.deadline(i))
		}
	} else {
		for i := n - 1; i >= 0; i-- {
			add(b.elems[i], b.deadline(i))
		}
		rest()
	}
	tx.vbuf = p
	dst, err := tx.room(h, key, List, len(p))
	if err == nil {
		copy(dst, p)
		tx.date(h)
	}
	return err
}

// emitMoved logs a move with commands that every server knows: a pop and a push. On one list the push comes
// first if the list would be empty in between. The elements' deadlines follow.
func (tx *Tx) emitMoved(from, to []byte, b movedBlock, out End, length int) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	pop := func() { tx.emit(popCommand[out], from, tx.itoa(0, int64(len(b.elems)))) }
	late := string(from) == string(to) && b.end != out
	if !late {
		pop()
	}
	tx.emitItems(pushCommand[b.end], to, b.elems)
	tx.emitDeadlines(to, b)
	if late {
		pop()
	}
}

// emitDeadlines logs the deadlines of a block that was pushed, with one command for each different deadline.
// It reuses the scratch memory of the elements.
func (tx *Tx) emitDeadlines(key []byte, b movedBlock) {
	if b.deadlines == nil {
		return
	}
	byDeadline(len(b.deadlines), b.deadline, func(deadline int64, of []int) {
		if deadline == 0 {
			return
		}
		for k, i := range of {
			of[k] = len(b.deadlines) - 1 - i // from the end at which it was pushed
			if b.end == Tail {
				of[k] = i - len(b.deadlines)
			}
		}
		tx.emitPlaces("LPEXPIREAT", key, deadline, of)
	})
}
