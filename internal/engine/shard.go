package engine

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// shard is a part of every database, under one lock. A key's shard follows from the hash
// of its hash tag, or of the whole key if it has no tag.
type shard struct {
	// Each call writes these fields, which share a cache line;
	lock   waitLock
	last   int64 // the last instant of a transaction here, us
	calls  callCounts
	hits   int64 // reads of keys that existed
	misses int64 // reads of keys that did not

	// each call that writes also writes these, up to the first of stats, in the next cache line.
	dirty atomic.Int64 // changes, as Redis counts them; written under the lock
	freed int          // bytes freed since compaction was last considered
	stats Counters     // without hits and misses

	db *DB
	id int

	spaces   []*space // by database; nil until the database stores a key in this shard
	staged   []*space // the spaces of a Staging, by database; nil: there is no Staging
	own      *own     // a replica's own keys; nil: there are none
	watched  map[watchKey]*watchList
	lines    lineSet      // the waiters for keys
	leases   leaseSet     // the refresh leases of keys
	lazyFree []box        // deleted large containers that the reclaimer has to free
	bytes    atomic.Int64 // the bytes of the spaces when used was last published
	limiters int64        // the part of bytes that limiters take up
	evictor  evictor
	snap     *shardSnapshot // the state of a snapshot that has not saved all of this shard; nil: none
	mark     int64          // the offset in the stream after the newest effect of this shard

	// next is the time in ms of the reclaimer's next work in this shard. Writers hold the lock;
	// readers need not.
	next  atomic.Int64
	owner *Reclaimer
}

const cacheLine = 64

// paddedShard is a shard that fills whole cache lines, so that shards share none, if the first one begins at
// the start of a line.
type paddedShard struct {
	shard
	_ [cacheLine + (cacheLine-unsafe.Sizeof(shard{})%cacheLine)%cacheLine]byte
}

// never is the time in ms of work that is not scheduled.
const never = math.MaxInt64

// workAt records that the reclaimer has work from ms on, and wakes it if it would sleep longer.
func (sh *shard) workAt(ms int64) {
	if ms < sh.next.Load() {
		sh.next.Store(ms)
		if ms < sh.owner.plan.Load() {
			sh.owner.wake()
		}
	}
}

// freeLazily leaves a large container for the reclaimer to free.
func (sh *shard) freeLazily(b box) {
	sh.lazyFree = append(sh.lazyFree, b)
	sh.workAt(0)
}

// makeSpace returns the shard's part of a database, and creates it if there is none.
func (sh *shard) makeSpace(db int) *space { return sh.spaceOf(sh.spaces, db) }

// spaceOf returns the space of a database in spaces, and creates it if there is none. The spaces
// belong to the shard.
func (sh *shard) spaceOf(spaces []*space, db int) *space {
	if spaces[db] == nil {
		spaces[db] = newSpace(sh, db)
	}
	return spaces[db]
}

// publish adds the change since the last publish to the engine's used memory.
func (sh *shard) publish() {
	n, limiters := int64(0), int64(0)
	for _, spaces := range [...][]*space{sh.spaces, sh.staged} {
		for _, sp := range spaces {
			if sp != nil {
				n += int64(sp.bytes())
				limiters += int64(sp.kept[Limiter])
			}
		}
	}
	if old := sh.limiters; limiters != old {
		sh.db.limiters.Add(limiters - old)
		sh.limiters = limiters
	}
	if old := sh.bytes.Load(); n != old {
		sh.db.used.Add(n - old)
		sh.bytes.Store(n)
	}
}
