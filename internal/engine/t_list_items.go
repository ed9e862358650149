package engine

import "slices"

// This file implements the deadlines of list elements. The commands address elements by position. A command
// resolves all positions before it changes anything, so they refer to the list before the command. It also
// removes the dead elements first, so that the positions mean the same in a replay.
//
// The log expresses the removal of elements with commands that every server knows; see emitRemoved.

// LExpire gives the elements at some positions, negative from the tail, a deadline in ms since 1970, if the
// condition allows it. It calls visit for each with ItemMissing, ItemRefused, ItemDone or ItemOutlived. A
// deadline that is not in the future removes the element. LExpire stores and compares a deadline beyond
// MaxItemDeadline as MaxItemDeadline. It deletes the key if the list becomes empty. O(sqrt n) for each
// position in a large list. Errors: ErrWrongType; ErrFull, after the earlier positions have been visited.
func (tx *Tx) LExpire(key []byte, indexes []int64, deadline int64, c Condition, visit func(code int)) error {
	h, err := tx.writeList(key)
	if err != nil {
		return err
	}
	deadline = itemDeadline(deadline)
	places := tx.places(&h, indexes)
	if tx.itemPast(deadline) {
		tx.expireElementsNow(&h, key, places, deadline, c, visit)
		return nil
	}
	done := places[:0]
	for _, i := range places {
		code := ItemMissing
		if i >= 0 {
			if code, err = tx.expireElement(&h, key, i, deadline, c); err != nil {
				break
			}
		}
		if code == ItemDone {
			done = append(done, i)
		}
		visit(code)
	}
	if len(done) > 0 {
		tx.date(&h)
		tx.emitPlaces("LPEXPIREAT", key, deadline, done)
		tx.dirty += len(done) - 1
		tx.changed(key, EventList, "lexpire")
	}
	return err
}

// expireElement gives the element at a position a deadline.
func (tx *Tx) expireElement(h *hit, key []byte, i int, deadline int64, c Condition) (code int, err error) {
	if !c.allows(tx.elementDeadline(h, i), deadline) {
		return ItemRefused, nil
	}
	return ItemDone, tx.stampElement(h, key, i, deadline)
}

// expireElementsNow removes the elements at some positions, if the condition allows the deadline, which has
// passed.
func (tx *Tx) expireElementsNow(h *hit, key []byte, places []int, deadline int64, c Condition, visit func(code int)) {
	gone := make(map[int]bool, len(places))
	for _, i := range places {
		switch {
		case i < 0 || gone[i]:
			visit(ItemMissing)
		case !c.allows(tx.elementDeadline(h, i), deadline):
			visit(ItemRefused)
		default:
			gone[i] = true
			visit(ItemOutlived)
		}
	}
	done := slices.DeleteFunc(places, func(i int) bool { return i < 0 || !gone[i] })
	if len(done) == 0 {
		return
	}
	slices.Sort(done)
	done = slices.Compact(done)
	tx.emitRemoved(key, done)
	tx.removePlaces(h, key, done)
	tx.shortened(h, key, len(done), "lrem")
}

// removePlaces removes the elements at some positions, which are in ascending order. It drops the
// key of an empty list.
func (tx *Tx) removePlaces(h *hit, key []byte, places []int) {
	v := tx.viewList(h)
	if len(places) == v.Len() {
		tx.drop(h)
		return
	}
	if v.large != nil {
		for _, i := range slices.Backward(places) {
			it, _ := v.large.Seek(i, v.now)
			it.Next()
			v.large.Remove(&it)
		}
		tx.settleShort(h, key)
		return
	}
	p := v.small
	for _, i := range slices.Backward(places) {
		at, _ := p.Index(i, v.now)
		p = p.Delete(at)
	}
	tx.shrunk(h, p)
}

// LDeadlines calls visit for each of some positions, negative from the tail, with its element's
// deadline in ms since 1970, NoDeadline, or NoKey if there is no such element. It counts as an
// access. O(sqrt n) for each position in a large list. Errors: ErrWrongType.
func (tx *Tx) LDeadlines(key []byte, indexes []int64, visit func(deadline int64)) error {
	v, err := tx.List(key)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		visit(v.Deadline(index))
	}
	return nil
}

// Deadline returns the deadline of the element at a position, negative from the
// tail, in ms since 1970, NoDeadline, or NoKey if there is no such element.
// O(sqrt n).
func (v *ListView) Deadline(index int64) int64 {
	i, ok := position(index)
	if !ok || !v.Exists() {
		return NoKey
	}
	it, ok := v.seek(i)
	if !ok || !it.next() {
		return NoKey
	}
	return deadlineOf(it.deadline(), true)
}

// LPersist removes the deadlines of the elements at some positions and calls visit for each with ItemMissing,
// ItemUntimed or ItemDone. Errors: ErrWrongType; ErrFull, after the earlier positions have been visited.
func (tx *Tx) LPersist(key []byte, indexes []int64, visit func(code int)) error {
	h, err := tx.writeList(key)
	if err != nil {
		return err
	}
	places := tx.places(&h, indexes)
	done := places[:0]
	for _, i := range places {
		code := ItemMissing
		if i >= 0 {
			if code, err = tx.persistElement(&h, key, i); err != nil {
				break
			}
		}
		if code == ItemDone {
			done = append(done, i)
		}
		visit(code)
	}
	if len(done) > 0 {
		tx.emitPlaces("LPERSIST", key, -1, done)
		tx.dirty += len(done) - 1
		tx.changed(key, EventList, "lpersist")
	}
	return err
}

