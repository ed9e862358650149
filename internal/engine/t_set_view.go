package engine

import (
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
)

// SetView reads the living members of a set at the transaction's instant. It is valid until the
// next write. Members that it returns are valid until the next call of one of its methods, or the
// next write.
type SetView struct {
	tx    *Tx
	now   int64
	ints  packed.IntSet
	small packed.Packed
	large *dict.Dict   // all three forms are nil if there is no set
	index *memberIndex // an index of small, if Expect built one
}

// Members looks a set up for reading. A missing set has no members. Errors: ErrWrongType.
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

// of makes v a view of a small set.
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

// due reports whether the set has a dead member that is not yet reclaimed.
func (v *SetView) due() bool {
	if v.large != nil {
		return v.large.Due(v.now) > 0
	}
	return v.small != nil && v.small.Due(v.now)
}

// Has reports whether the set has a member. O(1) in a large set, O(log n) among integers, else
// O(n).
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

// Deadline returns a member's deadline in ms since 1970, NoDeadline, or NoKey if there is no such member. It
// costs as much as Has.
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

// fewLookups is the number of walks that cost as much as building an index.
const fewLookups = 6

// expect prepares the view for n calls of Has. If it pays, expect builds an index in O(members),
// and each Has on a packed set then costs O(1). The caller calls forget at the end.
func (v *SetView) expect(n int) {
	if v.small != nil && n > fewLookups && v.small.Count() > fewLookups {
		v.index = v.tx.indexOf(v.small)
	}
}

// forget frees the memory of the index.
func (v *SetView) forget() {
	v.tx.returnIndex(v.index)
	v.index = nil
}

// HasEach calls visit for each of the members, in their order, with the result of Has. It walks once over a packed set.
func (v *SetView) HasEach(members [][]byte, visit func(has bool)) {
	if v.small == nil || len(members) < 3 {
		for _, m := range members {
			visit(v.Has(m))
		}
		return
	}
	x := v.tx.borrowIndex()
	defer v.tx.returnIndex(x)
	for _, m := range members {
		x.add(packed.StrOf(m))
	}
	x.met = append(x.met[:0], make([]int32, len(x.items))...)
	left := len(x.items)
	for it := v.small.Iter(v.now); left > 0 && it.Next(); {
		if at := x.find(it.Key()); at >= 0 {
			x.met[at] = 1
			left--
		}
	}
	for _, m := range members {
		visit(x.met[x.find(packed.StrOf(m))] > 0)
	}
}

// Each visits all members, in no particular order.
func (v *SetView) Each(visit func(member []byte)) {
	v.until(func(m []byte) bool { visit(m); return true })
}

// EachTimed visits all members as Each does, with their deadlines, in ms since 1970 or NoDeadline.
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

// Small reports whether Scan visits the set as a whole.
func (v *SetView) Small() bool { return v.large == nil }

// Scan visits about count members and returns the cursor for the next call. A walk begins with 0
// and ends when Scan returns 0. It visits a member that exists from the first call to the last at
// least once. It visits a small set as a whole.
func (v *SetView) Scan(cursor uint64, count int, visit func(member []byte)) uint64 {
	if v.large == nil {
		v.Each(visit)
		return 0
	}
	return scanTable(v.large, cursor, count, v.now, func(it dict.Item) { visit(it.Key) })
}

// Random returns a random member, each with the same probability; ok is false if there is none.
// Expected O(1), but O(n) for a packed set.
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

// Draw visits n random members. It draws each from all members, so that a member may repeat. O(n);
// in a packed set O(n + members).
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

// Sample visits n different random members, or all members if there are fewer. Every subset of n
// members has the same probability. O(n) if n is much less than the number of members, else
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
