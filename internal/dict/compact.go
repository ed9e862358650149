package dict

import "fmt"

// Wasteful reports whether Compact pays: more than a fifth of the items' chunks are dead bytes.
// Table and tree need no compaction; they are always dense.
func (d *Dict) Wasteful() bool { return d.heap.Wasteful() }

// Compact moves items together. It looks at up to budget items and returns their number. A result
// below budget means that it has finished, or that there is no memory to continue. It must not be
// called during an Iter. O(1) per item, O(log n) for those with deadlines.
func (d *Dict) Compact(budget int) (looked int) { return d.heap.Compact(budget, d.move) }

// move updates the references to an item whose bytes have been copied from old to new.
// The order of due ends in the reference, so an item changes its place there.
func (d *Dict) move(old, new uint32) bool {
	deadline, key, _ := d.parts(new)
	if deadline != 0 && !d.due.Reserve() {
		return false
	}
	if d.moved != nil && !d.moved(old, new) {
		return false
	}
	s := d.ownSlot(d.slotOf(d.hash(key), old))
	s.b.ref[s.i] = new
	if deadline != 0 {
		d.schedule(new, deadline)
		d.unschedule(old, deadline)
	}
	return true
}

// Check verifies the dict's invariants and returns the first one broken. It
// visits every item several times.
func (d *Dict) Check() error {
	if err := d.heap.Check(); err != nil {
		return err
	}
	c := checker{d: d, seen: make(map[uint32]bool)}
	for i := range uint32(d.prim.Len()) {
		if err := c.chain(i); err != nil {
			return err
		}
	}
	n := uint32(d.prim.Len())
	switch {
	case len(c.seen) != d.Count():
		return fmt.Errorf("dict: %d items in the table, %d in the heap", len(c.seen), d.Count())
	case c.overflow != d.over.Len():
		return fmt.Errorf("dict: %d overflow buckets in chains of %d", c.overflow, d.over.Len())
	case n > 0 && (n < d.low || n >= 2*d.low):
		return fmt.Errorf("dict: %d buckets, want %d to %d", n, d.low, 2*d.low-1)
	case c.deadlines != d.Deadlines():
		return fmt.Errorf("dict: %d items with deadlines, %d in the index", c.deadlines, d.Deadlines())
	case c.earliest != d.earliest:
		return fmt.Errorf("dict: the earliest deadline is %d, not %d", c.earliest, d.earliest)
	case d.due != nil:
		return d.due.Check()
	}
	return nil
}

type checker struct {
	d         *Dict
	seen      map[uint32]bool
	overflow  int
	deadlines int
	earliest  int64
}

// chain checks the buckets of one chain and the items in it.
func (c *checker) chain(i uint32) error {
	length := 0
	for b := c.d.primary(i); b != nil; b = c.d.after(b) {
		length++
		if length > 1 {
			c.overflow++
		}
		n := b.used()
		if n < slots && b.next != 0 || n == 0 && length > 1 {
			return fmt.Errorf("dict: bucket %d+%d holds %d, with next %d", i, length-1, n, b.next)
		}
		for k := range slots {
			if err := c.slot(i, slot{b, k}, k < n); err != nil {
				return err
			}
		}
	}
	if length > c.d.chain {
		return fmt.Errorf("dict: a chain of %d, longest noted %d", length, c.d.chain)
	}
	return nil
}

// slot checks one slot of chain i.
func (c *checker) slot(i uint32, s slot, filled bool) error {
	if !filled {
		if s.ref() != 0 || s.b.tag[s.i] != 0 {
			return fmt.Errorf("dict: chain %d has a gap", i)
		}
		return nil
	}
	deadline, key, _ := c.d.parts(s.ref())
	h := c.d.hash(key)
	switch {
	case c.seen[s.ref()]:
		return fmt.Errorf("dict: item %q is in the table twice", key)
	case c.d.bucketOf(h) != i || tagOf(h) != s.b.tag[s.i]:
		return fmt.Errorf("dict: item %q is in chain %d with tag %d, its hash is %#x", key, i, s.b.tag[s.i], h)
	}
	c.seen[s.ref()] = true
	if deadline != 0 {
		c.deadlines++
		if c.earliest == 0 || deadline < c.earliest {
			c.earliest = deadline
		}
	}
	return nil
}
