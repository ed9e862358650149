package engine

// What Hooks keep with a transaction: who runs it, and what is left to do before
// others see what it did.

// Ending is called once, while the shards of a transaction are still locked and
// everything in it is done. It must not block, and must not use the transaction
// but for Caller.
type Ending interface{ End(tx *Tx) }

// SetCaller notes on whose behalf the transaction runs. It stays until it is set
// again.
func (tx *Tx) SetCaller(caller any) { tx.caller = caller }

// Caller returns what SetCaller noted; nil for the engine's own work.
func (tx *Tx) Caller() any { return tx.caller }

// OnEnd has e called when the transaction ends. There is one Ending; Ending
// returns it, nil before OnEnd.
func (tx *Tx) OnEnd(e Ending) { tx.ending = e }

// Ending returns what OnEnd has set in this transaction.
func (tx *Tx) Ending() Ending { return tx.ending }

// end calls the Ending.
func (tx *Tx) end() {
	e := tx.ending
	tx.ending = nil
	e.End(tx)
}

// Holds reports whether the transaction has locked the shard of key.
func (tx *Tx) Holds(key []byte) bool { return tx.holds(tx.ShardOf(key)) }

// ShardOf returns the number of the shard that holds key: what is kept by this
// number is guarded by the shard's lock. It costs one hash of the key.
func (tx *Tx) ShardOf(key []byte) int {
	s, _ := tx.db.shardOf(key)
	return s
}
