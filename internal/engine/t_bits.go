package engine

import (
	"crypto/subtle"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/ebbdb/ebb/internal/arena"
)

// The methods of this file use strings as arrays of bits. Bit 0 is the highest bit of byte 0, as in
// Redis. Bits after the end of a string, and all bits of a missing key, read as 0.

// SetBit sets the bit at offset and returns the old one. The string grows with zeros as needed.
// O(1) if it does not grow. The caller keeps offset below 8 times MaxString. Errors: ErrWrongType,
// ErrFull.
func (tx *Tx) SetBit(key []byte, offset int64, bit int) (old int, err error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, err
	}
	at, mask := int(offset>>3), byte(0x80)>>(offset&7)
	have := 0
	if h.r != nil {
		v := h.sp.value(h.r)
		have = len(v)
		if at < have && v[at]&mask != 0 {
			old = 1
		}
	}
	if at < have && old == bit {
		return old, nil
	}
	v, err := tx.resize(&h, key, max(have, at+1))
	if err != nil {
		return 0, err
	}
	h.edits(at, at+1)
	if bit != 0 {
		v[at] |= mask
	} else {
		v[at] &^= mask
	}
	tx.emit("SETBIT", key, tx.itoa(0, offset), tx.itoa(1, int64(bit)))
	tx.changed(key, EventString, "setbit")
	return old, nil
}

// GetBit returns the bit at offset.
func (tx *Tx) GetBit(key []byte, offset int64) (int, error) {
	v, _, err := tx.Get(key)
	if err != nil || offset>>3 >= int64(len(v)) {
		return 0, err
	}
	return int(v[offset>>3]>>(7-offset&7)) & 1, nil
}

// BitRange is a part of a string: from First to Last, both included; negative positions count from
// the end. They count bits if Bits is set, else bytes.
type BitRange struct {
	First, Last int64
	Bits        bool
}

// Everything is the range of a whole string.
var Everything = BitRange{0, -1, false}

// clip returns the range as bytes of v and the bits of its first and last byte
// that do not belong to it. ok is false if nothing is left.
func (r BitRange) clip(v []byte) (part []byte, first, last byte, start int64, ok bool) {
	n := int64(len(v))
	if r.Bits {
		n *= 8
	}
	a, b := r.First, r.Last
	if a < 0 {
		a = max(a+n, 0)
	}
	if b < 0 {
		b = max(b+n, 0)
	}
	if b = min(b, n-1); a > b {
		return nil, 0, 0, 0, false
	}
	if r.Bits {
		first = ^(byte(0xff) >> (a & 7))
		last = byte(0x7f) >> (b & 7)
		a, b = a>>3, b>>3
	}
	return v[a : b+1], first, last, a, true
}

// BitCount returns the number of set bits in a range. O(bytes), at the speed of memory. Errors: ErrWrongType.
func (tx *Tx) BitCount(key []byte, r BitRange) (int64, error) {
	v, _, err := tx.Get(key)
	if err != nil {
		return 0, err
	}
	part, first, last, _, ok := r.clip(v)
	if !ok || r.First < 0 && r.Last < 0 && r.First > r.Last {
		return 0, nil
	}
	n := countBits(part)
	n -= bits.OnesCount8(part[0] & first)
	n -= bits.OnesCount8(part[len(part)-1] & last)
	return int64(n), nil
}

// countBits counts set bits, 32 bytes at a time: four counters that do not wait
// for each other keep the processor's units busy.
func countBits(b []byte) int {
	var n0, n1, n2, n3 int
	for len(b) >= 32 {
		n0 += bits.OnesCount64(binary.LittleEndian.Uint64(b))
		n1 += bits.OnesCount64(binary.LittleEndian.Uint64(b[8:]))
		n2 += bits.OnesCount64(binary.LittleEndian.Uint64(b[16:]))
		n3 += bits.OnesCount64(binary.LittleEndian.Uint64(b[24:]))
		b = b[32:]
	}
	for ; len(b) >= 8; b = b[8:] {
		n0 += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		n1 += bits.OnesCount8(c)
	}
	return n0 + n1 + n2 + n3
}

