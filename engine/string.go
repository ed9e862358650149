package engine

import (
	"bytes"
	"math"
	"math/big"
	"strconv"

	"github.com/zeebo/xxh3"
)

// str looks up a key that must hold a string, or nothing.
func (tx *Tx) str(key []byte) (hit, error) {
	h := tx.find(key)
	if h.r != nil && h.r.Kind() != String {
		return h, ErrWrongType
	}
	return h, nil
}

// Get returns a string's value; ok is false if there is no such key. The value
// lies in the engine's memory.
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

// SetOptions say how Set sets. The zero value sets, and removes a deadline.
type SetOptions struct {
	Deadline int64 // ms since 1970; 0: none
	Span     int64 // ms; above 0 the deadline slides by it with every read
	KeepTTL  bool  // keep the deadline that the key has
	IfAbsent bool  // NX
	IfExists bool  // XX
	// Compare, if not 0, sets only where the old value compares so with Value.
	Compare Comparison
	Value   []byte
	Get     bool // the old value is wanted: other kinds are errors
}

// Comparison is a condition on a string's present value.
type Comparison uint8

// The comparisons. A digest is the XXH3-64 of a value in 16 hex digits.
const (
	Always          Comparison = iota
	IfEqual                    // IFEQ: the key is there and its value is this
	IfNotEqual                 // IFNE: it is not: also if there is no key
	IfDigestEqual              // IFDEQ
	IfDigestDiffers            // IFDNE
)

// Digest returns the XXH3-64 digest of a value, 16 hex digits.
func Digest(val []byte) string {
	const hex = "0123456789abcdef"
	var b [16]byte
	for i, d := 15, xxh3.Hash(val); i >= 0; i, d = i-1, d>>4 {
		b[i] = hex[d&15]
	}
	return string(b[:])
}

// allows reports whether a value (there: whether there is one) compares as
// asked.
func (c Comparison) allows(there bool, val, want []byte) bool {
	switch c {
	case IfEqual:
		return there && bytes.Equal(val, want)
	case IfNotEqual:
		return !there || !bytes.Equal(val, want)
	case IfDigestEqual:
		return there && bytes.EqualFold([]byte(Digest(val)), want)
	case IfDigestDiffers:
		return !there || !bytes.EqualFold([]byte(Digest(val)), want)
	}
	return true
}

// Set stores a string, whatever the key held. It returns whether it did, and
// with o.Get the old value, copied into dst (nil if there was none). A deadline
// that is not in the future leaves no key.
//
// Errors: ErrWrongType with Get or Compare on another kind, ErrFull.
func (tx *Tx) Set(key, val []byte, o SetOptions, dst []byte) (done bool, old []byte, err error) {
	h := tx.find(key)
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
	if o.IfAbsent && h.r != nil || o.IfExists && h.r == nil {
		return false, old, nil
	}
	s := spec{flags: uint8(String), deadline: min(o.Deadline, MaxDeadline), span: o.Span}
	if o.KeepTTL && h.r != nil && h.r.has(flagDeadline) {
		s.deadline = h.r.deadline()
		if h.r.has(flagSlide) {
			s.span = h.r.slide().span
		}
	}
	if s.deadline != 0 && s.deadline <= tx.ms && !tx.replay && !o.KeepTTL {
		tx.setToPast(&h, key)
		return true, old, nil
	}
	if err := tx.put(&h, key, val, s); err != nil {
		return false, nil, err
	}
	if tx.db.logging {
		tx.emitSet(key, val, s)
	}
	tx.changed(key, EventString, "set")
	if o.Deadline != 0 && tx.db.notify.Load()&EventGeneric != 0 {
		tx.event(EventGeneric, "expire", key)
	}
	return true, old, nil
}

// setToPast does what a SET with a deadline that has passed does: the key is
// set and gone.
func (tx *Tx) setToPast(h *hit, key []byte) {
	if h.r != nil {
		tx.drop(h)
	}
	tx.emit("DEL", key)
	tx.changed(key, EventGeneric, "del")
}

