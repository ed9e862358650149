package engine

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
)

// Del deletes a key and reports whether it existed.
func (tx *Tx) Del(key []byte) bool {
	h := tx.find(key)
	if h.r == nil {
		tx.revoke(key)
		return false
	}
	tx.drop(&h)
	tx.emit("DEL", key)
	tx.changed(key, EventGeneric, "del")
	return true
}

// peek is find for commands that query a key and not its value. It counts a hit or a miss, but does
// not count as an access.
func (tx *Tx) peek(key []byte) hit {
	h := tx.find(key)
	if h.r != nil {
		h.sh.hits++
		return h
	}
	h.sh.misses++
	if tx.db.notify.Load()&EventMiss != 0 {
		tx.event(EventMiss, "keymiss", key)
	}
	return h
}

// Exists reports whether a key exists. It does not count as an access: it does not extend a sliding
// deadline.
func (tx *Tx) Exists(key []byte) bool { return tx.peek(key).r != nil }

// Touch records an access, which extends a sliding deadline, and reports whether the key exists.
func (tx *Tx) Touch(key []byte) bool { return tx.read(key).r != nil }

// Type returns the kind of a key's value, or None if there is no such key. It does not count as an
// access.
func (tx *Tx) Type(key []byte) Kind {
	h := tx.peek(key)
	if h.r == nil {
		return None
	}
	return h.r.Kind()
}

// Rename gives a key another name and keeps its deadline. It replaces an existing key,
// unless onlyNew is set. It reports whether it renamed the key. Errors: ErrNoKey,
// ErrFull.
func (tx *Tx) Rename(from, to []byte, onlyNew bool) (bool, error) {
	h := tx.findWhole(from)
	if h.r == nil {
		return false, ErrNoKey
	}
	tx.touch(&h)
	there := tx.find(to).r != nil
	if there && onlyNew {
		return false, nil
	}
	if string(from) == string(to) {
		return true, nil
	}
	kind := h.r.Kind()
	if err := tx.transfer(from, to, tx.dbi, false); err != nil {
		return false, err
	}
	tx.emitTransfer(kind, there, tx.dbi, to, "RENAME", from, to)
	tx.changed(from, EventGeneric, "rename_from")
	tx.changed(to, EventGeneric, "rename_to")
	tx.dirty--
	return true, nil
}

// Move moves a key to another database, with its deadline. It reports false, and does
// nothing, if there is no such key, or if the other database has one of this name.
// Errors: ErrFull.
func (tx *Tx) Move(key []byte, to int) (bool, error) {
	h := tx.findWhole(key)
	if h.r == nil {
		return false, nil
	}
	tx.touch(&h)
	if to == tx.dbi || tx.findIn(to, key).r != nil {
		return false, nil
	}
	kind := h.r.Kind()
	if err := tx.transfer(key, key, to, false); err != nil {
		return false, err
	}
	tx.emitTransfer(kind, false, to, key, "MOVE", key, tx.itoa(0, int64(to)))
	tx.changed(key, EventGeneric, "move_from")
	tx.changedIn(to, key, "move_to")
	tx.dirty--
	return true, nil
}

// Copy copies a key, with its deadline, to a key of database to. It reports false, and
// does nothing, if there is no such key, if source and target are the same, or if the
// target exists and replace is not set. O(value). Errors: ErrFull.
func (tx *Tx) Copy(from, key []byte, to int, replace bool) (bool, error) {
	tx.findWhole(from)
	h := tx.peek(from)
	if h.r == nil {
		return false, nil
	}
	tx.touch(&h)
	tx.reap(&h, from)
	there, kind := tx.findIn(to, key).r != nil, h.r.Kind()
	if there && !replace || to == tx.dbi && string(from) == string(key) {
		return false, nil
	}
	if err := tx.transfer(from, key, to, true); err != nil {
		return false, err
	}
	if to == tx.dbi {
		tx.emitTransfer(kind, there, to, key, "COPY", from, key, []byte("REPLACE"))
	} else {
		tx.emitTransfer(kind, there, to, key, "COPY", from, key, []byte("DB"), tx.itoa(0, int64(to)), []byte("REPLACE"))
	}
	tx.changedIn(to, key, "copy_to")
	return true, nil
}

