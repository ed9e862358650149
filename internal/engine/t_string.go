package engine

import (
	"bytes"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/zeebo/xxh3"
)

// str looks up a key that must hold a string or be missing. Errors: ErrWrongType.
func (tx *Tx) str(key []byte) (hit, error) {
	h := tx.find(key)
	if h.r != nil && h.r.Kind() != String {
		return h, ErrWrongType
	}
	return h, nil
}

// Get returns a string's value; ok is false if there is no such key. The value lies in the engine's
// memory and is valid until the next write. Expected O(1). Errors: ErrWrongType.
func (tx *Tx) Get(key []byte) (val []byte, ok bool, err error) {
	h := tx.read(key)
	if h.r == nil {
		return nil, false, nil
	}
	if h.r.Kind() != String {
		return nil, false, ErrWrongType
	}
	return h.sp.value(h.r), true, nil
}

// Lend lets the caller read a long string that Get returned, or a part of it, after the shard is
// unlocked. It returns a count, which the caller has to decrement once when it is done. If the
// string is not a long one, Lend returns nil, and the caller must copy the string. While the count
// is above zero, a command that edits the string in place copies it first: O(length), once.
// Commands that replace or delete the key are not slower. It does not count as an access.
func (tx *Tx) Lend(key []byte) *atomic.Int32 {
	h := tx.find(key)
	if h.r == nil || h.r.Kind() != String || !h.r.has(flagExt) {
		return nil
	}
	x := &h.sp.exts[handleOf(h.r.inlineValue())]
	if x.lent == nil {
		x.lent = new(atomic.Int32)
	}
	x.lent.Add(1)
	return x.lent
}

// StrSize returns the length of a string in bytes, 0 if the key is missing or holds another type. It does not
// count as an access.
func (tx *Tx) StrSize(key []byte) int {
	h := tx.find(key)
	if h.r == nil || h.r.Kind() != String {
		return 0
	}
	return len(h.sp.value(h.r))
}

// SetOptions configure Set. The zero value sets the value and removes the deadline.
type SetOptions struct {
	Deadline int64 // ms since 1970; 0: none
	Span     int64 // ms; above 0 the deadline slides by it with every read
	KeepTTL  bool  // keep the deadline that the key has
	IfAbsent bool  // NX
	IfExists bool  // XX
	// Compare, if not 0, sets only if the old value satisfies this comparison with Value.
	Compare Comparison
	Value   []byte
	Get     bool  // return the old value: another kind is an error, and Set counts as an access
	Fresh   int64 // ms since 1970; up to this instant GetFresh calls the value fresh; 0: always
	Token   int64 // set only if this is the key's refresh token (GetFresh); 0: no condition
	// Jitter makes each deadline of SetMany later by a random share, up to Jitter percent, of the
	// time to live.
	Jitter int64
}

// Comparison is a condition on a string's current value.
type Comparison uint8

// These are the comparisons. A digest is the XXH3-64 of a value in 16 hex digits.
const (
	Always          Comparison = iota
	IfEqual                    // IFEQ: the key exists and has this value
	IfNotEqual                 // IFNE: the key has another value, or does not exist
	IfDigestEqual              // IFDEQ
	IfDigestDiffers            // IFDNE
)

// Digest returns the XXH3-64 digest of a value, 16 hex digits.
func Digest(val []byte) string {
	d := digest(val)
	return string(d[:])
}

func digest(val []byte) (b [16]byte) {
	const hex = "0123456789abcdef"
	for i, d := 15, xxh3.Hash(val); i >= 0; i, d = i-1, d>>4 {
		b[i] = hex[d&15]
	}
	return b
}

func hasDigest(val, want []byte) bool {
	d := digest(val)
	return bytes.EqualFold(d[:], want)
}

// Digest returns the digest of a string; ok is false if there is no such key. O(length). Errors:
// ErrWrongType.
func (tx *Tx) Digest(key []byte) (d string, ok bool, err error) {
	v, ok, err := tx.Get(key)
	if !ok || err != nil {
		return "", false, err
	}
	return Digest(v), true, nil
}

