package rdb

import (
	"encoding/binary"
	"strconv"

	"github.com/ebbdb/ebb/internal/packed"
)

// item is an element of a packed layout: bytes of the payload, or an integer.
type item struct {
	b []byte // nil: an integer
	n int64
}

// bytes returns the element as a string. It formats an integer into buf.
func (it item) bytes(buf *[20]byte) []byte {
	if it.b == nil {
		return strconv.AppendInt(buf[:0], it.n, 10)
	}
	return it.b
}

// A cursor walks a packed layout that was validated. next returns its elements in turn, and must
// not be called more often than there are elements.
type cursor interface{ next() item }

// listpack is the layout of Redis 7, which package packed describes. The reading position pos is at an element or at the end.
type listpack struct {
	b   []byte
	pos int
}

const (
	packHead    = 6
	packEnd     = 0xff
	packUnknown = 1<<16 - 1 // the count of a listpack whose number of elements is unknown
)

// checkListpack verifies that b is a listpack and returns its number of elements.
func checkListpack(b []byte) (n int, err error) {
	if len(b) < packHead+1 || int(binary.LittleEndian.Uint32(b)) != len(b) || b[len(b)-1] != packEnd {
		return 0, bad("not a listpack")
	}
	body := b[:len(b)-1]
	for pos := packHead; pos < len(body); n++ {
		if c := body[pos]; c < 0xc0 { // most elements: an integer below 128, or up to 63 bytes
			size := 1
			if c >= 0x80 {
				size += int(c & 0x3f)
			}
			if size < len(body)-pos && int(body[pos+size]) == size {
				pos += size + 1
				continue
			}
		}
		size := packSize(body[pos:])
		if size == 0 {
			return 0, bad("a listpack's element runs over its end")
		}
		back := packed.BackSize(size)
		if size+back > len(body)-pos || !isBack(body[pos+size:pos+size+back], size) {
			return 0, bad("the length of a listpack's element is not the one it states")
		}
		pos += size + back
	}
	if want := int(binary.LittleEndian.Uint16(b[4:])); want != packUnknown && want != n {
		return 0, bad("a listpack has %d elements, not %d", n, want)
	}
	return n, nil
}

// packSize returns the length of the encoding and data at the start of b, 0 if b does not contain
// them, or they are invalid.
func packSize(b []byte) int {
	n, c := 0, b[0]
	switch {
	case c < 0x80:
		n = 1
	case c < 0xc0:
		n = 1 + int(c&0x3f)
	case c < 0xe0:
		n = 2
	case c < 0xf0:
		if len(b) < 2 {
			return 0
		}
		n = 2 + int(c&0x0f)<<8 + int(b[1])
	case c == 0xf0:
		if len(b) < 5 {
			return 0
		}
		n = 5 + int(binary.LittleEndian.Uint32(b[1:]))
	case c <= 0xf4:
		n = [...]int{3, 4, 5, 9}[c-0xf1]
	}
	if n > len(b) {
		return 0
	}
	return n
}

func isBack(b []byte, size int) bool {
	if size <= 127 {
		return len(b) == 1 && int(b[0]) == size
	}
	var buf [5]byte
	return string(packed.AppendBack(buf[:0], size)) == string(b)
}

func newListpack(b []byte) *listpack { return &listpack{b, packHead} }

// next returns the next element.
func (l *listpack) next() item {
	b := l.b[l.pos:]
	c := b[0]
	switch {
	case c < 0x80:
		l.pos += 2
		return item{n: int64(c)}
	case c < 0xc0:
		size := 1 + int(c&0x3f)
		l.pos += size + 1
		return item{b: b[1:size:size]}
	}
	size := packSize(b)
	l.pos += size + packed.BackSize(size)
	switch {
	case c < 0xe0:
		return item{n: int64(int16(uint16(c&0x1f)<<8|uint16(b[1]))<<3) >> 3}
	case c < 0xf0:
		return item{b: b[2:size:size]}
	case c == 0xf0:
		return item{b: b[5:size:size]}
	}
	return item{n: littleInt(b[1:size])}
}

// littleInt reads a signed integer of 1, 2, 3, 4 or 8 bytes, little endian.
func littleInt(b []byte) int64 {
	var u uint64
	for i, c := range b {
		u |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(u<<shift) >> shift
}

// packer builds a listpack.
type packer struct {
	b []byte
	n int
}

// reset begins an empty listpack.
func (p *packer) reset() { p.b, p.n = append(p.b[:0], 0, 0, 0, 0, 0, 0), 0 }

// add appends an element. It encodes an integer in canonical form as an integer.
func (p *packer) add(s []byte) { p.b, p.n = packed.AppendElement(p.b, s), p.n+1 }

// addInt appends an integer.
func (p *packer) addInt(n int64) { p.b, p.n = packed.AppendIntElement(p.b, n), p.n+1 }

// finish completes the listpack. It is valid until the next reset.
func (p *packer) finish() []byte {
	p.b = append(p.b, packEnd)
	binary.LittleEndian.PutUint32(p.b, uint32(len(p.b)))
	binary.LittleEndian.PutUint16(p.b[4:], uint16(min(p.n, packUnknown)))
	return p.b
}
