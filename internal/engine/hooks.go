package engine

// A transaction keeps two values for the Hooks: its caller, and the Ending to call before other
// transactions see its changes.

// Ending is called at the end of a transaction. The engine calls End once, after the transaction's work,
// while its shards are still locked. End must not block. The only method of the transaction that it may call
// is Caller.
type Ending interface{ End(tx *Tx) }

// SetCaller sets the client for which the transaction runs. It stays set until the next SetCaller.
func (tx *Tx) SetCaller(caller any) { tx.caller = caller }

// Caller returns the value of SetCaller; nil for the engine's own work.
func (tx *Tx) Caller() any { return tx.caller }

// OnEnd registers the Ending that the engine calls when the transaction ends. A
// transaction has one Ending.
func (tx *Tx) OnEnd(e Ending) { tx.ending = e }

// Ending returns the Ending that OnEnd has set in this transaction; nil before OnEnd.
func (tx *Tx) Ending() Ending { return tx.ending }

// end calls the Ending.
func (tx *Tx) end() {
	e := tx.ending
	tx.ending = nil
	e.End(tx)
}

// Holds reports whether the transaction has locked the shard of key.
func (tx *Tx) Holds(key []byte) bool { return tx.holds(tx.ShardOf(key)) }

// ShardOf returns the number of the shard that holds key. The shard's lock also guards
// data that a caller keeps under this number. It costs one hash of the key.
func (tx *Tx) ShardOf(key []byte) int {
	s, _ := tx.db.shardOf(key)
	return s
}

// Event classes, selected by the letters of notify-keyspace-events.
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

// Hooks receives the events of the engine. The engine calls it while the shards involved are
// locked, so that Hooks can pass events on in the order in which they happened. The methods must
// not block, and must not call the transaction. Byte slices are valid only during the call.
type Hooks interface {
	// Event reports a keyspace event of a class that SetEvents has selected.
	Event(tx *Tx, class uint32, event string, key []byte)
	// Modified reports that a key was created, changed or deleted.
	Modified(tx *Tx, key []byte)
	// Flushed reports that a database was emptied, or swapped with another; db is -1 for several or
	// all databases.
	Flushed(tx *Tx, db int)
}

type noHooks struct{}

func (noHooks) Event(*Tx, uint32, string, []byte) {}
func (noHooks) Modified(*Tx, []byte)              {}
func (noHooks) Flushed(*Tx, int)                  {}

// SetEvents selects the classes of events that Hooks receive. It ignores EventKeyspace and EventKeyevent.
func (db *DB) SetEvents(classes uint32) { db.notify.Store(classes) }

func (tx *Tx) event(class uint32, event string, key []byte) {
	tx.db.hooks.Event(tx, class, event, key)
}
