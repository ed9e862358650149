package engine

import (
	"fmt"
	"math"
)

// Effects carry instants and fencing tokens, which a replay adopts: they determine which data has expired,
// and the next token. A damaged file, or a master whose clock is wrong, must not move time and tokens far
// ahead, so a replay refuses values beyond the horizon:
//
//	instants (Tx.At)          the clock + SetMaxAhead
//	tokens (Tx.CheckToken)    the clock + SetMaxAhead + 2 x maxAhead: a payload may bring one that
//	                          is ahead by maxAhead, and each start adds a minute
//
// A shard's time follows the instants of its effects, so it is at most SetMaxAhead ahead of the
// clock. Deadlines and the ids of stream entries are not bounded: clients choose them, as in Redis.

// defaultAhead is the default of SetMaxAhead, in us: an hour.
const defaultAhead = 3600e6

// SetMaxAhead sets the time, in us, by which the instants of effects may be ahead of the clock. It is safe
// for concurrent use.
func (db *DB) SetMaxAhead(us int64) { db.maxAhead.Store(us) }

// SawTime records an instant, in us, of data that the caller trusts, for files that were written while the
// clock was ahead. The horizon of replays then counts from the later of this instant and the clock.
func (db *DB) SawTime(us int64) {
	for {
		last := db.seen.Load()
		if us <= last || db.seen.CompareAndSwap(last, us) {
			return
		}
	}
}

// horizon returns the latest instant, in us, that an effect may have, plus more. It reads the
// clock.
func (db *DB) horizon(more int64) int64 {
	now, ahead := max(db.clock.Micros(), db.seen.Load()), db.maxAhead.Load()
	if now > math.MaxInt64-ahead-more {
		return maxToken
	}
	return min(now+ahead+more, maxToken)
}

// HorizonError is the error for an effect's instant or token that is too far ahead.
type HorizonError struct {
	What        string // "instant" or "token"
	Value, Most int64  // us
}

// Error implements error.
func (e *HorizonError) Error() string {
	return fmt.Sprintf("the %s %d is out of range: the clock allows 0 to %d here (max-clock-ahead)", e.What, e.Value, e.Most)
}

// At sets the instant, in us, of the rest of a replay's transaction, for effects that depend on
// time and carry their instant. It reads the clock if the instant is later than the transaction's.
// Errors: *HorizonError, and nothing has changed.
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

// foreignToken reports whether the token of a payload is within the horizon. In a replay it is
// CheckToken; for a client's payload, the horizon counts from the transaction's instant.
func (tx *Tx) foreignToken(token int64) bool {
	if tx.replay {
		return token == 0 || tx.CheckToken(token) == nil
	}
	return token <= tx.now+maxAhead
}