// findWhole is find for a key that gets another name. If there are rules on expiry, it
// first removes all items of the key that are due, so that the rules see the old name.
func (tx *Tx) findWhole(key []byte) hit {
	h := tx.find(key)
	for tx.db.book.Load() != nil && h.r != nil && !tx.replay && h.r.itemDue(tx.ms) && tx.lapse(&h, key, lapseWhole) {
	}
	return h
}

// reap removes the dead items of a container that has living items too. The caller looked the
// container up. After that, no copy contains dead items, and each dead item is counted once.
func (tx *Tx) reap(h *hit, key []byte) {
	switch h.r.Kind() {
	case Hash, Set, ZSet, List:
		for !tx.replay && h.r.itemDue(tx.ms) && tx.lapse(h, key, lapseWhole) {
		}
	}
}

// findIn is find in a database other than the selected one.
func (tx *Tx) findIn(dbi int, key []byte) hit {
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	return tx.find(key)
}

// changedIn is changed in a database other than the selected one.
func (tx *Tx) changedIn(dbi int, key []byte, event string) {
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	tx.changed(key, EventGeneric, event)
}

// transfer builds the record of from again as key in database to, and replaces an existing value there. It
// removes the old record unless keep is set. It does not copy the parts of a value outside its record; the
// new record takes them over. The caller has looked up both keys at this instant, so the lookups here remove
// nothing.
func (tx *Tx) transfer(from, key []byte, to int, keep bool) error {
	src := tx.find(from)
	dst := tx.findIn(to, key)
	if dst.sp == nil {
		dst.sp = dst.sh.makeSpace(to)
	}
	r := src.r
	s, logged := r.specAsIs()
	val, handle := src.sp.value(r), uint32(0)
	if r.has(flagExt) {
		var err error
		if handle, err = tx.transferExt(&src, val, dst.sp, keep); err != nil {
			return err
		}
	}
	dst.sp.timedFields = dst.sp.timedFields || src.sp.timedFields
	ref, n := dst.sp.buildSpec(&s, key, val, handle)
	if n == nil {
		if handle != 0 && keep {
			dst.sp.dropExt(handle)
		} else if handle != 0 {
			dst.sp.yield(handle)
		}
		return ErrFull
	}
	if handle != 0 && !keep { // the new record owns the external value
		src.sp.yield(handleOf(r.inlineValue()))
		r.kind &^= flagExt
	}
	n.clock = r.clock
	next := r.nextAt()
	if dst.r != nil {
		old := dst.ref()
		dst.sp.detach(old, dst.r)
		dst.sp.left(dst.h, old, dst.r.Kind())
		dst.sp.free(old)
		dst.pos.Set(ref)
	}
	if !keep {
		tx.drop(&src)
	}
	if dst.r == nil {
		tx.makeWay(dst.sp, dst.h, key)
		dst.sp.tab.Insert(dst.h, ref) // insert only now: an earlier Insert would make src's position invalid
	}
	dst.sp.entered(dst.h, ref, n.Kind())
	tx.created(dst.sp, n) // also when it replaces a key: Redis deletes the old one and adds one
	if s.span != 0 {
		*n.slide() = slide{s.span, logged}
	}
	tx.scheduleAll(dst.sp, ref, key, &s, next)
	if keep && handle != 0 { // the copy of a queue does not wait for its next attempt to deliver, as the queue itself may
		dst.pos, _ = dst.sp.tab.Find(dst.h, key)
		dst.r = dst.sp.rec(dst.pos.Ref())
		tx.date(&dst)
	}
	return nil
}

