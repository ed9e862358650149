package engine

import (
	"hash/maphash"
	"runtime"
	"time"
	"unsafe"
)

// This file serves the direct calls of an embedded engine (internal/direct/calls): work on one key for a
// caller that needs no session. A read uses a Held and no transaction; a write uses a transaction that
// TryDirect begins. Neither sleeps while it waits for a shard.

// DirectCalls is the number of kinds of direct calls that a shard counts.
const DirectCalls = 16

// A shard counts the direct calls of each kind under its lock: up to 63 of them in callCounts, which is in
// the cache line that each call writes anyway, and the others in its Counters. The caller measures the first
// call and every callsTimed-th.
const (
	callsTimed = 64
	wasTimed   = 0x80 // the bit of a count whose first call was measured
)

type callCounts [DirectCalls]uint8

// DirectCounts are numbers of direct calls by kind.
type DirectCounts [DirectCalls]int64

// due reports whether the caller must measure the next call of a kind.
func (sh *shard) due(kind int) bool {
	n := sh.calls[kind]
	return n == 0 || n == wasTimed|callsTimed-1
}

// count counts a call. It returns the number of calls that a measured call stands for, 0 for a call that is not measured.
func (sh *shard) count(kind int) (weight int64) {
	if !sh.due(kind) {
		sh.calls[kind]++
		return 0
	}
	if weight = callsTimed; sh.calls[kind] == 0 {
		weight = 1
	}
	sh.calls[kind] = wasTimed
	sh.stats.Direct[kind] += weight
	return weight
}

// addTo adds the counters of the shard to c. The shard is locked.
func (sh *shard) addTo(c *Counters) {
	c.add(&sh.stats)
	c.Hits += sh.hits
	c.Misses += sh.misses
	for kind, n := range sh.calls {
		c.Direct[kind] += int64(n &^ wasTimed)
	}
}

// A direct call first tries to lock a shard several times in a row, for about the time for which another such
// call holds it. Then it tries once in each of several turns of the scheduler, which cost more.
const (
	directTries = 100
	directSpins = 50
)

// tryDirect locks the shard unless another goroutine holds it for long. It returns the instant of the call,
// which is not before the last instant of the shard. It reads the clock before it locks the shard, and again
// if it had to wait for turns: this shortens the time for which no other call can lock the shard.
func (sh *shard) tryDirect() (now int64, ok bool) {
	now = sh.db.clock.Micros()
	for range directTries {
		if sh.lock.TryLock() {
			return max(now, sh.last), true
		}
	}
	if !sh.spin() {
		return 0, false
	}
	return max(sh.db.clock.Micros(), sh.last), true
}

// spin is the part of tryDirect that waits for turns.
func (sh *shard) spin() bool {
	sh.lock.Await(1)
	defer sh.lock.Await(-1)
	for range directSpins {
		runtime.Gosched()
		if sh.lock.TryLock() {
			return true
		}
	}
	return false
}

// Held is the locked shard of one key, for one read. Hold returns it, and Release ends it.
type Held struct {
	sh   *shard
	hash uint64
	now  int64    // us since 1970
	num  [20]byte // the result of Field, if it is a number in a small hash
}

// Hold locks the shard of a key. It returns false if another goroutine holds the shard for long.
func (db *DB) Hold(key []byte) (h Held, ok bool) {
	s, hash := db.shardOf(key)
	sh := db.shards[s]
	if snap := db.snap.Load(); snap != nil {
		snap.pace.seen()
	}
	now, ok := sh.tryDirect()
	return Held{sh: sh, hash: hash, now: now}, ok
}

// Release unlocks the shard.
func (h *Held) Release() {
	h.sh.last = h.now
	h.sh.lock.Unlock()
}

// Found is the result of Held.String.
type Found uint8

// The results of a lookup. Unclear means that the call needs a transaction, because it has to do more than
// read.
const (
	Unclear Found = iota
	Missing
	Present
	NoField // the key exists, but the field does not
)

// String returns the value of a string. The value is in the engine's memory, and is valid until Release. The
// result is Unclear if the key has expired, slides, holds another type or a long string, or if a miss is an
// event. The caller must call Hit, or Miss for a missing key, to count the access. Expected O(1).
func (h *Held) String(dbi int, key []byte) (val []byte, found Found) {
	sp := h.sh.spaces[dbi]
	if sp == nil {
		return nil, h.missing()
	}
	pos, ok := sp.tab.Find(h.hash, key)
	if !ok {
		return nil, h.missing()
	}
	r := sp.rec(pos.Ref())
	if r.Kind() != String || r.kind&(flagExt|flagSlide) != 0 || r.expired(h.now/1000) || !h.touch(r) {
		return nil, Unclear
	}
	return r.inlineValue(), Present
}

