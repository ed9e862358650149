package dict

import (
	"iter"
	"math/bits"
	"math/rand/v2"
)

// Scan visits the living items of one bucket and returns the cursor for the next; a walk begins
// with cursor 0 and ends when Scan returns 0. A walk visits an item that exists from its beginning
// to its end at least once, however the dict grows and shrinks in between; it may visit an item
// more than once. visit must not change the dict. O(1) expected.
//
// A bucket holds the hashes that end in its L or L+1 bits, so the buckets are the leaves of a trie
// read from the lowest bit. A cursor is the least hash, in that reversed order, that has not been
// visited: a place in the trie that splits and merges do not shift.
func (d *Dict) Scan(cursor uint64, now int64, visit func(Item)) (next uint64) {
	n := uint32(d.prim.Len())
	if n == 0 {
		return 0
	}
	i := d.bucketOf(cursor)
	for b := d.primary(i); b != nil; b = d.after(b) {
		for k := 0; k < slots && b.ref[k] != 0; k++ {
			if d.Alive(b.ref[k], now) {
				visit(d.Item(b.ref[k]))
			}
		}
	}
	mask := uint64(d.low) - 1
	if i >= d.low || i < n-d.low {
		mask = 2*uint64(d.low) - 1
	}
	return bits.Reverse64(bits.Reverse64(cursor|^mask) + 1)
}

// sparse is the share of living items among the slots below which Random counts living items
// instead of trying slots.
const sparse = 1.0 / 256

// Random returns a random living item, each with the same probability; ok is false if there is
// none. It tries slots until one has a living item: a few if few items are dead, and at most 256 on
// average. If nearly all items are dead, it costs O(n).
func (d *Dict) Random(now int64, rng *rand.Rand) (Item, bool) {
	living := d.Len(now)
	if living == 0 {
		return Item{}, false
	}
	places := uint64(d.prim.Len()) * uint64(d.chain) * slots
	if float64(living) < sparse*float64(places) {
		return d.nth(rng.IntN(living), now), true
	}
	for {
		at := rng.Uint64N(places)
		k := int(at % slots)
		at /= slots
		b := d.primary(uint32(at / uint64(d.chain)))
		for skip := at % uint64(d.chain); skip > 0 && b != nil; skip-- {
			b = d.after(b)
		}
		if b != nil && b.ref[k] != 0 && d.Alive(b.ref[k], now) {
			return d.Item(b.ref[k]), true
		}
	}
}

// nth returns the living item that Iter visits after n others.
func (d *Dict) nth(n int, now int64) (found Item) {
	for it := range d.Iter(now) {
		if n == 0 {
			return it
		}
		n--
	}
	panic("dict: fewer living items than counted")
}

// Iter ranges over the living items, in no order. In the loop, the caller may read the dict and
// delete the current item, but must not change anything else.
func (d *Dict) Iter(now int64) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		d.pins++
		defer d.unpin()
		var all [4 * slots]entry
		var cells [8]uint32
		for i := range uint32(d.prim.Len()) {
			items, _ := d.unchain(i, all[:0], cells[:0])
			for _, e := range items {
				if d.Alive(e.ref, now) && !yield(d.Item(e.ref)) {
					return
				}
			}
		}
	}
}

// unpin ends an iteration and executes the merges that it delayed. If the iteration has deleted no
// item, unpin changes nothing, because the caller does not account for the size after a read.
func (d *Dict) unpin() {
	d.pins--
	if !d.late || d.pins > 0 {
		return
	}
	d.late = false
	for d.shrink() {
	}
}
