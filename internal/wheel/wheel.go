// Package wheel schedules deadlines.
//
// A Wheel is a hierarchical timing wheel whose links live inside the records it schedules. It owns
// only its slots, reads no clock, and refers to entries by 4-byte references, which a Resolver
// converts to pointers.
//
//	             slot        span (256 slots)
//	level 0      1 ms        256 ms      one deadline per slot
//	level 1      256 ms      ~65 s
//	level 2      ~65 s       ~4.66 h
//	level 3      ~4.66 h     ~49.7 d
//	level 4      ~49.7 d     ~34.8 y
//	level 5      ~34.8 y     2^48 ms
//
//	        time            passed      ahead
//	         |                 .          .
//	due <- [ | : : : : : : : : | : : : : : : : : ]   level 0: this span and the next
//	                           [       +1        |       +2        | ...   level 1
//
// Each level holds two spans, the one that the wheel's time is in and the next, so the wheel can
// empty a coarse slot into the level below while time is still in the slot before it. This is
// cascading one span ahead: there are 65 s to move a slot of 65 s, a slice at a time. After that,
// the due entries can be counted by adding up millisecond slots.
//
// Time passes over a whole slot in O(1), however many entries it holds: the wheel appends the
// slot's list to the due list. So three million entries that share a millisecond fall due in one
// step, and a jump over years costs one step per slot that holds entries.
//
// Invariants, with t the wheel's time:
//
//   - An entry is in exactly one list. Its deadline is before t if and only if
//     that list is the due list.
//   - A slot's entries agree in deadline >> 8*level, and lie in the span of t or
//     in the next one. No slot holds an entry before t.
//   - An entry is filed in the lowest level where that holds. Only the slot that
//     t is in, and the one after it, may hold entries that could lie lower. The
//     slot that t is in holds some only while t is its very beginning: time
//     waits there until it has been emptied.
//   - A slot's bit is set if and only if its count is not zero.
//
// Start reading at Wheel.Sync; Wheel.Advance and Wheel.Due build on it.
package wheel

import (
	"math"
	"math/bits"
)

const (
	// Six levels of 8 bits cover the 48 bits of an Entry's deadline. Fewer bits
	// a level would cascade an entry more often; more would make an idle wheel
	// large (it is 25 KiB) and passing over a span slower.
	levels    = 6
	levelBits = 8
	levelSize = 1 << levelBits

	// A level's ring holds the current span and the next.
	ringSize = 2 * levelSize
	ringMask = ringSize - 1

	// movesPerFire is the number of entries that Advance may move for each that it may
	// fire: relinking touches three records; firing deletes one and propagates the
	// deletion.
	movesPerFire = 8
)

// MaxDeadline is the latest deadline an Entry can hold, in the year 10889.
const MaxDeadline = 1<<48 - 1

// Resolver converts a reference to a pointer to its entry. The wheel uses the pointer at once and
// never keeps it. It never resolves reference 0.
type Resolver interface {
	Entry(ref uint32) *Entry
}

// Wheel schedules entries by deadline, in absolute milliseconds. An entry is due when its deadline
// is before now, that is from deadline+1 on. A Wheel is one allocation, and its methods allocate
// nothing. It is not safe for concurrent use: the caller holds the lock that guards the wheel and
// its records.
type Wheel struct {
	resolver Resolver
	time     int64 // all entries with a deadline before it are in the due list
	size     int
	due      list
	levels   [levels]level
}

// New returns an empty wheel at the time now.
func New(now int64, r Resolver) *Wheel {
	return &Wheel{resolver: r, time: max(now, 0)}
}

// Len returns the number of entries in the wheel, including the due ones. O(1).
func (w *Wheel) Len() int { return w.size }

// Time returns the wheel's time: the latest now that Sync or Advance has reached. It is behind that
// now while Sync has not yet emptied a slot that time enters.
func (w *Wheel) Time() int64 { return w.time }

// Add schedules the entry of ref, which must not be in the wheel, in O(1). Add overwrites the
// contents of the Entry. A deadline before the wheel's time is due at once; one below zero counts
// as zero, one beyond MaxDeadline as MaxDeadline. The wheel chooses the slot relative to its time,
// so a caller that was idle saves a cascade if it calls Sync first.
func (w *Wheel) Add(ref uint32, deadline int64) {
	e := w.resolver.Entry(ref)
	e.setDeadline(min(max(deadline, 0), MaxDeadline))
	w.place(ref, e)
	w.size++
}

// Remove removes the entry of ref from the wheel in O(1). It panics if the entry is not linked: its
// links would lead to unrelated entries.
func (w *Wheel) Remove(ref uint32) {
	e := w.resolver.Entry(ref)
	if e.slot == unlinked {
		panic("wheel: Remove of an entry that is not in the wheel")
	}
	if e.Deadline() < w.time {
		w.unlink(&w.due, ref, e)
	} else {
		l, i := e.home()
		s := &w.levels[l].slots[i]
		w.unlink(s, ref, e)
		if s.count == 0 {
			w.levels[l].clear(i)
		}
	}
	e.slot = unlinked
	w.size--
}

// Move updates the wheel after the record of an entry has moved: its bytes, including the Entry,
// are now at new. The wheel no longer reads the bytes at old. It costs O(1). A caller that moves
// several records must copy and move each before the next.
func (w *Wheel) Move(old, new uint32) {
	e := w.resolver.Entry(new)
	if e.slot == unlinked {
		return
	}
	s := &w.due
	if e.Deadline() >= w.time {
		l, i := e.home()
		s = &w.levels[l].slots[i]
	}
	w.rename(s, old, new, e)
}

