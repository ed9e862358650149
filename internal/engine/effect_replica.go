package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/bloom"
	"github.com/ebbdb/ebb/internal/holders"
	"github.com/ebbdb/ebb/internal/table"
	"github.com/ebbdb/ebb/internal/wheel"
)

// A replica holds the keyspace that its master sends. The expirations of the master arrive as DEL,
// HDEL, SREM, ZREM and so on. Until then expired items stay, and reads hide them.
//
//	reads       hide dead items and change nothing: Tx.find, Tx.dead, Tx.itemTime
//	reclaimers  keep the wheels' time, so that dead items can be counted; they
//	            remove nothing (Reclaimer.keepTime)
//	replays     (Tx.Replaying) apply the master's effects, and see everything
//	writes      of clients, if the replica accepts any: they treat dead items as
//	            missing, and remove them without an effect (Tx.makeWay, Tx.lapse)
//
// A replica does not log, report or count any expiration. Its reads do not move sliding deadlines,
// and it evicts nothing unless SetReplicaEviction allows it. An engine that stops being a replica
// removes everything that is due, soon and with effects. A writable replica removes a client's own
// key when its deadline passes (ttl_replica.go).

// SetReplica makes the engine a replica, or a master again. It locks all shards
// for a moment. O(shards).
func (db *DB) SetReplica(on bool) {
	db.lockAll()
	db.setReplica(on)
	db.unlock(db.all())
}

// SetReplica is DB.SetReplica within a transaction that holds all shards.
func (tx *Tx) SetReplica(on bool) { tx.db.setReplica(on) }

func (db *DB) setReplica(on bool) {
	if db.replica.Swap(on) == on {
		return
	}
	for _, sh := range db.shards {
		sh.own = nil
	}
	db.settlePassive()
	if !on {
		db.evictSoon()
	}
}

// Replica reports whether the engine is a replica. It changes with all shards
// locked.
func (db *DB) Replica() bool { return db.replica.Load() }

// SetReplicaEviction sets whether a replica evicts keys on its own when it uses more
// memory than allowed; by default it leaves that to the master.
func (db *DB) SetReplicaEviction(on bool) {
	db.ownEvict.Store(on)
	db.evictSoon()
}

// spared reports whether the engine may use more memory than allowed, because the master
// evicts, or because no log takes the evictions.
func (db *DB) spared() bool {
	return db.passive.Load() && (db.filling.Load() || !db.ownEvict.Load())
}

// hiding reports whether reads hide dead items and leave them in place: the master or the
// log that is being loaded removes them, or the data stands still for reads.
func (tx *Tx) hiding() bool {
	return !tx.replay && (tx.db.passive.Load() || tx.reads && tx.db.still.Load())
}

// unlogged reports whether the transaction's effects go to no stream: a client runs it on a replica, or
// during a load.
func (tx *Tx) unlogged() bool { return tx.db.passive.Load() && !tx.replay }

// makeWay removes the hidden record under a key that is about to be created.
func (tx *Tx) makeWay(sp *space, hash uint64, key []byte) {
	if !tx.hiding() {
		return
	}
	if pos, ok := sp.tab.Find(hash, key); ok {
		tx.drop(&hit{sh: sp.sh, sp: sp, h: hash, pos: pos, r: sp.rec(pos.Ref())})
	}
}

// meetHidden works as meetDue does, on a replica: it treats a container without living items as missing.
func (tx *Tx) meetHidden(h *hit) {
	if tx.hollow(h) {
		h.r = nil
		return
	}
	tx.date(h) // the entry may be early
}

// leased works as container does, for a write to a value with leases: on a replica it first removes the
// expired leases, as find does on a master.
func (tx *Tx) leased(key []byte, k Kind) (hit, error) {
	h, err := tx.container(key, k)
	for err == nil && h.r != nil && tx.hiding() && h.r.itemDue(tx.ms) && tx.lapse(&h, key, lapseWhole) {
	}
	return h, err
}

// stale is a container that a replay has changed. Its entry may be early when the replay ends; on a master
// the reclaimer sets the entry to the next item.
type stale struct {
	db  int
	key []byte
}

// noteStale makes the end of the transaction check the container again. Otherwise the entry of a container
// whose dead items the master has removed would stay due for ever.
func (tx *Tx) noteStale(key []byte) {
	n := len(tx.stale)
	if n > 0 && tx.stale[n-1].db == tx.dbi && string(tx.stale[n-1].key) == string(key) {
		return
	}
	if n < cap(tx.stale) {
		tx.stale = tx.stale[:n+1]
	} else {
		tx.stale = append(tx.stale, stale{})
	}
	s := &tx.stale[n]
	s.db, s.key = tx.dbi, append(s.key[:0], key...)
}