// Field looks up a field of a hash as String looks up a string. itemHash is the field's DB.HashItem. The
// result is Unclear if the key has expired, slides, holds another type, or has only due fields, or if an
// expiry rule may apply to a due field.
func (h *Held) Field(dbi int, key, field []byte, itemHash uint64) (val []byte, found Found) {
	sp := h.sh.spaces[dbi]
	if sp == nil {
		return nil, h.missing()
	}
	pos, ok := sp.tab.Find(h.hash, key)
	if !ok {
		return nil, h.missing()
	}
	r, ms := sp.rec(pos.Ref()), h.now/1000
	if r.Kind() != Hash || r.has(flagSlide) || r.expired(ms) {
		return nil, Unclear
	}
	x := hit{sh: h.sh, sp: sp, h: h.hash, pos: pos, r: r}
	v := HashView{now: ms}
	if b := x.box(); b != nil {
		v.large = b.(hashTable).Dict
	} else {
		v.small = x.image()
	}
	if r.itemDue(ms) && (h.sh.db.book.Load() != nil || v.Len() == 0) || !h.touch(r) {
		return nil, Unclear
	}
	if v.large != nil {
		if val, ok = v.large.GetHashed(itemHash, field, ms); ok {
			return val, Present
		}
		return nil, NoField
	}
	at, ok := v.small.Find(field, ms)
	if !ok {
		return nil, NoField
	}
	if s := v.small.Value(at); !s.IsInt() {
		return s.B, Present
	}
	return v.small.Value(at).Append(h.num[:0]), Present
}

// HashItem returns the hash of a field, for Field and Tx.Hashed: a caller computes it before it locks the
// shard.
func (db *DB) HashItem(item []byte) uint64 { return maphash.Bytes(db.seed, item) }

func (h *Held) missing() Found {
	if h.sh.db.notify.Load()&EventMiss != 0 {
		return Unclear
	}
	return Missing
}

// touch records a read as Tx.touch does, and reports whether it could.
func (h *Held) touch(r *rec) bool {
	if h.sh.db.lfu.Load() {
		return false // it needs a random number
	}
	if c := uint32(h.now/1e6) & lruMask; c != r.access() {
		r.setAccess(c)
	}
	return true
}

// Hit counts a read that found its key. Miss counts one that did not.
func (h *Held) Hit()  { h.sh.hits++ }
func (h *Held) Miss() { h.sh.misses++ }

// Due reports whether the caller must measure this call. The kind is below DirectCalls. Count counts the
// call; a measured call stands for that number of calls.
func (h *Held) Due(kind int) bool             { return h.sh.due(kind) }
func (h *Held) Count(kind int) (weight int64) { return h.sh.count(kind) }

// TryDirect begins a transaction on one key, as TryLockKey does; UnlockDirect ends it. It returns false if
// another goroutine holds the shard for long, or if the beginning would have to wait.
func (tx *Tx) TryDirect(dbi int, key []byte) bool {
	db := tx.db
	sh := db.shards[tx.hashKey(key)]
	if s := db.snap.Load(); s != nil {
		s.pace.seen()
		if !tx.reads && s.full.Load() {
			return false
		}
	}
	now, ok := sh.tryDirect()
	if !ok {
		return false
	}
	tx.since(dbi, 1<<tx.hshard, now)
	return db.book.Load() == nil || tx.escalate(false, func() bool { return tx.dueAt(tx.hshard, tx.hash, key) })
}

// Hashed gives the transaction the HashItem of the item that it will write next, until Hashed is called
// again. The item's bytes must not change meanwhile.
func (tx *Tx) Hashed(item []byte, hash uint64) {
	tx.item, tx.itemLen, tx.itemHash = unsafe.SliceData(item), len(item), hash
}

// hashItem returns the hash of an item; it computes nothing if Hashed has set it.
func (tx *Tx) hashItem(item []byte) uint64 {
	if tx.item != nil && len(item) == tx.itemLen && unsafe.SliceData(item) == tx.item {
		return tx.itemHash
	}
	return tx.db.HashItem(item)
}

// UnlockDirect ends a transaction of TryDirect, as Unlock does.
func (tx *Tx) UnlockDirect() {
	if !tx.plain() {
		tx.Unlock()
		return
	}
	sh := tx.db.shards[tx.hshard]
	tx.release()
	if tx.dirty > 0 {
		sh.countDirty(tx.dirty)
	}
	tx.leave(sh)
	tx.held, tx.hashed, tx.dirty, tx.resized, tx.reads = 0, nil, 0, false, false
	sh.lock.Unlock()
}

// plain reports whether a transaction has nothing left to do but count: it holds only the shard of its key,
// and has no effects to log and no client to serve. Its mark and the flag Wrote matter only to sessions.
func (tx *Tx) plain() bool {
	fx := &tx.fx
	return tx.held == 1<<tx.hshard && fx.n == 0 && fx.verbatim == nil && len(fx.messages) == 0 &&
		tx.ending == nil && !tx.forget && !tx.replay &&
		len(tx.fired)+len(tx.ready)+len(tx.stale)+len(tx.pending)+len(tx.late) == 0
}

// Follower is a Caller that learns of transactions with follow-up work in other shards: n is 1 before such a
// transaction unlocks its shards, and -1 after that work.
type Follower interface{ Following(n int64) }

// Due and Count work as those of Held do, for a transaction that TryDirect began.
func (tx *Tx) Due(kind int) bool             { return tx.db.shards[tx.hshard].due(kind) }
func (tx *Tx) Count(kind int) (weight int64) { return tx.db.shards[tx.hshard].count(kind) }

// DirectBarrier waits until the direct calls that hold a shard now have ended. It returns early if stop
// returns true: if another goroutine holds all shards for long, no direct call holds one.
func (db *DB) DirectBarrier(stop func() bool) {
	for _, sh := range db.shards {
		for {
			if _, ok := sh.tryDirect(); ok {
				break
			}
			if stop() {
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
		sh.lock.Unlock()
	}
}
