package packed

import (
	"bytes"
	"encoding/binary"
)

// Run is a sequence of cells between separators: n cells, n+1 separators. An empty run is one zero
// byte. Packed has one after its header; the blocks of a large list are bare runs.
type Run []byte

// At is the position of an item in a run. It is valid until the run changes.
type At struct {
	off  int // the separator before the item
	val  int // the separator before its second cell, 0 if it has one
	end  int // the separator after the item
	tag  uint8
	vtag uint8
}

// Timed reports whether the item has a deadline.
func (at At) Timed() bool { return at.tag&tagTimed != 0 }

// Size returns the bytes the item takes, one separator included.
func (at At) Size() int { return at.end - at.off }

// Off and End return the offsets of the separators before and after the item.
func (at At) Off() int { return at.off }

// End returns the offset of the separator after the item.
func (at At) End() int { return at.end }

// last returns the tag of the item's last cell.
func (at At) last() uint8 {
	if at.val != 0 {
		return at.vtag
	}
	return at.tag
}

// size returns the payload's length of the cell with this tag after the separator at off. Hot loops
// handle short strings themselves, because the processor predicts a branch, but must wait for a
// table lookup before it can read the next separator.
func (r Run) size(off int, tag uint8) int {
	if n := sizes[tag]; n != sizeLong {
		return int(n)
	}
	return r.sizeLong(off, tag)
}

func (r Run) sizeLong(off int, tag uint8) int {
	n := 0
	if tag&tagTimed != 0 {
		n = deadlineSize
	}
	b := r[off+1+n:]
	switch tag &^ tagTimed {
	case codeStr8:
		return n + 2 + int(b[0])
	case codeStr16:
		return n + 4 + int(binary.LittleEndian.Uint16(b))
	default:
		return n + 8 + int(binary.LittleEndian.Uint32(b))
	}
}

// sizeBack is size for the cell before the separator at end.
func (r Run) sizeBack(end int, tag uint8) int {
	if n := sizes[tag]; n != sizeLong {
		return int(n)
	}
	n := 0
	if tag&tagTimed != 0 {
		n = deadlineSize
	}
	switch tag &^ tagTimed {
	case codeStr8:
		return n + 2 + int(r[end-1])
	case codeStr16:
		return n + 4 + int(binary.LittleEndian.Uint16(r[end-2:]))
	default:
		return n + 8 + int(binary.LittleEndian.Uint32(r[end-4:]))
	}
}

// payload returns the key cell's payload without the deadline.
func (r Run) payload(at At) []byte {
	off, end := at.off+1, at.end
	if at.val != 0 {
		end = at.val
	}
	if at.tag&tagTimed != 0 {
		off += deadlineSize
	}
	return r[off:end]
}

// Key returns the field, member or element of an item. It aliases the run.
func (r Run) Key(at At) Str { return loadStr(r.payload(at), at.tag&^tagTimed) }

// Value returns the hash value of an item. It aliases the run.
func (r Run) Value(at At) Str { return loadStr(r[at.val+1:at.end], at.vtag) }

// Score returns the score of an item.
func (r Run) Score(at At) float64 { return loadScore(r[at.val+1:at.end], at.vtag) }

// Deadline returns the deadline of an item, or 0.
func (r Run) Deadline(at At) int64 {
	if at.tag&tagTimed == 0 {
		return 0
	}
	return getDeadline(r[at.off+1:])
}

// equal reports whether the key cell of an item is c.
func (r Run) equal(at At, c *Cell) bool {
	if at.tag&^tagTimed != c.code {
		return false
	}
	b := r.payload(at)
	switch {
	case c.code <= maxShort:
		return string(b) == string(c.s)
	case c.code <= codeStr32:
		return bytes.Equal(loadStr(b, c.code).B, c.s)
	case c.code >= codeImm:
		return true
	}
	return loadInt(b, c.code) == c.v
}

// Index returns the number of items, dead ones included, before the first that is c. The items have one cell each. O(n).
func (r Run) Index(c *Cell) (int, bool) {
	_, i, ok := r.find(c, false)
	return i, ok
}

