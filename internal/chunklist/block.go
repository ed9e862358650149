package chunklist

import (
	"math/bits"

	"github.com/ebbdb/ebb/internal/packed"
)

func (l *List) buf(ent *entry) []byte {
	if ent.outside {
		return l.bigs[ent.ref]
	}
	return l.mem.Bytes(ent.ref, ent.size())
}

// run returns the elements of a block that is not big.
func (l *List) run(ent *entry) packed.Run {
	return packed.Run(l.buf(ent)[ent.off:ent.end:ent.end])
}

// slack says how a block makes space when the side that should grow has none: it slides the run
// within the chunk, if spare bytes are left then, and leaves this many quarters of the free bytes
// after the run.
type slack struct {
	spare int
	share int
	front bool // the left side grows
}

// apply applies a change to a block's bytes: in place, by sliding, or in a larger chunk. It returns
// false, and changes nothing, if the block is full or there is no memory. The caller updates the
// sums. O(1) at an end of the run, else O(block).
func (l *List) apply(ent *entry, ch *packed.Change, s slack) bool {
	size, off, grow := ent.size(), int(ent.off), ch.Grow()
	n := ent.used() + grow
	front := s.front || ch.Off() < ent.used()/2
	to := -1
	switch {
	case grow <= 0 && front:
		to = off - grow
	case grow <= 0:
		to = off
	case front && off >= grow:
		to = off - grow
	case !s.front && int(ent.end)+grow <= size:
		to = off
	case !front && s.spare == 0 && off >= grow:
		to = off - grow
	case n+s.spare <= size:
		to = (size - n) - (size-n)*s.share/4
	}
	if to < 0 {
		return l.regrow(ent, ch, n, s)
	}
	l.own(ent)
	buf := l.buf(ent)
	ch.Apply(packed.Run(buf[to:to+n]), packed.Run(buf[off:ent.end]), to >= off)
	ent.off, ent.end = uint32(to), uint32(to+n)
	return true
}

// regrow is apply into a larger chunk, if the rules of the package comment allow one.
func (l *List) regrow(ent *entry, ch *packed.Change, n int, s slack) bool {
	size, was := max(fitting(n), ent.size()), ent.size()
	switch {
	case size == was && was < l.limit: // there is space, but sliding would gain little
		size *= 2
	case size == was:
		return false
	case size <= l.limit:
	case size <= l.maxChunk && ent.used()*20 < was*19:
	default:
		return false
	}
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	to := 0
	if s.front {
		to = size - n
	}
	ch.Apply(packed.Run(l.mem.Bytes(ref, size)[to:to+n]), l.run(ent), true)
	l.moved(ent, ref, size, to, n)
	return true
}

// moved makes a block's entry refer to another chunk and frees the old one.
func (l *List) moved(ent *entry, ref uint32, size, off, n int) {
	l.letGo(ent)
	l.chunkBytes += size - ent.size()
	ent.ref, ent.class = ref, uint8(bits.TrailingZeros(uint(size)))
	ent.off, ent.end = uint32(off), uint32(off+n)
}

// shrink moves a block to the smallest chunk that holds it, if it can.
func (l *List) shrink(ent *entry) { l.resize(ent, ent.used()) }

func (l *List) resize(ent *entry, room int) {
	size := fitting(room)
	if ent.big() || size >= ent.size() {
		return
	}
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return
	}
	n := copy(l.mem.Bytes(ref, size), l.run(ent))
	l.moved(ent, ref, size, 0, n)
}

// free frees a block's memory.
func (l *List) free(ent *entry) {
	if !ent.big() {
		l.letGo(ent)
		l.chunkBytes -= ent.size()
		return
	}
	l.bigBytes -= cap(l.bigs[ent.ref])
	l.dropBig(ent.ref)
}

// addBig adds bytes to bigs and returns their index.
func (l *List) addBig(b []byte) (i uint32) {
	if n := len(l.freeBigs); n > 0 {
		i = l.freeBigs[n-1]
		l.freeBigs = l.freeBigs[:n-1]
		l.bigs[i] = b
		return i
	}
	l.bigs = append(l.bigs, b)
	return uint32(len(l.bigs) - 1)
}

func (l *List) dropBig(i uint32) {
	l.bigs[i] = nil
	l.freeBigs = append(l.freeBigs, i)
	if len(l.freeBigs) == len(l.bigs) {
		l.bigs, l.freeBigs = nil, nil
	}
}

// insertBlock inserts a new block with one element at index e of group g.
func (l *List) insertBlock(g, e, size int, front bool, c packed.Cell, deadline int64) bool {
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	off, n := 0, 1+c.Size(deadline)
	if front {
		off = size - n
	}
	it := packed.Run(emptyRun).Iter(0)
	ch := it.Insert(c, deadline)
	ch.Apply(packed.Run(l.mem.Bytes(ref, size)[off:off+n]), packed.Run(emptyRun), true)
	l.chunkBytes += size
	l.insertEntry(g, e, single(ref, off, n, size, deadline))
	return true
}

// emptyRun is an empty run, which is never written to.
var emptyRun = []byte{0}

// single returns the entry of a block with one element. If size is 1, the element is big.
func single(ref uint32, off, n, size int, deadline int64) entry {
	ent := entry{ref: ref, off: uint32(off), end: uint32(off + n), count: 1, earliest: none,
		class: uint8(bits.TrailingZeros(uint(size)))}
	if deadline != 0 {
		ent.timed, ent.earliest = 1, deadline
	}
	return ent
}

// insertBig inserts an element that is too large for a block at index e of group g.
func (l *List) insertBig(g, e int, elem []byte, deadline int64) bool {
	b := append([]byte{}, elem...)
	l.bigBytes += cap(b)
	l.insertEntry(g, e, single(l.addBig(b), 0, 0, 1, deadline))
	return true
}

