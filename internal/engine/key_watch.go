package engine

import (
	"sync/atomic"
	"unsafe"
)

// This file implements watched keys.
//
//	shard ── watched ── (db, key) ─▶ watchList: mark ─▶ mark ─▶ mark     any order
//	                                              │        │
//	                                            Watch    Watch ─▶ marks in other lists
//
// A change of a key breaks the watches in its list, with its shard locked. A watch enters and
// leaves a list in O(1), whatever else is watched. The shard's lock guards its lists.

// watchKey names a watched key.
type watchKey struct {
	db  int
	key string
}

// watchList is the list of the watches of a key.
type watchList struct {
	sh    *shard
	key   watchKey
	first *mark
}

// mark is a watch's place in the list of one key.
type mark struct {
	w          *Watch
	l          *watchList
	prev, next *mark
}

// markBytes estimates the bytes that a watched key takes up besides its name: the mark, the list and its
// place in the shard's table, and the watch's two references to the mark.
const markBytes = 240

func (m *mark) bytes() int64 { return markBytes + int64(len(m.l.key.key)) }

// Watch is a client's set of watched keys. One goroutine uses a Watch, except for Broken and Changed, which
// are safe for concurrent use. The memory of a Watch counts as used memory.
type Watch struct {
	db    *DB
	marks []*mark
	// known is the set of the lists that the watch is in, once there are more than fewMarks.
	known map[*watchList]struct{}
	// mortal has the marks of keys that may expire without a change: keys that existed and had a deadline, or
	// that may have items with one. Any other key gets a deadline only by a change.
	mortal []*mark
	bytes  int64
	fail   atomic.Bool // a watched key changed
}

// fewMarks is the number of marks up to which Add compares each of them to find a key that is
// watched twice.
const fewMarks = 8

// NewWatch returns an empty set.
func (db *DB) NewWatch() *Watch { return &Watch{db: db} }

// Add watches a key of the selected database. The transaction holds the key's shard.
// O(1).
func (w *Watch) Add(tx *Tx, key []byte) {
	h := tx.find(key)
	l := h.sh.makeWatchList(tx.dbi, key)
	if w.has(l) {
		return
	}
	m := &mark{w: w, l: l, next: l.first}
	if l.first != nil {
		l.first.prev = m
	}
	l.first = m
	w.marks = append(w.marks, m)
	if w.known != nil {
		w.known[l] = struct{}{}
	}
	if h.r != nil && (h.r.has(flagDeadline) || timed(h.r.kind)) {
		w.mortal = append(w.mortal, m)
	}
	w.bytes += m.bytes()
	w.db.ChargeApart(m.bytes())
	w.db.watches.Add(1)
}

// has reports whether the watch already has a mark in list l.
func (w *Watch) has(l *watchList) bool {
	if len(w.marks) <= fewMarks {
		for _, m := range w.marks {
			if m.l == l {
				return true
			}
		}
		return false
	}
	if w.known == nil {
		w.known = make(map[*watchList]struct{}, 2*len(w.marks))
		for _, m := range w.marks {
			w.known[m.l] = struct{}{}
		}
	}
	_, ok := w.known[l]
	return ok
}

// WatchedKeys returns the number of watched keys. O(shards).
func (tx *Tx) WatchedKeys() (n int) {
	tx.eachShard(func(sh *shard) { n += len(sh.watched) })
	return n
}

// makeWatchList returns the list of a key, and creates it if there is none. The shard is locked.
func (sh *shard) makeWatchList(db int, key []byte) *watchList {
	if l := sh.watched[watchKey{db, string(key)}]; l != nil {
		return l
	}
	if sh.watched == nil {
		sh.watched = map[watchKey]*watchList{}
	}
	l := &watchList{sh: sh, key: watchKey{db, string(key)}}
	sh.watched[l.key] = l
	return l
}

// AppendKeys appends the watched keys to dst, for locking their shards. The caller does not change their bytes. O(keys).
func (w *Watch) AppendKeys(dst [][]byte) [][]byte {
	for _, m := range w.marks {
		dst = append(dst, unsafe.Slice(unsafe.StringData(m.l.key.key), len(m.l.key.key)))
	}
	return dst
}

