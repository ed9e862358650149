package dict

import "github.com/ebbdb/ebb/internal/ordered/btree"

// Deadline returns the deadline of the living item under key, 0 if it has none,
// and whether there is such an item. O(1).
func (d *Dict) Deadline(key []byte, now int64) (deadline int64, ok bool) {
	s, ok := d.find(key, d.hash(key))
	if !ok {
		return 0, false
	}
	deadline = d.deadlineOf(s.ref())
	if expired(deadline, now) {
		return 0, false
	}
	return deadline, true
}

// SetDeadline gives the living item under key a deadline, 0 for none, and
// reports whether there is such an item. A deadline before now is stored like
// any other: the item is dead from then on. O(log n).
func (d *Dict) SetDeadline(key []byte, deadline, now int64) (ok bool, err error) {
	s, ok := d.find(key, d.hash(key))
	if !ok {
		return false, nil
	}
	old := d.deadlineOf(s.ref())
	if expired(old, now) {
		return false, nil
	}
	return true, d.redate(s, key, old, clampDeadline(deadline))
}

// ClearDeadline removes the deadline of the living item under key and reports whether there is such
// an item and whether it had one. It needs no memory. O(log n).
func (d *Dict) ClearDeadline(key []byte, now int64) (ok, had bool) {
	s, ok := d.find(key, d.hash(key))
	if !ok {
		return false, false
	}
	old := d.deadlineOf(s.ref())
	if expired(old, now) {
		return false, false
	}
	if old != 0 {
		d.unschedule(s.ref(), old)
		d.dropDeadline(s.ref())
	}
	return true, old != 0
}

// Due returns the number of dead items that Reap has not removed. O(1) if there are none, else
// O(log n).
func (d *Dict) Due(now int64) int {
	if d.earliest == 0 || now <= d.earliest {
		return 0
	}
	return d.due.Rank(btree.Probe{Key: uint64(now), Side: -1})
}

// Earliest returns the first deadline of any item, dead ones included; false if
// no item has one. The first item is dead as soon as now is greater. O(1).
func (d *Dict) Earliest() (deadline int64, ok bool) { return d.earliest, d.earliest != 0 }

// NextFrom returns the first deadline of the items that live at now, 0 if none has
// one. O(log n).
func (d *Dict) NextFrom(now int64) int64 {
	if d.due == nil {
		return 0
	}
	if c := d.due.Seek(d.Due(now)); c.OK() {
		return d.deadlineOf(c.Ref())
	}
	return 0
}

// Deadlines returns the number of items that have a deadline. O(1).
func (d *Dict) Deadlines() int {
	if d.due == nil {
		return 0
	}
	return d.due.Len()
}

// Reap removes up to budget dead items, earliest deadline first, and returns their number. It calls
// fire for each item before it removes the item; fire must not change the dict. O(log n) per item.
func (d *Dict) Reap(now int64, budget int, fire func(Item)) (reaped int) {
	for reaped < budget && d.earliest != 0 && now > d.earliest {
		_, ref, _ := d.due.First()
		fire(d.Item(ref))
		d.Remove(ref)
		reaped++
	}
	return reaped
}

// EachDue calls visit for every item dead at now, earliest deadline first, until
// it returns false. O(dead items). visit must not change the dict.
func (d *Dict) EachDue(now int64, visit func(ref uint32) bool) {
	n := d.Due(now)
	if n == 0 {
		return
	}
	for c := d.due.Seek(0); n > 0 && visit(c.Ref()); n-- {
		c.Next()
	}
}

// DueTimes calls visit with the deadline of every item dead at now, in ascending
// order. O(dead items).
func (d *Dict) DueTimes(now int64, visit func(deadline int64)) {
	d.EachDue(now, func(ref uint32) bool { visit(d.deadlineOf(ref)); return true })
}

// redate changes the deadline of the item in s.
func (d *Dict) redate(s slot, key []byte, old, deadline int64) error {
	ref := s.ref()
	switch {
	case old == deadline:
		return nil
	case deadline == 0:
		d.unschedule(ref, old)
		d.dropDeadline(ref)
		return nil
	case old == 0: // the value may lie where the deadline has to be
		value := append([]byte(nil), d.Value(ref)...)
		return d.rewrite(s, key, value, old, deadline)
	}
	if !d.reserveDue() {
		return ErrNoMemory
	}
	d.unschedule(ref, old)
	putDeadline(d.heap.Edit(ref), deadline)
	d.schedule(ref, deadline)
	return nil
}

// dropDeadline removes the deadline from an unscheduled item, in place.
func (d *Dict) dropDeadline(ref uint32) {
	b := d.heap.Edit(ref)
	n := copy(b, b[deadlineSize:])
	d.heap.SetMark(ref, false)
	d.heap.Cut(ref, n)
}

// reserveDue ensures that the next schedule succeeds, even after an unschedule.
func (d *Dict) reserveDue() bool {
	if d.due == nil {
		d.due = btree.New(d.heap.Memory(), (*byDeadline)(d), false)
	}
	return d.due.Reserve()
}

// schedule adds an item to due.
func (d *Dict) schedule(ref uint32, deadline int64) {
	if err := d.due.Insert(deadlineProbe(ref, deadline), ref); err != nil {
		panic("dict: no memory for a deadline in spite of its reservation")
	}
	if d.earliest == 0 || deadline < d.earliest {
		d.earliest = deadline
	}
}

// unschedule removes an item from due.
func (d *Dict) unschedule(ref uint32, deadline int64) {
	if !d.due.Delete(deadlineProbe(ref, deadline), ref) {
		panic("dict: an item's deadline is not in the index")
	}
	if deadline == d.earliest {
		first, _, _ := d.due.First()
		d.earliest = int64(first)
	}
}

func deadlineProbe(ref uint32, deadline int64) btree.Probe {
	return btree.Probe{Key: uint64(deadline), Ref: ref}
}

// byDeadline is the order of due: by deadline, then by reference. The keys stay
// in the items.
type byDeadline Dict

func (o *byDeadline) Key(ref uint32) uint64 { return uint64((*Dict)(o).deadlineOf(ref)) }

func (o *byDeadline) Tie(ref uint32, p btree.Probe) int {
	switch {
	case ref < p.Ref:
		return -1
	case ref > p.Ref:
		return 1
	}
	return 0
}

func (o *byDeadline) Probe(ref uint32) btree.Probe {
	return deadlineProbe(ref, (*Dict)(o).deadlineOf(ref))
}
