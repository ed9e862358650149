package engine

import "github.com/ebbdb/ebb/internal/packed"

// This file has the code that HEXPIRE, SEXPIRE, ZEXPIRE, LEXPIRE and similar commands share.

// MaxItemDeadline is the latest deadline of an item, in ms since 1970. The engine stores later ones
// as MaxItemDeadline.
const MaxItemDeadline = packed.MaxDeadline

// These are the outcomes of a change of an item's deadline.
const (
	ItemMissing  = -2 // there is no such item, or no such key
	ItemUntimed  = -1 // the item has no deadline to remove
	ItemRefused  = 0  // the condition does not allow it
	ItemDone     = 1  // the deadline is set, or removed
	ItemOutlived = 2  // the deadline is not in the future, so the item was removed
)

// itemPast reports whether a requested deadline, after itemDeadline, removes the item at once. In a
// replay only the deadline 0 does, which no item can have.
func (tx *Tx) itemPast(deadline int64) bool {
	return deadline == 0 || deadline <= tx.ms && !tx.replay
}

// itemDeadline clamps a requested deadline to the range of items.
func itemDeadline(deadline int64) int64 { return max(min(deadline, MaxItemDeadline), 0) }

// stampItem applies the plan of a new deadline in a small container.
func (tx *Tx) stampItem(h *hit, key []byte, k Kind, e packed.Edit) error {
	dst, err := tx.room(h, key, k, e.Size())
	if err == nil {
		e.Apply(dst)
	}
	return err
}

// emitTimed logs a deadline of items: HPEXPIREAT key ms FIELDS n field ...
func (tx *Tx) emitTimed(name string, key []byte, deadline int64, word string, items [][]byte) {
	if tx.db.logging.Load() && !tx.replay {
		tx.emitItems(name, key, tx.counted([][]byte{tx.itoa(0, deadline)}, word, items))
	}
}

// emitCounted logs a command about items: HPERSIST key FIELDS n field ...
func (tx *Tx) emitCounted(name string, key []byte, word string, items [][]byte) {
	if tx.db.logging.Load() && !tx.replay {
		tx.emitItems(name, key, tx.counted(nil, word, items))
	}
}

// counted appends a word, the number of items and the items.
func (tx *Tx) counted(args [][]byte, word string, items [][]byte) [][]byte {
	return append(append(args, []byte(word), tx.itoa(1, int64(len(items)))), items...)
}

// changedTime sends the event of a new deadline after a change that was already counted and
// reported.
func (tx *Tx) changedTime(key []byte, class uint32, event string) {
	if tx.db.notify.Load()&class != 0 {
		tx.event(class, event, key)
	}
}

// byDeadline visits the indexes of n items by their deadline, in the order in which the deadlines come
// first.
func byDeadline(n int, deadline func(i int) int64, visit func(deadline int64, of []int)) {
	groups := map[int64][]int{}
	var order []int64
	for i := range n {
		d := deadline(i)
		if groups[d] == nil {
			order = append(order, d)
		}
		groups[d] = append(groups[d], i)
	}
	for _, d := range order {
		visit(d, groups[d])
	}
}
