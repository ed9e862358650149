package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
)

// Del deletes a key and reports whether it was there.
func (tx *Tx) Del(key []byte) bool {
	h := tx.find(key)
	if h.r == nil {
		return false
	}
	tx.drop(&h)
	tx.emit("DEL", key)
	tx.changed(key, EventGeneric, "del")
	return true
}

// Exists reports whether a key is there. It counts as a read, but does not
// extend a sliding deadline.
func (tx *Tx) Exists(key []byte) bool {
	h := tx.find(key)
	sh := tx.db.shards[tx.hshard]
	if h.r == nil {
		sh.stats.Misses++
		return false
	}
	sh.stats.Hits++
	return true
}

// Touch notes an access and reports whether the key is there.
func (tx *Tx) Touch(key []byte) bool { return tx.read(key).r != nil }

// Type returns what a key holds, None if it is not there.
func (tx *Tx) Type(key []byte) Kind {
	h := tx.find(key)
	if h.r == nil {
		return None
	}
	return h.r.Kind()
}

// Rename gives a key another name, with its deadline, whatever was there
// before; onlyNew leaves an existing one alone. It reports whether it was done.
// Errors: ErrNoKey.
func (tx *Tx) Rename(from, to []byte, onlyNew bool) (bool, error) {
	h := tx.find(from)
	if h.r == nil {
		return false, ErrNoKey
	}
	there := tx.find(to).r != nil
	if onlyNew && there {
		return false, nil
	}
	if string(from) == string(to) {
		return true, nil
	}
	if there {
		t := tx.find(to)
		tx.drop(&t)
		if tx.db.notify.Load()&EventGeneric != 0 {
			tx.event(EventGeneric, "del", to)
		}
	}
	if err := tx.transfer(from, to, tx.dbi, false); err != nil {
		return false, err
	}
	tx.emit("RENAME", from, to)
	tx.changed(from, EventGeneric, "rename_from")
	tx.changed(to, EventGeneric, "rename_to")
	tx.dirty--
	return true, nil
}

// Move moves a key to another database, with its deadline, and reports whether
// it did: not if there is no such key, or one in the other database.
func (tx *Tx) Move(key []byte, to int) (bool, error) {
	if tx.find(key).r == nil {
		return false, nil
	}
	from := tx.dbi
	tx.dbi = to
	there := tx.find(key).r != nil
	tx.dbi = from
	if there {
		return false, nil
	}
	if err := tx.transfer(key, key, to, false); err != nil {
		return false, err
	}
	tx.emit("MOVE", key, tx.itoa(0, int64(to)))
	tx.changed(key, EventGeneric, "move_from")
	tx.dbi = to
	tx.changed(key, EventGeneric, "move_to")
	tx.dbi = from
	tx.dirty--
	return true, nil
}

// Copy copies a key, with its deadline, to a key of database to, and reports
// whether it did. An existing key is in the way unless replace is set.
func (tx *Tx) Copy(from, key []byte, to int, replace bool) (bool, error) {
	if tx.find(from).r == nil {
		return false, nil
	}
	dbi := tx.dbi
	tx.dbi = to
	t := tx.find(key)
	if t.r != nil && replace {
		tx.drop(&t)
	}
	tx.dbi = dbi
	if t.r != nil {
		return false, nil
	}
	if err := tx.transfer(from, key, to, true); err != nil {
		return false, err
	}
	if to == dbi {
		tx.emit("COPY", from, key, []byte("REPLACE"))
	} else {
		tx.emit("COPY", from, key, []byte("DB"), tx.itoa(0, int64(to)), []byte("REPLACE"))
	}
	tx.dbi = to
	tx.changed(key, EventGeneric, "copy_to")
	tx.dbi = dbi
	return true, nil
}

// transfer builds the record of from again as key in database to, which has no
// such key, and removes the old one unless it is kept. What lies outside the
// record changes hands without being copied.
func (tx *Tx) transfer(from, key []byte, to int, keep bool) error {
	src := tx.find(from)
	dbi := tx.dbi
	tx.dbi = to
	dst := tx.find(key)
	sp := tx.makeSpace(&dst)
	tx.dbi = dbi

	r := src.r
	s := spec{flags: r.kind &^ (flagDeadline | flagSlide | flagExt), deadline: r.deadline()}
	if r.has(flagSlide) {
		s.span = r.slide().span
	}
	val := src.sp.value(r)
	var handle uint32
	if r.has(flagExt) {
		if keep {
			val = append([]byte(nil), val...)
		}
		handle = sp.addExt(val)
	}
	ref, n := sp.build(s.layout(), key, val, handle)
	if n == nil {
		if handle != 0 {
			sp.dropExt(handle)
		}
		return ErrFull
	}
	n.clock = r.clock
	if !keep {
		tx.drop(&src)
	}
	dst.sp.tab.Insert(dst.h, ref)
	if s.span != 0 {
		*n.slide() = slide{s.span, s.deadline}
	}
	if s.deadline != 0 {
		dst.sp.schedule(ref, s.deadline)
	}
	return nil
}

// RandomKey returns a key of the selected database, every living one with the
// same probability, or nil if there is none. The transaction holds all shards.
func (tx *Tx) RandomKey(rnd func() uint64) []byte {
	for {
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
			if !r.expired(tx.ms) || tx.replay {
				return sp.key(r)
			}
			tx.reapIn(sp, ref)
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
			n += sp.living(tx.ms)
		}
	}
	return n
}

// shardBits is the room for a shard's number in a cursor.
const shardBits = 6