// find returns the first item with the key c, dead or alive, and the number of items before it.
func (r Run) find(c *Cell, pair bool) (at At, before int, ok bool) {
	last := len(r) - 1
	var prev uint8
	for off := 0; off < last; before++ {
		tag := r[off] ^ prev
		end := off + 1 + int(tag)
		if tag > maxShort {
			end = off + 1 + r.size(off, tag)
		}
		if tag&^tagTimed == c.code && (c.n == 0 || r[end-c.back] == c.mark) { // one byte distinguishes most keys
			at = At{off: off, end: end, tag: tag}
			if same := tag <= maxShort && string(r[off+1:end]) == string(c.s); same || tag > maxShort && r.equal(at, c) {
				if pair {
					at.val, at.vtag = end, r[end]^tag
					at.end = end + 1 + r.size(end, at.vtag)
				}
				return at, before, true
			}
		}
		prev, off = tag, end
		if pair {
			prev ^= r[off]
			if prev <= maxShort {
				off += 1 + int(prev)
			} else {
				off += 1 + r.size(off, prev)
			}
		}
	}
	return At{}, 0, false
}

// Dead returns the number of items that are dead at now. O(n).
func (r Run) Dead(pair bool, now int64) int {
	n := 0
	for it := (Iter{run: r, pair: pair}); it.Next(); {
		if it.cur.tag&tagTimed != 0 && now > r.Deadline(it.cur) {
			n++
		}
	}
	return n
}

// Timed returns the number of items with a deadline and the earliest one, or 0.
// O(n).
func (r Run) Timed(pair bool) (timed int, earliest int64) {
	return r.timedExcept(pair, -1)
}

// timedExcept is Timed without the item at offset skip.
func (r Run) timedExcept(pair bool, skip int) (timed int, earliest int64) {
	for it := (Iter{run: r, pair: pair}); it.Next(); {
		if it.cur.tag&tagTimed == 0 || it.cur.off == skip {
			continue
		}
		if d := r.Deadline(it.cur); timed == 0 || d < earliest {
			earliest = d
		}
		timed++
	}
	return timed, earliest
}

// Filter removes, in place and in one pass, the items for which drop is true, and returns the
// remaining run, at the same start. It calls drop once for each item, dead or alive, in order; drop
// may read the item and must not change the run.
func (r Run) Filter(pair bool, drop func(at At) bool) Run {
	to, prev := 0, uint8(0) // the position of the next separator to write, and the tag before it
	for it := (Iter{run: r, pair: pair}); it.Next(); {
		at := it.cur
		if drop(at) {
			continue
		}
		if to != at.off {
			copy(r[to+1:], r[at.off+1:at.end])
			r[to] = prev ^ at.tag
		}
		to += at.end - at.off
		prev = at.last()
	}
	r[to] = prev
	return r[:to+1]
}

// Split divides a run of one-cell items in two: left is the beginning of r, and right is the rest
// with a separator of its own, appended to dst. at is the first item of right. Split changes r
// itself.
func (r Run) Split(dst []byte, at At) (left, right Run) {
	right = append(dst, r[at.off:]...)
	right[len(dst)] = at.tag
	r[at.off] ^= at.tag
	return r[:at.off+1], right[len(dst):]
}

// Join appends to run r the cells of s and returns the result, as append does.
func (r Run) Join(s Run) Run {
	if len(s) == 1 {
		return r
	}
	n := len(r) - 1
	tag := r[n]
	r = append(r[:n], s...)
	r[n] ^= tag
	return r
}

// CutFront returns the run from the item at on. It moves no bytes, but changes a separator of r.
func (r Run) CutFront(at At) Run {
	r[at.off] = at.tag
	return r[at.off:]
}

// CutBack returns the run before the item at. It moves no bytes, but changes a separator of r.
func (r Run) CutBack(at At) Run {
	r[at.off] ^= at.tag
	return r[:at.off+1]
}
