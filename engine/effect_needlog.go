package engine

// NeedLog notes that one more user needs the stream of effects, delta 1, or one
// less, -1: files, replicas. Effects are encoded while somebody needs them, unless
// MuteLog forbids it. It locks all shards for a moment.
func (db *DB) NeedLog(delta int) {
	db.lockAll()
	db.needLog(delta)
	db.unlock(db.all())
}

// NeedLog is DB.NeedLog for a transaction that holds all shards.
func (tx *Tx) NeedLog(delta int) { tx.db.needLog(delta) }

// MuteLog has no effects encoded, whoever needs them, or ends that: a replica's
// stream is its master's, and what is written to the replica itself is in none. The
// transaction holds all shards.
func (tx *Tx) MuteLog(on bool) {
	tx.db.logMuted = on
	tx.db.switchLog()
}

func (db *DB) needLog(delta int) {
	db.logUsers += delta
	db.switchLog()
}

func (db *DB) switchLog() { db.logging.Store(db.logUsers > 0 && !db.logMuted) }

// LogNeeded reports whether anybody needs the stream. All shards are locked.
func (db *DB) LogNeeded() bool { return db.logUsers > 0 }
