package dict

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"unsafe"
)

const (
	bucketShift = 6 // 64 bytes: one cache line
	slots       = 12

	// maxLoad and minLoad are the items per bucket at which the table splits and merges one. More
	// items leave fewer slots empty but make chains longer: 8 cost 8.9 bytes an item, 10 cost 8.1,
	// 11 cost 7.8, 12 cost 7.6, 14 cost 7.4. The gap between the two prevents a table of nearly
	// constant size from doing both in turn.
	maxLoad = 11
	minLoad = 8
)

// bucket is the layout of a cell of prim and over. Slots are filled from 0; a
// tag of 0 means empty.
type bucket struct {
	tag  [slots]uint8
	ref  [slots]uint32
	next uint32 // number of the next overflow bucket + 1, or 0
}

// This line does not compile if a bucket is larger than its cell.
var _ [1<<bucketShift - unsafe.Sizeof(bucket{})]struct{}

// slot is a position in a chain. It is valid until the table changes.
type slot struct {
	b *bucket
	i int
}

func (s slot) ref() uint32 { return s.b.ref[s.i] }

// entry holds the contents of a slot.
type entry struct {
	ref uint32
	tag uint8
}

// tagOf returns the byte of the hash that a slot stores. It is the high byte, because the low bits
// are the same for a whole bucket.
func tagOf(h uint64) uint8 { return uint8(max(h>>56, 1)) }

func (d *Dict) primary(i uint32) *bucket { return (*bucket)(d.prim.At(i)) }

// after returns the bucket after b, or nil.
func (d *Dict) after(b *bucket) *bucket {
	if b.next == 0 {
		return nil
	}
	return (*bucket)(d.over.At(b.next - 1))
}

// bucketOf returns the number of the bucket for a hash: its low L+1 bits if that bucket exists, or
// its low L bits if the bucket is not split yet.
func (d *Dict) bucketOf(h uint64) uint32 {
	i := uint32(h) & (2*d.low - 1)
	if i >= uint32(d.prim.Len()) {
		i &= d.low - 1
	}
	return i
}

// find returns the slot of the item under key.
func (d *Dict) find(key []byte, h uint64) (slot, bool) {
	if d.prim.Len() == 0 {
		return slot{}, false
	}
	tag := tagOf(h)
	for b := d.primary(d.bucketOf(h)); b != nil; b = d.after(b) {
		for m := b.match(tag); m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			if b.ref[i] != 0 && d.equal(b.ref[i], key) {
				return slot{b, i}, true
			}
		}
	}
	return slot{}, false
}

// slotOf returns the slot of an item in the table.
func (d *Dict) slotOf(h uint64, ref uint32) slot {
	for b := d.primary(d.bucketOf(h)); b != nil; b = d.after(b) {
		for i, r := range b.ref {
			if r == ref {
				return slot{b, i}
			}
		}
	}
	panic("dict: an item is not in the chain of its hash")
}

// match returns a bit for every slot that has the tag, and rarely for a slot after it that does
// not.
func (b *bucket) match(tag uint8) (m uint32) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	x := binary.LittleEndian.Uint64(b.tag[:8]) ^ ones*uint64(tag)
	m = packBits((x - ones) &^ x & highs)
	y := uint64(binary.LittleEndian.Uint32(b.tag[8:])) ^ ones*uint64(tag)
	m |= packBits((y-ones)&^y&highs) & 0xF << 8
	return m
}

// packBits packs the high bits of eight bytes into one byte.
func packBits(x uint64) uint32 { return uint32(x >> 7 * 0x0102040810204080 >> 56) }

// used returns the number of slots filled.
func (b *bucket) used() int {
	n := 0
	for n < slots && b.ref[n] != 0 {
		n++
	}
	return n
}

// reserveSlot ensures that insertSlot succeeds for the hash. It returns false if the table cannot grow.
func (d *Dict) reserveSlot(h uint64) bool {
	if d.prim.Len() == 0 {
		_, ok := d.prim.Push()
		return ok
	}
	b := d.primary(d.bucketOf(h))
	for b.next != 0 {
		b = d.after(b)
	}
	return b.ref[slots-1] == 0 || d.over.Reserve(1)
}

// insertSlot adds an item at the end of its chain.
func (d *Dict) insertSlot(h uint64, ref uint32) {
	if d.lent() {
		d.ownChain(d.bucketOf(h))
	}
	b, length := d.primary(d.bucketOf(h)), 1
	for b.next != 0 {
		b = d.after(b)
		length++
	}
	i := b.used()
	if i == slots {
		no, _ := d.over.Push()
		b.next = no + 1
		b, i = d.after(b), 0
		d.chain = max(d.chain, length+1)
	}
	b.tag[i], b.ref[i] = tagOf(h), ref
}

