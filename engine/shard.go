package engine

import (
	"math"
	"sync/atomic"
)

// shard is a part of every database, under one lock. A key's shard follows
// from its hash tag, or the whole key's hash where there is none.
type shard struct {
	lock waitLock
	db   *DB
	id   int

	last     int64    // the latest instant of a transaction here, us
	spaces   []*space // by database, nil where nothing was ever stored
	staged   []*space // of a Staging, by database; nil: there is none
	own      *own     // keys of a replica's own; nil: there are none
	watched  map[watchKey]*watchList
	lines    lineSet      // who waits for keys
	lazyFree []box        // large containers that are gone, to be freed
	freed    int          // bytes freed since compaction was last considered
	bytes    atomic.Int64 // what the spaces held when used was last published
	limiters int64        // of these, what limiters held
	evictor  evictor
	stats    Counters
	snap     *shardSnapshot // of a snapshot that has to save something here; nil: none
	mark     int64          // in the stream: behind the newest effect here
	dirty    atomic.Int64   // changes, as Redis counts them; written under the lock

	// next is the time in ms from which on the reclaimer has work here; it is
	// written under the lock, and read without.
	next  atomic.Int64
	owner *Reclaimer

	_ [64]byte // shards do not share cache lines
}

// never is a time that does not come.
const never = math.MaxInt64

// workAt notes that there is work for the reclaimer from ms on, and wakes it
// if it means to sleep longer.
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

// publish adds to the engine's used memory what changed since the last time.
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
