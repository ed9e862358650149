package wheel

// Histogram adds the number of entries whose deadline is before bounds[0] to counts[0],
// of those from bounds[i-1] on and before bounds[i] to counts[i], and of those from the
// last bound on to the last count. The bounds must ascend, and counts be longer than
// bounds by one. The due entries count as before all bounds.
//
// It adds up slots, each of them once: O(slots that hold entries + bounds), where
// Forecast needs their product. A slot with a bound inside it, and at most few entries,
// is looked at entry by entry, as long as Histogram has looked at no more than few
// entries before. Another such slot, with more than a sixteenth of all entries, may be a
// storm: the deadline of most entries at its ends counts for all of it. The entries of
// the others count as spread evenly over the slot, as in Forecast. So the sum of all
// counts is exact, and a count is off by at most the entries of the slots, one a level,
// that its bounds cut.
func (w *Wheel) Histogram(bounds []int64, counts []int64, few int) {
	counts[0] += int64(w.due.count)
	for l := range levels {
		v, shift, at := &w.levels[l], l*levelBits, 0
		from := w.time >> shift
		end := from&^(levelSize-1) + ringSize // there the ring starts again
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
				if d, ok := w.storm(s); ok {
					counts[at+before(bounds[at:], d)] += int64(n)
				} else {
					s.spread(start, span(l), bounds[at:], counts[at:])
				}
			}
		}
	}
}

// sort counts each entry of a slot between its bounds.
func (w *Wheel) sort(s *list, bounds []int64, counts []int64) {
	for ref := s.head; ref != 0; {
		e := w.resolver.Entry(ref)
		counts[before(bounds, e.Deadline())]++
		ref = e.next
	}
}

// before returns the number of bounds that are not after a deadline.
func before(bounds []int64, deadline int64) int {
	i := 0
	for i < len(bounds) && bounds[i] <= deadline {
		i++
	}
	return i
}

// stormLooks is the number of entries at each end of a slot that tell a storm. Writes with one lifetime stand in a slot in the order of
// their deadlines, a hundred of a millisecond in a row: that both ends agree keeps these apart from a storm.
const stormLooks = 16

// storm returns the deadline that most of the entries at the ends of a slot have, and false if there is none. It looks at slots
// with more than a sixteenth of the wheel's entries: smaller ones are not a storm, and a survey of them would cost milliseconds.
func (w *Wheel) storm(s *list) (deadline int64, ok bool) {
	if int(s.count) <= w.Len()/16 {
		return 0, false
	}
	var seen [2 * stormLooks]int64
	n := min(stormLooks, int(s.count))
	first, last := s.head, w.resolver.Entry(s.head).prev
	for i := range n {
		e := w.resolver.Entry(first)
		seen[2*i], first = e.Deadline(), e.next
		e = w.resolver.Entry(last)
		seen[2*i+1], last = e.Deadline(), e.prev
	}
	lead, votes := 0, 0 // the vote by Boyer and Moore: what most have outlives the others
	for _, d := range seen[:2*n] {
		switch {
		case lead == 0:
			deadline, lead = d, 1
		case d == deadline:
			lead++
		default:
			lead--
		}
	}
	for _, d := range seen[:2*n] {
		if d == deadline {
			votes++
		}
	}
	return deadline, votes > n
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
