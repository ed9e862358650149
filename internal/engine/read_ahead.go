package engine

import (
	"math/bits"
	"runtime"
	"unsafe"
)

// This file reads ahead for pipelines. A session executes the commands of a pipeline one after the other, and
// each of them would wait for the memory of its key's bucket, and then of its record. So the session first
// passes the keys of the next commands to ReadAhead:
//
//	for each shard: lock ─▶ the addresses of the buckets ─▶ unlock      read the buckets: the cache misses overlap
//	for each shard: lock ─▶ the addresses of the records ─▶ unlock      read the records
//
// The reads happen outside of the locks, because unlocking would wait for earlier reads. So they may read
// memory that another goroutine frees or writes to. They cannot fault, because a pool unmaps nothing before
// the engine is closed, and their results are not used.

// AheadMost is the capacity of an Ahead in keys. A processor has about a dozen cache misses in flight at
// once, so that more keys would save little.
const AheadMost = 32

// Ahead is a set of keys that a caller is about to look up, each in a transaction of its own. The zero value is empty.
type Ahead struct {
	n      int
	shards uint64            // a bit for each shard of a key
	last   [maxShards]uint8  // by shard: the number of its last key, from 1 on
	before [AheadMost]uint8  // by key: the number of the key before it in the same shard; 0: none
	hashes [AheadMost]uint64 // by key
}

// Add adds a key if there is room. It keeps only the key's hash.
func (a *Ahead) Add(db *DB, key []byte) {
	if a.n == AheadMost {
		return
	}
	s, hash := db.shardOf(key)
	a.hashes[a.n], a.before[a.n] = hash, a.last[s]
	a.n++
	a.last[s] = uint8(a.n)
	a.shards |= 1 << s
}

// ReadAhead reads the memory that lookups of the keys in database dbi are going to read. It waits for no
// lock: it leaves out the keys of a shard that another goroutine holds. It returns false if such calls save
// nothing, because there are no keys or the keyspace is small enough for the caches. The caller must hold no
// shard. O(keys); it allocates nothing.
func (db *DB) ReadAhead(dbi int, a *Ahead) (saves bool) {
	var at [2 * AheadMost]unsafe.Pointer
	n, small := db.lines(dbi, a, false, &at)
	if n > 1 { // otherwise there is nothing to overlap with
		runtime.KeepAlive(readLines(at[:n]))
		n, _ = db.lines(dbi, a, true, &at)
		runtime.KeepAlive(readLines(at[:n]))
	}
	return a.n > 0 && !small
}

// lines stores in at the addresses of the keys' buckets, or of the first two cache lines of their records,
// and returns their number. If the second line equals the first, reading it again costs nothing.
func (db *DB) lines(dbi int, a *Ahead, records bool, at *[2 * AheadMost]unsafe.Pointer) (n int, small bool) {
	for m := a.shards; m != 0; m &= m - 1 {
		s := bits.TrailingZeros64(m)
		sh := db.shards[s]
		if !sh.tryLock() {
			continue
		}
		sp := sh.spaces[dbi]
		if sp == nil || sp.tab.Buckets() < touchBuckets {
			sh.lock.Unlock()
			return 0, true
		}
		for i := a.last[s]; i != 0; i = a.before[i-1] {
			if hash := a.hashes[i-1]; !records {
				at[n] = sp.tab.Line(hash)
				n++
			} else if ref := sp.tab.First(hash); ref != 0 {
				at[n] = sp.mem.Ptr(ref)
				at[n+1] = unsafe.Add(at[n], min(sp.mem.SlotOf(ref)-headSize, cacheLine))
				n += 2
			}
		}
		sh.lock.Unlock()
	}
	return n, false
}

// readLines reads a word at each address. The result only keeps the compiler from removing the reads. The
// race detector does not see the reads: other goroutines may write there.
//
//go:norace
func readLines(at []unsafe.Pointer) (sum uint64) {
	for _, p := range at {
		sum += *(*uint64)(p)
	}
	return sum
}