// BitPos returns the position of the first bit of a range that equals bit, or -1 if there is none.
// A search for 0 with an open end (toEnd) finds the position after the string. A missing key reads
// as an endless run of zeros. O(bytes). Errors: ErrWrongType.
func (tx *Tx) BitPos(key []byte, bit int, r BitRange, toEnd bool) (int64, error) {
	v, ok, err := tx.Get(key)
	if err != nil {
		return 0, err
	}
	if !ok {
		return int64(bit) * -1, nil
	}
	part, first, last, start, ok := r.clip(v)
	if !ok {
		return -1, nil
	}
	if p := findBit(part, bit, first, last); p >= 0 {
		return start*8 + p, nil
	}
	if bit == 0 && toEnd {
		return (start + int64(len(part))) * 8, nil
	}
	return -1, nil
}

// findBit returns the position of the first bit that equals bit. It skips the bits in the masks of
// the first and the last byte.
func findBit(b []byte, bit int, first, last byte) int64 {
	flip := byte(0)
	if bit == 0 {
		flip = 0xff
	}
	end := len(b) - 1
	edge := func(i int) byte { // in the result, the wanted bits are 1
		c := b[i] ^ flip
		if i == 0 {
			c &^= first
		}
		if i == end {
			c &^= last
		}
		return c
	}
	at := func(i int, c byte) int64 { return int64(i)*8 + int64(bits.LeadingZeros8(c)) }
	if c := edge(0); c != 0 {
		return at(0, c)
	}
	i, skip := 1, -uint64(flip&1)
	for ; i+32 <= end; i += 32 {
		v, le := (*[32]byte)(b[i:]), binary.LittleEndian
		if le.Uint64(v[:])^skip|le.Uint64(v[8:])^skip|le.Uint64(v[16:])^skip|le.Uint64(v[24:])^skip != 0 {
			break
		}
	}
	for ; i+8 <= end; i += 8 {
		if w := binary.BigEndian.Uint64(b[i:]) ^ skip; w != 0 {
			return int64(i)*8 + int64(bits.LeadingZeros64(w))
		}
	}
	for ; i <= end; i++ {
		if c := edge(i); c != 0 {
			return at(i, c)
		}
	}
	return -1
}

// BitOperation combines strings bit by bit.
type BitOperation uint8

// These are the operations. BitNot takes one string.
const (
	BitAnd BitOperation = iota
	BitOr
	BitXor
	BitNot
)

// String is the operation's name in BITOP.
func (o BitOperation) String() string { return [...]string{"AND", "OR", "XOR", "NOT"}[o] }

// BitOp combines strings and stores the result under dst. It returns the result's length in bytes,
// which is that of the longest string; shorter strings count as padded with zeros. If the result is
// empty, BitOp deletes dst. O(bytes), word by word. Errors: ErrWrongType, ErrFull.
func (tx *Tx) BitOp(o BitOperation, dst []byte, keys [][]byte) (int, error) {
	var few [8][]byte // a few strings, on the stack
	srcs, n := few[:0], 0
	for _, k := range keys {
		v, _, err := tx.Get(k)
		if err != nil {
			return 0, err
		}
		srcs = append(srcs, v)
		n = max(n, len(v))
	}
	if n == 0 {
		tx.Del(dst)
		return 0, nil
	}
	out := tx.vbuf
	if n > arena.MaxRecord || n > cap(out) {
		out = make([]byte, n) // a long result becomes the key's value without a copy
	}
	if out = out[:n]; n <= arena.MaxRecord {
		tx.vbuf = out
	}
	combine(o, out, srcs)
	h := tx.find(dst)
	if err := tx.putOwned(&h, dst, out, spec{flags: uint8(String) | flagRaw}); err != nil {
		return 0, err
	}
	if tx.db.logging.Load() {
		tx.emit("BITOP", append([][]byte{[]byte(o.String()), dst}, keys...)...)
	}
	tx.changed(dst, EventString, "set")
	return n, nil
}

// combineBlock is the number of bytes that combine processes before it continues with the next
// string. A block stays in the innermost cache.
const combineBlock = 16 << 10

