package packed

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// This file knows the listpack, the layout of small containers in Redis:
//
//	bytes 4 │ count 2, 65535: not known │ element ... │ 0xFF
//	element: encoding and data │ their length again, 1 to 5 bytes, to be read backwards
//
// A run and the elements of a listpack are alike: both have the length of a short string in the byte before it. So the
// conversions between them copy most strings in one fixed size.

// ListpackInt returns the number of bytes of an integer in a listpack of Redis: its encoding, its contents, and after them
// their length, which a walk from the end needs.
func ListpackInt(v int64) int {
	switch {
	case v >= 0 && v <= 127:
		return 2
	case v >= -4096 && v <= 4095:
		return 3
	case v == int64(int16(v)):
		return 4
	case v == v<<40>>40:
		return 5
	case v == int64(int32(v)):
		return 6
	}
	return 10
}

// ListpackStr does the work of ListpackInt for the string or integer of a cell.
func ListpackStr(s Str) int {
	if s.IsInt() {
		return ListpackInt(s.N)
	}
	n := 5 + len(s.B)
	switch {
	case len(s.B) < 64:
		n = 1 + len(s.B)
	case len(s.B) < 4096:
		n = 2 + len(s.B)
	}
	return n + BackSize(n)
}

// BackSize returns the number of bytes of an element's length after the element. As in Redis, 16383
// and the greatest numbers of other widths take one byte more than they need.
func BackSize(size int) int {
	switch {
	case size <= 127:
		return 1
	case size < 1<<14-1:
		return 2
	case size < 1<<21-1:
		return 3
	case size < 1<<28-1:
		return 4
	}
	return 5
}

// AppendBack appends the length of an element: seven bits per byte, the highest first; all but the
// first byte have bit 7 set.
func AppendBack(dst []byte, size int) []byte {
	if size <= 127 {
		return append(dst, byte(size))
	}
	n := BackSize(size)
	for i := n - 1; i >= 0; i-- {
		c := byte(size>>(7*i)) & 0x7f
		if i < n-1 {
			c |= 0x80
		}
		dst = append(dst, c)
	}
	return dst
}

// AppendElement appends a string as an element, and an integer in canonical form as an integer.
func AppendElement(dst, s []byte) []byte {
	if n, ok := ParseInt(s); ok {
		return AppendIntElement(dst, n)
	}
	start := len(dst)
	switch n := len(s); {
	case n < 1<<6:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<12:
		dst = append(dst, 0xe0|byte(n>>8), byte(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf0), uint32(n))
	}
	dst = append(dst, s...)
	return AppendBack(dst, len(dst)-start)
}

// AppendIntElement appends an integer as an element.
func AppendIntElement(dst []byte, n int64) []byte {
	start := len(dst)
	switch {
	case n >= 0 && n < 1<<7:
		dst = append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		dst = append(dst, 0xc0|byte(n>>8)&0x1f, byte(n))
	case n == int64(int16(n)):
		dst = append(dst, 0xf1, byte(n), byte(n>>8))
	case n >= -1<<23 && n < 1<<23:
		dst = append(dst, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case n == int64(int32(n)):
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf3), uint32(n))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 0xf4), uint64(n))
	}
	return AppendBack(dst, len(dst)-start)
}

// listpackHead is the number of bytes before the first element.
const listpackHead = 6

// spare is the number of bytes behind the last element or cell that the conversions may overwrite.
const spare = 16

// Cells is a walk over the cells of a run that become elements of listpacks.
type Cells struct {
	run  Run
	off  int
	prev uint8
}

// Cells returns a walk over all cells of the run.
func (r Run) Cells() Cells { return Cells{run: r} }

// Cells returns a walk over all cells of the container: a hash has its values, and a sorted set its scores, after the keys.
func (p Packed) Cells() Cells { return p.run().Cells() }

// More reports whether there are cells that have not become elements.
func (c *Cells) More() bool { return c.off < len(c.run)-1 }

// AppendListpack appends cells to dst, a listpack without its last byte, and returns their number. It ends before an element that
// would make a dst which has elements longer than most bytes, and before a cell that has a deadline or a string of more than longest bytes.
// It may overwrite the bytes between the length and the capacity of the result.
func (c *Cells) AppendListpack(dst []byte, most, longest int) (out []byte, n int) {
	r, off, prev, to := c.run, c.off, c.prev, len(dst)
	dst = slices.Grow(dst, 2*(len(r)-off)+2*spare)
	out = dst[:cap(dst)]
	for ; off < len(r)-1; n++ {
		tag := r[off] ^ prev
		switch {
		case tag < maxShort && to+int(tag) <= most:
			k := int(tag)
			out[to] = 0x80 | tag
			if k <= spare && off+1+spare <= len(r) {
				*(*[spare]byte)(out[to+1:]) = [spare]byte(r[off+1:])
			} else {
				copy(out[to+1:], r[off+1:off+1+k])
			}
			out[to+1+k] = tag + 1
			to += k + 2
			off += 1 + k
		case tag >= codeImm && tag < tagTimed && to+2 <= most:
			out[to], out[to+1] = tag-codeImm, 1
			to += 2
			off++
		case tag == codeInt8 && to+4 <= most:
			v := int8(r[off+1])
			if v >= 0 {
				out[to], out[to+1] = byte(v), 1
				to += 2
			} else {
				out[to], out[to+1], out[to+2] = 0xdf, byte(v), 2
				to += 3
			}
			off += 2
		default:
			size := r.size(off, tag)
			b, ok := appendCell(out[:to], r[off+1:off+1+size], tag, most, longest)
			if !ok {
				c.off, c.prev = off, prev
				return b, n
			}
			to, off = len(b), off+1+size
			dst = slices.Grow(b, 2*(len(r)-off)+2*spare)
			out = dst[:cap(dst)]
		}
		prev = tag
	}
	c.off, c.prev = off, prev
	return out[:to], n
}

// appendCell appends the cell with this payload and tag as an element, if the rules of AppendListpack allow it.
func appendCell(dst, payload []byte, tag uint8, most, longest int) (out []byte, ok bool) {
	var text [32]byte
	first := len(dst) <= listpackHead
	switch {
	case tag&tagTimed != 0:
		return dst, false
	case tag == codeFlt32 || tag == codeFlt64:
		return AppendElement(dst, AppendScore(text[:0], loadScore(payload, tag))), true
	}
	s := loadStr(payload, tag)
	if s.IsInt() {
		if !first && len(dst)+len(strconv.AppendInt(text[:0], s.N, 10)) > most {
			return dst, false
		}
		return AppendIntElement(dst, s.N), true
	}
	if len(s.B) > longest || !first && len(dst)+len(s.B) > most {
		return dst, false
	}
	return AppendElement(dst, s.B), true
}

// AppendScore appends the text of a score, which is parsed to the same score: the digits of an integer up to 1<<62, because Redis
// stores these as integers in a listpack, or else the shortest decimal form.
func AppendScore(b []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	if math.Abs(f) <= 1<<62 && f == math.Trunc(f) && !(f == 0 && math.Signbit(f)) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// WholeScore returns a score as an integer, if it is one, up to 1<<53 and not -0.
func WholeScore(f float64) (int64, bool) {
	const exact = 1 << 53
	if f >= -exact && f <= exact && f == math.Trunc(f) && !(f == 0 && math.Signbit(f)) {
		return int64(f), true
	}
	return 0, false
}
