package engine

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/topk"
)

// The limiters that deny the most requests.
//
// Each space has a sketch of 128 keys (internal/topk). Its first denial creates the sketch, and only denials
// add to it; a grant only checks whether its key is in it. Counts are halved each minute, so that a key that
// is no longer throttled leaves. The sketch is a statistic: no log or file contains it, and a replica, which
// does not take from limiters, has none. It belongs to its database in SWAPDB and FLUSHDB.

// ThrottledKey is a limiter that has denied requests lately. A request counts fully in the
// minute in which it was made, then half, then a quarter.
type ThrottledKey struct {
	Key     []byte
	Denied  int64
	Allowed int64 // since the key is in the sketch
	Since   int64 // the denial that put the key into the sketch, ms since 1970
	Error   int64 // Denied is too high by this at most, and never too low
}

// denied records a denial by the limiter at key, which h has looked up.
func (tx *Tx) denied(h *hit, key []byte) {
	sp := tx.makeSpace(h)
	if sp.throttled == nil {
		sp.throttled = new(topk.Sketch)
	}
	sp.throttled.Age(tx.ms / minute)
	sp.throttled.Add(h.h, key, 1, tx.ms)
}

// Throttled returns the keys of the selected database whose limiters have recently denied the most requests,
// the most denials first, at most n of them. match selects keys; it may be nil. Throttled locks one shard at
// a time, unless the transaction holds them. O(128 x shards).
func (tx *Tx) Throttled(n int, match func(key []byte) bool) (rows []ThrottledKey) {
	for i := range tx.db.shards {
		tx.inShard(i, func(t *Tx, sp *space) (done bool) {
			if sp.throttled == nil {
				return true
			}
			sp.throttled.Age(t.ms / minute)
			sp.throttled.Each(func(r topk.Row) {
				if match == nil || match(r.Key) {
					rows = append(rows, ThrottledKey{bytes.Clone(r.Key), int64(r.Count), int64(r.Hits), r.Since, int64(r.Error)})
				}
			})
			return true
		})
	}
	slices.SortFunc(rows, func(x, y ThrottledKey) int {
		return cmp.Or(cmp.Compare(y.Denied, x.Denied), cmp.Compare(x.Error, y.Error), bytes.Compare(x.Key, y.Key))
	})
	return rows[:min(n, len(rows))]
}

// ForgetThrottled removes the keys that match selects (nil: all keys) from the sketches of the selected
// database. It locks one shard at a time, unless the transaction holds them. O(128 x shards).
func (tx *Tx) ForgetThrottled(match func(key []byte) bool) {
	for i := range tx.db.shards {
		tx.inShard(i, func(_ *Tx, sp *space) (done bool) {
			switch {
			case match == nil:
				sp.throttled = nil
			case sp.throttled != nil:
				sp.throttled.DropFunc(match)
			}
			return true
		})
	}
}

// Throttled does the work of Tx.Throttled on a database, without a transaction.
func (db *DB) Throttled(dbi, n int) []ThrottledKey {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	return tx.Throttled(n, nil)
}

// resetStats sets the shard's counters to zero and empties its sketches.
func (sh *shard) resetStats() {
	sh.stats, sh.calls, sh.hits, sh.misses = Counters{}, callCounts{}, 0, 0
	for _, sp := range sh.spaces {
		if sp != nil {
			sp.throttled = nil
		}
	}
}