// Scan visits living keys, about count of them, and returns the cursor to go on
// with; 0 begins and ends. A key that is there from the first call to the last
// is visited at least once. It locks one shard at a time, by itself, and calls
// visit under the lock; visit must not write. Cursors stay below 2^38.
func (db *DB) Scan(dbi int, cursor uint64, count int, visit func(Key)) uint64 {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	for count > 0 {
		s := int(cursor & (1<<shardBits - 1))
		if s >= len(db.shards) {
			return 0
		}
		tx.begin(dbi, 1<<s, true)
		cursor = tx.scanShard(s, cursor, &count, visit)
		tx.Unlock()
		if cursor == 0 {
			return 0
		}
	}
	return cursor
}

// Scan is DB.Scan within a transaction that holds all shards.
func (tx *Tx) Scan(cursor uint64, count int, visit func(Key)) uint64 {
	for count > 0 {
		s := int(cursor & (1<<shardBits - 1))
		if s >= len(tx.db.shards) {
			return 0
		}
		if cursor = tx.scanShard(s, cursor, &count, visit); cursor == 0 {
			return 0
		}
	}
	return cursor
}

// scanShard visits buckets of one shard until count is used up or the shard is
// done, and returns the cursor of what comes next.
func (tx *Tx) scanShard(s int, cursor uint64, count *int, visit func(Key)) uint64 {
	sp := tx.db.shards[s].spaces[tx.dbi]
	at := cursor >> shardBits
	for sp != nil && *count > 0 {
		at = sp.tab.Scan(at, func(ref arena.Ref) {
			*count--
			if r := sp.rec(ref); !r.expired(tx.ms) || tx.replay {
				visit(Key{tx, sp, r})
			}
		})
		*count-- // empty buckets cost as well
		if at == 0 {
			break
		}
	}
	if at != 0 {
		return at<<shardBits | uint64(s)
	}
	if s++; s == len(tx.db.shards) {
		return 0
	}
	return uint64(s)
}

// Key is a key during a walk. It is valid during the call it is given to.
type Key struct {
	tx *Tx
	sp *space
	r  *rec
}

// Name returns the key, in the engine's memory.
func (k Key) Name() []byte { return k.sp.key(k.r) }

// Kind returns what it holds.
func (k Key) Kind() Kind { return k.r.Kind() }

// Deadline returns its deadline in ms, 0 for none.
func (k Key) Deadline() int64 { return k.r.deadline() }

// Value returns a string's value, in the engine's memory.
func (k Key) Value() []byte { return k.sp.value(k.r) }

// Each visits all living keys of the selected database. The transaction holds
// all shards.
func (tx *Tx) Each(visit func(Key)) {
	for _, sh := range tx.db.shards {
		if sp := sh.spaces[tx.dbi]; sp != nil {
			sp.tab.Each(func(ref arena.Ref) {
				if r := sp.rec(ref); !r.expired(tx.ms) || tx.replay {
					visit(Key{tx, sp, r})
				}
			})
		}
	}
}

// Flush empties a database, or all of them if dbi is -1, and returns how many
// keys they held. The transaction holds all shards. The memory is handed over
// whole: O(slabs).
func (tx *Tx) Flush(dbi int) int {
	n := 0
	for _, sh := range tx.db.shards {
		for i, sp := range sh.spaces {
			if sp == nil || dbi >= 0 && i != dbi {
				continue
			}
			n += sp.tab.Len()
			sh.flushed(i, sp)
			sp.release()
			sh.spaces[i] = nil
		}
		sh.publish()
		sh.owner.trim = true
		sh.workAt(tx.ms)
	}
	if dbi < 0 {
		tx.emit("FLUSHALL")
	} else {
		old := tx.dbi
		tx.dbi = dbi
		tx.emit("FLUSHDB")
		tx.dbi = old
	}
	tx.dirty += n
	tx.db.hooks.Flushed(tx, dbi)
	return n
}

// flushed breaks the watches on keys that a flush removes.
func (sh *shard) flushed(dbi int, sp *space) {
	for k := range sh.watched {
		if k.db != dbi {
			continue
		}
		if _, ok := sp.tab.Find(sp.sh.db.hashOf(k.key), []byte(k.key)); ok {
			sh.touched(k.db, []byte(k.key))
		}
	}
}

// Swap exchanges two databases. The transaction holds all shards. O(shards),
// and O(1) for each watched key.
func (tx *Tx) Swap(a, b int) {
	if a == b {
		return
	}
	for _, sh := range tx.db.shards {
		sh.spaces[a], sh.spaces[b] = sh.spaces[b], sh.spaces[a]
		for _, i := range []int{a, b} {
			if sp := sh.spaces[i]; sp != nil {
				sp.db = i
			}
		}
		for k := range sh.watched {
			if (k.db == a || k.db == b) && (sh.spaces[a].holds(k.key) || sh.spaces[b].holds(k.key)) {
				sh.touched(k.db, []byte(k.key))
			}
		}
	}
	tx.emit("SWAPDB", tx.itoa(0, int64(a)), tx.itoa(1, int64(b)))
	tx.dirty++
	tx.db.hooks.Flushed(tx, a)
	tx.db.hooks.Flushed(tx, b)
}

// holds reports whether a key is in the space, living or not; nil holds none.
func (sp *space) holds(key string) bool {
	if sp == nil {
		return false
	}
	_, ok := sp.tab.Find(sp.sh.db.hashOf(key), []byte(key))
	return ok
}

var _ table.Records = (*space)(nil)
