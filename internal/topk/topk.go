// Package topk finds the most frequent keys of a stream, in a fixed amount of memory.
//
//	hash ─▶ index (512 x 1 byte) ─▶ entry: count, error, hits, since, key
//
// A Sketch is the space-saving algorithm of Metwally, Agrawal and El Abbadi (2005) with 128
// entries. A key that has no entry takes that of the key with the lowest count, and inherits
// the count, because it may have had as many before: this part of it is its error. Age
// halves all counts, so that old keys leave.
//
// Invariants: an entry's count is at least the key's true weight, and exceeds it by at most
// the error; a key without an entry weighs at most the lowest count, or the floor. Each
// entry is in the index, where its probe from hash modulo 512 finds it.
//
// Start reading at Sketch.Add.
package topk

import (
	"fmt"
	"math/bits"
)

const (
	// Size is the number of entries: enough for the first page of a list, and 16 KiB with
	// keys of 50 bytes. The error of a count is at most the sum of all weights / Size.
	Size = 128
	// MaxKey is the length in bytes of the longest key that a Sketch counts.
	MaxKey = 1024

	// The index is a quarter full at most, so that a probe is one or two steps.
	places    = 4 * Size
	placeMask = places - 1
)

// Sketch counts keys. The zero value is empty. It is not safe for concurrent use.
type Sketch struct {
	n      int
	hashes [Size]uint64
	counts [Size]uint64
	items  [Size]item
	index  [places]uint8 // entry + 1; 0: free

	least uint64 // at most the lowest count
	hand  int    // no entry before it has the count least
	floor uint64 // the highest count of a key that has lost its entry
	aged  int64  // the period up to which Age has halved
}

type item struct {
	key         []byte
	hits, error uint64
	since       int64
}

// Row is an entry: the key's true weight is from Count - Error to Count.
type Row struct {
	Key          []byte // valid until the next Add
	Count, Error uint64
	Hits         uint64 // what Hit has counted since the key has its entry
	Since        int64  // the time of the Add that made the entry
}

// Len returns the number of entries.
func (s *Sketch) Len() int { return s.n }

// Add adds a weight above 0 to a key with the hash h; two keys of the same hash count as one.
// It keeps a copy of the key, and ignores one that is longer than MaxKey. Amortized O(1).
func (s *Sketch) Add(h uint64, key []byte, weight uint64, now int64) {
	if i := s.find(h); i >= 0 {
		s.counts[i] += weight
		return
	}
	if len(key) > MaxKey {
		return
	}
	i := s.n
	if i < Size {
		s.n++
	} else {
		i = s.lowest()
		s.unindex(i)
		s.floor = max(s.floor, s.counts[i])
	}
	s.hashes[i], s.counts[i] = h, s.floor+weight
	x := &s.items[i]
	*x = item{key: append(x.key[:0], key...), error: s.floor, since: now}
	s.enter(i)
	s.least = min(s.least, s.counts[i])
}

// Hit counts an event of another sort for a key, if the key has an entry. O(1).
func (s *Sketch) Hit(h uint64) {
	if i := s.find(h); i >= 0 {
		s.items[i].hits++
	}
}

// Drop removes a key's entry, if it has one, and forgets its weight.
func (s *Sketch) Drop(h uint64) {
	if i := s.find(h); i >= 0 {
		s.remove(i)
	}
}

// DropFunc removes the entries whose keys drop accepts. drop must not keep the key.
func (s *Sketch) DropFunc(drop func(key []byte) bool) {
	for i := s.n - 1; i >= 0; i-- { // remove moves the last entry, which was looked at
		if drop(s.items[i].key) {
			s.remove(i)
		}
	}
}

// Age halves all counts once for each period since the last Age, and removes entries whose
// count becomes 0. Periods are numbered by the caller; the first call only notes its own.
func (s *Sketch) Age(period int64) {
	n := period - s.aged
	if first := s.aged == 0; first || n <= 0 {
		if first {
			s.aged = period
		}
		return
	}
	s.aged = period
	by := uint(min(n, 63))
	up := func(n uint64) uint64 { return n>>by + min(1, n&(1<<by-1)) } // an error must not become too small
	for i := s.n - 1; i >= 0; i-- {
		s.counts[i] >>= by
		s.items[i].hits >>= by
		s.items[i].error = min(up(s.items[i].error), s.counts[i])
		if s.counts[i] == 0 {
			s.remove(i)
		}
	}
	s.floor = up(s.floor)
	s.least, s.hand = 0, 0
}

// Each calls visit for each entry, in no order.
func (s *Sketch) Each(visit func(Row)) {
	for i := range s.n {
		x := &s.items[i]
		visit(Row{x.key, s.counts[i], x.error, x.hits, x.since})
	}
}

// lowest returns an entry with the lowest count. Counts grow, so it goes round once for each
// value that the lowest count takes.
func (s *Sketch) lowest() int {
	for {
		for ; s.hand < Size; s.hand++ {
			if s.counts[s.hand] <= s.least {
				return s.hand
			}
		}
		s.hand, s.least = 0, s.counts[0]
		for _, n := range s.counts[1:] {
			s.least = min(s.least, n)
		}
	}
}

// find returns the entry of a hash, -1 if there is none.
func (s *Sketch) find(h uint64) int {
	for p := h & placeMask; s.index[p] != 0; p = (p + 1) & placeMask {
		if i := int(s.index[p] - 1); s.hashes[i] == h {
			return i
		}
	}
	return -1
}

// enter puts an entry into the index.
func (s *Sketch) enter(i int) {
	p := s.hashes[i] & placeMask
	for s.index[p] != 0 {
		p = (p + 1) & placeMask
	}
	s.index[p] = uint8(i + 1)
}

// unindex takes an entry out of the index, and moves up those that had to pass its place.
func (s *Sketch) unindex(i int) {
	p := s.hashes[i] & placeMask
	for s.index[p] != uint8(i+1) {
		p = (p + 1) & placeMask
	}
	s.index[p] = 0
	for q := (p + 1) & placeMask; s.index[q] != 0; q = (q + 1) & placeMask {
		home := s.hashes[s.index[q]-1] & placeMask
		if (q-home)&placeMask >= (q-p)&placeMask { // its probe passes p
			s.index[p], s.index[q] = s.index[q], 0
			p = q
		}
	}
}

// remove removes an entry; the last one takes its place.
func (s *Sketch) remove(i int) {
	s.unindex(i)
	last := s.n - 1
	if i != last {
		s.unindex(last)
		s.hashes[i], s.counts[i] = s.hashes[last], s.counts[last]
		s.items[i], s.items[last] = s.items[last], s.items[i]
		s.enter(i)
	}
	s.hashes[last], s.counts[last] = 0, 0
	s.n = last
	s.least, s.hand = 0, 0
}

// Check verifies the invariants that need no true weights.
func (s *Sketch) Check() error {
	used := 0
	for _, x := range s.index {
		if x != 0 {
			used++
		}
	}
	if used != s.n || bits.Len(uint(s.n)) > 8 {
		return fmt.Errorf("topk: %d places of the index are used for %d entries", used, s.n)
	}
	for i := range s.n {
		if s.find(s.hashes[i]) != i {
			return fmt.Errorf("topk: the index does not lead to entry %d", i)
		}
		if s.items[i].error > s.counts[i] || s.counts[i] < s.least {
			return fmt.Errorf("topk: entry %d counts %d with an error of %d, the lowest is %d", i, s.counts[i], s.items[i].error, s.least)
		}
	}
	return nil
}
