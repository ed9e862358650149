package engine

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
