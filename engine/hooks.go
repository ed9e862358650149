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

// Event classes, as the letters of notify-keyspace-events choose them.
const (
	EventKeyspace uint32 = 1 << iota // K: __keyspace@<db>__ messages
	EventKeyevent                    // E: __keyevent@<db>__ messages
	EventGeneric                     // g
	EventString                      // $
	EventList                        // l
	EventSet                         // s
	EventHash                        // h
	EventZSet                        // z
	EventExpired                     // x
	EventEvicted                     // e
	EventStream                      // t
	EventMiss                        // m: not in A
	EventModule                      // d
	EventNew                         // n: not in A

	// EventAll is the letter A.
	EventAll = EventGeneric | EventString | EventList | EventSet | EventHash | EventZSet | EventExpired | EventEvicted | EventStream | EventModule
)

// Hooks are told what happens while the shards involved are locked, so what
// they pass on keeps the order in which it happened. They must not block, and
// must not call the transaction. Byte slices are valid during the call only.
type Hooks interface {
	// Event is a keyspace event of a class that SetEvents chose.
	Event(tx *Tx, class uint32, event string, key []byte)
	// Modified says that a key's value changed, or that it came or went.
	Modified(tx *Tx, key []byte)
	// Flushed says that a database was emptied, or exchanged for another; -1 for
	// all, or several.
	Flushed(tx *Tx, db int)
}

type noHooks struct{}

func (noHooks) Event(*Tx, uint32, string, []byte) {}
func (noHooks) Modified(*Tx, []byte)              {}
func (noHooks) Flushed(*Tx, int)                  {}

// SetEvents chooses the classes of events that Hooks hears of. EventKeyspace
// and EventKeyevent do not matter here.
func (db *DB) SetEvents(classes uint32) { db.notify.Store(classes) }

func (tx *Tx) event(class uint32, event string, key []byte) {
	tx.db.hooks.Event(tx, class, event, key)
}
