package stream

import (
	"encoding/binary"
	"strconv"

	"github.com/ebbdb/ebb/internal/packed"
)

// An entry begins with length<<2 | flags, where the length counts the bytes after it. Its id is
// ms<<1 | explicit, relative to the entry before it. If explicit is 1, the sequence number follows;
// otherwise it is the next one, or 0 if ms is not 0.
const (
	flagDeleted = 1
	flagOther   = 2 // the entry has field names of its own, before the values
	flagBits    = 2
)

// The first byte of a value: below tagLong a string of that length, then tagLong with the length
// after it, integers of 1 to 8 bytes, and the integers 0 to 54 themselves.
const (
	tagLong = 0xC0
	tagInt  = tagLong // + 1 to 8
	tagImm  = tagLong + 9
	maxImm  = 0xFF - tagImm
)

// maxStep is the greatest distance, in milliseconds, from one id of a piece to the next.
const maxStep = 1 << 62

func varintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// uvarint reads a varint at p of b, which was written by this package.
func uvarint(b []byte, p int) (uint64, int) {
	if c := b[p]; c < 0x80 {
		return uint64(c), p + 1
	}
	v, n := binary.Uvarint(b[p:])
	return v, p + n
}

// valueBound returns an upper bound of the bytes of a value.
func valueBound(v []byte) int {
	if len(v) < tagLong {
		return 1 + len(v)
	}
	return 1 + varintLen(uint64(len(v))) + len(v)
}

// putValue writes a value at p of b and returns the position after it.
func putValue(b []byte, p int, v []byte) int {
	if n, ok := packed.ParseInt(v); ok {
		return putInt(b, p, n)
	}
	if len(v) < tagLong {
		b[p] = uint8(len(v))
		p++
	} else {
		b[p] = tagLong
		p += 1 + binary.PutUvarint(b[p+1:], uint64(len(v)))
	}
	return p + copy(b[p:], v)
}

func putInt(b []byte, p int, n int64) int {
	if n >= 0 && n <= maxImm {
		b[p] = tagImm + uint8(n)
		return p + 1
	}
	k := 1
	for ; k < 8 && n != n<<(64-8*k)>>(64-8*k); k++ {
	}
	b[p] = tagInt + uint8(k)
	for i := range k {
		b[p+1+i] = byte(n >> (8 * i))
	}
	return p + 1 + k
}

// getValue reads a value at p of b and returns the position after it.
func getValue(b []byte, p int) (packed.Str, int) {
	t := b[p]
	p++
	switch {
	case t < tagLong:
		n := p + int(t)
		return packed.Str{B: b[p:n:n]}, n
	case t == tagLong:
		l, p := uvarint(b, p)
		n := p + int(l)
		return packed.Str{B: b[p:n:n]}, n
	case t >= tagImm:
		return packed.Str{N: int64(t - tagImm)}, p
	}
	k := int(t - tagInt)
	var v uint64
	for i := range k {
		v |= uint64(b[p+i]) << (8 * i)
	}
	return packed.Str{N: int64(v<<(64-8*k)) >> (64 - 8*k)}, p + k
}

// names is the list of field names at the beginning of a piece: their number, then each with its
// length.
type names []byte

// namesSize returns the bytes of the names of an entry.
func namesSize(pairs [][]byte) int {
	n := varintLen(uint64(len(pairs) / 2))
	for i := 0; i < len(pairs); i += 2 {
		n += varintLen(uint64(len(pairs[i]))) + len(pairs[i])
	}
	return n
}

// putNames writes the names of an entry at p of b.
func putNames(b []byte, p int, pairs [][]byte) int {
	p += binary.PutUvarint(b[p:], uint64(len(pairs)/2))
	for i := 0; i < len(pairs); i += 2 {
		p += binary.PutUvarint(b[p:], uint64(len(pairs[i])))
		p += copy(b[p:], pairs[i])
	}
	return p
}

// same reports whether an entry's names are these.
func (m names) same(pairs [][]byte) bool {
	n, p := uvarint(m, 0)
	if n != uint64(len(pairs)/2) {
		return false
	}
	for i := 0; i < len(pairs); i += 2 {
		l, q := uvarint(m, p)
		p = q + int(l)
		if string(m[q:p]) != string(pairs[i]) {
			return false
		}
	}
	return true
}

// size returns the bytes of the list.
func (m names) size() int {
	n, p := uvarint(m, 0)
	for range n {
		l, q := uvarint(m, p)
		p = q + int(l)
	}
	return p
}

// find returns the index of a name among the first 32, or -1.
func (m names) find(name []byte) int {
	n, p := uvarint(m, 0)
	for i := range min(int(n), 32) {
		l, q := uvarint(m, p)
		p = q + int(l)
		if string(m[q:p]) == string(name) {
			return i
		}
	}
	return -1
}

// at returns name i.
func (m names) at(i int) []byte {
	_, p := uvarint(m, 0)
	for {
		l, q := uvarint(m, p)
		p = q + int(l)
		if i == 0 {
			return m[q:p:p]
		}
		i--
	}
}

// Each of an entry's own names is index<<1 | 1, for a name in the piece's list, or length<<1 and
// the name.
func otherSize(pairs [][]byte) int {
	n := varintLen(uint64(len(pairs) / 2))
	for i := 0; i < len(pairs); i += 2 {
		n += varintLen(uint64(len(pairs[i]))<<1) + len(pairs[i])
	}
	return n
}

func putOther(b []byte, p int, m names, pairs [][]byte) int {
	p += binary.PutUvarint(b[p:], uint64(len(pairs)/2))
	for i := 0; i < len(pairs); i += 2 {
		if k := m.find(pairs[i]); k >= 0 && len(pairs[i]) > 0 {
			b[p] = uint8(k<<1 | 1)
			p++
			continue
		}
		p += binary.PutUvarint(b[p:], uint64(len(pairs[i]))<<1)
		p += copy(b[p:], pairs[i])
	}
	return p
}

// step encodes id relative to the one before it; seq is valid if the code is explicit.
func step(prev, id ID) (code, seq uint64) {
	ms := id.Ms - prev.Ms
	switch {
	case ms == 0 && id.Seq == prev.Seq+1, ms != 0 && id.Seq == 0:
		return ms << 1, 0
	case ms == 0:
		return 1, id.Seq - prev.Seq
	}
	return ms<<1 | 1, id.Seq
}

// getID reads the id at p of b.
func getID(b []byte, p int, prev ID) (ID, int) {
	code, p := uvarint(b, p)
	id := ID{Ms: prev.Ms + code>>1}
	if code&1 != 0 {
		id.Seq, p = uvarint(b, p)
		if code>>1 == 0 {
			id.Seq += prev.Seq
		}
	} else if code == 0 {
		id.Seq = prev.Seq + 1
	}
	return id, p
}

// AppendID appends the usual form of an id: ms-seq.
func AppendID(dst []byte, id ID) []byte {
	dst = strconv.AppendUint(dst, id.Ms, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, id.Seq, 10)
}
