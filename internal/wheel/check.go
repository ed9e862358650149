package wheel

import "fmt"

// Check verifies the invariants at the top of the package and returns the first that does not hold.
// It costs O(entries + slots) and is for tests.
func (w *Wheel) Check() error {
	size := 0
	n, err := w.checkList(&w.due, func(ref uint32, e *Entry) error {
		if d := e.Deadline(); d >= w.time {
			return fmt.Errorf("wheel: entry %d is in the due list, its deadline %d is not before %d", ref, d, w.time)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("due list: %w", err)
	}
	size += n
	for l := range w.levels {
		n, err := w.checkLevel(l)
		if err != nil {
			return fmt.Errorf("level %d: %w", l, err)
		}
		size += n
	}
	if size != w.size {
		return fmt.Errorf("wheel: lists hold %d entries, the wheel counts %d", size, w.size)
	}
	return nil
}

// checkLevel verifies the slots and the bitmap of a level and counts its entries.
func (w *Wheel) checkLevel(l int) (size int, err error) {
	v, shift := &w.levels[l], l*levelBits
	for i := range v.slots {
		if set := v.bits[i>>6]>>(i&63)&1 == 1; set != (v.slots[i].count > 0) {
			return 0, fmt.Errorf("wheel: slot %d holds %d entries, its bit is %v", i, v.slots[i].count, set)
		}
		n, err := w.checkList(&v.slots[i], func(ref uint32, e *Entry) error {
			return w.checkPlace(ref, e, l, i)
		})
		if err != nil {
			return 0, fmt.Errorf("slot %d: %w", i, err)
		}
		size += n
	}
	for k, b := range v.bits {
		if set := v.words>>k&1 == 1; set != (b != 0) {
			return 0, fmt.Errorf("wheel: word %d of the bitmap is %x, its bit is %v", k, b, set)
		}
	}
	if now := w.time >> shift; l > 0 && v.slots[now&ringMask].count > 0 && now<<shift != w.time {
		return 0, fmt.Errorf("wheel: slot %d holds entries, time is inside it at %d", now&ringMask, w.time)
	}
	return size, nil
}

// checkPlace verifies that an entry in slot i of level l belongs there.
func (w *Wheel) checkPlace(ref uint32, e *Entry, l, i int) error {
	d, shift := e.Deadline(), l*levelBits
	if d < w.time {
		return fmt.Errorf("wheel: entry %d is due since %d and not in the due list", ref, d)
	}
	if hl, hi := e.home(); hl != l || hi != i {
		return fmt.Errorf("wheel: entry %d claims to be in slot %d of level %d", ref, hi, hl)
	}
	if int(d>>shift)&ringMask != i {
		return fmt.Errorf("wheel: entry %d has the deadline %d of slot %d", ref, d, int(d>>shift)&ringMask)
	}
	if spans := d>>(shift+levelBits) - w.time>>(shift+levelBits); spans > 1 {
		return fmt.Errorf("wheel: entry %d is %d spans ahead", ref, spans)
	}
	return nil
}

// checkList verifies the links of a list, calls f for each entry and counts them.
func (w *Wheel) checkList(s *list, f func(ref uint32, e *Entry) error) (n int, err error) {
	if s.count == 0 {
		if s.head != 0 {
			return 0, fmt.Errorf("wheel: an empty list begins with entry %d", s.head)
		}
		return 0, nil
	}
	var last uint32
	for ref := s.head; ref != 0; n++ {
		if n == int(s.count) {
			return 0, fmt.Errorf("wheel: the list goes on after its %d entries with %d", n, ref)
		}
		e := w.resolver.Entry(ref)
		if e.slot == unlinked {
			return 0, fmt.Errorf("wheel: entry %d is in a list and marked as unlinked", ref)
		}
		if ref != s.head && e.prev != last {
			return 0, fmt.Errorf("wheel: entry %d follows %d and leads back to %d", ref, last, e.prev)
		}
		if err := f(ref, e); err != nil {
			return 0, err
		}
		last, ref = ref, e.next
	}
	if first := w.resolver.Entry(s.head); n != int(s.count) || first.prev != last {
		return 0, fmt.Errorf("wheel: the list has %d entries, counts %d, ends with %d and knows %d as the last",
			n, s.count, last, first.prev)
	}
	return n, nil
}
