package engine

import (
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
	"hash/maphash"
)

// This file implements the deadlines of the items of hashes and sets. Both are packed images, or
// tables of package dict. Dead items stay until the reclaimer removes them, so a write can meet a
// dead item with the same name.

// keyedItems names the commands and events of deadlines in hashes, or in sets.
type keyedItems struct {
	kind                             Kind
	level                            Level
	class                            uint32
	word                             string // the word before the items in a command: FIELDS or MEMBERS
	setsDeadline, takesIt, removes   string // the commands in the log
	expireEvent, persistEvent, event string
}

var (
	fieldsOf  = keyedItems{Hash, LevelField, EventHash, "FIELDS", "HPEXPIREAT", "HPERSIST", "HDEL", "hexpire", "hpersist", "hdel"}
	membersOf = keyedItems{Set, LevelMember, EventSet, "MEMBERS", "SPEXPIREAT", "SPERSIST", "SREM", "sexpire", "spersist", "srem"}
)

// dictOf returns the table of a large hash or set.
func dictOf(b box) *dict.Dict {
	if t, ok := b.(setTable); ok {
		return t.Dict
	}
	return b.(hashTable).Dict
}

// expireKeyed implements HExpire and SExpire.
func (tx *Tx) expireKeyed(m *keyedItems, key []byte, items [][]byte, deadline int64, c Condition, visit func(code int)) error {
	h, err := tx.container(key, m.kind)
	if err != nil {
		return err
	}
	deadline = itemDeadline(deadline)
	var few [8][]byte
	past, done := tx.itemPast(deadline), few[:0]
	for _, item := range items {
		var code int
		if code, err = tx.expireItem(m, &h, key, item, deadline, c, past); err != nil {
			break
		}
		if code >= ItemDone {
			done = append(done, item)
		}
		visit(code)
	}
	switch {
	case len(done) == 0:
	case past:
		tx.removedItems(m, &h, key, done, len(done), m.event)
	default:
		tx.datedItems(m, &h, key, done, deadline)
	}
	return err
}

// expireItem gives one item a deadline, or removes the item if past is set. It keeps the key even
// if the container becomes empty.
func (tx *Tx) expireItem(m *keyedItems, h *hit, key, item []byte, deadline int64, c Condition, past bool) (code int, err error) {
	old := tx.deadlineIn(h, item)
	switch {
	case old == NoKey:
		return ItemMissing, nil
	case !c.allows(max(old, 0), deadline):
		return ItemRefused, nil
	case past:
		tx.removeItem(h, item)
		return ItemOutlived, nil
	}
	return ItemDone, tx.setItemDeadline(m, h, key, item, deadline)
}

// datedItems logs, schedules and reports that items have a new deadline.
func (tx *Tx) datedItems(m *keyedItems, h *hit, key []byte, items [][]byte, deadline int64) {
	if h.box() != nil {
		tx.wrote(h)
	}
	tx.date(h)
	tx.emitTimed(m.setsDeadline, key, deadline, m.word, items)
	tx.dirty += len(items) - 1
	tx.changed(key, m.class, m.expireEvent)
}

// persistKeyed implements HPersist and SPersist.
func (tx *Tx) persistKeyed(m *keyedItems, key []byte, items [][]byte, visit func(code int)) error {
	h, err := tx.container(key, m.kind)
	if err != nil {
		return err
	}
	var few [8][]byte
	done := few[:0]
	for _, item := range items {
		code := ItemDone
		switch tx.deadlineIn(&h, item) {
		case NoKey:
			code = ItemMissing
		case NoDeadline:
			code = ItemUntimed
		default:
			tx.clearDeadline(&h, item)
			done = append(done, item)
		}
		visit(code)
	}
	tx.persisted(m, &h, key, done)
	return nil
}

// persisted logs and reports that items have lost their deadlines.
func (tx *Tx) persisted(m *keyedItems, h *hit, key []byte, items [][]byte) {
	if len(items) == 0 {
		return
	}
	if h.box() != nil {
		tx.wrote(h)
	}
	tx.emitCounted(m.takesIt, key, m.word, items)
	tx.dirty += len(items) - 1
	tx.changed(key, m.class, m.persistEvent)
}

// deadlineIn returns the deadline of a living item in ms since 1970, NoDeadline, or NoKey if there
// is no such item. The key may be missing.
func (tx *Tx) deadlineIn(h *hit, item []byte) int64 {
	if h.r == nil {
		return NoKey
	}
	now := tx.itemTime()
	if b := h.box(); b != nil {
		return deadlineOf(dictOf(b).Deadline(item, now))
	}
	img := h.image()
	if img.Kind() == packed.KindIntSet {
		_, ok := findInt(packed.IntSet(img), item)
		return deadlineOf(0, ok)
	}
	at, ok := img.Find(item, now)
	if !ok {
		return NoKey
	}
	return deadlineOf(img.Deadline(at), true)
}

