package engine

// NextToken returns a new fencing token: greater than all before it in this
// engine, the transaction's instant in us if that is greater still. Tokens stay
// below 2^53 until the year 2255. O(1).
func (tx *Tx) NextToken() int64 {
	for {
		last := tx.db.fence.Load()
		next := max(last+1, tx.now)
		if tx.db.fence.CompareAndSwap(last, next) {
			return next
		}
	}
}

// SawToken notes a token that a replay, or a snapshot, brings: later ones are
// greater.
func (tx *Tx) SawToken(token int64) {
	for {
		last := tx.db.fence.Load()
		if token <= last || tx.db.fence.CompareAndSwap(last, token) {
			return
		}
	}
}
