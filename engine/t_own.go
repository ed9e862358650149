package engine

import "container/heap"

// A replica leaves what is dead to its master, and the master knows nothing of what
// clients of a writable replica have stored. So what these give a deadline the replica
// removes itself when it is due:
//
//	a client sets a deadline   Tx.dated: the shard remembers the key, by its deadline
//	the deadline passes        Reclaimer.keepTime: the key goes, or what is dead in it
//	the master speaks of it    Tx.find in a replay: the key is the master's from then on
//	no replica any more        all is forgotten: the reclaimers take what is due
//
// That holds for keys, and for items of hashes, sets, sorted sets and lists; leases and jobs
// wait for who uses them next. A container is the replica's own as long as all that falls due in it is: the deadlines
// of items in one that came from the master with others are left to the master.

// own is the keys of a shard of a replica on which clients have set deadlines.
type own struct {
	keys  map[watchKey]*ownKey
	queue ownQueue
}

// ownKey is a key that is looked at when something of it is due.
type ownKey struct {
	watchKey
	at    int64 // ms
	index int   // in the queue
	whole bool  // the key's own deadline is a client's
	items bool  // those of its items are
}

// dated notes that the transaction has given a key, or items of it, a deadline in ms; 0:
// none. It does nothing but on a replica, for a client.
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

// disown notes that a key is the master's, or gone.
func (o *own) disown(db int, key []byte) {
	if k := o.keys[watchKey{db, string(key)}]; k != nil {
		o.remove(k)
	}
}

// holdsItems reports whether the items of a key that have deadlines are all clients'.
func (o *own) holdsItems(db int, key []byte) bool {
	if o == nil {
		return false
	}
	k := o.keys[watchKey{db, string(key)}]
	return k != nil && k.items
}

// flush forgets the keys of a database.
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

// next returns the time in ms from which on something of the shard's own is due.
func (o *own) next() (ms int64, ok bool) {
	if o == nil || len(o.queue) == 0 {
		return 0, false
	}
	return o.queue[0].at + 1, true
}

// reclaimOwn removes what is due of a replica's own keys, and reports whether there is
// more to do at once.
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

// reapOwn looks after a key that is due: it goes, or waits for what is next in it.
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

// lapses reports whether what is dead in a container of a kind is removed one by one, and
// nothing else falls due in it.
func lapses(k Kind) bool { return k == Hash || k == Set || k == ZSet || k == List }

// ownQueue is a heap.Interface: the key that is due first comes first.
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
