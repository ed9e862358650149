package engine

import (
	"fmt"
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// This file has the code that hashes, sets and sorted sets share: writes to their tables, random
// items, steps of a scan, and deadlines as views return them.

// putInTable sets a field of a large hash, or adds a member to a large set, and returns the item's
// state before. Errors: ErrFull.
func (tx *Tx) putInTable(t *dict.Dict, field, value []byte, deadline int64) (packed.State, error) {
	switch outcome, err := t.PutHashed(tx.hashItem(field), field, value, deadline, tx.itemTime()); {
	case err != nil:
		return packed.Absent, ErrFull
	case outcome == dict.Replaced:
		return packed.Living, nil
	case outcome == dict.Revived:
		return packed.Dead, nil
	}
	return packed.Absent, nil
}

// sampleShare decides how to sample a table: for more than one in sampleShare of its items, one
// walk over all items is cheaper than random picks.
const sampleShare = 4

// sampler decides for each item of a walk whether it is in the sample. It takes an item with the
// probability (items still wanted) / (items left).
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

// scanBuckets is the greatest number of buckets that a scan visits for each requested item. It bounds the
// time of a scan over a sparse table.
const scanBuckets = 10

// scanTable visits about count living items of a table, and returns the cursor for the next call.
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

// drawPacked visits n random living items of an image. It draws each from all items, so that an
// item may repeat. O(items + n).
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

// deadlineOf returns an item's deadline as views do: in ms since 1970, NoDeadline if it is 0, NoKey
// if there is no item.
func deadlineOf(deadline int64, there bool) int64 {
	switch {
	case !there:
		return NoKey
	case deadline == 0:
		return NoDeadline
	}
	return deadline
}

// ItemOptions configure HSetEx, HGetEx, SAddEx and ZAddEx. The zero value writes all items and
// removes their deadlines.
type ItemOptions struct {
	Deadline int64 // ms since 1970; 0: none; a deadline that is not in the future removes the items at once
	Keep     bool  // existing items keep their deadlines
	Persist  bool  // HGetEx removes the deadlines
	OnlyNew  bool  // write only new items
	OnlyOld  bool  // write only existing items
	Max      int   // the greatest number of living items after the write; 0: no bound
}

// BoundError is the error for items that were not added because the container would exceed its
// bound.
type BoundError struct {
	Key              []byte
	Living, New, Max int
}

// Error implements error.
func (e *BoundError) Error() string {
	return fmt.Sprintf("'%.128s' holds %d items, %d more would exceed MAXLEN %d", e.Key, e.Living, e.New, e.Max)
}

// bounded returns a BoundError if a container of living items would exceed max with the new ones
// among n items; 0 means no bound. O(1) if the container has space for n more, else O(n).
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