// Len returns the number of watched keys.
func (w *Watch) Len() int { return len(w.marks) }

// Bytes returns the approximate memory of the set.
func (w *Watch) Bytes() int64 { return w.bytes }

// Broken reports whether a watched key has changed, or has expired, since it
// was watched. The transaction holds the shards of all watched keys. O(watched keys
// that may expire).
func (w *Watch) Broken(tx *Tx) bool {
	if w.fail.Load() {
		return true
	}
	dbi := tx.dbi
	defer func() { tx.dbi = dbi }()
	for _, m := range w.mortal {
		tx.dbi = m.l.key.db
		if tx.find([]byte(m.l.key.key)).r == nil {
			return true
		}
	}
	return w.fail.Load()
}

// TryAdd adds a key without a transaction, for a caller that must not wait for a lock, which a script might
// hold for ever. It reports false, and does not watch the key, if another transaction holds the key's shard.
// O(1).
func (w *Watch) TryAdd(dbi int, key []byte) bool {
	tx := w.db.txs.Get().(*Tx)
	defer w.db.txs.Put(tx)
	tx.reads = true
	if !tx.beginKeys(dbi, [][]byte{key}, false) {
		tx.reads = false
		return false
	}
	w.Add(tx, key)
	tx.Unlock()
	return true
}

// Changed reports whether a watched key has changed since it was watched or since the last call, and
// continues watching. It takes no lock, and does not notice an expired key that was not removed yet. O(1).
func (w *Watch) Changed() bool { return w.fail.Swap(false) }

// Clear removes all keys. It locks the shard of each key in turn, except for the shards that tx
// already holds; tx may be nil. O(keys).
func (w *Watch) Clear(tx *Tx) { w.Forget(tx, 0) }

// Forget removes all keys except the first n, as Clear does.
func (w *Watch) Forget(tx *Tx, n int) {
	for _, m := range w.marks[n:] {
		sh := m.l.sh
		mine := tx != nil && tx.holds(sh.id)
		if !mine {
			sh.lock.Lock()
		}
		m.leave()
		if !mine {
			sh.lock.Unlock()
		}
	}
	if n > 0 {
		for _, m := range w.marks[n:] {
			delete(w.known, m.l)
		}
		for k := len(w.mortal); k > 0 && w.mortal[k-1].w == nil; k-- {
			w.mortal = w.mortal[:k-1]
		}
		clear(w.marks[n:])
		w.marks = w.marks[:n]
		return
	}
	w.reset()
}

// TryClear does the work of Clear without a transaction, for a caller that must not wait for a lock: it reports false if another
// transaction holds a shard. Some keys may then still be watched, and Clear is all that the caller may do with the Watch.
func (w *Watch) TryClear() bool {
	for n := len(w.marks) - 1; n >= 0; n-- {
		m := w.marks[n]
		if !m.l.sh.lock.TryLock() {
			return false
		}
		m.leave()
		m.l.sh.lock.Unlock()
		w.marks = w.marks[:n]
	}
	w.reset()
	return true
}

// reset empties the set. Its marks have left their lists.
func (w *Watch) reset() {
	w.known, w.mortal = nil, nil
	if cap(w.marks) > fewMarks {
		w.marks = nil
	}
	clear(w.marks[:cap(w.marks)])
	w.marks = w.marks[:0]
	w.fail.Store(false)
}

// leave takes a mark out of its list, whose shard is locked.
func (m *mark) leave() {
	l := m.l
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		l.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	}
	if l.first == nil {
		delete(l.sh.watched, l.key)
	}
	m.w.bytes -= m.bytes()
	m.w.db.ChargeApart(-m.bytes())
	m.w.db.watches.Add(-1)
	m.w = nil
}

// touched breaks the watches on a key. O(watches of the key).
func (sh *shard) touched(db int, key []byte) {
	if l := sh.watched[watchKey{db, string(key)}]; l != nil {
		l.touched()
	}
}

func (l *watchList) touched() {
	for m := l.first; m != nil; m = m.next {
		m.w.fail.Store(true)
	}
}

// Watches returns the number of keys that all clients watch together.
func (db *DB) Watches() int64 { return db.watches.Load() }
