// Package packed keeps a small list, set, hash or sorted set as one run of bytes, so that it fits
// into a single keyspace record.
//
//	image   [kind|flags 1][count 3]  ([earliest 6][timed 4])  run
//	run     sep cell sep cell sep ... cell sep
//	item    list, set: one cell      hash: field, value      zset: member, score
//	cell    ([deadline 6]) payload; its kind and length are its tag, one byte
//	sep     tag of the cell before XOR tag of the cell after (0 beyond the ends)
//
// A tag is one byte: bit 7 says that the item has a deadline, the rest is a length up to 64, a
// longer string, an integer or a score (cell.go). Tags are not stored: the separators are. Walking
// right, separator XOR the tag just left gives the tag ahead; walking left it is the same from the
// other end. So one byte per cell allows walks in both directions, and a push or pop at either end
// changes only one neighbour's separator.
//
// An item costs one byte per string, six more if it has a deadline; the container four plus one,
// ten more while any item has a deadline. Canonical integers ("-12", "1700000000") are stored in 0
// to 8 bytes.
//
// Invariants (Validate verifies them on untrusted bytes): every string is in its canonical cell, so
// equal strings have equal cells; a hash's fields and a set's and sorted set's members are unique;
// a sorted set is ordered by (score, member); count, timed and earliest are exact.
//
// Reads return living items only: an item is dead when it has a deadline and now > deadline. With
// now = 0 they return all stored items. Dead items stay until Reap removes them or a write replaces
// them.
//
// A write that changes the size is an Edit: the caller plans it, provides memory for Size bytes,
// and calls Apply. The package allocates nothing. Start reading at Iter.Next, then Edit.
package packed

import "encoding/binary"

// Kind is the type of a container.
type Kind uint8

// These are the kinds. KindIntSet images are read by IntSet, all others by Packed.
const (
	KindList Kind = 1 + iota
	KindSet
	KindHash
	KindZSet
	KindIntSet
)

const (
	kindMask    = 0x07
	flagTimed   = 0x08 // the header has the deadline part
	headPlain   = 4
	headTimed   = headPlain + deadlineSize + 4
	earliestOff = headPlain
	timedOff    = headPlain + deadlineSize
)

// MaxItems is the most items an image can count; three bytes, because a container becomes large
// long before it has more items.
const MaxItems = 1<<24 - 1

// MaxDeadline is the latest deadline, in Unix milliseconds, an item can have.
const MaxDeadline = 1<<46 - 1

// Packed is the image of a list, set, hash or sorted set: exactly its bytes.
// It must come from New, an Edit, or bytes that passed Validate; on others the
// methods may panic. Methods are as safe for concurrent use as a slice.
type Packed []byte

// New appends an empty container (five bytes) to dst[:0] and returns it.
func New(dst []byte, k Kind) Packed {
	return append(dst[:0], byte(k), 0, 0, 0, 0)
}

// Kind returns the container's kind.
func (p Packed) Kind() Kind { return Kind(p[0] & kindMask) }

// Count returns the number of items stored, dead ones included. O(1).
func (p Packed) Count() int { return int(binary.LittleEndian.Uint32(p) >> 8) }

// Timed returns the number of stored items that have a deadline. O(1).
func (p Packed) Timed() int {
	if p[0]&flagTimed == 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(p[timedOff:]))
}

// Earliest returns the earliest deadline among the stored items, exactly, or 0
// if none has one. O(1).
func (p Packed) Earliest() int64 {
	if p[0]&flagTimed == 0 {
		return 0
	}
	return getDeadline(p[earliestOff:])
}

// Due reports whether some item is dead at now, and so whether Reap has work.
// O(1).
func (p Packed) Due(now int64) bool {
	return p[0]&flagTimed != 0 && now > getDeadline(p[earliestOff:])
}

// Len returns the number of living items. O(1) if none is dead, else O(n).
func (p Packed) Len(now int64) int {
	n := p.Count()
	if p.Due(now) {
		n -= p.run().Dead(p.pair(), now)
	}
	return n
}

// Find returns the position of the living item with this field or member (in a list: the first such
// element). O(n), about 1 ns per cell passed.
func (p Packed) Find(key []byte, now int64) (At, bool) {
	var c Cell
	c.Set(key)
	at, _, ok := p.run().find(&c, p.pair())
	if !ok || !at.Timed() || !expired(p.run().Deadline(at), now) {
		return at, ok
	}
	if p.Kind() == KindList {
		return p.findLiving(&c, now)
	}
	return At{}, false
}

