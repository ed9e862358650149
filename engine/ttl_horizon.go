package engine

import (
	"fmt"
	"math"
)

// Effects carry instants and fencing tokens, which a replay takes over: they decide what
// has expired, and what the next token is. A damaged file, or a master whose clock is
// wrong, must not move them out of reach, so a replay refuses what is beyond the horizon:
//
//	instants (Tx.At)          the clock + SetMaxAhead
//	tokens (Tx.CheckToken)    the clock + SetMaxAhead + 2 x maxAhead: a payload may bring one that
//	                          is ahead by maxAhead, and each start adds a minute
//
// A shard's time follows the instants of its effects, so it is never ahead of the clock
// by more than that. Deadlines and the ids of stream entries are not bounded: clients
// choose them, as in Redis.

// defaultAhead is SetMaxAhead until it is called, in us: an hour.
const defaultAhead = 3600e6

// SetMaxAhead sets by how much, in us, instants of effects may be ahead of the clock.
func (db *DB) SetMaxAhead(us int64) { db.maxAhead.Store(us) }

// SawTime says that data is legitimately of this instant, in us, whatever the clock
// shows: the files are from when the clock was ahead. Replays count from it.
func (db *DB) SawTime(us int64) {
	for {
		last := db.seen.Load()
		if us <= last || db.seen.CompareAndSwap(last, us) {
			return
		}
	}
}

// horizon is the latest instant of an effect, in us, with so much more. It reads the
// clock.
func (db *DB) horizon(more int64) int64 {
	now, ahead := max(db.clock.Micros(), db.seen.Load()), db.maxAhead.Load()
	if now > math.MaxInt64-ahead-more {
		return maxToken
	}
	return min(now+ahead+more, maxToken)
}

// HorizonError says that an effect's instant, or token, is too far ahead.
type HorizonError struct {
	What        string // "instant" or "token"
	Value, Most int64  // us
}

// Error implements error.
func (e *HorizonError) Error() string {
	return fmt.Sprintf("the %s %d is out of range: the clock allows 0 to %d here (max-clock-ahead)", e.What, e.Value, e.Most)
}

// At has the rest of a replay's transaction happen at an instant, in us: effects that
// depend on time carry theirs. It reads the clock where the instant is later than the
// transaction's. Errors: *HorizonError, and nothing has changed.
func (tx *Tx) At(us int64) error {
	if us < 0 || us > tx.now {
		if most := tx.db.horizon(0); us < 0 || us > most {
			return &HorizonError{"instant", us, most}
		}
	}
	tx.now, tx.ms = us, us/1000
	return nil
}

// CheckToken checks a fencing token that comes with an effect, or with a payload.
// Errors: *HorizonError.
func (tx *Tx) CheckToken(token int64) error {
	if token <= tx.now && token > 0 {
		return nil
	}
	if most := tx.db.horizon(2 * maxAhead); token < 1 || token > most {
		return &HorizonError{"token", token, most}
	}
	return nil
}

// foreignToken is CheckToken for a payload, which a client may have brought: then it
// counts from the transaction's instant.
func (tx *Tx) foreignToken(token int64) bool {
	if tx.replay {
		return token == 0 || tx.CheckToken(token) == nil
	}
	return token <= tx.now+maxAhead
}
