package wheel

// Ascend calls visit for every entry, the due ones first and then slot by slot in the
// order in which the slots begin, until visit returns false, or until more returns false
// for the beginning of the next slot: no entry that is left has an earlier deadline. The
// entries of a slot come in no order. visit must not change the wheel. O(slots that hold
// entries and are visited + their entries).
func (w *Wheel) Ascend(more func(start int64) bool, visit func(ref uint32) bool) {
	if !w.eachOf(&w.due, visit) {
		return
	}
	var at [levels]int64 // the next slot of each level
	var in [levels]bool  // there is one
	for l := range levels {
		from := w.time >> (l * levelBits)
		at[l], in[l] = w.slotFrom(l, from)
	}
	for {
		best := -1
		for l := range levels {
			if in[l] && (best < 0 || at[l]<<(l*levelBits) < at[best]<<(best*levelBits)) {
				best = l
			}
		}
		if best < 0 || !more(at[best]<<(best*levelBits)) || !w.eachOf(&w.levels[best].slots[at[best]&ringMask], visit) {
			return
		}
		at[best], in[best] = w.slotFrom(best, at[best]+1)
	}
}

// slotFrom returns the first slot of a level from the number i on that holds entries.
func (w *Wheel) slotFrom(l int, i int64) (int64, bool) {
	end := w.time>>(l*levelBits)&^(levelSize-1) + ringSize // there the ring starts again
	if i >= end {
		return 0, false
	}
	i, ok := w.levels[l].next(i)
	return i, ok && i < end
}

// eachOf calls visit for each entry of a list and reports whether it always returned true.
func (w *Wheel) eachOf(s *list, visit func(ref uint32) bool) bool {
	for ref := s.head; s.count > 0 && ref != 0; {
		next := w.resolver.Entry(ref).next
		if !visit(ref) {
			return false
		}
		ref = next
	}
	return true
}