// specAsIs returns the spec of a record with the same type and deadlines as r, and for a sliding deadline the
// logged one.
func (r *rec) specAsIs() (s spec, logged int64) {
	s = spec{flags: r.kind &^ (flagDeadline | flagSlide | flagExt), deadline: r.deadline(), fresh: r.freshUntil()}
	logged = s.deadline
	if r.has(flagSlide) {
		s.span, logged = r.slide().span, r.slide().logged
	}
	return s, logged
}

// transferExt gives a space the part of a value outside its record, or, with keep, a copy of that part.
func (tx *Tx) transferExt(src *hit, val []byte, to *space, keep bool) (handle uint32, err error) {
	b := src.box()
	if !keep {
		handle = to.addBox(val, b)
		x := &src.sp.exts[handleOf(src.r.inlineValue())]
		to.exts[handle].pin, to.exts[handle].lent = x.pin, x.lent
		return handle, nil
	}
	if b == nil {
		return to.addBox(append([]byte(nil), val...), nil), nil
	}
	if b, err = b.Clone(tx); err != nil {
		return 0, err
	}
	return to.addBox(val, b), nil
}

// scheduleAll enters the deadlines of a record that was built from s into the wheels; next is the deadline of
// its next item.
func (tx *Tx) scheduleAll(sp *space, ref arena.Ref, key []byte, s *spec, next int64) {
	if s.deadline != 0 {
		sp.schedule(ref, s.deadline)
		tx.dated(sp, key, s.deadline, false)
	}
	if s.fresh != 0 {
		tx.scheduleFresh(sp, ref, s.fresh)
	}
	sp.scheduleNext(ref, next)
	tx.dated(sp, key, next, true)
}

// RandomKey returns a living key of the selected database, each with the same
// probability, or nil if there is none. It removes the expired keys that it meets, except
// on a replica; expected O(1) if they are few. The transaction holds all shards.
func (tx *Tx) RandomKey(rnd func() uint64) []byte {
	if tx.Size() == 0 && !tx.replay {
		return nil
	}
	for tries := 0; ; tries++ {
		if tries == randomTries && tx.hiding() {
			return tx.anyKey(rnd)
		}
		total := 0
		for _, sh := range tx.db.shards {
			if sp := sh.spaces[tx.dbi]; sp != nil {
				total += sp.tab.Len()
			}
		}
		if total == 0 {
			return nil
		}
		n := int(rnd() % uint64(total))
		for _, sh := range tx.db.shards {
			sp := sh.spaces[tx.dbi]
			if sp == nil {
				continue
			}
			if n -= sp.tab.Len(); n >= 0 {
				continue
			}
			ref := sp.tab.Random(rnd)
			r := sp.rec(ref)
			switch {
			case !tx.dead(sp, r):
				return sp.key(r)
			case tx.hiding():
			case r.expired(tx.ms):
				tx.reapIn(sp, ref)
			default:
				tx.find(bytes.Clone(sp.key(r))) // find removes it
			}
			break
		}
	}
}

// reapIn removes an expired record that is still in the wheel.
func (tx *Tx) reapIn(sp *space, ref arena.Ref) {
	h := hit{sp: sp, h: sp.Hash(ref), r: sp.rec(ref)}
	h.pos, _ = sp.tab.FindRef(h.h, ref)
	tx.expire(&h, true)
}

// Size returns the number of living keys of the selected database. The
// transaction holds all shards.
func (tx *Tx) Size() int {
	n := 0
	for _, sh := range tx.db.shards {
		if sp := sh.spaces[tx.dbi]; sp != nil {
			n += sp.living(tx.ms) - tx.hollows(sp)
		}
	}
	return n
}

