package ordered

import (
	"bytes"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// Cut is a position between two entries of the order, where a range begins or ends. The zero Cut is
// Start.
type Cut struct {
	kind   cutKind
	score  float64
	member []byte
	after  bool
}

type cutKind uint8

const (
	atStart cutKind = iota
	atEnd
	atScore
	atMember
)

var (
	Start = Cut{}            // before everything
	End   = Cut{kind: atEnd} // after everything
)

// BeforeScore is the cut before all members of a score: a range from it has
// score as its inclusive minimum.
func BeforeScore(score float64) Cut { return Cut{kind: atScore, score: score} }

// AfterScore is the cut after all members of a score.
func AfterScore(score float64) Cut { return Cut{kind: atScore, score: score, after: true} }

// BeforeMember is the cut before a member, which need not exist, in a set whose scores are all
// equal. In any other set it is a cut among the members with the lowest score.
func BeforeMember(member []byte) Cut { return Cut{kind: atMember, member: member} }

// AfterMember is the cut after a member, under the terms of BeforeMember.
func AfterMember(member []byte) Cut { return Cut{kind: atMember, member: member, after: true} }

// Rank returns the number of living members before a living member. O(log n),
// and O(due).
func (s *Set) Rank(member []byte, now int64) (rank int, ok bool) {
	ref, ok := s.dict.Find(member)
	if !ok || !s.dict.Alive(ref, now) {
		return 0, false
	}
	p := place{Probe: s.probe(ref)}
	return s.tree.Rank(p.Probe) - s.dueBefore(p, now), true
}

// ByRank returns the living member that has rank living members before it.
// O(log n), and O(due log n).
func (s *Set) ByRank(rank int, now int64) (Entry, bool) {
	if rank < 0 || rank >= s.Len(now) {
		return Entry{}, false
	}
	_, ref := s.tree.At(s.raw(rank, now))
	return entryOf(s.dict.Item(ref)), true
}

// Position returns the number of living members before a cut: the rank of the
// first one after it. O(log n), and O(due).
func (s *Set) Position(c Cut, now int64) int {
	return s.index(c) - s.dueBefore(s.place(c), now)
}

// place is a cut as a position in the tree.
type place struct {
	btree.Probe
	after bool // after the entry at the probe, not before it
}

func (s *Set) place(c Cut) place {
	side := int8(-1)
	if c.after {
		side = +1
	}
	switch c.kind {
	case atStart:
		return place{Probe: btree.Probe{Side: -1}}
	case atEnd:
		return place{Probe: btree.Probe{Key: math.MaxUint64, Side: +1}}
	case atScore:
		return place{Probe: btree.Probe{Key: sortable(c.score), Side: side}}
	}
	key, _, _ := s.tree.First()
	return place{Probe: btree.Probe{Key: key, Bytes: c.member}, after: c.after}
}

// index returns the number of entries before a cut, dead ones included.
func (s *Set) index(c Cut) int {
	p := s.place(c)
	i := s.tree.Rank(p.Probe)
	if p.after && i < s.tree.Len() {
		if key, ref := s.tree.At(i); key == p.Key && bytes.Equal(s.dict.Key(ref), p.Bytes) {
			i++
		}
	}
	return i
}

// dueBefore returns the number of dead entries before a place. O(due).
func (s *Set) dueBefore(p place, now int64) (n int) {
	s.dict.EachDue(now, func(ref uint32) bool {
		if s.before(ref, p) {
			n++
		}
		return true
	})
	return n
}

// before reports whether an item's entry comes before a place.
func (s *Set) before(ref uint32, p place) bool {
	it := s.dict.Item(ref)
	key := sortable(decode(it.Value))
	switch {
	case key != p.Key:
		return key < p.Key
	case p.Side != 0:
		return p.Side > 0
	}
	order := bytes.Compare(it.Key, p.Bytes)
	return order < 0 || order == 0 && p.after
}

// raw converts a rank among the living members, 0 to Len, to one among all entries. O(due log n).
func (s *Set) raw(rank int, now int64) int {
	due := s.dict.Due(now)
	if due == 0 {
		return rank
	}
	dead := make([]int, 0, due)
	s.dict.EachDue(now, func(ref uint32) bool {
		dead = append(dead, s.tree.Rank(s.probe(ref)))
		return true
	})
	slices.Sort(dead)
	for _, at := range dead {
		if at > rank {
			break
		}
		rank++
	}
	return rank
}
