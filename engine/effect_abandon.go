package engine

import "math/bits"

// Abandon ends a transaction in which the caller panicked: its shards are let go of. What
// it had logged so far is in the stream, because it was done; what it did after its last
// effect is not, and clients that wait are not served. It reports whether the data may
// differ from the stream: whether the transaction was to write. A transaction that holds
// nothing is made ready for the next use. It serves no waiting client, fires no rule and
// takes nothing apart, so that it works on whatever the panic has left.
func (tx *Tx) Abandon() (differs bool) {
	for _, l := range tx.ready {
		l.signalled = false
	}
	for _, o := range tx.owed {
		o.l.owed = false
	}
	clear(tx.ready)
	tx.ready, tx.owed, tx.late, tx.fired, tx.stale, tx.ending = tx.ready[:0], nil, nil, tx.fired[:0], tx.stale[:0], nil
	tx.old, tx.oldIn = 0, nil // its memory is lost
	differs = tx.held != 0 && !tx.reads
	if tx.fx.verbatim = nil; tx.fx.n > 0 && !tx.forget && !tx.hiding() {
		tx.settle()
	}
	tx.fx.clear()
	tx.fx.messages = tx.fx.messages[:0]
	for m := tx.held; m != 0; m &= m - 1 {
		sh := tx.db.shards[bits.TrailingZeros64(m)]
		sh.last = max(sh.last, tx.now)
		tx.mark = max(tx.mark, sh.mark)
	}
	mask := tx.held
	tx.held, tx.hashed, tx.dirty, tx.replay, tx.reads, tx.forget = 0, nil, 0, false, false, false
	tx.unlock(mask)
	return differs
}