// combine computes an operation over strings into dst, which is as long as the
// longest of them.
func combine(o BitOperation, dst []byte, srcs [][]byte) {
	for at := 0; at < len(dst); at += combineBlock {
		d := dst[at:min(at+combineBlock, len(dst))]
		for i, s := range srcs {
			s = s[min(at, len(s)):min(at+len(d), len(s))]
			if i == 0 {
				clear(d[copy(d, s):])
				continue
			}
			combineInto(o, d[:len(s)], s)
			if o == BitAnd {
				clear(d[len(s):])
			}
		}
		if o == BitNot {
			invert(d)
		}
	}
}

// combineInto computes an operation over d and s, which are of one length, into d.
func combineInto(o BitOperation, d, s []byte) {
	le := binary.LittleEndian
	switch o {
	case BitAnd:
		for ; len(d) >= 32; d, s = d[32:], s[32:] {
			x, y := (*[32]byte)(d), (*[32]byte)(s)
			le.PutUint64(x[:], le.Uint64(x[:])&le.Uint64(y[:]))
			le.PutUint64(x[8:], le.Uint64(x[8:])&le.Uint64(y[8:]))
			le.PutUint64(x[16:], le.Uint64(x[16:])&le.Uint64(y[16:]))
			le.PutUint64(x[24:], le.Uint64(x[24:])&le.Uint64(y[24:]))
		}
		for i, c := range s {
			d[i] &= c
		}
	case BitOr:
		for ; len(d) >= 32; d, s = d[32:], s[32:] {
			x, y := (*[32]byte)(d), (*[32]byte)(s)
			le.PutUint64(x[:], le.Uint64(x[:])|le.Uint64(y[:]))
			le.PutUint64(x[8:], le.Uint64(x[8:])|le.Uint64(y[8:]))
			le.PutUint64(x[16:], le.Uint64(x[16:])|le.Uint64(y[16:]))
			le.PutUint64(x[24:], le.Uint64(x[24:])|le.Uint64(y[24:]))
		}
		for i, c := range s {
			d[i] |= c
		}
	case BitXor:
		subtle.XORBytes(d, d, s)
	}
}

func invert(d []byte) {
	le := binary.LittleEndian
	for ; len(d) >= 32; d = d[32:] {
		x := (*[32]byte)(d)
		le.PutUint64(x[:], ^le.Uint64(x[:]))
		le.PutUint64(x[8:], ^le.Uint64(x[8:]))
		le.PutUint64(x[16:], ^le.Uint64(x[16:]))
		le.PutUint64(x[24:], ^le.Uint64(x[24:]))
	}
	for i := range d {
		d[i] = ^d[i]
	}
}

// FieldOp is one operation of BITFIELD, on an integer of Width bits at Offset.
type FieldOp struct {
	Kind     FieldKind
	Signed   bool
	Width    uint8 // bits: 1 to 64, or to 63 for unsigned fields
	Overflow Overflow
	Offset   int64 // the position of the field's first bit
	Value    int64 // the value to store, or to add
}

// FieldKind says what a FieldOp does.
type FieldKind uint8

// These are the kinds of operations.
const (
	FieldGet    FieldKind = iota // replies the field
	FieldSet                     // replies the old field
	FieldIncrBy                  // replies the new field
)

// Overflow is the policy for a value that does not fit its field.
type Overflow uint8

// These are the policies.
const (
	Wrap     Overflow = iota // modulo 2^width
	Saturate                 // the nearest value that fits
	Fail                     // the operation fails and changes nothing
)

