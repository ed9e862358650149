package engine

import (
	"fmt"
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

// ItemOptions say how HSetEx, HGetEx and SAddEx treat items and their deadlines.
// The zero value writes whatever is there, and the items have no deadline then.
type ItemOptions struct {
	Deadline int64 // ms since 1970; 0: none; one that is not in the future: the items go at once
	Keep     bool  // items that are there keep what deadline they have
	Persist  bool  // HGetEx takes the deadlines away
	OnlyNew  bool  // only what is not there is written
	OnlyOld  bool  // only what is there is written
	Max      int   // not 0: so many living items at most
}

// BoundError says that items were not added because the container would hold more
// than it may.
type BoundError struct {
	Key              []byte
	Living, New, Max int
}

// Error implements error.
func (e *BoundError) Error() string {
	return fmt.Sprintf("'%.128s' holds %d items, %d more would exceed MAXLEN %d", e.Key, e.Living, e.New, e.Max)
}

// bounded returns a BoundError if those of n items that are not there would make
// a container of so many living ones hold more than max; 0 is no bound. O(1) where
// there is room for n, else O(n).
func bounded(key []byte, living, max, n int, item func(i int) []byte, has func(item []byte) bool) error {
	if max == 0 || living+n <= max {
		return nil
	}
	fresh := map[string]bool{}
	for i := range n {
		if it := item(i); !has(it) {
			fresh[string(it)] = true
		}
	}
	if len(fresh) == 0 || living+len(fresh) <= max {
		return nil
	}
	return &BoundError{key, living, len(fresh), max}
}
