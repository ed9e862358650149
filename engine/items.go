package engine

import (
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// What hashes, sets and sorted sets share: writing to their tables,
// random items, steps of a scan, deadlines as commands tell them.

// putInTable sets a field of a large hash, or adds a member to a large set, and
// tells what was under that name before. Errors: ErrFull.
func (tx *Tx) putInTable(t *dict.Dict, field, value []byte, deadline int64) (packed.State, error) {
	switch outcome, err := t.Put(field, value, deadline, tx.itemTime()); {
	case err != nil:
		return packed.Absent, ErrFull
	case outcome == dict.Replaced:
		return packed.Living, nil
	case outcome == dict.Revived:
		return packed.Dead, nil
	}
	return packed.Absent, nil
}

// sampleShare is the share of a table's items from which on a sample is cheaper
// by one walk over all of them than by trying places at random.
const sampleShare = 4

// sampler decides, item by item of a walk, which are in a sample: one of the
// items left is with the chance of those still wanted.
type sampler struct {
	left, want int
	rng        *rand.Rand
}

func (s *sampler) take() bool {
	ok := s.want > 0 && s.rng.IntN(s.left) < s.want
	s.left--
	if ok {
		s.want--
	}
	return ok
}

// sampleTable visits n different living items of a table that has many more.
func sampleTable(d *dict.Dict, n int, now int64, rng *rand.Rand, visit func(dict.Item)) {
	seen := make(map[uint32]bool, n)
	for len(seen) < n {
		it, ok := d.Random(now, rng)
		if !ok {
			return
		}
		if !seen[it.Ref] {
			seen[it.Ref] = true
			visit(it)
		}
	}
}

// scanBuckets is how many buckets of a table a scan looks at for each item that
// is wanted, so that a sparse one does not keep it long.
const scanBuckets = 10

// scanTable visits living items of a table, about count, and returns the cursor
// to go on with.
func scanTable(d *dict.Dict, cursor uint64, count int, now int64, visit func(dict.Item)) uint64 {
	found := 0
	counted := func(it dict.Item) { found++; visit(it) }
	for buckets := 0; buckets < scanBuckets*count && found < count; buckets++ {
		if cursor = d.Scan(cursor, now, counted); cursor == 0 {
			break
		}
	}
	return cursor
}

// drawPacked visits n living items of an image, each picked from all of them.
// O(items + n).
func drawPacked(p packed.Packed, n int, now int64, rng *rand.Rand, visit func(packed.At)) {
	places := make([]packed.At, 0, p.Count())
	for it := p.Iter(now); it.Next(); {
		places = append(places, it.At())
	}
	if len(places) == 0 {
		return
	}
	for ; n > 0; n-- {
		visit(places[rng.IntN(len(places))])
	}
}

// deadlineOf returns an item's deadline as views tell it: in ms since 1970,
// NoDeadline where it is 0, NoKey where there is no item.
func deadlineOf(deadline int64, there bool) int64 {
	switch {
	case !there:
		return NoKey
	case deadline == 0:
		return NoDeadline
	}
	return deadline
}
