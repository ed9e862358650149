package table

import (
	"fmt"
	"math/bits"

	"github.com/ebbdb/ebb/internal/arena"
)

// Scan visits the entries of one bucket and returns the cursor of the next; a walk begins with 0
// and ends when Scan returns 0. A walk visits an entry that is in the table from its beginning to
// its end at least once, whatever the caller inserts and deletes meanwhile. visit must not change
// the table. Cursors are below 2^32.
func (t *Table) Scan(cursor uint64, visit func(arena.Ref)) uint64 {
	n, mask := t.suffix(cursor)
	t.EachIn(n, visit)
	return next(cursor, mask)
}

// Batch holds entries of several buckets.
type Batch struct {
	Refs []arena.Ref
	// Touched keeps the compiler from leaving out a read whose value is not used. A caller that reads the records of Refs
	// ahead of their use adds to it.
	Touched uint64
}

// touchAhead is the number of buckets that Gather reads ahead: together they hold about 50 entries.
const touchAhead = 8

// Gather is Scan for several buckets: it fills b until b has at least size entries, the walk ends, or *count is not positive. Each
// entry takes one from *count, and so does an empty bucket, because it costs time. Buckets that follow each other in a walk are far
// from each other in memory: Gather first reads a word of each, so that the processor waits for all of them at once.
func (t *Table) Gather(cursor uint64, b *Batch, size int, count *int) uint64 {
	b.Refs = b.Refs[:0]
	for {
		for at, i := cursor, 0; i < touchAhead; i++ {
			n, mask := t.suffix(at)
			b.Touched += uint64(t.main.at(n).over)
			if at = next(at, mask); at == 0 {
				break
			}
		}
		for range touchAhead {
			n, mask := t.suffix(cursor)
			before := len(b.Refs)
			for k := t.main.at(n); ; k = t.over.at(k.next() - 1) {
				for i, tag := range k.tags {
					if tag != 0 {
						b.Refs = append(b.Refs, k.refs[i])
					}
				}
				if k.next() == 0 {
					break
				}
			}
			*count -= max(1, len(b.Refs)-before)
			if cursor = next(cursor, mask); cursor == 0 || *count <= 0 || len(b.Refs) >= size {
				return cursor
			}
		}
	}
}

// suffix returns the bucket of a cursor, and the mask of the bits that the bucket's entries share.
func (t *Table) suffix(cursor uint64) (n uint32, mask uint64) {
	mask = uint64(1)<<t.level - 1
	if uint32(cursor&mask) < t.split {
		mask = mask<<1 | 1
	}
	return uint32(cursor & mask), mask
}

// next increments the bits of cursor under mask in reversed bit order. The result is the bucket
// after (cursor & mask) in the order of suffixes.
func next(cursor, mask uint64) uint64 {
	cursor |= ^mask
	return bits.Reverse64(bits.Reverse64(cursor) + 1)
}

// Each visits every entry. visit must not change the table.
func (t *Table) Each(visit func(arena.Ref)) {
	for n := 0; n < t.main.n; n++ {
		t.EachIn(uint32(n), visit)
	}
}

// EachIn visits the entries of a bucket. visit must not change the table.
func (t *Table) EachIn(n uint32, visit func(arena.Ref)) {
	for b := t.main.at(n); ; b = t.over.at(b.next() - 1) {
		for i, tag := range b.tags {
			if tag != 0 {
				visit(b.refs[i])
			}
		}
		if b.next() == 0 {
			return
		}
	}
}

// Random returns an entry, every entry with the same probability; rnd yields
// random words. It returns 0 if the table is empty. Expected O(1).
func (t *Table) Random(rnd func() uint64) arena.Ref {
	if t.count == 0 {
		return 0
	}
	// Random tries a random slot of a random bucket, both from a fixed range, until it meets an
	// entry. It ignores the part of a chain beyond this length.
	const longest = 4 * slots
	var chain [longest]arena.Ref
	for {
		w := rnd()
		n, hi := uint32(w)&(1<<(t.level+1)-1), int(w>>32)%longest
		if int(n) >= t.main.n {
			continue
		}
		got := 0
		t.EachIn(n, func(r arena.Ref) {
			if got < longest {
				chain[got] = r
				got++
			}
		})
		// The probability of a chain is proportional to its length. Use the real length of the
		// longest chain, because in an almost empty table the loop would take too long with
		// longest.
		if got > 2*slots {
			return chain[hi%got]
		}
		if hi %= 2 * slots; hi < got {
			return chain[hi]
		}
	}
}

// Check returns an error if an invariant is broken. O(n).
func (t *Table) Check() error {
	if t.main.n != 1<<t.level+int(t.split) {
		return fmt.Errorf("table: %d buckets, but level %d and split %d", t.main.n, t.level, t.split)
	}
	count, chain := 0, uint32(0)
	for n := 0; n < t.main.n; n++ {
		for b := t.main.at(uint32(n)); ; {
			used := 0
			for i, tag := range b.tags {
				if (tag == 0) != (b.refs[i] == 0) {
					return fmt.Errorf("table: bucket %d slot %d: tag %d with ref %d", n, i, tag, b.refs[i])
				}
				if tag == 0 {
					continue
				}
				used++
				if h := t.recs.Hash(b.refs[i]); t.BucketOf(h) != uint32(n) || tagOf(h) != tag {
					return fmt.Errorf("table: ref %d of hash %x is in bucket %d", b.refs[i], h, n)
				}
			}
			count += used
			if b.next() == 0 {
				break
			}
			b = t.over.at(b.next() - 1)
			if chain++; b.over&mark != 0 {
				return fmt.Errorf("table: an overflow bucket of bucket %d has a mark", n)
			}
		}
	}
	if count != t.count || chain != t.chain {
		return fmt.Errorf("table: %d entries and %d overflow buckets found, %d and %d counted", count, chain, t.count, t.chain)
	}
	return nil
}
