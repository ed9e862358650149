package engine

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/geohash"
	"github.com/ebbdb/ebb/internal/ordered"
)

// A geo set is a sorted set whose scores encode coordinates; internal/geohash describes how. A
// search walks the few spans of scores that cover its shape.

// GeoOrder is the order of the members that a search finds.
type GeoOrder uint8

// These are the orders.
const (
	AnyOrder GeoOrder = iota // the order in which the search finds them
	Nearest                  // first
	Farthest                 // first
)

// GeoShape is a part of the earth's surface, which geohash.Circle or Box makes.
type GeoShape = geohash.Shape

// GeoQuery describes a search in a geo set.
type GeoQuery struct {
	Shape GeoShape
	Order GeoOrder
	Count int  // the greatest number of members to return; 0: all
	Any   bool // with Count: return the first members that the search finds, not the first in order
	Most  int  // the number of candidates after which the search gives up; 0: no limit
}

// GeoHit is a member that a search has found.
type GeoHit struct {
	Member   []byte
	Score    float64
	Distance float64 // metres from the centre of the shape
	seq      int     // the position in the order of the search
}

// GeoSearch returns the members inside a shape; ok is false if the search gave up after q.Most
// candidates. The result is valid until the next write or search. O(log n) for each of the 9 spans,
// and O(1) for each candidate; it allocates nothing when it finds few. A missing set has no
// members.
func (v *ZSetView) GeoSearch(q *GeoQuery) (hits []GeoHit, ok bool) {
	s := geoSearch{v: *v, q: *q, hits: v.tx.z.hits[:0]}
	v.tx.z.reset()
	var buf [geohash.MaxSpans]geohash.Span
	for _, span := range q.Shape.Cover(buf[:0]) {
		if ok = s.search(span); !ok || s.full {
			break
		}
	}
	s.finish()
	if v.tx.z.hits = s.hits; cap(s.hits) > keepScratch {
		v.tx.z.hits = nil
	}
	return s.hits, ok
}

// geoSearch is a running search. It holds copies of the caller's arguments, so that those can stay
// on the stack.
type geoSearch struct {
	v    ZSetView
	q    GeoQuery
	hits []GeoHit // if best: a heap with the worst hit on top
	seen int      // candidates
	seq  int
	full bool // the search has found enough
}

// best reports whether only the first Count hits in order are wanted.
func (s *geoSearch) best() bool { return s.q.Count > 0 && !s.q.Any && s.q.Order != AnyOrder }

// search examines the candidates of a span. It returns false if the search gives up.
func (s *geoSearch) search(span geohash.Span) bool {
	if s.v.large == nil {
		return s.searchSmall(span)
	}
	end := float64(span.Max)
	for w := s.v.large.WalkFrom(ordered.BeforeScore(float64(span.Min)), s.v.now); w.Next(); {
		score := w.Score()
		if score >= end {
			break
		}
		if s.seen++; s.q.Most > 0 && s.seen > s.q.Most {
			return false
		}
		if d, ok := s.q.Shape.Contains(geohash.Decode(uint64(score))); ok && s.wanted(d) {
			if s.add(w.Member(), score, d); s.full {
				break
			}
		}
	}
	return true
}

func (s *geoSearch) searchSmall(span geohash.Span) bool {
	if s.v.small == nil {
		return true
	}
	end := float64(span.Max)
	for it := s.v.small.SeekScore(float64(span.Min), false, s.v.now); it.Next(); {
		score := it.Score()
		if score >= end {
			break
		}
		if d, ok := s.q.Shape.Contains(geohash.Decode(uint64(score))); ok && s.wanted(d) {
			if s.add(s.v.tx.z.keep(it.Key()), score, d); s.full {
				break
			}
		}
	}
	return true
}

// wanted reports whether a hit at this distance is among the best so far.
func (s *geoSearch) wanted(distance float64) bool {
	if !s.best() || len(s.hits) < s.q.Count {
		return true
	}
	if s.q.Order == Farthest {
		return distance > s.hits[0].Distance
	}
	return distance < s.hits[0].Distance
}

// add adds a hit to the result.
func (s *geoSearch) add(member []byte, score, distance float64) {
	s.seq++
	h := GeoHit{member, score, distance, s.seq}
	switch {
	case !s.best():
		s.hits = append(s.hits, h)
		s.full = s.q.Any && len(s.hits) == s.q.Count
	case len(s.hits) < s.q.Count:
		s.hits = append(s.hits, h)
		s.up(len(s.hits) - 1)
	default:
		s.hits[0] = h
		s.down(0)
	}
}

// nearest and farthest compare hits by distance, and hits at the same distance by the order of the
// search.
func nearest(a, b GeoHit) int {
	if a.Distance == b.Distance {
		return a.seq - b.seq
	}
	return cmp.Compare(a.Distance, b.Distance)
}

func farthest(a, b GeoHit) int {
	if a.Distance == b.Distance {
		return a.seq - b.seq
	}
	return cmp.Compare(b.Distance, a.Distance)
}

// after reports whether a comes after b in the order of the query.
func (s *geoSearch) after(a, b *GeoHit) bool {
	if s.q.Order == Farthest {
		return farthest(*a, *b) > 0
	}
	return nearest(*a, *b) > 0
}

func (s *geoSearch) up(i int) {
	for h := s.hits; i > 0 && s.after(&h[i], &h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (s *geoSearch) down(i int) {
	h := s.hits
	for {
		worst := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h); k++ {
			if s.after(&h[k], &h[worst]) {
				worst = k
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

// finish sorts the hits.
func (s *geoSearch) finish() {
	switch s.q.Order {
	case Nearest:
		slices.SortFunc(s.hits, nearest)
	case Farthest:
		slices.SortFunc(s.hits, farthest)
	}
	if s.q.Count > 0 && len(s.hits) > s.q.Count {
		s.hits = s.hits[:s.q.Count]
	}
}

// GeoStore stores hits under a key, and replaces any value of the key. The value is a geo set; if unit is
// above 0, it is a sorted set whose scores are distances in units of unit metres. Without hits, GeoStore
// deletes the key. Errors: ErrFull.
func (tx *Tx) GeoStore(dst []byte, hits []GeoHit, unit float64, event string) error {
	items := tx.z.items[:0]
	for _, h := range hits {
		if unit > 0 {
			h.Score = h.Distance / unit
		}
		items = append(items, Scored{h.Score, h.Member})
	}
	slices.SortFunc(items, compareScored)
	if tx.z.items = items; cap(items) > keepScratch {
		tx.z.items = nil
	}
	return tx.storeZSet(dst, items, event)
}