// findLiving is Find for a list whose first match is dead.
func (p Packed) findLiving(c *Cell, now int64) (At, bool) {
	for it := p.Iter(now); it.Next(); {
		if it.Equal(c) {
			return it.At(), true
		}
	}
	return At{}, false
}

// Key returns the field, member or element of an item. It aliases the image.
func (p Packed) Key(at At) Str { return p.run().Key(at) }

// Value returns the hash value of an item. It aliases the image.
func (p Packed) Value(at At) Str { return p.run().Value(at) }

// Score returns the score of a sorted set's item.
func (p Packed) Score(at At) float64 { return p.run().Score(at) }

// Deadline returns the deadline of an item, or 0.
func (p Packed) Deadline(at At) int64 { return p.run().Deadline(at) }

// Iter returns an iterator before the first item.
func (p Packed) Iter(now int64) Iter {
	return Iter{run: p.run(), now: p.effective(now), pair: p.pair()}
}

// IterBack returns an iterator after the last item. The caller walks it with Prev.
func (p Packed) IterBack(now int64) Iter {
	it := p.Iter(now)
	it.end()
	return it
}

// Seek returns an iterator whose Next returns living item i; a negative i counts from the end, and
// -1 is the last item. It returns false, and no iterator, if there is no such item. To walk down
// from i, the caller calls Next once and then Prev, which returns i again. O(min(i, n-i)) when
// nothing is dead, else O(n).
func (p Packed) Seek(i int, now int64) (Iter, bool) {
	now = p.effective(now)
	if now == 0 { // every stored item is alive: take the nearer end
		n := p.Count()
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return Iter{}, false
		}
		if i > n/2 {
			i -= n
		}
	}
	if i >= 0 {
		it := p.Iter(now)
		for ; i >= 0; i-- {
			if !it.Next() {
				return Iter{}, false
			}
		}
		it.Prev()
		return it, true
	}
	it := p.IterBack(now)
	for ; i < 0; i++ {
		if !it.Prev() {
			return Iter{}, false
		}
	}
	return it, true
}

// Index returns the position of living item i; as in Seek, a negative i counts from the end.
func (p Packed) Index(i int, now int64) (At, bool) {
	it, ok := p.Seek(i, now)
	if !ok || !it.Next() {
		return At{}, false
	}
	return it.At(), true
}

// Rank returns the number of living items before the living item with this member, and its
// position. O(n).
func (p Packed) Rank(member []byte, now int64) (int, At, bool) {
	var c Cell
	c.Set(member)
	if now = p.effective(now); now == 0 {
		at, rank, ok := p.run().find(&c, p.pair())
		return rank, at, ok
	}
	rank := 0
	for it := p.Iter(now); it.Next(); rank++ {
		if it.Equal(&c) {
			return rank, it.At(), true
		}
	}
	return 0, At{}, false
}

// SeekScore returns an iterator over a sorted set. Its Next returns the first living item with
// score >= min (> min if open), and its Prev the last one below that. O(n).
func (p Packed) SeekScore(min float64, open bool, now int64) Iter {
	it := p.Iter(now)
	for it.Next() {
		if s := it.Score(); s > min || s == min && !open {
			it.Prev()
			break
		}
	}
	return it
}

// Run returns the cells of the container. It aliases the image.
func (p Packed) Run() Run { return p.run() }

// run returns the cells with their separators.
func (p Packed) run() Run { return Run(p[p.head():]) }

func (p Packed) head() int {
	if p[0]&flagTimed != 0 {
		return headTimed
	}
	return headPlain
}

// pair reports whether an item has two cells.
func (p Packed) pair() bool { return p.Kind() >= KindHash }

// effective returns now, or 0 (show all items) if no item is dead at now. With 0, reads need not
// look at each deadline.
func (p Packed) effective(now int64) int64 {
	if p.Due(now) {
		return now
	}
	return 0
}

func headSize(timed int) int {
	if timed > 0 {
		return headTimed
	}
	return headPlain
}

func (p Packed) putHead(k Kind, count, timed int, earliest int64) {
	binary.LittleEndian.PutUint32(p, uint32(k)|uint32(count)<<8)
	if timed > 0 {
		p[0] |= flagTimed
		putDeadline(p[earliestOff:], earliest)
		binary.LittleEndian.PutUint32(p[timedOff:], uint32(timed))
	}
}

func expired(deadline, now int64) bool { return deadline != 0 && now > deadline }
