package wheel

import "math/bits"

// Entry is the part of a record that the wheel owns: 16 bytes without pointers,
// for memory outside the garbage-collected heap, at any address that is a
// multiple of 4. A zero Entry is in no wheel.
type Entry struct {
	next uint32 // 0 in the last entry of a list
	prev uint32 // the last entry of the list, in its first
	low  uint32 // deadline, bits 0 to 31
	high uint16 // deadline, bits 32 to 47
	slot uint16 // unlinked, late, or the slot in which place has put the entry; stale in the due list
}

const (
	unlinked = 0      // in no list
	late     = 0xffff // was due when it was added
)

// Deadline returns the deadline that the entry was last added with.
func (e *Entry) Deadline() int64 { return int64(e.high)<<32 | int64(e.low) }

// Linked reports whether the entry is in a wheel. The result is valid for entries that were zero
// before their first Add.
func (e *Entry) Linked() bool { return e.slot != unlinked }

func (e *Entry) setDeadline(d int64) { e.low, e.high = uint32(d), uint16(d>>32) }

// home and setHome read and write a level and an index in its ring.
func (e *Entry) home() (l, i int) { s := int(e.slot) - 1; return s / ringSize, s & ringMask }
func (e *Entry) setHome(l, i int) { e.slot = uint16(1 + l*ringSize + i) }

// list is a doubly linked list of entries. Its first entry's prev leads to the last, so that
// appending an entry, and appending one list to another, cost O(1) without a second reference in
// each of 3,072 slots.
type list struct {
	head  uint32
	count uint32
}

// append links an entry after the last one.
func (w *Wheel) append(s *list, ref uint32, e *Entry) {
	e.next = 0
	if s.count == 0 {
		s.head, e.prev = ref, ref
	} else {
		h := w.resolver.Entry(s.head)
		e.prev = h.prev
		w.resolver.Entry(h.prev).next = ref
		h.prev = ref
	}
	s.count++
}

// unlink removes an entry from its list.
func (w *Wheel) unlink(s *list, ref uint32, e *Entry) {
	switch {
	case s.head == ref:
		s.head = e.next
		if e.next != 0 {
			w.resolver.Entry(e.next).prev = e.prev
		}
	case e.next == 0:
		w.resolver.Entry(e.prev).next = 0
		w.resolver.Entry(s.head).prev = e.prev
	default:
		w.resolver.Entry(e.prev).next = e.next
		w.resolver.Entry(e.next).prev = e.prev
	}
	s.count--
}

// rename replaces old with new in the references to the entry e, which was at old.
func (w *Wheel) rename(s *list, old, new uint32, e *Entry) {
	if s.head == old {
		s.head = new
	} else {
		w.resolver.Entry(e.prev).next = new
	}
	if e.next == 0 {
		w.resolver.Entry(s.head).prev = new // the entry itself, if it is alone
	} else {
		w.resolver.Entry(e.next).prev = new
	}
}

// concat appends all of t to s and leaves t empty.
func (w *Wheel) concat(s, t *list) {
	if s.count == 0 {
		*s = *t
	} else {
		sh, th := w.resolver.Entry(s.head), w.resolver.Entry(t.head)
		w.resolver.Entry(sh.prev).next = t.head
		sh.prev, th.prev = th.prev, sh.prev
		s.count += t.count
	}
	*t = list{}
}

// level is a ring of two spans. The slot of the absolute number n, which is
// deadline >> 8*level, is n modulo the ring's size.
type level struct {
	slots [ringSize]list
	bits  [ringSize / 64]uint64 // slots that hold entries
	words uint8                 // words of bits that are not zero
}

func (v *level) set(i int) {
	v.bits[i>>6] |= 1 << (i & 63)
	v.words |= 1 << (i >> 6)
}

func (v *level) clear(i int) {
	if v.bits[i>>6] &^= 1 << (i & 63); v.bits[i>>6] == 0 {
		v.words &^= 1 << (i >> 6)
	}
}

// next returns the absolute number of the first slot at or after n that holds
// entries, taking the ring to begin at n, in O(1).
func (v *level) next(n int64) (int64, bool) {
	if v.words == 0 {
		return 0, false
	}
	word := int(n>>6) & (len(v.bits) - 1)
	if b := v.bits[word] >> (n & 63); b != 0 {
		return n + int64(bits.TrailingZeros64(b)), true
	}
	// Look at the words after it in the order of the ring, and last at its own word, of which only
	// the bits before n are left.
	k := 1 + bits.TrailingZeros8(bits.RotateLeft8(v.words, -(word+1)))
	b := v.bits[(word+k)&(len(v.bits)-1)]
	return n&^63 + int64(k)*64 + int64(bits.TrailingZeros64(b)), true
}
