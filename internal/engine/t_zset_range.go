package engine

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/packed"
)

// ZOrder selects the meaning of the bounds of a range of a sorted set.
type ZOrder uint8

// These are the orders.
const (
	ByRank ZOrder = iota
	ByScore
	ByLex // by member, in sets whose scores are all equal
)

// ScoreBound is an end of a range of scores.
type ScoreBound struct {
	Score float64
	Open  bool // exclude members with that score
}

// LexBound is an end of a range of members. The zero value is before all members.
type LexBound struct {
	Member []byte
	Kind   LexKind
}

// LexKind is the kind of a lexical bound.
type LexKind uint8

// These are the kinds of lexical bounds.
const (
	LexLowest  LexKind = iota // -
	LexHighest                // +
	LexClosed                 // [member
	LexOpen                   // (member
)

// ZRange selects members and their order. {Stop: -1} selects all members.
type ZRange struct {
	By             ZOrder
	Start, Stop    int64      // ByRank: both included, negative from the end; with Rev rank 0 is the last
	Min, Max       ScoreBound // ByScore
	MinLex, MaxLex LexBound   // ByLex
	Rev            bool       // reverse order: the last member first
	Limited        bool       // ByScore, ByLex: Offset and Count apply
	Offset, Count  int64      // members to skip, and the greatest number to return; a negative Count: all; a negative Offset: none
}

// Count returns the number of members in a range. O(log n).
func (v *ZSetView) Count(r *ZRange) int {
	_, n := v.resolve(r)
	return n
}

// Range returns a walk over a range. Its start costs O(log n), even with an Offset, and it allocates nothing.
func (v *ZSetView) Range(r *ZRange) (w ZWalk) {
	first, n := v.resolve(r)
	if n == 0 {
		return w
	}
	if r.Rev {
		first += n - 1
	}
	w.tx, w.n, w.left, w.rev = v.tx, n, n, r.Rev
	if v.large != nil {
		w.large = v.large.WalkRanks(first, n, r.Rev, v.now)
		return w
	}
	w.small = true
	w.it, _ = v.small.Seek(first, v.now)
	if r.Rev {
		w.it.Next() // the next Prev returns this member again
	}
	return w
}

// ZWalk iterates over members of a sorted set. It is valid until the next write.
type ZWalk struct {
	tx    *Tx
	n     int
	left  int
	small bool
	rev   bool
	it    packed.Iter
	large ordered.Walk
}

// Len returns the number of members of the whole walk.
func (w *ZWalk) Len() int { return w.n }

// Next moves to the next member and reports whether there is one.
func (w *ZWalk) Next() bool {
	switch {
	case w.left == 0:
		return false
	case !w.small:
		if !w.large.Next() {
			return false
		}
	case w.rev:
		w.it.Prev()
	default:
		w.it.Next()
	}
	w.left--
	return true
}

// Member returns the member; it is valid until the next call of Next or Member, or a write.
func (w *ZWalk) Member() []byte {
	if !w.small {
		return w.large.Member()
	}
	return w.tx.text(2, w.it.Key())
}

// Score returns the member's score.
func (w *ZWalk) Score() float64 {
	if !w.small {
		return w.large.Score()
	}
	return w.it.Score()
}

// Deadline returns the member's deadline in ms since 1970, 0 if it has none.
func (w *ZWalk) Deadline() int64 {
	if !w.small {
		return w.large.Entry().Deadline
	}
	return w.it.Deadline()
}

