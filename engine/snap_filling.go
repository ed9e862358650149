package engine

// While an engine is filled, by a file or by a log, what expires is not decided here:
// the log that is being read says so further on, or nothing does, because the log that
// is to hold the removal is not open yet. So nothing is removed meanwhile:
//
//	replays     (Tx.Replaying, Load) see everything and bring what the file says
//	others      a client's WATCH, DEBUG OBJECT, EXEC: what is dead is hidden from them,
//	            nothing is removed or logged, no rule is told, nothing is evicted
//	waiters     are not served: what they would take is not logged
//	reclaimers  keep the wheels' time, and remove nothing
//
// This is what a replica does with what its master decides (replica.go); DB.passive is
// the word for both.

// BeginLoad says that the engine is being filled, until EndLoad: nothing expires, is
// evicted, or given to a client that waits. The two nest. It locks all shards for a moment:
// transactions that began before have settled when it returns. O(shards).
func (db *DB) BeginLoad() {
	db.lockAll()
	db.loads++
	db.settlePassive()
	db.unlock(db.all())
}

// EndLoad ends what BeginLoad began. The caller has the stream of effects taken by then
// by all that are to have it (NeedLog, an appender at its place): from here on what is
// due is removed, with effects. All watches are broken, because the data behind them may
// be another, and the clients that wait for keys are served. O(watches + waiting lines).
func (db *DB) EndLoad() {
	tx := db.BeginAll(0)
	if db.loads--; db.loads == 0 {
		db.settlePassive()
		for _, sh := range db.shards {
			for _, l := range sh.watched {
				l.touched()
			}
		}
		tx.signalAll(-1)
	}
	tx.Commit()
	db.evictSoon()
}

// Filling reports whether the engine is between BeginLoad and EndLoad.
func (db *DB) Filling() bool { return db.filling.Load() }

// settlePassive works out whether the engine leaves what is dead to others. All shards
// are locked.
func (db *DB) settlePassive() {
	db.filling.Store(db.loads > 0)
	on := db.loads > 0 || db.replica.Load()
	if db.passive.Swap(on) == on {
		return
	}
	for _, sh := range db.shards {
		sh.workAt(0)
	}
}
