package ordered

import "iter"

// Iter ranges over all living members in order. In the loop, the caller may read the set and
// delete the current member, which costs O(log n) to continue; it must not change anything else.
// O(log n) to start, and O(1) amortized per entry, dead ones included.
func (s *Set) Iter(now int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		n := s.tree.Len()
		if n == 0 {
			return
		}
		at, c := 0, s.tree.Seek(0)
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
}