// dead reports whether a key's deadline has passed, or the deadlines of all its items. Reads hide
// such a key, and find removes it.
func (tx *Tx) dead(sp *space, r *rec) bool {
	return !tx.replay && (r.expired(tx.ms) || r.itemDue(tx.ms) && tx.hollow(&hit{sh: sp.sh, sp: sp, r: r}))
}

// hollow reports whether a container with due items has no living item.
func (tx *Tx) hollow(h *hit) bool {
	switch h.r.Kind() {
	case Hash, Set, ZSet, List:
		return tx.living(h) == 0
	case Lock, Semaphore:
		return h.holders().Latest() < tx.ms
	case DelayQueue:
		return h.box().(queueBox).Hollow(tx.ms)
	}
	return false
}

// hollows returns the number of keys of a space that are hollow and have not expired. O(due containers); the
// reclaimer keeps their number small.
func (tx *Tx) hollows(sp *space) (n int) {
	if sp.next == nil || tx.replay {
		return 0
	}
	var living []arena.Ref
	sp.next.EachDue(tx.ms, func(ref uint32) {
		switch r := sp.rec(arena.Ref(ref)); {
		case r.expired(tx.ms):
		case tx.dead(sp, r):
			n++
		case tx.hiding():
			living = append(living, arena.Ref(ref))
		}
	})
	tx.redateDue(sp, living)
	return n
}

// shardBits is the number of bits of a cursor that hold a shard's number.
const shardBits = 6

// maxCursor is greater than all cursors, because a table's cursors are below 2^32.
const maxCursor = 1 << (32 + shardBits)

// Scan visits living keys, about count of them, and returns the cursor for the next call; a walk
// begins with 0 and ends when Scan returns 0. It visits a key that exists from the first call to
// the last at least once. Scan locks one shard at a time and calls visit under the lock; visit must
// not write. A name of 16 KB or more counts as several keys. Cursors stay below 2^38; with a cursor
// that no call has returned, Scan visits some keys or none.
func (db *DB) Scan(dbi int, cursor uint64, count int, visit func(Key)) uint64 {
	return db.ScanKind(dbi, None, cursor, count, visit)
}

// ScanKind scans the keys of one kind as DB.Scan does; None selects all keys. For an Indexed kind it visits
// no others: O(count).
func (db *DB) ScanKind(dbi int, k Kind, cursor uint64, count int, visit func(Key)) uint64 {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	count = max(count, 1)
	for cursor < maxCursor {
		s := int(cursor & (1<<shardBits - 1))
		if s >= len(db.shards) {
			break
		}
		tx.reads = true
		tx.begin(dbi, 1<<s, true)
		next, more := tx.scanShard(s, k, cursor, &count, visit)
		tx.Unlock()
		if cursor = next; !more {
			return cursor
		}
	}
	return 0
}

// TryScan is Scan for a walk that must not wait for a lock, which a script might hold for ever. If another
// transaction holds the shard at the cursor, ok is false and next is cursor. It visits keys of one shard.
func (db *DB) TryScan(dbi int, cursor uint64, count int, visit func(Key)) (next uint64, ok bool) {
	s := int(cursor & (1<<shardBits - 1))
	if cursor >= maxCursor || s >= len(db.shards) {
		return 0, true
	}
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	tx.reads = true
	if count = max(count, 1); !tx.begin(dbi, 1<<s, false) {
		tx.reads = false
		return cursor, false
	}
	next, _ = tx.scanShard(s, None, cursor, &count, visit)
	tx.Unlock()
	return next, true
}

// Scan is DB.Scan within a transaction that holds all shards.
func (tx *Tx) Scan(cursor uint64, count int, visit func(Key)) uint64 {
	return tx.ScanKind(None, cursor, count, visit)
}

// ScanKind is DB.ScanKind within a transaction that holds all shards.
func (tx *Tx) ScanKind(k Kind, cursor uint64, count int, visit func(Key)) uint64 {
	count = max(count, 1)
	for cursor < maxCursor {
		s := int(cursor & (1<<shardBits - 1))
		if s >= len(tx.db.shards) {
			break
		}
		next, more := tx.scanShard(s, k, cursor, &count, visit)
		if cursor = next; !more {
			return cursor
		}
	}
	return 0
}

