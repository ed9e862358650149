package engine

import "container/heap"

// A replica leaves dead keys and items to its master. But the master does not know the keys that
// clients of a writable replica have stored. When a client gives a key or an item of its own a
// deadline, the replica itself removes the key or item when it is due:
//
//	a client sets a deadline     Tx.dated: the shard remembers the key, by its deadline
//	the deadline passes          Reclaimer.keepTime: removes the key, or its dead items
//	the master sends the key     Tx.find in a replay: from then on it belongs to the master
//	it stops being a replica     the shard drops its list: the reclaimers remove all due data
//
// This holds for keys, and for items of hashes, sets, sorted sets and lists. The next command that
// uses a lock, a semaphore or a queue removes its expired leases and jobs. A container is the
// replica's own only if clients have set the deadlines of all its items; otherwise the replica
// leaves its items to the master.

// own holds the keys of a replica's shard on which clients have set deadlines.
type own struct {
	keys  map[watchKey]*ownKey
	queue ownQueue
}

// ownKey is a key that the reclaimer visits when the key or one of its items is due.
type ownKey struct {
	watchKey
	at    int64 // the next deadline, ms
	index int   // the index in the queue
	whole bool  // a client has set the key's deadline
	items bool  // clients have set the deadlines of all its items
}

// dated records that the transaction has given a key, or items of it, a deadline in ms; 0: none. It has an
// effect only on a replica, for a client's transaction.
func (tx *Tx) dated(sp *space, key []byte, at int64, items bool) {
	if at != 0 && tx.db.replica.Load() && !tx.replay {
		tx.owns(sp.sh, sp.db, key, at, items)
	}
}

func (tx *Tx) owns(sh *shard, db int, key []byte, at int64, items bool) {
	if sh.own == nil {
		sh.own = &own{keys: map[watchKey]*ownKey{}}
	}
	o := sh.own
	k := o.keys[watchKey{db, string(key)}]
	switch {
	case k == nil:
		k = &ownKey{watchKey: watchKey{db, string(key)}, at: at}
		o.keys[k.watchKey] = k
		heap.Push(&o.queue, k)
	case at < k.at:
		k.at = at
		heap.Fix(&o.queue, k.index)
	}
	k.whole = k.whole || !items
	k.items = k.items || items
	sh.workAt(at + 1)
}

// disown records that a key belongs to the master, or is deleted.
func (o *own) disown(db int, key []byte) {
	if k := o.keys[watchKey{db, string(key)}]; k != nil {
		o.remove(k)
	}
}

// holdsItems reports whether clients have set the deadlines of all items of a key.
func (o *own) holdsItems(db int, key []byte) bool {
	if o == nil {
		return false
	}
	k := o.keys[watchKey{db, string(key)}]
	return k != nil && k.items
}

// flush removes the own keys of a database.
func (o *own) flush(db int) {
	for _, k := range o.keys {
		if k.db == db {
			o.remove(k)
		}
	}
}

// swap exchanges two databases.
func (o *own) swap(a, b int) {
	all := o.keys
	o.keys = make(map[watchKey]*ownKey, len(all))
	for _, k := range all {
		switch k.db {
		case a:
			k.db = b
		case b:
			k.db = a
		}
		o.keys[k.watchKey] = k
	}
}

func (o *own) remove(k *ownKey) {
	delete(o.keys, k.watchKey)
	heap.Remove(&o.queue, k.index)
}

// next returns the time in ms at which the next own key of the shard is due.
func (o *own) next() (ms int64, ok bool) {
	if o == nil || len(o.queue) == 0 {
		return 0, false
	}
	return o.queue[0].at + 1, true
}

// reclaimOwn removes the due keys and items among a replica's own keys, and reports whether there
// is more to do at once.
func (r *Reclaimer) reclaimOwn(tx *Tx, sh *shard, end int64) (more bool) {
	for n := 1; ; n++ {
		if at, ok := sh.own.next(); !ok || at > tx.ms {
			return false
		}
		r.reapOwn(tx, sh, sh.own.queue[0])
		if n%sliceItems == 0 && (tx.wanted() || tx.db.clock.Micros() >= end) {
			return true
		}
	}
}

// reapOwn removes a due key, or its due items; then the key waits for its next deadline.
func (r *Reclaimer) reapOwn(tx *Tx, sh *shard, k *ownKey) {
	h := hit{sh: sh, sp: sh.spaces[k.db]}
	r.name = append(r.name[:0], k.key...)
	h.h = tx.db.hashOf(k.key)
	ok := h.sp != nil
	if ok {
		h.pos, ok = h.sp.tab.Find(h.h, r.name)
	}
	if !ok {
		sh.own.remove(k)
		return
	}
	h.r = h.sp.rec(h.pos.Ref())
	tx.dbi = k.db
	if k.whole && h.r.expired(tx.ms) {
		sh.own.remove(k)
		tx.expire(&h, true)
		return
	}
	k.items = k.items && lapses(h.r.Kind())
	if k.items && h.r.itemDue(tx.ms) {
		tx.lapse(&h, r.name, lapseItems)
		if h.r == nil {
			sh.own.remove(k)
			return
		}
	}
	next := int64(0)
	if d := h.r.deadline(); k.whole && d != 0 {
		next = d
	}
	if d := h.r.nextAt(); k.items && d != 0 && (next == 0 || d < next) {
		next = d
	}
	if next == 0 {
		sh.own.remove(k)
		return
	}
	k.at = next
	heap.Fix(&sh.own.queue, k.index)
}

// lapses reports whether the due items of a kind of container are items with deadlines, which are
// removed one by one.
func lapses(k Kind) bool { return k == Hash || k == Set || k == ZSet || k == List }

// ownQueue implements heap.Interface. The key that is due first is at the top.
type ownQueue []*ownKey

func (q ownQueue) Len() int           { return len(q) }
func (q ownQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q ownQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *ownQueue) Push(x any) {
	k := x.(*ownKey)
	k.index = len(*q)
	*q = append(*q, k)
}

// Pop implements heap.Interface.
func (q *ownQueue) Pop() any {
	old := *q
	k := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return k
}
