package ordered

import "iter"

// The iterators below visit living members only. In the loop, the caller may read the set and
// delete the current member, which costs O(log n) to continue; it must not change anything else.
// They cost O(log n) to start and O(1) amortized per entry, dead ones included; those by rank O(due
// log n) more to start.

// Iter ranges over all living members in order.
func (s *Set) Iter(now int64) iter.Seq[Entry] { return s.Ascend(Start, End, now) }

// Ascend ranges over the living members between two cuts, lowest first.
func (s *Set) Ascend(from, to Cut, now int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		first, end := s.index(from), s.index(to)
		s.ascend(first, end-first, now, yield)
	}
}

// Descend ranges over the living members between two cuts, highest first.
func (s *Set) Descend(from, to Cut, now int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		first, end := s.index(from), s.index(to)
		s.descend(end-1, end-first, now, yield)
	}
}

// AscendRanks ranges over n living members from a rank on, lowest first, or as
// many of them as there are.
func (s *Set) AscendRanks(rank, n int, now int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if rank < 0 || rank >= s.Len(now) {
			return
		}
		first := s.raw(rank, now)
		s.ascend(first, s.tree.Len()-first, now, limit(n, yield))
	}
}

// DescendRanks ranges over n living members from a rank downwards, highest
// first, or as many of them as there are. Ranks count from the lowest.
func (s *Set) DescendRanks(rank, n int, now int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if rank < 0 || rank >= s.Len(now) {
			return
		}
		first := s.raw(rank, now)
		s.descend(first, first+1, now, limit(n, yield))
	}
}

// DeleteBetween removes the living members between two cuts, calls fire for each before its
// removal, lowest first, and returns their number. fire must not change the set. O(log n) per
// member.
func (s *Set) DeleteBetween(from, to Cut, now int64, fire func(Entry)) int {
	return s.deleteAll(s.Ascend(from, to, now), fire)
}

// DeleteRanks removes n living members from a rank on, as DeleteBetween does.
func (s *Set) DeleteRanks(rank, n int, now int64, fire func(Entry)) int {
	return s.deleteAll(s.AscendRanks(rank, n, now), fire)
}

func (s *Set) deleteAll(entries iter.Seq[Entry], fire func(Entry)) (n int) {
	for e := range entries {
		fire(e)
		ref, _ := s.dict.Find(e.Member)
		s.remove(ref)
		n++
	}
	return n
}

// ascend yields the living among n entries from index at on.
func (s *Set) ascend(at, n int, now int64, yield func(Entry) bool) {
	if n <= 0 {
		return
	}
	c := s.tree.Seek(at)
	for ; n > 0; n-- {
		ref, before := c.Ref(), s.tree.Len()
		if s.dict.Alive(ref, now) && !yield(entryOf(s.dict.Item(ref))) {
			return
		}
		if s.tree.Len() != before {
			c = s.tree.Seek(at)
			continue
		}
		at++
		c.Next()
	}
}

// descend yields the living among n entries from index at downwards.
func (s *Set) descend(at, n int, now int64, yield func(Entry) bool) {
	if n <= 0 {
		return
	}
	c := s.tree.Seek(at)
	for ; n > 0; n-- {
		ref, before := c.Ref(), s.tree.Len()
		if s.dict.Alive(ref, now) && !yield(entryOf(s.dict.Item(ref))) {
			return
		}
		at--
		if s.tree.Len() != before {
			c = s.tree.Seek(at)
			continue
		}
		c.Prev()
	}
}

// limit returns a yield that ends the loop after n entries.
func limit(n int, yield func(Entry) bool) func(Entry) bool {
	return func(e Entry) bool {
		if n--; n < 0 {
			return false
		}
		return yield(e) && n > 0
	}
}
