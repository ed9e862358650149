package engine

import (
	"runtime"
	"time"
)

// This file serves the direct calls of an embedded engine (internal/direct/calls): work on one key for a caller that needs
// no session. A read is a Held and no transaction; a write is a transaction that TryDirect begins. Neither of them sleeps for a
// shard.

// DirectCalls is the number of kinds of direct calls that a shard counts.
const DirectCalls = 16

// A shard counts the direct calls of each kind under its lock: up to 63 of them in callCounts, which lies in the cache line that
// each call writes anyway, and the others in its Counters. The caller measures the first call and every callsTimed-th.
const (
	callsTimed = 64
	wasTimed   = 0x80 // the bit of a count whose first call was measured
)

type callCounts [DirectCalls]uint8

// DirectCounts are numbers of direct calls by kind.
type DirectCounts [DirectCalls]int64

// due reports whether the caller is to measure the next call of a kind.
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

// A direct call tries to lock a shard some times in a row, about as long as another such call holds it, and then once in each of some
// turns of the scheduler, which cost more.
const (
	directTries = 100
	directSpins = 50
)

// tryDirect locks the shard unless another goroutine holds it for long.
func (sh *shard) tryDirect() bool {
	for range directTries {
		if sh.lock.TryLock() {
			return true
		}
	}
	return sh.spin()
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
	now  int64 // us since 1970
}

// Hold locks the shard of a key. It returns false if another goroutine holds the shard for long.
func (db *DB) Hold(key []byte) (h Held, ok bool) {
	s, hash := db.shardOf(key)
	sh := db.shards[s]
	if snap := db.snap.Load(); snap != nil {
		snap.pace.seen()
	}
	if !sh.tryDirect() {
		return h, false
	}
	return Held{sh, hash, max(db.clock.Micros(), sh.last)}, true
}

// Release unlocks the shard.
func (h *Held) Release() {
	h.sh.last = h.now
	h.sh.lock.Unlock()
}

// Found is the result of Held.String.
type Found uint8

// These are the cases. In the case Unclear only a transaction can tell, because it has more to do than to read.
const (
	Unclear Found = iota
	Missing
	Present
)

// String returns the value of a string. The value lies in the engine's memory, and is valid until Release. Unclear: the key has
// expired, slides, holds another type or a long string, or a miss is an event. The caller calls Hit, or Miss for a key that is
// missing, to count the access. Expected O(1).
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

func (h *Held) missing() Found {
	if h.sh.db.notify.Load()&EventMiss != 0 {
		return Unclear
	}
	return Missing
}

// touch does the work of Tx.touch for a read, and reports whether it could.
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

// Due reports whether the caller is to measure the call, of a kind below DirectCalls. Count counts the call; the measured one
// stands for that number.
func (h *Held) Due(kind int) bool             { return h.sh.due(kind) }
func (h *Held) Count(kind int) (weight int64) { return h.sh.count(kind) }

// TryDirect begins a transaction on one key, as TryLockKey does, for UnlockDirect to end. It returns false if another goroutine holds
// the shard for long, or if begin would have to wait.
func (tx *Tx) TryDirect(dbi int, key []byte) bool {
	db := tx.db
	sh := db.shards[tx.hashKey(key)]
	if s := db.snap.Load(); s != nil {
		s.pace.seen()
		if !tx.reads && s.full.Load() {
			return false
		}
	}
	if !sh.tryDirect() {
		return false
	}
	tx.since(dbi, 1<<tx.hshard, sh.last)
	return db.book.Load() == nil || tx.escalate(false, func() bool { return tx.dueAt(tx.hshard, tx.hash, key) })
}

// UnlockDirect does what Unlock does.
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

// plain reports whether nothing is left to do in a transaction but to count: it holds the shard of its key alone, has no effects to
// log and no client to serve. Its mark and its note that it wrote are for sessions.
func (tx *Tx) plain() bool {
	fx := &tx.fx
	return tx.held == 1<<tx.hshard && fx.n == 0 && fx.verbatim == nil && len(fx.messages) == 0 &&
		tx.ending == nil && !tx.forget && !tx.replay &&
		len(tx.fired)+len(tx.ready)+len(tx.stale)+len(tx.pending)+len(tx.late) == 0
}

// Follower is a Caller that is told of transactions with follow-up work: n is 1 before they unlock their shards, and -1 after the work,
// which needs other shards.
type Follower interface{ Following(n int64) }

// Fits reports whether a key is missing or has a value of a kind. Unlike other reads it counts neither as a hit nor as a miss: the
// read that follows does.
func (tx *Tx) Fits(key []byte, k Kind) bool {
	h := tx.find(key)
	return h.r == nil || h.r.Kind() == k
}

// Due and Count do for a transaction that TryDirect began what those of Held do.
func (tx *Tx) Due(kind int) bool             { return tx.db.shards[tx.hshard].due(kind) }
func (tx *Tx) Count(kind int) (weight int64) { return tx.db.shards[tx.hshard].count(kind) }

// DirectBarrier waits until the direct calls have ended that hold a shard now. It returns early if stop does: where another
// goroutine holds all shards for long, no direct call holds one.
func (db *DB) DirectBarrier(stop func() bool) {
	for _, sh := range db.shards {
		for !sh.tryDirect() {
			if stop() {
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
		sh.lock.Unlock()
	}
}