// allows reports whether a value satisfies the comparison; there reports whether there is a value.
func (c Comparison) allows(there bool, val, want []byte) bool {
	switch c {
	case IfEqual:
		return there && bytes.Equal(val, want)
	case IfNotEqual:
		return !there || !bytes.Equal(val, want)
	case IfDigestEqual:
		return there && hasDigest(val, want)
	case IfDigestDiffers:
		return !there || !hasDigest(val, want)
	}
	return true
}

// Set stores a string and replaces any value of the key. It reports whether it did. With o.Get it also
// returns the old value, copied into dst (nil if there was none). With a deadline that has passed, the key
// expires at once.
//
// Errors: ErrWrongType with Get or Compare if the key holds another kind; ErrFull.
func (tx *Tx) Set(key, val []byte, o SetOptions, dst []byte) (done bool, old []byte, err error) {
	var h hit
	if o.Get {
		h = tx.read(key)
	} else {
		h = tx.find(key)
	}
	if o.Get || o.Compare != Always {
		if h.r != nil && h.r.Kind() != String {
			return false, nil, ErrWrongType
		}
		var v []byte
		if h.r != nil {
			v = h.sp.value(h.r)
			if o.Get {
				old = append(dst[:0], v...)
				if old == nil {
					old = []byte{}
				}
			}
		}
		if !o.Compare.allows(h.r != nil, v, o.Value) {
			return false, old, nil
		}
	}
	if o.IfAbsent && h.r != nil || o.IfExists && h.r == nil || o.Token != 0 && !tx.HoldsToken(key, o.Token) {
		return false, old, nil
	}
	s := spec{flags: uint8(String), deadline: min(o.Deadline, MaxDeadline), span: o.Span, fresh: o.Fresh}
	if o.KeepTTL && h.r != nil && h.r.has(flagDeadline) {
		s.deadline = h.r.deadline()
		if h.r.has(flagSlide) {
			s.span = h.r.slide().span
		}
	}
	if o.Deadline != 0 && s.deadline < tx.ms && !tx.replay {
		tx.setToPast(&h, key)
		return true, old, nil
	}
	if err := tx.put(&h, key, val, s); err != nil {
		return false, nil, err
	}
	if tx.db.logging.Load() {
		tx.emitSet(key, val, s)
	}
	tx.changed(key, EventString, "set")
	if o.Deadline != 0 && tx.db.notify.Load()&EventGeneric != 0 {
		tx.event(EventGeneric, "expire", key)
	}
	return true, old, nil
}

// setToPast executes a SET with a deadline that has passed: the key is set and expires at once.
func (tx *Tx) setToPast(h *hit, key []byte) {
	if h.r != nil {
		tx.drop(h)
		tx.emit("DEL", key)
	} else {
		tx.passed(key)
	}
	tx.db.shards[tx.shardID(key)].stats.Expired++
	tx.changed(key, EventString, "set")
	classes := tx.db.notify.Load()
	if classes&EventGeneric != 0 {
		tx.event(EventGeneric, "expire", key)
	}
	if classes&EventExpired != 0 {
		tx.event(EventExpired, "expired", key)
	}
}

