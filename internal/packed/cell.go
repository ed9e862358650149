package packed

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// The codes: the low seven bits of a tag. 0 to 64 are strings of that length; 64 because it is the
// default of hash-max-listpack-value and similar directives. Longer strings have their length at
// both ends of the payload, so that an iterator can pass them in both directions. Codes 76 and 77
// are free.
const (
	maxShort  = 64
	codeStr8  = 65
	codeStr16 = 66
	codeStr32 = 67
	codeInt8  = 68
	codeInt16 = 69
	codeInt24 = 70
	codeInt32 = 71
	codeInt48 = 72
	codeInt64 = 73
	codeFlt32 = 74 // scores only
	codeFlt64 = 75 // scores only
	codeImm   = 78 // 78 to 127 are the integers 0 to 49, without payload
	maxImm    = 127 - codeImm

	tagTimed     = 0x80 // the payload begins with a deadline
	deadlineSize = 6
	sizeLong     = 0xff // in sizes: look at the payload
)

// sizes has the payload's length for each tag, including the deadline.
var sizes = func() (t [256]uint8) {
	for tag := range t {
		code, n := tag&^tagTimed, 0
		switch {
		case code <= maxShort:
			n = code
		case code <= codeStr32:
			t[tag] = sizeLong
			continue
		case code < codeImm:
			n = int(fixed[code-codeInt8])
		}
		if tag&tagTimed != 0 {
			n += deadlineSize
		}
		t[tag] = uint8(n)
	}
	return t
}()

// fixed holds the length of the payload, in bytes, of codeInt8 and of each code after it.
var fixed = [codeImm - codeInt8]uint8{1, 2, 3, 4, 6, 8, 4, 8}

// Cell is an encoded string, integer or score, to be stored or searched for. It aliases the bytes
// from which it was made.
type Cell struct {
	s    []byte // strings
	v    int64  // integers; the bits of scores
	n    int    // length of the payload without a deadline
	code uint8
	mark uint8 // a byte that differs between most payloads of this code: the last of a string, the lowest of an integer
	back int   // the distance of mark from the end of the payload; 0 in a cell without one, and in a score, which find does not look for
}

// Encode returns the canonical cell of s.
func Encode(s []byte) (c Cell) {
	c.Set(s)
	return c
}

// Set makes c the canonical cell of s. It is faster than Encode, because it does not copy a cell: a processor waits when it
// copies memory that was just written in smaller parts.
func (c *Cell) Set(s []byte) {
	if v, ok := ParseInt(s); ok {
		c.setInt(v)
		return
	}
	c.s = s
	switch n := len(s); {
	case n == 0:
		c.code, c.n, c.mark, c.back = 0, 0, 0, 0
	case n <= maxShort:
		c.code, c.n, c.mark, c.back = uint8(n), n, s[n-1], 1
	case n < 1<<8:
		c.code, c.n, c.mark, c.back = codeStr8, n+2, s[n-1], 2
	case n < 1<<16:
		c.code, c.n, c.mark, c.back = codeStr16, n+4, s[n-1], 3
	default:
		c.code, c.n, c.mark, c.back = codeStr32, n+8, s[n-1], 5
	}
}

// setScore makes c the canonical cell of a score: an integer if the score is one (but not -0), else four bytes if they
// represent it exactly, else eight.
func (c *Cell) setScore(f float64) {
	if n, ok := WholeScore(f); ok {
		c.setInt(n)
		return
	}
	c.s, c.mark, c.back = nil, 0, 0
	if g := float32(f); float64(g) == f {
		c.code, c.n, c.v = codeFlt32, 4, int64(math.Float32bits(g))
		return
	}
	c.code, c.n, c.v = codeFlt64, 8, int64(math.Float64bits(f))
}

func (c *Cell) setInt(v int64) {
	c.s, c.v = nil, v
	switch {
	case v >= 0 && v <= maxImm:
		c.code, c.n, c.mark, c.back = codeImm+uint8(v), 0, 0, 0
		return
	case v == int64(int8(v)):
		c.code = codeInt8
	case v == int64(int16(v)):
		c.code = codeInt16
	case v == v<<40>>40:
		c.code = codeInt24
	case v == int64(int32(v)):
		c.code = codeInt32
	case v == v<<16>>16:
		c.code = codeInt48
	default:
		c.code = codeInt64
	}
	c.n = int(fixed[c.code-codeInt8])
	c.mark, c.back = uint8(v), c.n
}

// Size returns the bytes that the cell adds to a run, including its separator.
func (c *Cell) Size(deadline int64) int {
	if deadline != 0 {
		return 1 + deadlineSize + c.n
	}
	return 1 + c.n
}

func (c *Cell) tag(deadline int64) uint8 {
	if deadline != 0 {
		return c.code | tagTimed
	}
	return c.code
}

