package engine

import (
	"math/bits"
	"runtime"

	"github.com/ebbdb/ebb/internal/table"
)

// This file implements lock escalation. A transaction that may meet an expired item also holds the shards of
// the streams that expiry rules write to. It learns only under its locks, at its instant, whether it needs
// these shards. If it does, it unlocks, and begins again with the streams' shards, at a later instant. It
// does not check which rules match: a command may rename, copy or move an expired item before the engine
// removes it.

// LockKey and TryLockKey are Lock and TryLock for one key.
func (tx *Tx) LockKey(dbi int, key []byte) {
	tx.begin(dbi, 1<<tx.hashKey(key), true)
	if tx.db.book.Load() != nil {
		tx.escalate(true, func() bool { return tx.dueAt(tx.hshard, tx.hash, key) })
	}
}

// TryLockKey does the work of TryLock for one key.
func (tx *Tx) TryLockKey(dbi int, key []byte) bool {
	if !tx.begin(dbi, 1<<tx.hashKey(key), false) {
		return false
	}
	return tx.db.book.Load() == nil || tx.escalate(false, func() bool { return tx.dueAt(tx.hshard, tx.hash, key) })
}

// beginKeys begins a transaction on keys, and on the rules' streams if it needs them.
func (tx *Tx) beginKeys(dbi int, keys [][]byte, wait bool) bool {
	if !tx.begin(dbi, tx.shardsOf(keys), wait) {
		return false
	}
	if len(keys) >= touchFrom && tx.inLargeTable() {
		runtime.KeepAlive(tx.touchKeys(keys))
	}
	return tx.db.book.Load() == nil || tx.escalate(wait, func() bool { return tx.anyDue(keys) })
}

const (
	// touchFrom is the smallest number of keys that a transaction touches: with fewer, hardly any cache misses
	// overlap.
	touchFrom = 4
	// touchAtOnce is the number of keys whose buckets are read before their records: few enough for the first-level cache.
	touchAtOnce = 64
	// touchMost bounds the number of keys, so that the touched lines are still in the second-level cache when
	// the command needs them.
	touchMost = 1024
	// touchBuckets is the size of a table above which its buckets and records are rarely in a cache.
	touchBuckets = 1 << 11
)

// inLargeTable reports whether the first of the shards has so many keys that they are rarely in a cache. The
// others have about the same number.
func (tx *Tx) inLargeTable() bool {
	sp := tx.db.shards[bits.TrailingZeros64(tx.held)].spaces[tx.dbi]
	return sp != nil && sp.tab.Buckets() >= touchBuckets
}

// touchKeys reads the buckets of keys, and then their records, so that the cache misses overlap: a command
// that looked up one key after the other would wait for each. The result only keeps the compiler from
// removing the reads. The shards are held.
func (tx *Tx) touchKeys(keys [][]byte) (sum uint64) {
	keys = keys[:min(len(keys), touchMost)]
	for len(keys) > 0 {
		var found [touchAtOnce]struct {
			tab  *table.Table
			hash uint64
		}
		n, part := 0, keys[:min(len(keys), touchAtOnce)]
		keys = keys[len(part):]
		for _, k := range part {
			s, hash := tx.db.shardOf(k)
			if sp := tx.db.shards[s].spaces[tx.dbi]; sp != nil {
				found[n].tab, found[n].hash = sp.tab, hash
				sum += sp.tab.Touch(hash)
				n++
			}
		}
		for _, f := range found[:n] {
			sum += uint64(f.tab.TouchRecord(f.hash))
		}
	}
	return sum
}

// escalate begins the transaction again with the rules' streams, if it does not hold their shards and due
// reports that something may expire in it. There must be rules.
func (tx *Tx) escalate(wait bool, due func() bool) bool {
	for {
		more := tx.uncovered()
		if more == 0 || !due() {
			return true
		}
		mask := tx.held | more
		tx.unlock(tx.held)
		tx.held = 0
		if !tx.begin(tx.dbi, mask, wait) {
			return false
		}
	}
}

// uncovered returns the shards of the streams that rules write to, except those that the transaction holds.
func (tx *Tx) uncovered() uint64 {
	if b := tx.db.book.Load(); b != nil {
		return b.shards &^ tx.held
	}
	return 0
}

// anyDue reports whether one of the keys, in any database, has expired or holds a due item.
func (tx *Tx) anyDue(keys [][]byte) bool {
	for _, k := range keys {
		if s, hash := tx.db.shardOf(k); tx.dueAt(s, hash, k) {
			return true
		}
	}
	return false
}

// dueAt does the work of anyDue for a key whose shard and hash are known. The shard is held.
func (tx *Tx) dueAt(s int, hash uint64, key []byte) bool {
	sh := tx.db.shards[s]
	if tx.db.passive.Load() {
		return false // nothing expires
	}
	if !tx.db.noActive.Load() && sh.next.Load() > tx.ms {
		return false // the reclaimer has nothing to do here
	}
	for _, sp := range sh.spaces {
		if sp == nil {
			continue
		}
		if pos, ok := sp.tab.Find(hash, key); ok {
			if r := sp.rec(pos.Ref()); r.expired(tx.ms) || r.itemDue(tx.ms) {
				return true
			}
		}
	}
	return false
}

// reaches reports whether the transaction holds the shards of keys, and, if a key or item in them
// may be due, the shards of the rules' streams.
func (tx *Tx) reaches(keys [][]byte) bool {
	return tx.holdsAll(keys) && (tx.uncovered() == 0 || !tx.anyDue(keys))
}

// tryShard locks a shard for the reclaimer, and the shards of the streams of all rules. It returns
// the set of the locked shards, or 0 if another goroutine holds, or waits for, one of them.
func (db *DB) tryShard(sh *shard) (held uint64) {
	if !sh.tryLock() {
		return 0
	}
	held = 1 << sh.id
	b := db.book.Load()
	if b == nil || db.noActive.Load() || db.passive.Load() {
		return held
	}
	for m := b.shards &^ held; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if !db.shards[i].tryLock() {
			db.unlock(held)
			return 0
		}
		held |= 1 << i
	}
	return held
}

// tryLock locks a shard unless another goroutine holds it or waits for it, and reports whether it
// did.
func (sh *shard) tryLock() bool { return !sh.lock.Contended() && sh.lock.TryLock() }

// wanted reports whether another goroutine waits for a shard of the transaction.
func (tx *Tx) wanted() bool {
	for m := tx.held; m != 0; m &= m - 1 {
		if tx.db.shards[bits.TrailingZeros64(m)].lock.Contended() {
			return true
		}
	}
	return false
}
