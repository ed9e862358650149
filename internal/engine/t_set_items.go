package engine

import "github.com/ebbdb/ebb/internal/packed"

// This file implements the deadlines of set members. ttl_items_keyed.go has the code that sets share with
// hashes.

// SExpire gives members of a set a deadline in ms since 1970, if the condition allows it, and calls visit for
// each with ItemMissing, ItemRefused, ItemDone or ItemOutlived. A deadline that is not in the future removes
// the member. SExpire stores and compares a deadline beyond MaxItemDeadline as MaxItemDeadline. It deletes
// the key if the set becomes empty. The first deadline converts a set of integers to another form, which the
// set then keeps. O(log n) for each member of a large set. Errors: ErrWrongType; ErrFull, after the earlier
// members have been visited.
func (tx *Tx) SExpire(key []byte, members [][]byte, deadline int64, c Condition, visit func(code int)) error {
	return tx.expireKeyed(&membersOf, key, members, deadline, c, visit)
}

// SDeadlines calls visit for each of some members with its deadline in ms since 1970, NoDeadline,
// or NoKey if there is no such member. It counts as an access. O(1) for each member of a large set.
// Errors: ErrWrongType.
func (tx *Tx) SDeadlines(key []byte, members [][]byte, visit func(deadline int64)) error {
	v, err := tx.Members(key)
	if err != nil {
		return err
	}
	for _, m := range members {
		visit(v.Deadline(m))
	}
	return nil
}

// SPersist removes the deadlines of members and calls visit for each with ItemMissing, ItemUntimed
// or ItemDone. It needs no memory. Errors: ErrWrongType.
func (tx *Tx) SPersist(key []byte, members [][]byte, visit func(code int)) error {
	return tx.persistKeyed(&membersOf, key, members, visit)
}

// SAddEx adds members to a set with a deadline, 0 for none, and returns the number that were added. It also
// gives existing members the deadline, unless Keep is set. OnlyNew does not change existing members; OnlyOld
// adds no new ones. With a deadline that is not in the future, none of the members remains. Expected O(1) for
// each member of a large set. Errors: ErrWrongType; BoundError, and nothing has changed; ErrFull, after
// SAddEx has handled the members before the one that did not fit.
func (tx *Tx) SAddEx(key []byte, members [][]byte, o ItemOptions) (added int, err error) {
	h, err := tx.container(key, Set)
	if err != nil {
		return 0, err
	}
	deadline := itemDeadline(o.Deadline)
	if o.Deadline != 0 && tx.itemPast(deadline) {
		return tx.addAndGone(&h, key, members, o), nil
	}
	v := tx.viewSet(&h)
	if !o.OnlyOld {
		member := func(i int) []byte { return members[i] }
		if err := bounded(key, v.Len(), o.Max, len(members), member, v.Has); err != nil {
			return 0, err
		}
	}
	a := adding{tx: tx, h: &h, key: key, deadline: deadline, ItemOptions: o, least: tx.formFor(&h, members),
		added: tx.some[0][:0], timed: tx.some[1][:0]}
	if deadline != 0 && a.least == intSetForm && h.r == nil {
		a.least = packedForm
	}
	for _, m := range members {
		if err = a.add(m); err != nil {
			break
		}
	}
	a.settle()
	tx.some[0], tx.some[1] = keepItems(a.added), keepItems(a.timed)
	return len(a.added), err
}

// keepItems returns a list, emptied, for reuse as scratch memory; nil if it is long.
func keepItems(list [][]byte) [][]byte {
	if cap(list) > keepScratch {
		return nil
	}
	return list[:0]
}

// adding is a running SAddEx.
type adding struct {
	ItemOptions
	tx       *Tx
	h        *hit
	key      []byte
	deadline int64
	least    setForm

	added, back    [][]byte // the new members, and those of them that were dead
	timed, untimed [][]byte // the members that got the deadline, and those that lost theirs
}

// add adds one member, or changes the deadline of an existing one.
func (a *adding) add(member []byte) error {
	tx := a.tx
	old := tx.deadlineIn(a.h, member)
	switch {
	case old == NoKey && a.OnlyOld, old != NoKey && (a.OnlyNew || a.Keep):
		return nil
	case old == NoKey:
		was, err := tx.addMember(a.h, a.key, member, a.least)
		if err != nil {
			return err
		}
		a.added = append(a.added, member)
		if a.deadline == 0 && was == packed.Dead {
			a.back = append(a.back, member)
		}
	case a.deadline == 0 && old > 0:
		tx.clearDeadline(a.h, member)
		a.untimed = append(a.untimed, member)
	}
	if a.deadline == 0 {
		return nil
	}
	if err := tx.setItemDeadline(&membersOf, a.h, a.key, member, a.deadline); err != nil {
		return err
	}
	a.timed = append(a.timed, member)
	return nil
}

// settle logs the changes and sends their events.
func (a *adding) settle() {
	tx := a.tx
	if len(a.added) > 0 {
		tx.emitItems("SADD", a.key, a.added)
		tx.emitRevived(a.key, a.back)
		tx.dirty += len(a.added) - 1
		tx.changed(a.key, EventSet, "sadd")
	}
	if len(a.timed) > 0 {
		tx.datedItems(&membersOf, a.h, a.key, a.timed, a.deadline)
	}
	tx.persisted(&membersOf, a.h, a.key, a.untimed)
}

// addAndGone adds members with a deadline that has passed, and returns how many did not exist. It
// removes those that existed, and sends the events of the addition and of the removal.
func (tx *Tx) addAndGone(h *hit, key []byte, members [][]byte, o ItemOptions) (added int) {
	var gone [][]byte
	fresh := map[string]bool{}
	for _, m := range members {
		switch there := tx.deadlineIn(h, m) != NoKey; {
		case !there && !o.OnlyOld:
			fresh[string(m)] = true
		case there && !o.OnlyNew && !o.Keep:
			tx.removeItem(h, m)
			gone = append(gone, m)
		}
	}
	if added = len(fresh); added > 0 {
		tx.changed(key, EventSet, "sadd")
	}
	switch {
	case len(gone) > 0:
		tx.removedItems(&membersOf, h, key, gone, len(gone), "srem")
	case added > 0:
		tx.changed(key, EventSet, "srem")
		if h.r == nil {
			tx.gone(key)
		}
	}
	return added
}

// spellInts converts a set of integers to a form whose members can have deadlines: a packed set, or
// a large one.
func (tx *Tx) spellInts(h *hit, key []byte) error {
	s := packed.IntSet(h.image())
	if packable(tx.db.layout.Load(), s, 0, 0) {
		tx.vbuf = packInts(tx.vbuf, s)
		dst, err := tx.room(h, key, Set, len(tx.vbuf))
		if err == nil {
			copy(dst, tx.vbuf)
		}
		return err
	}
	t := tx.newSetTable()
	err := fillSet(t.Dict, h.image())
	if err == nil {
		err = tx.enlarge(h, key, Set, t)
	}
	if err != nil {
		discard(t)
		return ErrFull
	}
	tx.wrote(h)
	return nil
}
