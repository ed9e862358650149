package engine

import "sync/atomic"

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

// watchKey names a watched key.
type watchKey struct {
	db  int
	key string
}

// Watch is a client's set of watched keys. It is used by one goroutine, but
// for Broken, which is safe for all.
type Watch struct {
	db    *DB
	keys  []watchKey
	alive []bool      // whether the key was there when it was first watched
	fail  atomic.Bool // a watched key changed
}

// NewWatch returns an empty set.
func (db *DB) NewWatch() *Watch { return &Watch{db: db} }

// Add watches a key of a database. The transaction holds the key's shard.
func (w *Watch) Add(tx *Tx, key []byte) {
	k := watchKey{tx.dbi, string(key)}
	for _, have := range w.keys {
		if have == k {
			return
		}
	}
	h := tx.find(key)
	sh := h.sh
	if sh.watched == nil {
		sh.watched = map[watchKey][]*Watch{}
	}
	sh.watched[k] = append(sh.watched[k], w)
	w.db.watches.Add(1)
	w.keys = append(w.keys, k)
	w.alive = append(w.alive, h.r != nil)
}

// Keys returns the watched keys, for locking their shards.
func (w *Watch) Keys() [][]byte {
	keys := make([][]byte, len(w.keys))
	for i, k := range w.keys {
		keys[i] = []byte(k.key)
	}
	return keys
}

// Broken reports whether a watched key has changed, or has expired, since it
// was watched. The transaction holds the shards of all watched keys.
func (w *Watch) Broken(tx *Tx) bool {
	if w.fail.Load() {
		return true
	}
	dbi := tx.dbi
	defer func() { tx.dbi = dbi }()
	for i, k := range w.keys {
		tx.dbi = k.db
		if w.alive[i] && tx.find([]byte(k.key)).r == nil {
			return true
		}
	}
	return w.fail.Load()
}

// Clear forgets all keys. It locks their shards one by one, but for those that
// tx, which may be nil, already holds.
func (w *Watch) Clear(tx *Tx) {
	for _, k := range w.keys {
		s, _ := w.db.shardOf([]byte(k.key))
		sh := w.db.shards[s]
		mine := tx != nil && tx.holds(s)
		if !mine {
			sh.lock.Lock()
		}
		list := sh.watched[k]
		for i, x := range list {
			if x == w {
				w.db.watches.Add(-1)
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		if len(list) == 0 {
			delete(sh.watched, k)
		} else {
			sh.watched[k] = list
		}
		if !mine {
			sh.lock.Unlock()
		}
	}
	w.keys, w.alive = w.keys[:0], w.alive[:0]
	w.fail.Store(false)
}

// touched breaks the watches on a key.
func (sh *shard) touched(db int, key []byte) {
	for _, w := range sh.watched[watchKey{db, string(key)}] {
		w.fail.Store(true)
	}
}