// removeSlot removes the item of a slot and moves the chain's last item into the slot.
func (d *Dict) removeSlot(h uint64, s slot) {
	s = d.ownSlot(s)
	tail := d.primary(d.bucketOf(h))
	var before *bucket
	for tail.next != 0 {
		before, tail = tail, d.after(tail)
	}
	last := tail.used() - 1
	s.b.tag[s.i], s.b.ref[s.i] = tail.tag[last], tail.ref[last]
	tail.tag[last], tail.ref[last] = 0, 0
	if last == 0 && before != nil {
		no := before.next - 1
		before.next = 0
		d.freeOverflow(no)
	}
}

// freeOverflow frees an unlinked overflow bucket. It moves the last overflow bucket to its
// position, so that they stay dense. It finds the link to the moved bucket through the hash of any
// item in it.
func (d *Dict) freeOverflow(no uint32) {
	last := uint32(d.over.Len() - 1)
	if no != last {
		b := (*bucket)(d.over.Edit(no))
		*b = *(*bucket)(d.over.At(last))
		i := d.bucketOf(d.hash(d.Key(b.ref[0])))
		if d.lent() {
			d.ownChain(i)
		}
		from := d.primary(i)
		for from.next != last+1 {
			from = d.after(from)
		}
		from.next = no + 1
	}
	d.over.Pop()
	d.over.Trim(0)
}

// Expect makes an empty table as large as it will be with n items, as far as there is memory. The caller adds that many.
func (d *Dict) Expect(n int) {
	if d.prim.Len() > 0 {
		return
	}
	for buckets := (n + maxLoad - 1) / maxLoad; d.prim.Len() < buckets; {
		if _, ok := d.prim.Push(); !ok {
			break
		}
	}
	if k := d.prim.Len(); k > 0 {
		d.low = 1 << (bits.Len(uint(k)) - 1)
	}
}

// grow splits one bucket if the table is full. Without memory the chains get
// longer instead.
func (d *Dict) grow() {
	n := uint32(d.prim.Len())
	if d.Count() <= maxLoad*int(n) {
		return
	}
	if _, ok := d.prim.Push(); !ok {
		return
	}
	src, bit := n-d.low, d.low
	if n+1 == 2*d.low {
		d.low *= 2
	}
	var all, stay, move [4 * slots]entry
	var cells [8]uint32
	as, bs := stay[:0], move[:0]
	items, chain := d.unchain(src, all[:0], cells[:0])
	runtime.KeepAlive(d.touch(items))
	for _, e := range items {
		if d.hash(d.Key(e.ref))&uint64(bit) != 0 {
			bs = append(bs, e)
		} else {
			as = append(as, e)
		}
	}
	chain = d.rechain(src, as, chain)
	chain = d.rechain(n, bs, chain)
	for _, no := range chain { // a split leaves at most one bucket unused
		d.freeOverflow(no)
	}
}

// shrink merges the last bucket into the one it came from if the table is
// sparse, and reports whether it did.
func (d *Dict) shrink() bool {
	n := uint32(d.prim.Len())
	if d.pins > 0 || n < 2 || d.Count() >= minLoad*int(n) {
		return false
	}
	low := d.low
	if n == low {
		low /= 2
	}
	last, dst := n-1, n-1-low
	var all [4 * slots]entry
	var cells [8]uint32
	items, chain := d.unchain(dst, all[:0], cells[:0])
	items, chain = d.unchain(last, items, chain)
	if need := (len(items) - 1) / slots; need > len(chain) {
		no, ok := d.over.Push()
		if !ok {
			return false // unchain has changed nothing
		}
		chain = append(chain, no)
	}
	d.low = low
	d.rechain(dst, items, chain) // a merge leaves no bucket unused
	d.prim.Pop()
	d.prim.Trim(0)
	return true
}

// unchain appends a chain's entries and its overflow buckets' numbers. It
// changes nothing.
func (d *Dict) unchain(i uint32, items []entry, chain []uint32) ([]entry, []uint32) {
	for b := d.primary(i); b != nil; b = d.after(b) {
		for k := 0; k < slots && b.ref[k] != 0; k++ {
			items = append(items, entry{b.ref[k], b.tag[k]})
		}
		if b.next != 0 {
			chain = append(chain, b.next-1)
		}
	}
	return items, chain
}

// touch reads the items of entries, so that their cache misses overlap. The result only keeps the compiler from removing the reads.
func (d *Dict) touch(items []entry) (sum byte) {
	for _, e := range items {
		sum += d.heap.Touch(e.ref)
	}
	return sum
}

// rechain makes bucket i and as many overflow buckets as needed hold exactly
// the entries, and returns the overflow buckets left.
func (d *Dict) rechain(i uint32, items []entry, chain []uint32) []uint32 {
	b := (*bucket)(d.prim.Edit(i))
	for length := 1; ; length++ {
		*b = bucket{}
		k := min(len(items), slots)
		for j, e := range items[:k] {
			b.tag[j], b.ref[j] = e.tag, e.ref
		}
		if items = items[k:]; len(items) == 0 {
			d.chain = max(d.chain, length)
			return chain
		}
		b.next = chain[0] + 1
		b, chain = (*bucket)(d.over.Edit(chain[0])), chain[1:]
	}
}