// BitField runs operations on integers inside a string, in order, and calls reply with the result
// of each; ok is false for one that failed. If an operation writes, BitField first grows the
// string, even if the operation then fails. Errors: ErrWrongType, ErrFull.
func (tx *Tx) BitField(key []byte, ops []FieldOp, reply func(n int64, ok bool)) error {
	need := int64(0) // bytes
	for i := range ops {
		if o := &ops[i]; o.Kind != FieldGet {
			need = max(need, (o.Offset+int64(o.Width)-1)>>3+1)
		}
	}
	if need == 0 {
		v, _, err := tx.Get(key)
		for i := range ops {
			if err == nil {
				reply(ops[i].run(v))
			}
		}
		return err
	}
	h, err := tx.str(key)
	if err != nil {
		return err
	}
	have := 0
	if h.r != nil {
		have = len(h.sp.value(h.r))
	}
	v, err := tx.resize(&h, key, max(have, int(need)))
	if err != nil {
		return err
	}
	grown := len(v) > have
	if grown {
		tx.emit("SETRANGE", key, tx.itoa(0, int64(len(v)-1)), v[len(v)-1:])
	}
	changes := 0
	for i := range ops {
		o := &ops[i]
		h.edits(int(o.Offset>>3), int((o.Offset+int64(o.Width)-1)>>3)+1)
		before := o.field(v)
		n, ok := o.run(v)
		reply(n, ok)
		if after := o.field(v); after != before {
			first, last := o.Offset>>3, (o.Offset+int64(o.Width)-1)>>3
			tx.emit("SETRANGE", key, tx.itoa(0, first), v[first:last+1])
			changes++
		} else if ok && grown && o.Kind != FieldGet {
			changes++
		}
	}
	if changes > 0 {
		tx.changed(key, EventString, "setbit")
		tx.dirty += changes - 1
	}
	return nil
}

// run executes one operation on a string that is long enough.
func (o *FieldOp) run(v []byte) (result int64, ok bool) {
	old := o.field(v)
	base, by := old, o.Value
	switch o.Kind {
	case FieldGet:
		return old, true
	case FieldSet:
		base, by = o.Value, 0
	}
	n, over := o.limit(base, by)
	if over && o.Overflow == Fail {
		return 0, false
	}
	putField(v, o.Offset, uint(o.Width), uint64(n))
	if o.Kind == FieldSet {
		return old, true
	}
	return n, true
}

// field reads the field.
func (o *FieldOp) field(v []byte) int64 {
	n := getField(v, o.Offset, uint(o.Width))
	if o.Signed {
		shift := 64 - uint(o.Width)
		return int64(n<<shift) >> shift
	}
	return int64(n)
}

// limit returns n + by, adjusted to the field by the overflow policy, and whether the sum did not
// fit. n itself may not fit either; the comparisons wrap as Redis's do.
func (o *FieldOp) limit(n, by int64) (int64, bool) {
	shift := 64 - uint(o.Width)
	sum := uint64(n) + uint64(by)
	if !o.Signed {
		top := uint64(math.MaxUint64) >> shift
		switch u := uint64(n); {
		case u > top || by > 0 && by > int64(top-u):
			return o.overflowed(int64(sum<<shift>>shift), int64(top)), true
		case by < 0 && by < int64(-u):
			return o.overflowed(int64(sum<<shift>>shift), 0), true
		}
		return int64(sum), false
	}
	top := int64(math.MaxInt64) >> shift
	low := -top - 1
	room, down := top-n, low-n // may wrap
	part := o.Width != 64
	wrapped := int64(sum<<shift) >> shift
	switch {
	case n > top || part && by > room || n >= 0 && by > 0 && by > room:
		return o.overflowed(wrapped, top), true
	case n < low || part && by < down || n < 0 && by < 0 && by < down:
		return o.overflowed(wrapped, low), true
	}
	return int64(sum), false
}

func (o *FieldOp) overflowed(wrapped, bound int64) int64 {
	if o.Overflow == Saturate {
		return bound
	}
	return wrapped
}

// loadField reads the nine bytes that a field at offset can touch.
func loadField(v []byte, offset int64) (hi uint64, lo byte, shift uint) {
	var b [9]byte
	if at := offset >> 3; at < int64(len(v)) {
		copy(b[:], v[at:])
	}
	return binary.BigEndian.Uint64(b[:]), b[8], uint(offset & 7)
}

func getField(v []byte, offset int64, width uint) uint64 {
	hi, lo, shift := loadField(v, offset)
	return (hi<<shift | uint64(lo)>>(8-shift)) >> (64 - width)
}

func putField(v []byte, offset int64, width uint, n uint64) {
	hi, lo, shift := loadField(v, offset)
	n <<= 64 - width
	mask := ^uint64(0) << (64 - width)
	hi = hi&^(mask>>shift) | n>>shift
	lo = lo&^byte(mask<<(8-shift)) | byte(n<<(8-shift))
	var b [9]byte
	binary.BigEndian.PutUint64(b[:], hi)
	b[8] = lo
	copy(v[offset>>3:], b[:])
}
