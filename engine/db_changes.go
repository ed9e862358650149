package engine

// Dirty returns how many changes there have been, as Redis counts them, for save
// points. It takes no lock: transactions that are under way are not in it.
func (db *DB) Dirty() int64 {
	var n int64
	for _, sh := range db.shards {
		n += sh.dirty.Load()
	}
	return n
}

// countDirty adds changes. The shard is locked.
func (sh *shard) countDirty(n int) { sh.dirty.Store(sh.dirty.Load() + int64(n)) }

// ActiveExpiry returns what SetActiveExpiry has set.
func (db *DB) ActiveExpiry() bool { return !db.noActive.Load() }
