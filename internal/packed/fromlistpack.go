package packed

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
)

// ListpackRoom returns the capacity with which FromListpack needs no other memory for a listpack of n bytes.
func ListpackRoom(n int) int { return headPlain + 2*n + 2*spare }

// FromListpack makes a container of kind k of the elements of a listpack, which may be damaged, and appends it to dst[:0]. It takes
// what Redis writes for most small containers. There is none, and ok is false, if the listpack is damaged, has a string of more than
// longest bytes or some 120, an element that AppendElement would write in another way, or a key twice, or if the items of a sorted
// set are not in order. seed is for a hash of the keys. It may overwrite the bytes between the length and the capacity of dst.
// Expected O(bytes).
func FromListpack(dst []byte, k Kind, pack []byte, longest int, seed maphash.Seed) (p Packed, ok bool) {
	end := len(pack) - 1
	if end < listpackHead || int(binary.LittleEndian.Uint32(pack)) != len(pack) || pack[end] != 0xff {
		return nil, false
	}
	b := builder{kind: k, pack: pack[:end], longest: longest, seed: seed}
	b.out = slices.Grow(dst[:0], ListpackRoom(len(pack)))
	b.out = b.out[:cap(b.out)]
	b.off = headPlain
	if !b.walk() {
		return nil, false
	}
	want := int(binary.LittleEndian.Uint16(pack[4:]))
	if want != math.MaxUint16 && want != b.n || k >= KindHash && b.n%2 != 0 {
		return nil, false
	}
	if k >= KindHash {
		b.n /= 2
	}
	if b.n > MaxItems {
		return nil, false
	}
	p = Packed(b.out[:b.off+1])
	p[b.off] = b.prev
	p.putHead(k, b.n, 0, 0)
	return p, true
}

// builder turns the elements of a listpack into the cells of a run.
type builder struct {
	kind    Kind
	pack    []byte // without its last byte
	longest int

	out  []byte // the image, and bytes to spare
	off  int    // the position of the next separator
	prev uint8  // the tag of the cell before it
	n    int    // elements so far

	// seen recognises most new keys. It is a Bloom filter with one hash: with n keys in it, it misses n in 4096 of the new ones.
	seen [64]uint64
	seed maphash.Seed

	key, last Str // the last key, and the one before it
	score     float64
}

func (b *builder) walk() bool {
	pack := b.pack
	for pos := listpackHead; pos < len(pack); b.n++ {
		c := pack[pos]
		size := 0
		switch {
		case c < 0x80:
			size = 1
		case c < 0xc0:
			size = 1 + int(c&0x3f)
		default:
			if size = elementSize(pack[pos:]); size == 0 || size > 127 {
				return false
			}
		}
		if size >= len(pack)-pos || int(pack[pos+size]) != size {
			return false
		}
		if !b.element(pos, size) {
			return false
		}
		pos += size + 1
	}
	return true
}

// elementSize returns the length of the encoding and data at the start of b; 0 if b does not contain them, they are invalid, or
// the string is longer than 4095 bytes.
func elementSize(b []byte) int {
	switch c := b[0]; {
	case c < 0xe0:
		return 2
	case c < 0xf0 && len(b) > 1:
		return 2 + int(c&0x0f)<<8 + int(b[1])
	case c > 0xf0 && c <= 0xf4:
		return [...]int{3, 4, 5, 9}[c-0xf1]
	}
	return 0
}

// element appends the element of the given size at pos as a cell.
func (b *builder) element(pos, size int) bool {
	s, ok := b.load(pos, size)
	if !ok || len(s.B) > b.longest {
		return false
	}
	if b.kind == KindZSet && b.n%2 == 1 {
		return b.addScore(s)
	}
	if b.kind != KindList && (b.kind == KindSet || b.n%2 == 0) && !b.unique(s) {
		return false
	}
	n := len(s.B)
	if s.B == nil || n > maxShort {
		var c Cell
		if s.B == nil {
			c.setInt(s.N)
		} else {
			c.Set(s.B)
		}
		b.put(&c)
		return true
	}
	b.out[b.off] = b.prev ^ uint8(n)
	if from := pos + size - n; n <= spare && from+spare <= len(b.pack) {
		*(*[spare]byte)(b.out[b.off+1:]) = [spare]byte(b.pack[from:])
	} else {
		copy(b.out[b.off+1:], s.B)
	}
	b.off, b.prev = b.off+1+n, uint8(n)
	return true
}

// load reads an element. ok is false if AppendElement writes its string or integer in another way.
func (b *builder) load(pos, size int) (s Str, ok bool) {
	switch c := b.pack[pos]; {
	case c < 0x80:
		return Str{N: int64(c)}, true
	case c < 0xc0:
		s.B = b.pack[pos+1 : pos+size]
	case c < 0xe0:
		s.N = int64(int16(uint16(c&0x1f)<<8|uint16(b.pack[pos+1]))<<3) >> 3
	case c < 0xf0:
		s.B = b.pack[pos+2 : pos+size]
		return s, len(s.B) >= 1<<6
	default:
		s.N = signed(b.pack[pos+1 : pos+size])
	}
	if s.B == nil {
		return s, ListpackInt(s.N) == size+1
	}
	if len(s.B) > 0 && s.B[0] <= '9' { // it may be a number
		if _, isInt := ParseInt(s.B); isInt {
			return s, false
		}
	}
	return s, true
}

// put appends a cell.
func (b *builder) put(c *Cell) {
	b.out[b.off] = b.prev ^ c.code
	b.off += 1 + c.put(b.out[b.off+1:], 0)
	b.prev = c.code
}

// unique notes a new key, and reports whether it is new.
func (b *builder) unique(s Str) bool {
	b.last, b.key = b.key, s
	var h uint64
	if s.B != nil {
		h = maphash.Bytes(b.seed, s.B)
	} else {
		var num [8]byte
		binary.LittleEndian.PutUint64(num[:], uint64(s.N))
		h = maphash.Bytes(b.seed, num[:])
	}
	word, bit := &b.seen[h&63], uint64(1)<<(h>>6&63)
	if *word&bit == 0 {
		*word |= bit
		return true
	}
	var c Cell
	if s.B != nil {
		c.Set(s.B)
	} else {
		c.setInt(s.N)
	}
	b.out[b.off] = b.prev
	_, _, twice := Run(b.out[headPlain:b.off+1]).find(&c, b.kind >= KindHash)
	return !twice
}

// addScore appends the score of the last key, and reports whether the two belong after the items before them.
func (b *builder) addScore(s Str) bool {
	score := float64(s.N)
	if s.B != nil {
		var err error
		if score, err = strconv.ParseFloat(string(s.B), 64); err != nil || math.IsNaN(score) {
			return false
		}
	} else if int64(score) != s.N {
		return false
	}
	var text [128]byte
	if b.n > 1 && (score < b.score || score == b.score && b.last.Compare(b.key.Append(text[:0])) >= 0) {
		return false
	}
	b.score = score
	var c Cell
	c.setScore(score)
	b.put(&c)
	return true
}

// signed reads an integer of 2, 3, 4 or 8 bytes.
func signed(b []byte) int64 {
	switch len(b) {
	case 2:
		return loadInt(b, codeInt16)
	case 3:
		return loadInt(b, codeInt24)
	case 4:
		return loadInt(b, codeInt32)
	}
	return loadInt(b, codeInt64)
}