func (tx *Tx) emitSet(key, val []byte, s spec) {
	switch {
	case s.deadline == 0:
		tx.emit("SET", key, val)
	case s.span == 0:
		tx.emit("SET", key, val, []byte("PXAT"), tx.itoa(0, s.deadline))
	default:
		tx.emit("SET", key, val, []byte("PXAT"), tx.itoa(0, s.deadline), []byte("SPAN"), tx.itoa(1, s.span))
	}
}

// replace stores a new value under a key that str has looked up, and keeps its
// deadline.
func (tx *Tx) replace(h *hit, key, val []byte, flags uint8) error {
	s := spec{flags: uint8(String) | flags}
	if h.r != nil && h.r.has(flagDeadline) {
		s.deadline = h.r.deadline()
		if h.r.has(flagSlide) {
			s.span = h.r.slide().span
		}
	}
	return tx.put(h, key, val, s)
}

// GetDel returns a string's value, appended to dst, and deletes the key.
func (tx *Tx) GetDel(key, dst []byte) (val []byte, ok bool, err error) {
	h := tx.read(key)
	if h.r == nil {
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

// DelIf deletes a string whose value compares as asked, and reports whether it
// did. Always deletes keys of every kind.
func (tx *Tx) DelIf(key []byte, c Comparison, want []byte) (bool, error) {
	h := tx.find(key)
	if h.r == nil {
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

// StrLen returns the length of a string in bytes, 0 if there is no such key.
func (tx *Tx) StrLen(key []byte) (int, error) {
	v, _, err := tx.Get(key)
	return len(v), err
}

// Append appends to a string, or sets it, and returns the new length. Amortised
// O(len(tail)) in place where the slot has room, else O(length).
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

// resize gives a string that str has looked up a length of n bytes, of which
// the old ones keep their contents and new ones are zero, and returns it for
// writing in place. The deadline stays; the encoding becomes raw.
func (tx *Tx) resize(h *hit, key []byte, n int) ([]byte, error) {
	if h.r != nil && h.r.has(flagExt) {
		e := &h.sp.exts[handleOf(h.r.inlineValue())]
		h.sp.extBytes -= cap(e.bytes)
		if old := len(e.bytes); n > old {
			e.bytes = append(e.bytes, make([]byte, n-old)...)
		} else {
			e.bytes = e.bytes[:n]
		}
		h.sp.extBytes += cap(e.bytes)
		h.r.kind |= flagRaw
		return e.bytes, nil
	}
	if h.r != nil {
		old := int(h.r.vlen)
		if size := h.r.size() - old + n; size <= h.sp.mem.SlotOf(h.ref()) && n >= old {
			h.r.vlen = uint16(n)
			h.r.kind |= flagRaw
			v := h.r.inlineValue()
			clear(v[old:])
			return v, nil
		}
	}
	tx.vbuf = tx.vbuf[:0]
	if h.r != nil {
		tx.vbuf = append(tx.vbuf, h.sp.value(h.r)...)
	}
	old := min(len(tx.vbuf), n)
	if n > cap(tx.vbuf) {
		tx.vbuf = append(make([]byte, 0, n), tx.vbuf...)
	}
	tx.vbuf = tx.vbuf[:n]
	clear(tx.vbuf[old:])
	if err := tx.replace(h, key, tx.vbuf, flagRaw); err != nil {
		return nil, err
	}
	if cap(tx.vbuf) > 1<<20 {
		tx.vbuf = nil
	}
	return h.sp.value(h.r), nil
}

// GetRange returns the bytes from start to end, both included; negative
// offsets count from the end. The result lies in the engine's memory.
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

// SetRange overwrites part of a string from offset on, filling up with zeros,
// and returns the new length. An empty part changes nothing.
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
	copy(v[offset:], part)
	tx.emit("SETRANGE", key, tx.itoa(0, offset), part)
	tx.changed(key, EventString, "setrange")
	return len(v), nil
}

// IncrBy adds to an integer and returns the result. A missing key counts as 0.
func (tx *Tx) IncrBy(key []byte, by int64) (int64, error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, err
	}
	var n int64
	if h.r != nil {
		if n, err = parseInt(h.sp.value(h.r)); err != nil {
			return 0, err
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		return 0, ErrOverflow
	}
	n += by
	if err := tx.replace(&h, key, tx.itoa(0, n), 0); err != nil {
		return 0, err
	}
	tx.emit("INCRBY", key, tx.itoa(1, by))
	tx.changed(key, EventString, "incrby")
	return n, nil
}

// floatPrec is the mantissa of the long double in which Redis adds: 0.1 + 0.2
// is 0.3.
const floatPrec = 64

// IncrByFloat adds to a number and returns the result as it is stored:
// decimal, without an exponent, at most 17 digits behind the point. The
// increment is as ParseFloat accepts it.
func (tx *Tx) IncrByFloat(key, by []byte) ([]byte, error) {
	h, err := tx.str(key)
	if err != nil {
		return nil, err
	}
	n := new(big.Float).SetPrec(floatPrec)
	if h.r != nil {
		if n, err = parseFloat(h.sp.value(h.r)); err != nil {
			return nil, err
		}
	}
	d, err := parseFloat(by)
	if err != nil {
		return nil, err
	}
	if n.IsInf() || d.IsInf() {
		return nil, ErrNaN
	}
	n.Add(n, d)
	if f, _ := n.Float64(); math.IsInf(f, 0) {
		return nil, ErrNaN
	}
	out := formatFloat(n)
	if err := tx.replace(&h, key, out, 0); err != nil {
		return nil, err
	}
	s := spec{deadline: h.r.deadline()}
	if h.r.has(flagSlide) {
		s.span = h.r.slide().span
	}
	tx.emitSet(key, out, s)
	tx.changed(key, EventString, "incrbyfloat")
	return out, nil
}

// formatFloat prints with 17 digits behind the point, and none that are 0.
func formatFloat(f *big.Float) []byte {
	b := f.Append(nil, 'f', 17)
	b = bytes.TrimRight(b, "0")
	b = bytes.TrimSuffix(b, []byte("."))
	if string(b) == "-0" {
		return []byte("0")
	}
	return b
}

// parseInt parses a canonical decimal: no spaces, no plus, no leading zeros.
func parseInt(b []byte) (int64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, ErrNotInteger
	}
	d := b
	neg := d[0] == '-'
	if neg {
		d = d[1:]
	}
	if len(d) == 0 || d[0] == '0' && (len(d) > 1 || neg) {
		return 0, ErrNotInteger
	}
	var n uint64
	for _, c := range d {
		if c < '0' || c > '9' || n > math.MaxUint64/10 {
			return 0, ErrNotInteger
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case neg && n <= 1<<63:
		return -int64(n), nil
	case !neg && n < 1<<63 && len(d) <= 19:
		return int64(n), nil
	}
	return 0, ErrNotInteger
}

// parseFloat parses a number as C's strtold does, but no NaN and no spaces.
func parseFloat(b []byte) (*big.Float, error) {
	s := string(b)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !(math.IsInf(f, 0) && len(s) > 0) || math.IsNaN(f) || bytes.IndexByte(b, '_') >= 0 {
		return nil, ErrNotFloat
	}
	if math.IsInf(f, 0) {
		return new(big.Float).SetInf(f < 0), nil
	}
	x, _, err := big.ParseFloat(s, 0, floatPrec, big.ToNearestEven)
	if err != nil {
		x = new(big.Float).SetPrec(floatPrec).SetFloat64(f)
	}
	return x, nil
}