// put writes deadline and payload to b and returns their length.
func (c *Cell) put(b []byte, deadline int64) int {
	p := 0
	if deadline != 0 {
		putDeadline(b, deadline)
		p = deadlineSize
	}
	b = b[p : p+c.n]
	switch {
	case c.code <= maxShort:
		copy(b, c.s)
	case c.code == codeStr8:
		b[0], b[c.n-1] = uint8(len(c.s)), uint8(len(c.s))
		copy(b[1:], c.s)
	case c.code == codeStr16:
		binary.LittleEndian.PutUint16(b, uint16(len(c.s)))
		copy(b[2:], c.s)
		binary.LittleEndian.PutUint16(b[c.n-2:], uint16(len(c.s)))
	case c.code == codeStr32:
		binary.LittleEndian.PutUint32(b, uint32(len(c.s)))
		copy(b[4:], c.s)
		binary.LittleEndian.PutUint32(b[c.n-4:], uint32(len(c.s)))
	default:
		for i, v := 0, c.v; i < len(b); i, v = i+1, v>>8 {
			b[i] = byte(v)
		}
	}
	return p + c.n
}

// Str is a string read from a container: bytes that alias the container's
// memory, or an integer stored as one.
type Str struct {
	B []byte // nil: the string is the decimal form of N
	N int64
}

// StrOf returns b as a container would read it. It aliases b.
func StrOf(b []byte) Str {
	if v, ok := ParseInt(b); ok {
		return Str{N: v}
	}
	if b == nil {
		b = []byte{}
	}
	return Str{B: b}
}

// Equal reports whether two strings that were read from containers, or made by StrOf, are the same.
func (s *Str) Equal(t *Str) bool {
	if s.B == nil || t.B == nil {
		return s.B == nil && t.B == nil && s.N == t.N
	}
	return string(s.B) == string(t.B)
}

// IsInt reports whether the string is the canonical decimal form of N.
func (s Str) IsInt() bool { return s.B == nil }

// Append appends the string to dst.
func (s Str) Append(dst []byte) []byte {
	if s.B == nil {
		return strconv.AppendInt(dst, s.N, 10)
	}
	return append(dst, s.B...)
}

// String returns a copy.
func (s Str) String() string {
	if s.B == nil {
		return strconv.FormatInt(s.N, 10)
	}
	return string(s.B)
}

// Len returns the string's length in bytes.
func (s Str) Len() int {
	if s.B == nil {
		var buf [20]byte
		return len(strconv.AppendInt(buf[:0], s.N, 10))
	}
	return len(s.B)
}

// Compare orders the string and b by their bytes.
func (s Str) Compare(b []byte) int {
	if s.B == nil {
		var buf [20]byte
		return bytes.Compare(strconv.AppendInt(buf[:0], s.N, 10), b)
	}
	return bytes.Compare(s.B, b)
}

// loadStr decodes a string or integer payload (without deadline).
func loadStr(b []byte, code uint8) Str {
	b = b[:len(b):len(b)]
	switch {
	case code <= maxShort:
		return Str{B: b}
	case code == codeStr8:
		return Str{B: b[1 : len(b)-1 : len(b)-1]}
	case code == codeStr16:
		return Str{B: b[2 : len(b)-2 : len(b)-2]}
	case code == codeStr32:
		return Str{B: b[4 : len(b)-4 : len(b)-4]}
	}
	return Str{N: loadInt(b, code)}
}

func loadInt(b []byte, code uint8) int64 {
	switch code {
	case codeInt8:
		return int64(int8(b[0]))
	case codeInt16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case codeInt24:
		return int64(b[0]) | int64(b[1])<<8 | int64(int8(b[2]))<<16
	case codeInt32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case codeInt48:
		return int64(binary.LittleEndian.Uint32(b)) | int64(int16(binary.LittleEndian.Uint16(b[4:])))<<32
	case codeInt64:
		return int64(binary.LittleEndian.Uint64(b))
	}
	return int64(code) - codeImm
}

func loadScore(b []byte, code uint8) float64 {
	switch code {
	case codeFlt32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case codeFlt64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return float64(loadInt(b, code))
}

// ParseInt returns the value of s if s is exactly the decimal form of an int64, as
// strconv.FormatInt writes it. The package stores these strings as integers, and a set that has
// only such members can be an IntSet.
func ParseInt(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > 20 {
		return 0, false
	}
	neg := s[0] == '-'
	d := s
	if neg {
		d = s[1:]
	}
	if len(d) == 0 || d[0] < '1' || d[0] > '9' {
		return 0, len(s) == 1 && s[0] == '0'
	}
	var u uint64
	for _, c := range d {
		if c -= '0'; c > 9 || u > (1<<63)/10 {
			return 0, false
		}
		u = u*10 + uint64(c)
	}
	if neg {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

func getDeadline(b []byte) int64 {
	return int64(binary.LittleEndian.Uint32(b)) | int64(binary.LittleEndian.Uint16(b[4:]))<<32
}

func putDeadline(b []byte, deadline int64) {
	binary.LittleEndian.PutUint32(b, uint32(deadline))
	binary.LittleEndian.PutUint16(b[4:], uint16(deadline>>32))
}
