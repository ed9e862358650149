package engine

// Undo restores the values that keys had before a transaction changed them, while their shards are still
// locked. A replica needs it if it cannot execute a command in the middle of its master's MULTI. Undo
// remembers only values that are cheap to copy, because each MULTI in a stream pays for the copies. One
// transaction uses an Undo at a time; the Undo keeps its memory for the next one.
type Undo struct {
	keys  []undoKey
	bytes []byte
	last  map[uint64]int // from the hash of a key to the last index in keys with this hash; nil for few keys
}

type undoKey struct {
	db       int
	hash     uint64
	before   int    // the index of the previous key with this hash; -1: none
	key, val [2]int // the range in bytes: from, to
	there    bool
	spec     spec
	clock    [3]uint8
}

const (
	undoMost = 16 << 10 // the largest value, in bytes, that Remember copies
	undoAll  = 64 << 20 // the total bytes of keys and values that an Undo copies
	undoFew  = 16       // up to this number of keys, a lookup compares each of them
	undoKeep = 1 << 20  // the largest memory for copies, in bytes, that Reset keeps
)

// Reset removes all copies.
func (u *Undo) Reset() {
	if u.last != nil || cap(u.bytes) > undoKeep {
		*u = Undo{} // large transactions are rare
	}
	u.keys, u.bytes = u.keys[:0], u.bytes[:0]
}

// Remember copies the value of key in the selected database, unless it did so before. It reports
// whether TakeBack can restore the key. It does not copy values above 16 KiB, large containers,
// streams, and values of ebb's own types. It copies at most 64 MiB in all. O(value).
func (u *Undo) Remember(tx *Tx, key []byte) bool {
	h := tx.find(key)
	if u.knows(tx.dbi, h.h, key) {
		return true
	}
	k := undoKey{db: tx.dbi, hash: h.h, there: h.r != nil}
	if len(u.bytes)+len(key) > undoAll {
		return false
	}
	if k.there {
		val := h.sp.value(h.r)
		if h.box() != nil || len(val) > undoMost || h.r.Kind() >= Limiter || len(u.bytes)+len(key)+len(val) > undoAll {
			return false
		}
		k.spec = spec{flags: h.r.kind & kindMask, deadline: h.r.deadline(), fresh: h.r.freshUntil()}
		if h.r.Kind() == String {
			k.spec.flags |= h.r.kind & flagRaw
		}
		if h.r.has(flagSlide) {
			k.spec.span, k.spec.logged = h.r.slide().span, h.r.slide().logged
		}
		k.clock = h.r.clock
		k.val = u.copy(val)
	}
	k.key = u.copy(key)
	u.note(k)
	return true
}

// knows reports whether key of database db is remembered. It must be fast, because a master's transaction may
// have millions of keys.
func (u *Undo) knows(db int, hash uint64, key []byte) bool {
	if u.last == nil {
		for i := range u.keys {
			if u.keys[i].is(u, db, hash, key) {
				return true
			}
		}
		return false
	}
	at, ok := u.last[hash]
	for ; ok && at >= 0; at = u.keys[at].before {
		if u.keys[at].is(u, db, hash, key) {
			return true
		}
	}
	return false
}

func (k *undoKey) is(u *Undo, db int, hash uint64, key []byte) bool {
	return k.hash == hash && k.db == db && string(u.part(k.key)) == string(key)
}

// note adds a key.
func (u *Undo) note(k undoKey) {
	u.keys = append(u.keys, k)
	switch {
	case u.last != nil:
		u.link(len(u.keys) - 1)
	case len(u.keys) > undoFew:
		u.last = make(map[uint64]int, 2*undoFew)
		for i := range u.keys {
			u.link(i)
		}
	}
}

func (u *Undo) link(i int) {
	k := &u.keys[i]
	k.before = -1
	if at, ok := u.last[k.hash]; ok {
		k.before = at
	}
	u.last[k.hash] = i
}

func (u *Undo) copy(b []byte) [2]int {
	from := len(u.bytes)
	u.bytes = append(u.bytes, b...)
	return [2]int{from, len(u.bytes)}
}

func (u *Undo) part(at [2]int) []byte { return u.bytes[at[0]:at[1]] }

// TakeBack restores the remembered values, and keeps all effects of the transaction out of the log
// (Tx.Forget). Errors: ErrFull; the keys after the one that failed are then not restored.
func (u *Undo) TakeBack(tx *Tx) error {
	tx.Replaying()
	tx.Forget()
	selected := tx.dbi
	defer func() { tx.dbi = selected }()
	for i := range u.keys {
		k := &u.keys[i]
		tx.dbi = k.db
		key := u.part(k.key)
		if !k.there {
			tx.Del(key)
			continue
		}
		h := tx.find(key)
		if err := tx.put(&h, key, u.part(k.val), k.spec); err != nil {
			return err
		}
		tx.date(&h)
		h.r.clock = k.clock
		tx.changed(key, EventGeneric, "restore")
	}
	return nil
}