// resolve converts a range to ranks: n members from rank first on, counted from the lowest.
func (v *ZSetView) resolve(r *ZRange) (first, n int) {
	if v.large == nil && v.small == nil {
		return 0, 0
	}
	var from, to int
	switch r.By {
	case ByRank:
		return v.resolveRanks(r)
	case ByScore:
		from, to = v.resolveScores(r.Min, r.Max)
	default:
		from, to = v.resolveLex(&r.MinLex, &r.MaxLex)
	}
	n = max(to-from, 0)
	if r.Limited {
		if r.Offset < 0 || r.Offset >= int64(n) {
			return 0, 0
		}
		if r.Rev {
			to -= int(r.Offset)
		} else {
			from += int(r.Offset)
		}
		n -= int(r.Offset)
		if r.Count >= 0 && r.Count < int64(n) {
			n = int(r.Count)
		}
	}
	if r.Rev {
		return to - n, n
	}
	return from, n
}

func (v *ZSetView) resolveRanks(r *ZRange) (first, n int) {
	card := int64(v.Len())
	start, stop := r.Start, r.Stop
	if start < 0 {
		start = max(start+card, 0)
	}
	if stop < 0 {
		stop += card
	}
	stop = min(stop, card-1)
	if start > stop {
		return 0, 0
	}
	n = int(stop - start + 1)
	if r.Rev {
		return int(card - 1 - stop), n
	}
	return int(start), n
}

// resolveScores returns the ranks between which the scores lie; to may be less than from.
func (v *ZSetView) resolveScores(lo, hi ScoreBound) (from, to int) {
	if lo.Score > hi.Score || lo.Score == hi.Score && (lo.Open || hi.Open) {
		return 0, 0
	}
	if v.large != nil {
		a, b := ordered.BeforeScore(lo.Score), ordered.AfterScore(hi.Score)
		if lo.Open {
			a = ordered.AfterScore(lo.Score)
		}
		if hi.Open {
			b = ordered.BeforeScore(hi.Score)
		}
		return v.large.Position(a, v.now), v.large.Position(b, v.now)
	}
	for it := v.small.Iter(v.now); it.Next(); to++ {
		s := it.Score()
		if s > hi.Score || s == hi.Score && hi.Open {
			break
		}
		if s < lo.Score || s == lo.Score && lo.Open {
			from++
		}
	}
	return from, to
}

// resolveLex resolves a range by members as resolveScores does for scores.
func (v *ZSetView) resolveLex(lo, hi *LexBound) (from, to int) {
	if lo.compare(hi) > 0 || lo.compare(hi) == 0 && (lo.Kind == LexOpen || hi.Kind == LexOpen) {
		return 0, 0
	}
	if v.large != nil {
		return v.large.Position(lo.cut(false), v.now), v.large.Position(hi.cut(true), v.now)
	}
	before := true // the loop has not yet met a member of the range
	for it := v.small.Iter(v.now); it.Next(); to++ {
		if before && lo.outside(it.Key(), -1) {
			from++
			continue
		}
		if before = false; hi.outside(it.Key(), +1) {
			break
		}
	}
	return from, to
}

// compare compares the positions of two bounds.
func (b *LexBound) compare(c *LexBound) int {
	low := func(k LexKind) int {
		switch k {
		case LexLowest:
			return -1
		case LexHighest:
			return 1
		}
		return 0
	}
	if x, y := low(b.Kind), low(c.Kind); x != 0 || y != 0 {
		return x - y
	}
	return bytes.Compare(b.Member, c.Member)
}

// outside reports whether a member lies before the bound (side -1) or after it (side 1).
func (b *LexBound) outside(member packed.Str, side int) bool {
	switch b.Kind {
	case LexLowest:
		return side > 0
	case LexHighest:
		return side < 0
	}
	c := member.Compare(b.Member) * side
	return c > 0 || c == 0 && b.Kind == LexOpen
}

// cut returns the position of the bound, as the end of a range or as its beginning.
func (b *LexBound) cut(end bool) ordered.Cut {
	switch {
	case b.Kind == LexLowest:
		return ordered.Start
	case b.Kind == LexHighest:
		return ordered.End
	case (b.Kind == LexClosed) == end:
		return ordered.AfterMember(b.Member)
	}
	return ordered.BeforeMember(b.Member)
}