// scanBatch is the number of records that a walk gathers before it reads them. Each is elsewhere in memory:
// read one by one, they cost a cache miss of about 100 ns each. Beyond 48, the first ones begin to leave the
// first-level cache.
const scanBatch = 48

// firstBatch is the size of the first batch of a walk through a shard: with long names, a full batch may
// already be too much.
const firstBatch = 12

// nameCost is the number of bytes of a name that count as another key: this bounds a step of SCAN, which
// copies the names.
const nameCost = 16 << 10

// scanShard visits buckets of one shard until count is used up or the shard is done. It
// returns the next cursor, and whether the caller continues there at once. The walk
// continues through empty shards when count is used up, so that its last keys come with
// the cursor 0.
func (tx *Tx) scanShard(s int, k Kind, cursor uint64, count *int, visit func(Key)) (next uint64, more bool) {
	at := cursor >> shardBits
	sp, tab := tx.db.shards[s].spaces[tx.dbi], (*table.Table)(nil)
	if sp != nil {
		tab = sp.scanned(k)
	}
	if tab != nil && tab.Len() > 0 {
		b := tx.walked
		tx.walked = table.Batch{} // visit may begin another walk
		defer func() { tx.walked = b }()
		for size := firstBatch; ; size = min(2*size, scanBatch) {
			if *count <= 0 {
				return at<<shardBits | uint64(s), false
			}
			at = tab.Gather(at, &b, size, count)
			for _, ref := range b.Refs { // the cache misses overlap
				b.Touched += uint64(sp.rec(ref).klen)
			}
			for _, ref := range b.Refs { // the name may end in the next cache line
				if name := sp.key(sp.rec(ref)); len(name) > 0 {
					b.Touched += uint64(name[len(name)-1])
					*count -= len(name) / nameCost
				}
			}
			for _, ref := range b.Refs {
				if r := sp.rec(ref); (k == None || r.Kind() == k) && !tx.dead(sp, r) {
					visit(Key{tx, sp, r, ref})
				}
			}
			if at == 0 {
				break
			}
		}
	}
	if s++; s == len(tx.db.shards) {
		return 0, false
	}
	return uint64(s), true
}

// Key is a key during a walk. It is valid only during the call that receives it.
type Key struct {
	tx  *Tx
	sp  *space
	r   *rec
	ref arena.Ref // 0 where only the value is read
}

// Name returns the key, in the engine's memory.
func (k Key) Name() []byte { return k.sp.key(k.r) }

// Kind returns the kind of the key's value.
func (k Key) Kind() Kind { return k.r.Kind() }

// Deadline returns the key's deadline in ms since 1970, 0 for none.
func (k Key) Deadline() int64 { return k.r.deadline() }

// TTL is Tx.TTL.
func (k Key) TTL() int64 {
	d := k.r.deadline()
	switch {
	case k.r.Kind() == Lock || k.r.Kind() == Semaphore:
		h := hit{sh: k.sp.sh, sp: k.sp, r: k.r}
		d = h.latestLease()
	case !k.r.has(flagDeadline):
		return NoDeadline
	}
	return max(0, d-k.tx.ms)
}

// Span returns the span, in ms, by which a read extends the deadline; 0: reads do not
// extend it.
func (k Key) Span() int64 {
	if k.r.has(flagSlide) {
		return k.r.slide().span
	}
	return 0
}

// TrySpan returns the Span of a key, 0 if there is no such key. It does not count as an access. It is for a
// caller that must not wait for a lock: ok is false if another transaction holds the key's shard. O(1).
func (db *DB) TrySpan(dbi int, key []byte) (ms int64, ok bool) {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	tx.reads = true
	if !tx.beginKeys(dbi, [][]byte{key}, false) {
		tx.reads = false
		return 0, false
	}
	if k, found := tx.Lookup(key); found {
		ms = k.Span()
	}
	tx.Unlock()
	return ms, true
}

