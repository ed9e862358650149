package ordered

import (
	"math"

	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// Spot is the result of Look. It is valid until the set changes.
type Spot struct {
	ref    uint32
	Found  bool // whether there is such a member, living or dead
	Living bool
	Score  float64 // if found
}

// Look looks a member up, for a write that depends on the member's state. O(1).
func (s *Set) Look(member []byte, now int64) (p Spot) {
	if p.ref, p.Found = s.dict.Find(member); p.Found {
		p.Living = s.dict.Alive(p.ref, now)
		p.Score = s.score(p.ref)
	}
	return p
}

// Rescore changes the score of a member that Look has found, and keeps its deadline. O(log n).
// Errors: ErrNoMemory.
func (s *Set) Rescore(p Spot, score float64) error {
	move := sortable(p.Score) != sortable(score)
	if move {
		if !s.tree.Reserve() {
			return ErrNoMemory
		}
		s.tree.Delete(s.probe(p.ref), p.ref)
	}
	b := encode(score)
	copy(s.dict.Edit(p.ref), b[:])
	if move {
		s.mustInsert(p.ref)
	}
	return nil
}

// Remove removes a member that Look has found. O(log n).
func (s *Set) Remove(p Spot) { s.remove(p.ref) }

// CutRanks removes n living members, which must exist, from a rank on. O(log n) for each, and O(due
// log n).
func (s *Set) CutRanks(rank, n int, now int64) {
	for range n {
		_, ref := s.tree.At(s.raw(rank, now))
		s.remove(ref)
	}
}

// Walk iterates over living members in order. It allocates nothing, and is valid until the set
// changes.
type Walk struct {
	s    *Set
	c    btree.Cursor // at an entry of the leaf that keys and refs belong to
	keys []uint64
	refs []uint32
	i    int   // the current entry's index in them
	left int   // the greatest number of members to come
	now  int64 // 0: no member is dead
	back bool
}

// WalkRanks returns a walk over n living members from a rank on, upwards or back,
// or as many of them as there are. Ranks count from the lowest. O(log n), and
// O(due log n).
func (s *Set) WalkRanks(rank, n int, back bool, now int64) (w Walk) {
	if rank < 0 || rank >= s.Len(now) {
		return w
	}
	w.c, w.back = s.tree.Seek(s.raw(rank, now)), back
	w.begin(s, n, now)
	return w
}

// WalkFrom returns a walk upwards over all living members after a cut. O(log n).
func (s *Set) WalkFrom(c Cut, now int64) (w Walk) {
	p := s.place(c)
	w.c = s.tree.From(p.Probe)
	if w.c.OK() && p.after && s.before(w.c.Ref(), p) {
		w.c.Next()
	}
	w.begin(s, math.MaxInt, now)
	return w
}

// begin prepares the walk so that the first Next returns the entry at the cursor.
func (w *Walk) begin(s *Set, n int, now int64) {
	if !w.c.OK() {
		return
	}
	w.s, w.left = s, n
	if s.dict.Due(now) > 0 {
		w.now = now
	}
	w.keys, w.refs, w.i = w.c.Leaf()
	if w.back {
		w.i++
	} else {
		w.i--
	}
}

// Next moves to the next member and reports whether there is one. Amortized O(1), including dead
// members.
func (w *Walk) Next() bool {
	for w.left > 0 {
		if w.back {
			w.i--
		} else {
			w.i++
		}
		if uint(w.i) >= uint(len(w.refs)) && !w.turn() {
			break
		}
		if w.now == 0 || w.s.dict.Alive(w.refs[w.i], w.now) {
			w.left--
			return true
		}
	}
	w.left = 0
	return false
}

// turn moves to the next leaf and reports whether there is one.
func (w *Walk) turn() bool {
	if w.back {
		w.c.PrevLeaf()
	} else {
		w.c.NextLeaf()
	}
	if !w.c.OK() {
		return false
	}
	w.keys, w.refs, w.i = w.c.Leaf()
	return true
}

// Score returns the member's score. It reads the member only if the score is 0, because the tree
// does not distinguish 0 and -0.
func (w *Walk) Score() float64 {
	key := w.keys[w.i]
	if key == zeroKey {
		return w.s.score(w.refs[w.i])
	}
	return unsortable(key)
}

// Member returns the member, under the rules of Entry.Member.
func (w *Walk) Member() []byte { return w.s.dict.Key(w.refs[w.i]) }

// Entry returns the member with its score and deadline.
func (w *Walk) Entry() Entry { return entryOf(w.s.dict.Item(w.refs[w.i])) }

// zeroKey is sortable(0).
const zeroKey = 1 << 63

// unsortable is the inverse of sortable.
func unsortable(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}
