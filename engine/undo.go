package engine

// An Undo takes back what a transaction has done to some keys, as long as their shards
// are locked: that of a replica which meets a command that it cannot do in the middle of
// its master's MULTI. It remembers what is cheap to copy, because each MULTI of a stream
// pays for it. It is used by one transaction at a time, and keeps its memory for the next.
type Undo struct {
	keys  []undoKey
	bytes []byte
}

type undoKey struct {
	db       int
	key, val [2]int // in bytes: from, to
	there    bool
	spec     spec
	clock    [3]uint8
}

// undoMost is the largest value, in bytes, that Remember copies.
const undoMost = 16 << 10

// Reset forgets everything.
func (u *Undo) Reset() { u.keys, u.bytes = u.keys[:0], u.bytes[:0] }

// Remember notes what key holds in the selected database, unless that is known already. It
// reports whether TakeBack can restore it: values above 16 KiB, large containers, streams and
// values of our own types are not copied. O(value).
func (u *Undo) Remember(tx *Tx, key []byte) bool {
	for i := range u.keys {
		if k := &u.keys[i]; k.db == tx.dbi && string(u.part(k.key)) == string(key) {
			return true
		}
	}
	h := tx.find(key)
	k := undoKey{db: tx.dbi, there: h.r != nil}
	if k.there {
		val := h.sp.value(h.r)
		if h.box() != nil || len(val) > undoMost || h.r.Kind() >= Limiter {
			return false
		}
		k.spec = spec{flags: h.r.kind & kindMask, deadline: h.r.deadline()}
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
	u.keys = append(u.keys, k)
	return true
}

func (u *Undo) copy(b []byte) [2]int {
	from := len(u.bytes)
	u.bytes = append(u.bytes, b...)
	return [2]int{from, len(u.bytes)}
}

func (u *Undo) part(at [2]int) []byte { return u.bytes[at[0]:at[1]] }

// TakeBack has the keys that were remembered hold what they held then, and the transaction
// log nothing. Errors: ErrFull; keys behind the one that failed are as they were.
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
