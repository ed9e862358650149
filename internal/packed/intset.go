package packed

import "encoding/binary"

// IntSet is the image of a set whose members are all integers and have no deadlines: sorted, each
// in as many bytes as the widest needs.
//
//	[kind|width 1][count 3] member member ...     width 2, 4 or 8, in bits 4 to 7
//
// It must come from NewIntSet, an IntEdit, or bytes that passed Validate. If the set gets a member
// that is not an integer, or a deadline, the caller rewrites it as a Packed (through PutMember).
type IntSet []byte

// NewIntSet appends an empty set (four bytes) to dst[:0] and returns it.
func NewIntSet(dst []byte) IntSet {
	return append(dst[:0], byte(KindIntSet)|2<<4, 0, 0, 0)
}

// Len returns the number of members. O(1).
func (s IntSet) Len() int { return int(binary.LittleEndian.Uint32(s) >> 8) }

// Width returns the bytes each member takes: 2, 4 or 8.
func (s IntSet) Width() int { return int(s[0] >> 4) }

// At returns member i in ascending order. O(1).
func (s IntSet) At(i int) int64 {
	switch b := s[headPlain:]; s.Width() {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	default:
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// Find returns the index of v and true, or the index at which it would be inserted and false. O(log
// n).
func (s IntSet) Find(v int64) (int, bool) {
	i := s.search(0, s.Len(), v)
	return i, i < s.Len() && s.At(i) == v
}

// search returns the index of the first member from index lo on that is not below v, at most hi.
func (s IntSet) search(lo, hi int, v int64) int {
	for lo < hi {
		if mid := (lo + hi) / 2; s.At(mid) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Seek returns the index of the first member from index i on that is not below v, Len if there is none. O(log of the distance).
func (s IntSet) Seek(i int, v int64) int {
	n, at := s.Len(), i
	for step := 1; at < n && s.At(at) < v; step *= 2 {
		i = at + 1
		at += step
	}
	return s.search(i, min(at, n), v)
}

// IntEdit is a planned Add. The caller provides memory for Size bytes and calls Apply.
type IntEdit struct {
	src   IntSet
	v     int64
	at    int
	width int
	size  int
}

// Size returns the length of the image after the edit.
func (e *IntEdit) Size() int { return e.size }

// Add plans to add v. It returns false, and no plan, if the set has v already.
func (s IntSet) Add(v int64) (IntEdit, bool) {
	at, found := s.Find(v)
	if found {
		return IntEdit{}, false
	}
	w := max(s.Width(), intWidth(v))
	return IntEdit{src: s, v: v, at: at, width: w, size: headPlain + w*(s.Len()+1)}, true
}

// Apply writes the new image to dst[:Size()] and returns it. dst begins where
// the old image does, or is other memory. O(n).
func (e *IntEdit) Apply(dst []byte) IntSet {
	d, n := IntSet(dst[:e.size]), e.src.Len()
	if w := e.width; w == e.src.Width() {
		cut := headPlain + w*e.at
		move(d[cut+w:], e.src[cut:])
		move(d, e.src[:cut])
		d.put(e.at, w, e.v)
	} else { // wider: from the end, so that it also works in place
		for i := n; i >= 0; i-- {
			switch {
			case i > e.at:
				d.put(i, w, e.src.At(i-1))
			case i == e.at:
				d.put(i, w, e.v)
			default:
				d.put(i, w, e.src.At(i))
			}
		}
	}
	d.putHead(n+1, e.width)
	return d
}

// AppendIntSet appends the set of the members in body to dst[:0] and returns it: ascending, little-endian, of width bytes
// each, which is 2, 4 or 8.
func AppendIntSet(dst []byte, width int, body []byte) IntSet {
	s := append(NewIntSet(dst), body...)
	s.putHead(len(body)/width, width)
	return s
}

// AppendRedis appends the set in the layout of Redis: the width and the number of members, in four bytes each, and the members.
// The width is the narrowest that holds them.
func (s IntSet) AppendRedis(dst []byte) []byte {
	n, width := s.Len(), 2
	if n > 0 {
		width = max(intWidth(s.At(0)), intWidth(s.At(n-1)))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	if width == s.Width() {
		return append(dst, s[headPlain:]...)
	}
	start := len(dst) - headPlain
	dst = append(dst, make([]byte, n*width)...)
	for i := range n {
		IntSet(dst[start:]).put(i, width, s.At(i))
	}
	return dst
}

// Delete removes member i, in place, and returns the new image. The width does not change.
func (s IntSet) Delete(i int) IntSet {
	w, n := s.Width(), s.Len()
	copy(s[headPlain+w*i:], s[headPlain+w*(i+1):])
	s = s[:len(s)-w]
	s.putHead(n-1, w)
	return s
}

func (s IntSet) put(i, width int, v int64) {
	switch b := s[headPlain+width*i:]; width {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

func (s IntSet) putHead(n, width int) {
	binary.LittleEndian.PutUint32(s, uint32(KindIntSet)|uint32(width)<<4|uint32(n)<<8)
}

func intWidth(v int64) int {
	switch {
	case v == int64(int16(v)):
		return 2
	case v == int64(int32(v)):
		return 4
	}
	return 8
}
