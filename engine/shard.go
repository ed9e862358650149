package engine

import (
	"math"
	"sync/atomic"
)

// shard is a part of every database, under one lock. A key's shard follows from the hash
// of its hash tag, or of the whole key if it has no tag.
type shard struct {
	lock waitLock
	db   *DB
	id   int

	last     int64    // the latest instant of a transaction here, us
	spaces   []*space // by database; nil for a database that has never stored anything here
	staged   []*space // of a Staging, by database; nil: there is none
	own      *own     // a replica's own keys; nil: there are none
	watched  map[watchKey]*watchList
	lines    lineSet      // the waiters for keys
	lazyFree []box        // large containers that are gone, to be freed
	freed    int          // bytes freed since compaction was last considered
	bytes    atomic.Int64 // the bytes of the spaces when used was last published
	limiters int64        // of these, the bytes of limiters
	evictor  evictor
	stats    Counters
	snap     *shardSnapshot // of a snapshot that has to save something here; nil: none
	mark     int64          // the position in the stream behind the newest effect here
	dirty    atomic.Int64   // changes, as Redis counts them; written under the lock

	// next is the time in ms from which on the reclaimer has work here. Writers hold the
	// lock; readers need not.
	next  atomic.Int64
	owner *Reclaimer

	_ [64]byte // shards do not share cache lines
}

// never is a time that does not come.
const never = math.MaxInt64

// workAt notes that the reclaimer has work from ms on, and wakes it if it means to sleep
// longer.
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

// makeSpace returns the shard's part of a database.
func (sh *shard) makeSpace(db int) *space { return sh.spaceOf(sh.spaces, db) }

// spaceOf returns the space of a database among spaces, which are the shard's.
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