// persistElement removes the deadline of the element at a position.
func (tx *Tx) persistElement(h *hit, key []byte, i int) (code int, err error) {
	if tx.elementDeadline(h, i) == 0 {
		return ItemUntimed, nil
	}
	return ItemDone, tx.stampElement(h, key, i, 0)
}

// LPushEx does the work of LPush for elements with a deadline, in ms since 1970; 0 for none. With a deadline that
// is not in the future, it pushes nothing. limit is the greatest number of living elements after the
// push, 0 for any number. Errors: the errors of LPush; BoundError, and nothing was pushed.
func (tx *Tx) LPushEx(key []byte, end End, elems [][]byte, deadline int64, limit int) (n int, err error) {
	h, err := tx.writeList(key)
	if err != nil {
		return 0, err
	}
	v := tx.viewList(&h)
	n = v.Len()
	if deadline != 0 {
		if deadline = itemDeadline(deadline); tx.itemPast(deadline) {
			return n, nil
		}
	}
	if limit > 0 && n+len(elems) > limit {
		return 0, &BoundError{key, n, len(elems), limit}
	}
	done, err := tx.push(&h, key, end, elems, deadline)
	if done > 0 {
		tx.date(&h)
		tx.emitPushEx(key, end, elems[:done], deadline)
		tx.dirty += done - 1
		tx.changed(key, EventList, pushed[end])
		if deadline != 0 {
			tx.changedTime(key, EventList, "lexpire")
		}
	}
	if err != nil {
		return 0, err
	}
	return n + done, nil
}

// emitPushEx logs a push, and then the deadline of the elements.
func (tx *Tx) emitPushEx(key []byte, end End, elems [][]byte, deadline int64) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	tx.emitItems(pushCommand[end], key, elems)
	if deadline == 0 {
		return
	}
	places := make([]int, len(elems))
	for i := range places {
		if places[i] = i; end == Tail {
			places[i] = -1 - i
		}
	}
	tx.emitPlaces("LPEXPIREAT", key, deadline, places)
}

// places converts positions, negative from the tail, to positions from the head of the current list; -1 if
// there is no element.
func (tx *Tx) places(h *hit, indexes []int64) []int {
	v := tx.viewList(h)
	n := int64(v.Len())
	out := make([]int, len(indexes))
	for k, i := range indexes {
		if i < 0 {
			i += n
		}
		if out[k] = -1; i >= 0 && i < n {
			out[k] = int(i)
		}
	}
	return out
}

// elementDeadline returns the deadline of the element at a valid position, 0 for none.
func (tx *Tx) elementDeadline(h *hit, i int) int64 {
	v := tx.viewList(h)
	it, _ := v.seek(i)
	it.next()
	return it.deadline()
}

// stampElement sets the deadline of the element at a valid position; 0 for none.
func (tx *Tx) stampElement(h *hit, key []byte, i int, deadline int64) error {
	v := tx.viewList(h)
	it, _ := v.seek(i)
	it.next()
	if !it.large {
		return tx.stampItem(h, key, List, v.small.SetDeadline(it.p.At(), deadline))
	}
	if !v.large.SetDeadline(&it.c, deadline) {
		return ErrFull
	}
	tx.wrote(h)
	return nil
}

// emitPlaces logs a deadline of the elements at some positions; if it is negative, a command without a
// deadline.
func (tx *Tx) emitPlaces(name string, key []byte, deadline int64, places []int) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	tx.z.reset()
	for _, i := range places {
		tx.z.integer(int64(i))
	}
	if deadline < 0 {
		tx.emitCounted(name, key, "INDEXES", tx.z.args)
	} else {
		tx.emitTimed(name, key, deadline, "INDEXES", tx.z.args)
	}
}

// placeLog logs the removal of elements of a list, lowest position first.
type placeLog struct {
	tx     *Tx
	key    []byte
	places []int
}

// add notes the removal of an element. index is its position after the removal of those added
// before it.
func (l *placeLog) add(index int) {
	if !l.tx.db.logging.Load() || l.tx.replay {
		return
	}
	if l.places = append(l.places, index+len(l.places)); len(l.places) == effectItems {
		l.flush()
	}
}

// flush logs the removals that were added.
func (l *placeLog) flush() {
	if len(l.places) > 0 {
		l.tx.emitRemoved(l.key, l.places)
	}
	l.places = l.places[:0]
}

// emitRemoved logs the removal of the elements at some positions, lowest first, with commands that
// every server knows. If the elements are the beginning of the list, the command is LPOP. Otherwise
// LSET sets them to a value that no other element has, and LREM removes this value.
func (tx *Tx) emitRemoved(key []byte, places []int) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	switch n := len(places); {
	case n == 1 && places[0] == 0:
		tx.emit("LPOP", key)
	case places[n-1] == n-1:
		tx.emit("LPOP", key, tx.itoa(0, int64(n)))
	default:
		var nonce [16]byte
		for i := range nonce {
			nonce[i] = byte(tx.random().Uint32())
		}
		for _, i := range places {
			tx.emit("LSET", key, tx.itoa(0, int64(i)), nonce[:])
		}
		tx.emit("LREM", key, []byte("0"), nonce[:])
	}
}
