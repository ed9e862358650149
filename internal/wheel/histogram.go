package wheel

// Histogram adds the number of entries whose deadline is before bounds[0] to counts[0],
// of those from bounds[i-1] on and before bounds[i] to counts[i], and of those from the
// last bound on to the last count. The bounds must ascend, and counts be longer than
// bounds by one. The due entries count as before all bounds.
//
// It adds up slots, each of them once: O(slots that hold entries + bounds), where
// Forecast needs their product. A slot with a bound inside it, and at most few entries,
// is looked at entry by entry, as long as Histogram has looked at no more than few
// entries before. The entries of other such slots count as spread evenly over the slot,
// as in Forecast. So the sum of all counts is exact, and a count is off by at most the
// entries of the slots, one a level, that its bounds cut.
func (w *Wheel) Histogram(bounds []int64, counts []int64, few int) {
	counts[0] += int64(w.due.count)
	for l := range levels {
		v, shift, at := &w.levels[l], l*levelBits, 0
		from := w.time >> shift
		end := from&^(levelSize-1) + ringSize // there the ring begins anew
		for i, ok := v.next(from); ok && i < end; i, ok = v.next(i + 1) {
			s, start := &v.slots[i&ringMask], i<<shift
			for at < len(bounds) && bounds[at] <= start {
				at++
			}
			switch n := int(s.count); {
			case at == len(bounds) || bounds[at] >= start+span(l):
				counts[at] += int64(n)
			case n <= few:
				few -= n
				w.sort(s, bounds[at:], counts[at:])
			default:
				s.spread(start, span(l), bounds[at:], counts[at:])
			}
		}
	}
}

// sort counts each entry of a slot between its bounds.
func (w *Wheel) sort(s *list, bounds []int64, counts []int64) {
	for ref := s.head; ref != 0; {
		e := w.resolver.Entry(ref)
		i, d := 0, e.Deadline()
		for i < len(bounds) && bounds[i] <= d {
			i++
		}
		counts[i]++
		ref = e.next
	}
}

// spread counts the entries of a slot as spread evenly over its span.
func (s *list) spread(start, span int64, bounds []int64, counts []int64) {
	before, i := 0, 0
	for ; i < len(bounds) && bounds[i] < start+span; i++ {
		upTo := int(float64(s.count) * (float64(bounds[i]-start) / float64(span)))
		counts[i] += int64(upTo - before)
		before = upTo
	}
	counts[i] += int64(int(s.count) - before)
}
