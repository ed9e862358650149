package engine

import "github.com/ebbdb/ebb/internal/wheel"

// The methods of this file do the work of DB's methods with the same names, in a transaction. If the
// transaction holds all shards, they take no lock. If it holds none, they lock one shard after the other.

// eachShard calls f for every shard, with the shard locked.
func (tx *Tx) eachShard(f func(sh *shard)) {
	for i, sh := range tx.db.shards {
		if tx.holds(i) {
			f(sh)
			continue
		}
		sh.lock.Lock()
		f(sh)
		sh.lock.Unlock()
	}
}

// Stats is DB.Stats.
func (tx *Tx) Stats() (c Counters) {
	tx.StatsTo(&c)
	return c
}

// StatsTo does the work of Stats, into memory of the caller.
func (tx *Tx) StatsTo(c *Counters) {
	*c = Counters{}
	tx.eachShard(func(sh *shard) { sh.addTo(c) })
}

// ResetStats is DB.ResetStats.
func (tx *Tx) ResetStats() {
	tx.eachShard((*shard).resetStats)
}

// UsedMemory is DB.UsedMemory.
func (tx *Tx) UsedMemory() int64 {
	tx.eachShard((*shard).publish)
	return tx.db.used.Load()
}

// LimitMemory is DB.LimitMemory.
func (tx *Tx) LimitMemory(bytes int64) {
	tx.db.limit.Store(bytes)
	tx.UsedMemory()
	tx.db.evictSoon()
}

// SetActiveExpiry is DB.SetActiveExpiry.
func (tx *Tx) SetActiveExpiry(on bool) {
	tx.db.noActive.Store(!on)
	if on {
		tx.eachShard(func(sh *shard) { sh.workAt(0) })
	}
}

// Keyspaces returns the result of DB.Keyspace for every database, in one pass over the shards.
func (tx *Tx) Keyspaces() []KeyspaceStats {
	all := make([]KeyspaceStats, tx.db.ndb)
	sums := make([]int64, tx.db.ndb)
	tx.eachShard(func(sh *shard) {
		now := max(tx.db.clock.Micros(), sh.last) / 1000
		for i, sp := range sh.spaces {
			if sp != nil {
				sums[i] += sp.count(&all[i], now)
			}
		}
	})
	for i := range all {
		all[i].finish(sums[i])
	}
	return all
}

// count adds a space to a database's numbers and returns the sum of its keys' remaining times in
// ms. Keys that are due count among Expires.
func (sp *space) count(s *KeyspaceStats, now int64) int64 {
	s.Keys += sp.tab.Len()
	if sp.next != nil {
		s.Inner += sp.next.Len()
	}
	if sp.due == nil {
		return 0
	}
	sp.settleLate(now)
	due := sp.due.Due(now)
	s.Keys -= due
	s.Due += due
	s.Expires += sp.due.Len()
	return sp.ttls - int64(sp.due.Len())*now
}

// Backlog returns the number of keys, and containers of items, that have expired and wait to be removed, and
// the number that have a deadline. Unlike Keyspaces, it does not search for keys that fell due since the last
// slice of reclaiming. It costs O(shards), even when many keys expire at once.
func (tx *Tx) Backlog() (due, all int64) {
	tx.eachShard(func(sh *shard) {
		for _, sp := range sh.spaces {
			if sp == nil {
				continue
			}
			for _, w := range [...]*wheel.Wheel{sp.due, sp.next} {
				if w != nil {
					due += int64(w.Ripe())
					all += int64(w.Len())
				}
			}
		}
	})
	return due, all
}

// TableMemory returns the bytes of a database's tables and of the
// wheels' share in its records.
func (tx *Tx) TableMemory(dbi int) (tables, deadlines int64) {
	tx.eachShard(func(sh *shard) {
		sp := sh.spaces[dbi]
		if sp == nil {
			return
		}
		tables += int64(sp.tables())
		if sp.due != nil {
			deadlines += int64(sp.due.Len()) * entrySize
		}
	})
	return tables, deadlines
}