// setItemDeadline gives a living item a deadline, in place. A set of integers is first converted to a form
// that can store deadlines. The caller calls wrote and date.
func (tx *Tx) setItemDeadline(m *keyedItems, h *hit, key, item []byte, deadline int64) error {
	if h.box() == nil && h.image().Kind() == packed.KindIntSet {
		if err := tx.spellInts(h, key); err != nil {
			return err
		}
	}
	if b := h.box(); b != nil {
		if _, err := dictOf(b).SetDeadline(item, deadline, tx.itemTime()); err != nil {
			return ErrFull
		}
		return nil
	}
	img := h.image()
	at, _ := img.Find(item, tx.itemTime())
	e := img.SetDeadline(at, deadline)
	if e.Size() > maxSmall {
		return ErrFull
	}
	return tx.stampItem(h, key, m.kind, e)
}

// clearDeadline removes the deadline of a living item. It needs no memory.
func (tx *Tx) clearDeadline(h *hit, item []byte) {
	if b := h.box(); b != nil {
		dictOf(b).ClearDeadline(item, tx.itemTime())
		return
	}
	img := h.image()
	at, _ := img.Find(item, tx.itemTime())
	e := img.SetDeadline(at, 0)
	tx.shrunk(h, e.Apply(img))
}

// removeItem removes a living item. It keeps the key. The caller calls wrote.
func (tx *Tx) removeItem(h *hit, item []byte) {
	if b := h.box(); b != nil {
		dictOf(b).Delete(item, 0)
		return
	}
	img := h.image()
	if img.Kind() == packed.KindIntSet {
		s := packed.IntSet(img)
		i, _ := findInt(s, item)
		tx.shrunk(h, packed.Packed(s.Delete(i)))
		return
	}
	at, _ := img.Find(item, tx.itemTime())
	tx.shrunk(h, img.Delete(at))
}

// removedItems logs, counts and reports, as event, the removal of n of the named items. It drops
// the key if the container is empty.
func (tx *Tx) removedItems(m *keyedItems, h *hit, key []byte, items [][]byte, n int, event string) {
	left := tx.living(h)
	tx.logRemoval(m, h, key, items)
	tx.dirty += n - 1
	tx.changed(key, m.class, event)
	if left == 0 {
		tx.gone(key)
	}
}

// logRemoval logs the removal of items, and drops the key if no living item is left.
func (tx *Tx) logRemoval(m *keyedItems, h *hit, key []byte, items [][]byte) {
	if tx.living(h) > 0 {
		if h.box() != nil {
			tx.wrote(h)
		}
		tx.emitItems(m.removes, key, items)
		return
	}
	if tx.countExpired(m.level, h, key) {
		tx.emit("DEL", key) // a replay sees dead items, so for it the key would not be empty
	} else {
		tx.emitItems(m.removes, key, items)
	}
	tx.drop(h)
}

// countExpired counts the dead items of a container that is about to be deleted as expired, and
// reports whether there are any.
func (tx *Tx) countExpired(l Level, h *hit, key []byte) (any bool) {
	tx.eachDead(h, func(item []byte, deadline int64) {
		any = true
		tx.lapsed(h.sh, l, key, item, nil, deadline)
	})
	return any
}

// eachDead visits the dead items of a hash or a set. O(1) if there are none.
func (tx *Tx) eachDead(h *hit, visit func(item []byte, deadline int64)) {
	now := tx.itemTime()
	if b := h.box(); b != nil {
		d := dictOf(b)
		d.EachDue(now, func(ref uint32) bool {
			it := d.Item(ref)
			visit(it.Key, it.Deadline)
			return true
		})
		return
	}
	img := h.image()
	if img.Kind() == packed.KindIntSet || !img.Due(now) {
		return
	}
	for it := img.Iter(0); it.Next(); {
		if d := it.Deadline(); d != 0 && now > d {
			visit(tx.text(2, it.Key()), d)
		}
	}
}

// deadUnder returns the deadline of the dead item that a write is about to replace; 0 if there is
// none. O(1) while no item is due.
func (tx *Tx) deadUnder(h *hit, item []byte) int64 {
	if h.r == nil || tx.replay || !h.r.itemDue(tx.ms) {
		return 0
	}
	old, now := int64(0), tx.itemTime()
	if b := h.box(); b != nil {
		old, _ = dictOf(b).Deadline(item, 0)
	} else if img := h.image(); img.Kind() != packed.KindIntSet {
		if at, ok := img.Find(item, 0); ok {
			old = img.Deadline(at)
		}
	}
	if old == 0 || now <= old {
		return 0
	}
	return old
}

// A packed image has no index, so finding a member is a walk over half of the image. Code that
// looks up more than a few members of an image uses a memberIndex, or while it builds the image, this type.

// seen recognises most new members while an image is built. It is a Bloom filter with one hash.
// With n members in it, it misses n in 4096 of the new ones.
type seen [64]uint64

// note adds a member and reports whether it may have been added before.
func (s *seen) note(tx *Tx, member []byte) (maybe bool) {
	h := maphash.Bytes(tx.db.seed, member)
	word, bit := &s[h&63], uint64(1)<<(h>>6&63)
	maybe = *word&bit != 0
	*word |= bit
	return maybe
}
