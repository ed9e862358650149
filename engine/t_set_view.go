package engine

import (
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// SetView reads a set at the transaction's instant: living members only. It is
// valid until the next write; members that it returns are valid until the next
// of its methods is called, or the next write.
type SetView struct {
	tx    *Tx
	now   int64
	ints  packed.IntSet
	small packed.Packed
	large *dict.Dict   // all three nil: there is no set
	index *memberIndex // of small, if there will be many questions
}

// Members looks a set up to read it. One that is not there has no members.
// Errors: ErrWrongType.
func (tx *Tx) Members(key []byte) (SetView, error) {
	h, err := tx.open(key, Set)
	if err != nil {
		return SetView{}, err
	}
	return tx.viewSet(&h), nil
}

func (tx *Tx) viewSet(h *hit) SetView {
	v := SetView{tx: tx, now: tx.itemTime()}
	if h.r == nil {
		return v
	}
	if b := h.box(); b != nil {
		v.large = b.(setTable).Dict
	} else {
		v.of(h.image())
	}
	return v
}

// of makes the view one of a small set.
func (v *SetView) of(img packed.Packed) {
	if img.Kind() == packed.KindIntSet {
		v.ints = packed.IntSet(img)
	} else {
		v.small = img
	}
}

// Len returns the number of members.
func (v *SetView) Len() int {
	switch {
	case v.large != nil:
		return v.large.Len(v.now)
	case v.ints != nil:
		return v.ints.Len()
	case v.small != nil:
		return v.small.Len(v.now)
	}
	return 0
}

// due reports whether some member is dead and not yet reclaimed.
func (v *SetView) due() bool {
	if v.large != nil {
		return v.large.Due(v.now) > 0
	}
	return v.small != nil && v.small.Due(v.now)
}

// Has reports whether a member is there. O(1) in a large set, O(log n) among
// integers, else O(n).
func (v *SetView) Has(member []byte) bool {
	switch {
	case v.large != nil:
		return v.large.Has(member, v.now)
	case v.ints != nil:
		_, ok := findInt(v.ints, member)
		return ok
	case v.index != nil:
		return v.index.has(member)
	case v.small != nil:
		_, ok := v.small.Find(member, v.now)
		return ok
	}
	return false
}

// Deadline returns a member's deadline in ms since 1970, NoDeadline, or NoKey if
// there is no such member. It costs what Has does.
func (v *SetView) Deadline(member []byte) int64 {
	switch {
	case v.large != nil:
		return deadlineOf(v.large.Deadline(member, v.now))
	case v.small != nil:
		if at, ok := v.small.Find(member, v.now); ok {
			return deadlineOf(v.small.Deadline(at), true)
		}
		return NoKey
	}
	return deadlineOf(0, v.Has(member))
}

// Expect prepares for n calls of Has: where that pays, they cost O(1) each then.
// O(members) in a packed set.
func (v *SetView) Expect(n int) {
	const few = 12 // an index costs as much as so many walks
	if v.small != nil && n > few && v.small.Count() > 16 && indexable(v.small) {
		v.index = v.tx.indexOf(v.small)
	}
}

// Each visits all members, in no order.
func (v *SetView) Each(visit func(member []byte)) {
	v.until(func(m []byte) bool { visit(m); return true })
}

// EachTimed is Each with the members' deadlines, in ms since 1970 or NoDeadline.
func (v *SetView) EachTimed(visit func(member []byte, deadline int64)) {
	switch {
	case v.large != nil:
		for it := range v.large.Iter(v.now) {
			visit(it.Key, deadlineOf(it.Deadline, true))
		}
	case v.small != nil:
		for it := v.small.Iter(v.now); it.Next(); {
			visit(v.tx.text(2, it.Key()), deadlineOf(it.Deadline(), true))
		}
	default:
		v.Each(func(m []byte) { visit(m, NoDeadline) })
	}
}

// until visits members until visit returns false.
func (v *SetView) until(visit func(member []byte) bool) {
	switch {
	case v.large != nil:
		for it := range v.large.Iter(v.now) {
			if !visit(it.Key) {
				return
			}
		}
	case v.ints != nil:
		for i := range v.ints.Len() {
			if !visit(v.tx.itoa(2, v.ints.At(i))) {
				return
			}
		}
	case v.small != nil:
		for it := v.small.Iter(v.now); it.Next(); {
			if !visit(v.tx.text(2, it.Key())) {
				return
			}
		}
	}
}

// Scan visits some members, about count, and returns the cursor to go on with; 0
// begins and ends. A member that is there from the first call to the last is
// visited at least once. A small set is visited as a whole.
func (v *SetView) Scan(cursor uint64, count int, visit func(member []byte)) uint64 {
	if v.large == nil {
		v.Each(visit)
		return 0
	}
	return scanTable(v.large, cursor, count, v.now, func(it dict.Item) { visit(it.Key) })
}

// Random returns a member, each with the same chance; ok is false if there is
// none. Expected O(1), but O(n) for a packed set.
func (v *SetView) Random() (member []byte, ok bool) {
	if v.large != nil {
		it, ok := v.large.Random(v.now, v.tx.random())
		return it.Key, ok
	}
	n := v.Len()
	if n == 0 {
		return nil, false
	}
	i := v.tx.random().IntN(n)
	if v.ints != nil {
		return v.tx.itoa(2, v.ints.At(i)), true
	}
	at, _ := v.small.Index(i, v.now)
	return v.tx.text(2, v.small.Key(at)), true
}

// Draw visits n members, each picked from all of them. O(n), and O(members) of a
// packed set.
func (v *SetView) Draw(n int, visit func(member []byte)) {
	if v.small != nil {
		drawPacked(v.small, n, v.now, v.tx.random(), func(at packed.At) { visit(v.tx.text(2, v.small.Key(at))) })
		return
	}
	for ; n > 0; n-- {
		m, ok := v.Random()
		if !ok {
			return
		}
		visit(m)
	}
}

// Sample visits n different members, or all if there are no more; every choice
// of n has the same chance. O(n) where n is much less than the members, else
// O(members).
func (v *SetView) Sample(n int, visit func(member []byte)) {
	all := v.Len()
	if v.large != nil && n < all/sampleShare {
		sampleTable(v.large, n, v.now, v.tx.random(), func(it dict.Item) { visit(it.Key) })
		return
	}
	s := sampler{left: all, want: min(n, all), rng: v.tx.random()}
	v.Each(func(m []byte) {
		if s.take() {
			visit(m)
		}
	})
}