// insertStored inserts before stored element i, or at the tail.
func (l *List) insertStored(i int, elem []byte, deadline int64) bool {
	g, e, k, ok := l.locate(i, 0)
	if !ok {
		return l.push(false, elem, deadline)
	}
	return l.insert(g, e, k, elem, deadline)
}

// insert inserts before the stored element k of a block, or after its last.
func (l *List) insert(g, e, k int, elem []byte, deadline int64) bool {
	c := packed.Encode(elem)
	ent := l.at(g, e)
	first, last := k == 0, k == int(ent.count)
	if 1+c.Size(deadline) > l.limit {
		if first || last {
			return l.insertBig(g, e+min(k, 1), elem, deadline)
		}
		return l.splitInsert(g, e, k, k, elem, deadline)
	}
	if l.insertInto(g, e, k, c, deadline) {
		return true
	}
	switch {
	case first && e > 0 && l.insertInto(g, e-1, int(l.at(g, e-1).count), c, deadline):
		return true
	case last && e+1 < len(l.groups[g].ents) && l.insertInto(g, e+1, 0, c, deadline):
		return true
	case first || last:
		return l.insertBlock(g, e+min(k, 1), fitting(1+c.Size(deadline)), false, c, deadline)
	case c.Size(deadline)*4 <= ent.used():
		return l.splitInsert(g, e, k, int(ent.count)/2, elem, deadline)
	}
	return l.splitInsert(g, e, k, k, elem, deadline)
}

// insertInto inserts before the stored element k of a block that has space.
func (l *List) insertInto(g, e, k int, c packed.Cell, deadline int64) bool {
	ent := l.at(g, e)
	if ent.big() || int(ent.count) >= l.items {
		return false
	}
	it := nth(l.run(ent), k, int(ent.count))
	ch := it.Insert(c, deadline)
	if !l.apply(ent, &ch, slack{share: 2}) {
		return false
	}
	l.add(g, e, 1, deadline)
	return true
}

// nth returns an iterator before stored element k of n.
func nth(r packed.Run, k, n int) packed.Iter {
	if k > n/2 {
		it := r.IterBack(0)
		for ; k < n; k++ {
			it.Prev()
		}
		return it
	}
	it := r.Iter(0)
	for ; k > 0; k-- {
		it.Next()
	}
	return it
}

// splitInsert splits a block before its stored element m, then inserts before
// the old element k.
func (l *List) splitInsert(g, e, k, m int, elem []byte, deadline int64) bool {
	i := l.before(g, e) + k
	if !l.split(g, e, m) {
		return false
	}
	if k == m { // between the two blocks: try the left one first
		g, e, _, _ = l.locate(i-1, 0)
		return l.insert(g, e, int(l.at(g, e).count), elem, deadline)
	}
	return l.insertStored(i, elem, deadline)
}

// split divides a block in two before its stored element m, 0 < m < count.
func (l *List) split(g, e, m int) bool {
	ent := l.at(g, e)
	l.own(ent)
	r := l.run(ent)
	it := nth(r, m, int(ent.count))
	it.Next()
	at := it.At()
	size := fitting(len(r) - at.Off())
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	left, right := r.Split(l.mem.Bytes(ref, size)[:0], at)
	l.chunkBytes += size
	neu := single(ref, 0, len(right), size, 0)
	neu.count = ent.count - uint32(m)
	if timed, earliest := right.Timed(false); timed > 0 {
		neu.timed, neu.earliest = uint32(timed), earliest
	}
	ent.end = ent.off + uint32(len(left))
	l.account(g, e, -int(neu.count), -int(neu.timed), 0)
	l.shrink(ent)
	l.insertEntry(g, e+1, neu)
	return true
}

// remove removes the element that it passed last. If tidy is set, it then merges or shrinks a
// sparse block.
func (l *List) remove(it *Iter, tidy bool) {
	g, e := it.g, it.e
	ent := l.at(g, e)
	if ent.count == 1 {
		l.removeEntry(g, e)
		l.repack()
		return
	}
	deadline, at := it.Deadline(), it.in.At()
	ch := l.run(ent).Remove(at)
	l.apply(ent, &ch, slack{})
	l.add(g, e, -1, deadline)
	if tidy {
		l.tidy(g, e)
	}
}

// tidy merges a block with a neighbour if they fill less than three quarters of one together, and
// moves it to a smaller chunk when it uses a quarter of its own. It does not do so earlier, because
// the next push could undo it.
func (l *List) tidy(g, e int) {
	if l.merge(g, e-1) || l.merge(g, e) {
		return
	}
	if ent := l.at(g, e); ent.used()*4 <= ent.size() {
		l.resize(ent, ent.used()*2)
	}
}

// merge joins block e of a group with the next one, if both fit one block, and reports whether it
// did.
func (l *List) merge(g, e int) bool {
	ents := l.groups[g].ents
	if e < 0 || e+1 >= len(ents) {
		return false
	}
	a, b := &ents[e], &ents[e+1]
	n := a.used() + b.used() - 1
	if a.big() || b.big() || n*4 > l.limit*3 || int(a.count+b.count) > l.items {
		return false
	}
	size := fitting(n)
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	buf := l.mem.Bytes(ref, size)
	packed.Run(buf[:copy(buf, l.run(a))]).Join(l.run(b))
	count, timed, earliest := int(b.count), int(b.timed), b.earliest
	if timed == 0 {
		earliest = 0
	}
	l.removeEntry(g, e+1)
	a = l.at(g, e)
	l.moved(a, ref, size, 0, n)
	l.account(g, e, count, timed, earliest)
	return true
}
