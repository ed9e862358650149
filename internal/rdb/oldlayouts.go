package rdb

import "encoding/binary"

// ziplist is the layout before listpacks:
//
//	bytes 4 │ offset of the last element 4 │ count 2, 65535: not known │ element ... │ 0xFF
//	element: length of the one before, 1 or 0xFE and 4 │ encoding │ data
type ziplist struct {
	b   []byte
	pos int
}

const (
	zipHead = 10
	zipBig  = 0xfe // the length follows in 4 bytes
)

// checkZiplist verifies that b is a ziplist and returns its number of elements.
func checkZiplist(b []byte) (n int, err error) {
	if len(b) < zipHead+1 || int(binary.LittleEndian.Uint32(b)) != len(b) || b[len(b)-1] != packEnd {
		return 0, bad("not a ziplist")
	}
	body := b[:len(b)-1]
	before, last := 0, zipHead
	for pos := zipHead; pos < len(body); n++ {
		head, said := zipBefore(body[pos:])
		if head == 0 || said != before || head >= len(body)-pos {
			return 0, bad("a ziplist's element does not know the one before it")
		}
		code, size, ok := zipSize(body[pos+head:])
		if !ok {
			return 0, bad("a ziplist's element runs over its end")
		}
		last, before = pos, head+code+size
		pos += before
	}
	if int(binary.LittleEndian.Uint32(b[4:])) != last {
		return 0, bad("a ziplist's last element is not where it says")
	}
	if want := int(binary.LittleEndian.Uint16(b[8:])); want != packUnknown && want != n {
		return 0, bad("a ziplist has %d elements, not %d", n, want)
	}
	return n, nil
}

// zipBefore reads the length of the element before. It returns the size of this number in bytes, 0
// if it is cut off, and the length.
func zipBefore(b []byte) (head, before int) {
	if b[0] < zipBig {
		return 1, int(b[0])
	}
	if b[0] == packEnd || len(b) < 5 {
		return 0, 0
	}
	return 5, int(binary.LittleEndian.Uint32(b[1:]))
}

// zipSize returns the lengths of the encoding and the data at the start of b; ok is false if b does
// not hold them, or they are invalid.
func zipSize(b []byte) (code, size int, ok bool) {
	c := b[0]
	switch {
	case c < 0x40:
		code, size = 1, int(c)
	case c < 0x80:
		if len(b) < 2 {
			return 0, 0, false
		}
		code, size = 2, int(c&0x3f)<<8|int(b[1])
	case c == 0x80:
		if len(b) < 5 {
			return 0, 0, false
		}
		code, size = 5, int(binary.BigEndian.Uint32(b[1:]))
	case c == 0xc0:
		code, size = 1, 2
	case c == 0xd0:
		code, size = 1, 4
	case c == 0xe0:
		code, size = 1, 8
	case c == 0xf0:
		code, size = 1, 3
	case c == 0xfe:
		code, size = 1, 1
	case c > 0xf0 && c < 0xfe:
		code, size = 1, 0
	}
	return code, size, code > 0 && code+size <= len(b)
}

func newZiplist(b []byte) *ziplist { return &ziplist{b, zipHead} }

// next returns the next element.
func (z *ziplist) next() item {
	head, _ := zipBefore(z.b[z.pos:])
	b := z.b[z.pos+head:]
	code, size, _ := zipSize(b)
	z.pos += head + code + size
	data := b[code : code+size : code+size]
	switch c := b[0]; {
	case c <= 0x80:
		return item{b: data}
	case size == 0:
		return item{n: int64(c&0x0f) - 1}
	}
	return item{n: littleInt(data)}
}

// zipmap is the layout of small hashes before ziplists:
//
//	pairs 1, above 253: not known │ field and value ... │ 0xFF
//	field: length, data     value: length, unused bytes 1, data, the unused bytes
//	length: 1, or 0xFE and 4
type zipmap struct {
	b     []byte
	pos   int
	value bool // the next element is a value
}

// checkZipmap verifies that b is a zipmap and returns its number of pairs.
func checkZipmap(b []byte) (n int, err error) {
	if len(b) < 2 || b[len(b)-1] != packEnd {
		return 0, bad("not a zipmap")
	}
	z := &zipmap{b: b[:len(b)-1], pos: 1}
	for ; z.pos < len(z.b); n++ {
		for range 2 {
			if z.pos >= len(z.b) {
				return 0, bad("a zipmap's field has no value")
			}
			head, size, free := z.size()
			if head == 0 || head+size+free > len(z.b)-z.pos {
				return 0, bad("a zipmap's element runs over its end")
			}
			z.pos += head + size + free
			z.value = !z.value
		}
	}
	if b[0] < zipBig && int(b[0]) != n {
		return 0, bad("a zipmap has %d pairs, not %d", n, b[0])
	}
	return n, nil
}

// size reads the header of an element: its own size, 0 if it is cut off, the data's, and that of
// the unused bytes after it.
func (z *zipmap) size() (head, size, free int) {
	b := z.b[z.pos:]
	head, size = zipBefore(b)
	if !z.value || head == 0 {
		return head, size, 0
	}
	if head >= len(b) {
		return 0, 0, 0
	}
	return head + 1, size, int(b[head])
}

func newZipmap(b []byte) *zipmap { return &zipmap{b: b, pos: 1} }

// next returns the next element; fields and values alternate.
func (z *zipmap) next() item {
	head, size, free := z.size()
	at := z.pos + head
	z.pos = at + size + free
	z.value = !z.value
	return item{b: z.b[at : at+size : at+size]}
}

// intset is the layout of small sets of integers: width 4, count 4, the members
// in ascending order.
type intset struct {
	b     []byte
	width int
}

const intsetHead = 8

// checkIntset verifies that b is an intset and returns its number of members.
func checkIntset(b []byte) (n int, err error) {
	if len(b) < intsetHead {
		return 0, bad("not an intset")
	}
	width, count := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[4:]))
	if width != 2 && width != 4 && width != 8 || uint64(width)*count != uint64(len(b)-intsetHead) {
		return 0, bad("not an intset")
	}
	s, last := newIntset(b), int64(0)
	for i := range int(count) {
		v := s.next().n
		if i > 0 && v <= last {
			return 0, bad("an intset is not in order")
		}
		last = v
	}
	return int(count), nil
}

func newIntset(b []byte) *intset {
	return &intset{b[intsetHead:], int(binary.LittleEndian.Uint32(b))}
}

// next returns the next member.
func (s *intset) next() item {
	var v int64
	switch s.width {
	case 2:
		v = int64(int16(binary.LittleEndian.Uint16(s.b)))
	case 4:
		v = int64(int32(binary.LittleEndian.Uint32(s.b)))
	default:
		v = int64(binary.LittleEndian.Uint64(s.b))
	}
	s.b = s.b[s.width:]
	return item{n: v}
}