// SetMany sets several strings, all of them or none; pairs has keys and values in turn. With
// IfAbsent it sets only if none of the keys exists, with IfExists only if all do. It reports
// whether it did. O(pairs); it allocates nothing.
//
// Of the other options it uses Deadline, Span, KeepTTL and Jitter.
func (tx *Tx) SetMany(pairs [][]byte, o SetOptions) (bool, error) {
	if o.IfAbsent || o.IfExists {
		for i := 0; i < len(pairs); i += 2 {
			if there := tx.find(pairs[i]).r != nil; there != o.IfExists {
				return false, nil
			}
		}
	}
	one := SetOptions{Deadline: o.Deadline, Span: o.Span, KeepTTL: o.KeepTTL}
	for i := 0; i < len(pairs); i += 2 {
		if o.Jitter > 0 {
			one.Deadline = tx.ms + Jitter(o.Deadline-tx.ms, o.Jitter)
		}
		if _, _, err := tx.Set(pairs[i], pairs[i+1], one, nil); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (tx *Tx) emitSet(key, val []byte, s spec) {
	switch {
	case s.deadline == 0:
		tx.emit("SET", key, val)
	case s.span == 0:
		tx.emit("SET", key, val, []byte("PXAT"), tx.itoa(0, s.deadline))
	default:
		tx.emit("SET", key, val, []byte("PXAT"), tx.itoa(0, s.deadline))
		tx.emit(OwnPrefix+"PEXPIREAT", key, tx.itoa(0, s.deadline), []byte("SPAN"), tx.itoa(1, s.span))
	}
	if s.fresh != 0 {
		tx.emitFresh(key, s.fresh)
	}
}

// kept returns the spec for storing another value under a key that str has looked up, with the
// key's deadline.
func kept(h *hit, flags uint8) spec {
	s := spec{flags: uint8(String) | flags}
	if h.r != nil {
		s.fresh = h.r.freshUntil()
	}
	if h.r != nil && h.r.has(flagDeadline) {
		s.deadline = h.r.deadline()
		if h.r.has(flagSlide) {
			s.span, s.logged = h.r.slide().span, h.r.slide().logged
		}
	}
	return s
}

// replace stores a new value under a key that str has looked up, and keeps its deadline.
func (tx *Tx) replace(h *hit, key, val []byte, flags uint8) error {
	if r := h.r; r != nil && r.valueLen() == len(val) && !r.has(flagExt) {
		copy(r.inlineValue(), val)
		r.kind = r.kind&^flagRaw | flags
		tx.stamp(r)
		return nil
	}
	return tx.replaceKeepingTTL(h, key, val, flags)
}

// replaceKeepingTTL stores a value under a key that keeps its deadline. The engine takes over the memory of a
// long value. The effect contains no deadline, so the log keeps the old version of a sliding one.
func (tx *Tx) replaceKeepingTTL(h *hit, key, val []byte, flags uint8) error {
	logged := int64(0)
	if h.r != nil && h.r.has(flagSlide) {
		logged = h.r.slide().logged
	}
	if err := tx.putOwned(h, key, val, kept(h, flags)); err != nil {
		return err
	}
	if logged != 0 {
		h.r.slide().logged = logged
	}
	return nil
}

// putOwned stores a value as put does, for a value that has no other user: the engine takes over a long one
// without a copy.
func (tx *Tx) putOwned(h *hit, key, val []byte, s spec) error {
	if len(val) <= arena.MaxRecord {
		return tx.put(h, key, val, s)
	}
	sp := tx.makeSpace(h)
	handle := sp.addExt(val)
	ref, r := sp.buildSpec(&s, key, nil, handle)
	if r == nil {
		sp.dropExt(handle)
		return ErrFull
	}
	tx.place(h, ref, r, s)
	return nil
}

// GetDel returns a string's value, appended to dst, and deletes the key; ok is false if there is no
// such key. Errors: ErrWrongType.
func (tx *Tx) GetDel(key, dst []byte) (val []byte, ok bool, err error) {
	h := tx.read(key)
	if h.r == nil {
		tx.revoke(key)
		return dst, false, nil
	}
	if h.r.Kind() != String {
		return dst, false, ErrWrongType
	}
	dst = append(dst, h.sp.value(h.r)...)
	tx.drop(&h)
	tx.emit("DEL", key)
	tx.changed(key, EventGeneric, "del")
	return dst, true, nil
}

// DelIf deletes a string whose value satisfies a comparison with want, and reports whether it did.
// The comparison Always also deletes keys of other kinds. Errors: ErrWrongType.
func (tx *Tx) DelIf(key []byte, c Comparison, want []byte) (bool, error) {
	h := tx.find(key)
	if h.r == nil {
		tx.revoke(key)
		return false, nil
	}
	if c != Always {
		if h.r.Kind() != String {
			return false, ErrWrongType
		}
		if !c.allows(true, h.sp.value(h.r), want) {
			return false, nil
		}
	}
	tx.drop(&h)
	tx.emit("DEL", key)
	tx.changed(key, EventGeneric, "del")
	return true, nil
}

// StrLen returns the length of a string in bytes, 0 if there is no such key. O(1). Errors:
// ErrWrongType.
func (tx *Tx) StrLen(key []byte) (int, error) {
	v, _, err := tx.Get(key)
	return len(v), err
}

// Append appends to a string, or sets a missing one, and returns the new length in bytes. Amortised
// O(len(tail)) if the slot has room, else O(length). Errors: ErrWrongType, ErrTooLarge, ErrFull.
func (tx *Tx) Append(key, tail []byte) (int, error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, err
	}
	if h.r == nil {
		if err := tx.put(&h, key, tail, spec{flags: uint8(String)}); err != nil {
			return 0, err
		}
		tx.emit("APPEND", key, tail)
		tx.changed(key, EventString, "append")
		return len(tail), nil
	}
	n := len(h.sp.value(h.r)) + len(tail)
	if n > tx.db.MaxString() {
		return 0, ErrTooLarge
	}
	v, err := tx.resize(&h, key, n)
	if err != nil {
		return 0, err
	}
	copy(v[n-len(tail):], tail)
	tx.emit("APPEND", key, tail)
	tx.changed(key, EventString, "append")
	return n, nil
}

// resize sets the length of a string that str has looked up to n bytes and returns the bytes for
// writing in place. The old bytes keep their contents, and new ones are zero. The deadline stays;
// the encoding becomes raw.
func (tx *Tx) resize(h *hit, key []byte, n int) ([]byte, error) {
	if h.r != nil && h.r.has(flagExt) {
		e := &h.sp.exts[handleOf(h.r.inlineValue())]
		if e.lent != nil && e.lent.Load() > 0 { // a client's reply still reads the bytes
			e.bytes, e.lent = append(make([]byte, 0, max(n, len(e.bytes))), e.bytes...), nil
		}
		if old := len(e.bytes); n > old {
			h.edits(old, n)
			e.bytes = append(e.bytes, make([]byte, n-old)...)
		} else {
			e.bytes = e.bytes[:n]
		}
		h.sp.grow(e, cap(e.bytes))
		h.r.kind |= flagRaw
		tx.stamp(h.r)
		return e.bytes, nil
	}
	var old []byte
	if h.r != nil {
		old = h.sp.value(h.r)
		if size := h.r.size() - len(old) + n; size <= h.sp.mem.SlotOf(h.ref()) && n >= len(old) && !h.r.hasFresh() {
			h.r.vlen = uint16(n)
			h.r.kind |= flagRaw
			tx.stamp(h.r)
			v := h.r.inlineValue()
			clear(v[len(old):])
			return v, nil
		}
	}
	v := tx.vbuf
	if n > arena.MaxRecord || n > cap(v) {
		v = make([]byte, n) // a long string becomes the key's value
	}
	if v = v[:n]; n <= arena.MaxRecord {
		tx.vbuf = v
	}
	clear(v[copy(v, old):])
	if err := tx.replaceKeepingTTL(h, key, v, flagRaw); err != nil {
		return nil, err
	}
	return h.sp.value(h.r), nil
}

// GetRange returns the bytes from start to end, both included; negative offsets count from the end.
// The result lies in the engine's memory and is valid until the next write. Errors: ErrWrongType.
func (tx *Tx) GetRange(key []byte, start, end int64) ([]byte, error) {
	v, _, err := tx.Get(key)
	if err != nil {
		return nil, err
	}
	n := int64(len(v))
	if start < 0 && end < 0 && start > end {
		return nil, nil
	}
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n-1)
	if start > end || n == 0 {
		return nil, nil
	}
	return v[start : end+1], nil
}

// SetRange overwrites a string from offset on, pads it with zeros where it is too short, and
// returns the new length in bytes. An empty part changes nothing. Errors: ErrWrongType,
// ErrTooLarge, ErrFull.
func (tx *Tx) SetRange(key []byte, offset int64, part []byte) (int, error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, err
	}
	old := 0
	if h.r != nil {
		old = len(h.sp.value(h.r))
	}
	if len(part) == 0 {
		return old, nil
	}
	if offset > int64(tx.db.MaxString())-int64(len(part)) {
		return 0, ErrTooLarge
	}
	v, err := tx.resize(&h, key, max(old, int(offset)+len(part)))
	if err != nil {
		return 0, err
	}
	h.edits(int(offset), int(offset)+len(part))
	copy(v[offset:], part)
	tx.emit("SETRANGE", key, tx.itoa(0, offset), part)
	tx.changed(key, EventString, "setrange")
	return len(v), nil
}