// redate sets the entries of the noted containers. O(1) for each.
func (tx *Tx) redate() {
	for i := range tx.stale {
		s := &tx.stale[i]
		id, hash := tx.db.shardOf(s.key)
		sp := tx.db.shards[id].spaces[s.db]
		if sp == nil {
			continue
		}
		if pos, ok := sp.tab.Find(hash, s.key); ok {
			tx.redateAt(sp, hash, pos)
		}
	}
	tx.stale = tx.stale[:0]
}

// redateAt sets the entry of a container that has one. It moves no record. O(1).
func (tx *Tx) redateAt(sp *space, hash uint64, pos table.Pos) {
	h := hit{sh: sp.sh, sp: sp, h: hash, pos: pos, r: sp.rec(pos.Ref())}
	if h.r.nextAt() != 0 {
		tx.date(&h)
	}
}

// syncEntries is the number of entries of a wheel that a reclaimer moves between two checks of the clock and
// of the shard's waiters: some 10 us of work.
const syncEntries = 256

// keepTime moves the wheels of a replica's shard to the present, and fires nothing. It reports whether more
// work is left for now.
func (r *Reclaimer) keepTime(tx *Tx, sh *shard, end int64) (more bool) {
	for _, sp := range sh.spaces {
		if sp == nil {
			continue
		}
		for _, w := range [...]*wheel.Wheel{sp.due, sp.next, sp.fresh} {
			for w != nil && w.Sync(tx.ms, syncEntries) == syncEntries {
				if tx.wanted() || tx.db.clock.Micros() >= end {
					return true
				}
			}
		}
	}
	return false
}

// nextWheel returns the time in ms of the next work for a wheel: on a replica only to
// keep its time.
func (sh *shard) nextWheel(w *wheel.Wheel) (ms int64, ok bool) {
	if sh.db.passive.Load() {
		return w.NextCascade()
	}
	return w.Next()
}

// randomTries is the number of times that a replica picks a key at random before it counts keys, because many
// of its keys may be dead. Redis uses the same number.
const randomTries = 100

// anyKey returns a living key, each with the same probability, or nil. O(keys).
func (tx *Tx) anyKey(rnd func() uint64) (key []byte) {
	n := uint64(0)
	tx.Each(func(k Key) {
		if n++; rnd()%n == 0 {
			key = k.Name()
		}
	})
	return key
}

// seenHolders returns the holders of a lock or a semaphore that a read sees.
func (tx *Tx) seenHolders(h *hit) holders.List {
	if tx.hiding() {
		return h.holders().Living(tx.ms)
	}
	return h.holders()
}

// seenBloom returns the part of a Bloom filter that a read sees.
func (tx *Tx) seenBloom(h *hit) *bloom.Filter {
	f := h.box().(bloomBox).Filter
	if tx.hiding() {
		return f.Living(tx.ms)
	}
	return f
}

// nextFrom returns the next deadline of an item in a container that is not due at now and is before the key's
// deadline, in ms since 1970; 0 for never. O(1); with dead items O(log n), in a list O(n).
func (tx *Tx) nextFrom(h *hit, now int64) int64 {
	if at := h.r.nextAt(); at >= now {
		return at
	}
	at, d := tx.nextLiving(h, now), h.r.deadline()
	if d != 0 && d <= at {
		return 0
	}
	return at
}

// nextLiving is nextFrom for a container with dead items.
func (tx *Tx) nextLiving(h *hit, now int64) int64 {
	if k := h.r.Kind(); k == Lock || k == Semaphore {
		if b := h.holders().Living(now); b != nil {
			return b.Earliest()
		}
		return 0
	}
	if b, ok := h.box().(interface{ NextFrom(now int64) int64 }); ok {
		return b.NextFrom(now)
	}
	return tx.earliestItem(h)
}

// nextHidden works as nextItem does, for containers with dead items: on a replica, or before the reclaimer
// has removed them. O(containers with dead items).
func (tx *Tx) nextHidden(sp *space, now int64, note func(int64, Level, []byte)) {
	sp.next.EachDue(now, func(ref uint32) {
		h := hit{sh: sp.sh, sp: sp, r: sp.rec(arena.Ref(ref))}
		if h.r.Kind() == Limiter || tx.dead(sp, h.r) {
			return
		}
		if at := tx.nextFrom(&h, now); at != 0 {
			note(at, levelOf(h.r.Kind()), sp.key(h.r))
		}
	})
}

// redateDue sets the entries of a space's living containers that are due by their entries: replays have left
// these entries early. O(due containers).
func (tx *Tx) redateDue(sp *space, living []arena.Ref) {
	for _, ref := range living {
		hash := sp.Hash(ref)
		if pos, ok := sp.tab.FindRef(hash, ref); ok {
			tx.redateAt(sp, hash, pos)
		}
	}
}
