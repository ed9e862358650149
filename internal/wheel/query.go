package wheel

import "math"

// Due returns how many entries have a deadline before now and have been neither
// fired nor removed. It is exact for every now, fires nothing, and does not move
// the wheel's time, so a look into the future has no effect on what Advance
// fires. A now before the wheel's time counts as the wheel's time.
//
// It adds up slots: O(1) at the wheel's time, O(slots between) after it. If now is
// in a coarse slot that Sync has begun to lower, or may begin to, Due lowers the
// rest of it, once. In a slot further ahead it counts entry by entry, every time;
// a caller that means the present calls Sync(now, ...) first.
func (w *Wheel) Due(now int64) int {
	if now <= w.time {
		return int(w.due.count)
	}
	for l := levels - 1; l > 0; l-- {
		i := now >> (l * levelBits)
		if i-w.time>>(l*levelBits) <= 1 && i<<(l*levelBits) < now {
			w.lower(l, i, math.MaxInt)
		}
	}
	return w.passed(now, func(s *list, _, _ int64) (due int) {
		for ref, e := s.head, (*Entry)(nil); ref != 0; ref = e.next {
			if e = w.resolver.Entry(ref); e.Deadline() < now {
				due++
			}
		}
		return due
	})
}

// Ripe returns the number of entries in the due list, which Advance would fire at once. O(1). It
// does not count entries that fell due after the wheel's time; Due does.
func (w *Wheel) Ripe() int { return int(w.due.count) }

// EachDue calls f for every entry whose deadline is before now, in no order; f must
// not change the wheel. It syncs the wheel to now, and costs O(due + what Sync
// moves).
func (w *Wheel) EachDue(now int64, f func(ref uint32)) {
	w.Sync(now, math.MaxInt)
	w.walk(&w.due, f)
}

// Next returns the earliest time at which Advance has something to do, and false if the wheel is
// empty. It costs O(levels). It is the earliest of
//
//   - the wheel's time, if entries are due, or are in a slot that is to be lowered
//     now;
//   - the nearest deadline in level 0, plus one: to the millisecond;
//   - the time at which a coarser slot can be lowered, one slot before its first
//     millisecond. So a caller meets an entry with a far deadline at most once per level.
//
// No entry becomes due after the wheel's time and before Next. Advance at Next, with a budget,
// fires or moves at least one entry.
func (w *Wheel) Next() (int64, bool) {
	if w.due.count > 0 {
		return w.time, true
	}
	next, ok := w.NextCascade()
	if i, found := w.levels[0].next(w.time); found && (!ok || i+1 < next) {
		return i + 1, true
	}
	return next, ok
}

// NextCascade returns the earliest time at which Sync has entries to move, and false if all are in
// level 0 or due. A replica, which fires nothing, uses it to know when to call Sync. It costs
// O(levels).
func (w *Wheel) NextCascade() (next int64, ok bool) {
	for l := 1; l < levels; l++ {
		i, found := w.levels[l].next(w.time >> (l * levelBits))
		if t := max(w.time, (i-1)<<(l*levelBits)); found && (!ok || t < next) {
			next, ok = t, true
		}
	}
	return next, ok
}

// Nearest returns the entry with the nearest deadline that is not before now, among the entries for
// which accept returns true; ok is false if there is none. It walks lists: in each level the slots
// from now on, up to the first with such an entry, unless finer levels have an earlier one. It
// costs O(entries in them).
func (w *Wheel) Nearest(now int64, accept func(ref uint32) bool) (ref uint32, deadline int64, ok bool) {
	deadline = MaxDeadline + 1
	for l := range levels {
		v, shift := &w.levels[l], l*levelBits
		end := w.time>>shift&^(levelSize-1) + ringSize // the ring wraps there
		i, found := v.next(w.time >> shift)
		for had := false; found && !had && i < end && i<<shift < deadline; i, found = v.next(i + 1) {
			for at, e := v.slots[i&ringMask].head, (*Entry)(nil); at != 0 && (l > 0 || !had); at = e.next {
				e = w.resolver.Entry(at)
				if d := e.Deadline(); d >= now && d < deadline && accept(at) {
					ref, deadline, had = at, d, true
				}
			}
		}
	}
	return ref, deadline, ref != 0
}

// Forecast fills counts[i] with the number of entries that become due after bounds[i-1], or after
// now for the first, and not after bounds[i]. The bounds must ascend, and counts be as long as
// bounds. Entries that are due at now are in none.
//
// It adds up slots and walks no entries: O(len(bounds) * slots that hold entries), at most 3,072 of
// them. For a bound inside a coarse slot, it assumes that the slot's entries are spread evenly. So
// the error is at most the counts of the slots, one per level, that the bound cuts. Once Sync has
// nothing left to move, bounds up to 256 ms ahead are exact.
func (w *Wheel) Forecast(now int64, bounds []int64, counts []int) {
	before := w.spread(now)
	for i, bound := range bounds {
		upTo := max(before, w.spread(bound))
		counts[i] = upTo - before
		before = upTo
	}
}

// spread estimates how many entries are due at t, from counts alone.
func (w *Wheel) spread(t int64) int {
	return w.passed(t, func(s *list, into, span int64) int {
		return int(float64(s.count) * (float64(into) / float64(span)))
	})
}

// passed returns the sum of the due list, of the slots that end by t, and of the results of part
// for the slots that t cuts. There is at most one such slot per level; into is the number of
// milliseconds of its span before t.
func (w *Wheel) passed(t int64, part func(s *list, into, span int64) int) int {
	n := int(w.due.count)
	if t <= w.time {
		return n
	}
	for l := range levels {
		v, shift := &w.levels[l], l*levelBits
		from, last := w.time>>shift, t>>shift
		end := from&^(levelSize-1) + ringSize // the ring wraps there
		i, ok := v.next(from)
		for ; ok && i < min(last, end); i, ok = v.next(i + 1) {
			n += int(v.slots[i&ringMask].count)
		}
		if into := t - last<<shift; ok && i == last && i < end && into > 0 {
			n += part(&v.slots[i&ringMask], into, span(l))
		}
	}
	return n
}

// Each calls f for every entry, in no order, the due included. f must not change
// the wheel.
func (w *Wheel) Each(f func(ref uint32)) {
	w.walk(&w.due, f)
	for l := range w.levels {
		for i := range w.levels[l].slots {
			w.walk(&w.levels[l].slots[i], f)
		}
	}
}

func (w *Wheel) walk(s *list, f func(ref uint32)) {
	for ref := s.head; ref != 0; ref = w.resolver.Entry(ref).next {
		f(ref)
	}
}