// Value returns a string's value, in the engine's memory.
func (k Key) Value() []byte { return k.sp.value(k.r) }

// Each visits all living keys of the selected database. The transaction holds
// all shards.
func (tx *Tx) Each(visit func(Key)) {
	for _, sh := range tx.db.shards {
		if sp := sh.spaces[tx.dbi]; sp != nil {
			sp.tab.Each(func(ref arena.Ref) {
				if r := sp.rec(ref); !tx.dead(sp, r) {
					visit(Key{tx, sp, r, ref})
				}
			})
		}
	}
}

// Flush empties a database, or all of them if dbi is -1, and returns the number of keys that they held. The
// transaction holds all shards. Flush frees the memory in whole slabs: O(slabs). It keeps the expiry rules.
// They do not record keys and items that had expired but were not removed yet.
func (tx *Tx) Flush(dbi int) int {
	tx.Tell()
	tx.release()
	n, ended := 0, tx.voidLeases(dbi)
	for _, sh := range tx.db.shards {
		for i, sp := range sh.spaces {
			if sp == nil || dbi >= 0 && i != dbi {
				continue
			}
			n += sp.tab.Len()
			sh.flushed(i, sp)
			if sh.own != nil {
				sh.own.flush(i)
			}
			sp.flushed()
			sh.spaces[i] = nil
		}
		sh.publish()
		sh.giveBackSoon(tx.ms)
	}
	switch {
	case n == 0 && !ended:
	case dbi < 0:
		tx.emit("FLUSHALL")
	default:
		old := tx.dbi
		tx.dbi = dbi
		tx.emit("FLUSHDB")
		tx.dbi = old
	}
	tx.dirty += n
	tx.signalAll(dbi)
	tx.db.hooks.Flushed(tx, dbi)
	return n
}

// flushed breaks the watches on keys that a flush removes.
func (sh *shard) flushed(dbi int, sp *space) {
	for k, l := range sh.watched {
		if k.db != dbi {
			continue
		}
		if _, ok := sp.tab.Find(sp.sh.db.hashOf(k.key), []byte(k.key)); ok {
			l.touched()
		}
	}
}

// Swap exchanges two databases. The transaction holds all shards. O(shards),
// and O(1) for each watched key.
func (tx *Tx) Swap(a, b int) {
	if a == b {
		return
	}
	tx.Tell()
	tx.swapRules(a, b)
	tx.voidLeases(a)
	tx.voidLeases(b)
	for _, sh := range tx.db.shards {
		sh.spaces[a], sh.spaces[b] = sh.spaces[b], sh.spaces[a]
		if sh.own != nil {
			sh.own.swap(a, b)
		}
		for _, i := range []int{a, b} {
			if sp := sh.spaces[i]; sp != nil {
				sp.db = i
			}
		}
		for k, l := range sh.watched {
			if (k.db == a || k.db == b) && (sh.spaces[a].holds(k.key) || sh.spaces[b].holds(k.key)) {
				l.touched()
			}
		}
	}
	tx.emit("SWAPDB", tx.itoa(0, int64(a)), tx.itoa(1, int64(b)))
	tx.dirty++
	tx.signalAll(a)
	tx.signalAll(b)
	tx.db.hooks.Flushed(tx, -1) // one call for both: clients that cache keys of either database must read them again
}

// holds reports whether the space has a key, living or not; a nil space has none.
func (sp *space) holds(key string) bool {
	if sp == nil {
		return false
	}
	_, ok := sp.tab.Find(sp.sh.db.hashOf(key), []byte(key))
	return ok
}

var _ table.Records = (*space)(nil)