// Advance moves the wheel to now, as Sync does, and calls fire for entries whose deadline is before
// now, at most budget of them. It returns how many it fired. It costs O(budget + slots passed) and
// allocates nothing; when it returns budget, or Next is not after now, there is more to do.
//
// Entries come in the order of their slots, and within a slot in the order in which they were added
// or came down. A slot of level 0 is one millisecond; a coarser slot counts as its beginning, if
// time passed over all of it before it was cascaded. An entry added with a deadline that had
// already passed comes after those that are due.
//
// Advance removes an entry from the wheel before it calls fire. fire may call any method but
// Advance, on any entry; the same call fires an entry that fire adds with a deadline in the past,
// if the budget lasts. A now before the wheel's time counts as the wheel's time.
func (w *Wheel) Advance(now int64, budget int, fire func(ref uint32)) (fired int) {
	w.Sync(now, min(budget, math.MaxInt/movesPerFire)*movesPerFire)
	for ; fired < budget && w.due.count > 0; fired++ {
		ref := w.due.head
		e := w.resolver.Entry(ref)
		w.unlink(&w.due, ref, e)
		e.slot = unlinked
		w.size--
		fire(ref)
	}
	return fired
}

// Sync moves the wheel's time to now and cascades one span ahead, moving at most
// budget entries between slots, and returns how many it moved. It fires nothing
// and leaves every count as it was. It costs O(moved + slots passed that hold
// entries). When it returns less than budget, nothing is left to move at now; until
// then the wheel's time may stay behind now. A now before the wheel's time counts
// as the wheel's time.
func (w *Wheel) Sync(now int64, budget int) (moved int) {
	for w.time < now {
		l, i, ok := w.earliest()
		start := i << (l * levelBits)
		if !ok || start >= now {
			w.time = now
			break
		}
		w.time = start
		if start+span(l) <= now {
			// Until time has left this slot, its entries are ahead of time and already in the due
			// list. The loop does not return in this state: it first passes all slots that begin
			// inside this one.
			w.pass(l, i)
			continue
		}
		moved += w.lower(l, i, budget-moved)
		if w.levels[l].slots[i&ringMask].count > 0 {
			return moved
		}
	}
	// Lower first the slots that stop time now, then those that will stop it next, the most urgent
	// level first.
	for ahead := range int64(2) {
		for l := 1; l < levels && moved < budget; l++ {
			moved += w.lower(l, w.time>>(l*levelBits)+ahead, budget-moved)
		}
	}
	return moved
}

// Rewind sets the wheel's time back to now, and files all entries again, in O(entries). It does nothing if the wheel's time is not after
// now.
func (w *Wheel) Rewind(now int64) {
	if now = max(now, 0); now >= w.time {
		return
	}
	all := w.due
	w.due = list{}
	for l := range w.levels {
		for i := range w.levels[l].slots {
			if s := &w.levels[l].slots[i]; s.count > 0 {
				w.concat(&all, s)
				w.levels[l].clear(i)
			}
		}
	}
	for w.time = now; all.count > 0; {
		ref := all.head
		e := w.resolver.Entry(ref)
		w.unlink(&all, ref, e)
		w.place(ref, e)
	}
}

// earliest finds the slot that begins first, and of those that begin together the coarsest, because
// its entries may belong before those of the finer ones.
func (w *Wheel) earliest() (l int, i int64, ok bool) {
	var first int64
	for k := levels - 1; k >= 0; k-- {
		j, found := w.levels[k].next(w.time >> (k * levelBits))
		if start := j << (k * levelBits); found && (!ok || start < first) {
			l, i, first, ok = k, j, start, true
		}
	}
	return l, i, ok
}

// pass appends a slot to the due list, in O(1).
func (w *Wheel) pass(l int, i int64) {
	s := &w.levels[l].slots[i&ringMask]
	w.concat(&w.due, s)
	w.levels[l].clear(int(i & ringMask))
}

// lower moves up to budget entries of a slot to a lower level and returns their number. The slot
// must be the one that time is in, or the one after it, because only their entries fit a lower
// level.
func (w *Wheel) lower(l int, i int64, budget int) (moved int) {
	s := &w.levels[l].slots[i&ringMask]
	if s.count == 0 || budget <= 0 {
		return 0
	}
	for ; moved < budget && s.count > 0; moved++ {
		ref := s.head
		e := w.resolver.Entry(ref)
		w.unlink(s, ref, e)
		w.place(ref, e)
	}
	if s.count == 0 {
		w.levels[l].clear(int(i & ringMask))
	}
	return moved
}

// place links an entry where its deadline belongs: in the lowest level that has
// the deadline in the current span or the next.
func (w *Wheel) place(ref uint32, e *Entry) {
	d := e.Deadline()
	if d < w.time {
		e.slot = late
		w.append(&w.due, ref, e)
		return
	}
	// A distance of less than a span never reaches past the next one. Up to two
	// spans of the level below may also fit there, but never of the one below it.
	l := (bits.Len64(uint64(d-w.time)|1) - 1) / levelBits
	if l > 0 && d>>(l*levelBits)-w.time>>(l*levelBits) <= 1 {
		l--
	}
	i := int(d>>(l*levelBits)) & ringMask
	e.setHome(l, i)
	w.append(&w.levels[l].slots[i], ref, e)
	w.levels[l].set(i)
}

// span returns the length of one slot of level l, in ms.
func span(l int) int64 { return 1 << (l * levelBits) }
