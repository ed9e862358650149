package engine

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/ebbdb/ebb/internal/packed"
)

// ZOperation selects the members that ZCombine keeps.
type ZOperation uint8

// These are the operations.
const (
	ZUnion ZOperation = iota // the members of any set
	ZInter                   // the members of all sets
	ZDiff                    // the members of the first set that are in no other set
)

// Aggregate selects how the scores of a member in several sets are combined.
type Aggregate uint8

// These are the aggregates.
const (
	Sum Aggregate = iota
	Min
	Max
)

// ZCombination is an operation on sorted sets and sets. The members of sets have the score 1.
type ZCombination struct {
	Operation ZOperation
	Keys      [][]byte
	Weights   []float64 // the factor of each key's scores; nil: 1
	Aggregate Aggregate
}

// ZCombine returns the result of a combination in order. The slice and its members are valid until
// the next write. Expected O(n log n) for n members of all sets; ZInter and ZDiff cost O(n k), plus
// the sorting, for n members of the smallest, or the first, of k sets. Errors: ErrWrongType.
func (tx *Tx) ZCombine(c *ZCombination) ([]Scored, error) {
	sources, err := tx.zsources(c)
	if err != nil {
		return nil, err
	}
	items := tx.z.items[:0]
	switch c.Operation {
	case ZUnion:
		items = zunion(items, sources, c.Aggregate)
	case ZInter:
		items = zinter(items, sources, c.Aggregate)
	case ZDiff:
		items = zdiff(items, sources)
	}
	slices.SortFunc(items, compareScored)
	if tx.z.items = items; cap(items) > keepScratch {
		tx.z.items = nil
	}
	return items, nil
}

// ZCombineSize returns the number of members of all sets of a combination, which is its cost.
// Errors: ErrWrongType.
func (tx *Tx) ZCombineSize(keys [][]byte) (n int, err error) {
	for _, key := range keys {
		h := tx.find(key)
		switch {
		case h.r == nil:
		case h.r.Kind() != ZSet && h.r.Kind() != Set:
			return 0, ErrWrongType
		default:
			s := tx.zsource(&h, 1)
			n += s.len()
		}
	}
	return n, nil
}

// ZInterCard returns the number of members of an intersection, at most limit if limit is not 0. O(n
// k) for n members of the smallest of k sets. Errors: ErrWrongType.
func (tx *Tx) ZInterCard(keys [][]byte, limit int) (n int, err error) {
	sources, err := tx.zsources(&ZCombination{Operation: ZInter, Keys: keys})
	if err != nil {
		return 0, err
	}
	sources[0].each(func(m Scored) bool {
		if inAll(sources[1:], m.Member) {
			n++
		}
		return limit == 0 || n < limit
	})
	return n, nil
}

// ZCombineStore stores the result of a combination under a key, replaces any value of the key, and returns
// the number of members. If the result is empty, it deletes the key. Errors: ErrWrongType, ErrFull.
func (tx *Tx) ZCombineStore(dst []byte, c *ZCombination) (int, error) {
	items, err := tx.ZCombine(c)
	if err != nil {
		return 0, err
	}
	event := [...]string{"zunionstore", "zinterstore", "zdiffstore"}[c.Operation]
	return len(items), tx.storeZSet(dst, items, event)
}

// ZRangeStore stores a range of a sorted set under a key, replaces any value of the key, and returns the
// number of members. If the range is empty, it deletes the key. Errors: ErrWrongType, ErrFull.
func (tx *Tx) ZRangeStore(dst, src []byte, r *ZRange) (int, error) {
	v, err := tx.ZSet(src, true)
	if err != nil {
		return 0, err
	}
	tx.z.reset()
	items := tx.z.items[:0]
	for w := v.Range(r); w.Next(); {
		items = append(items, Scored{w.Score(), w.stable()})
	}
	if tx.z.items = items; cap(items) > keepScratch {
		tx.z.items = nil
	}
	if r.Rev {
		slices.Reverse(items)
	}
	return len(items), tx.storeZSet(dst, items, "zrangestore")
}

// stable returns the member as Member does, but valid until the next write or zscratch.reset.
func (w *ZWalk) stable() []byte {
	if !w.small {
		return w.large.Member()
	}
	return w.tx.z.keep(w.it.Key())
}

func compareScored(a, b Scored) int {
	if c := cmp.Compare(a.Score, b.Score); c != 0 && a.Score != b.Score { // 0 and -0 are equal
		return c
	}
	return bytes.Compare(a.Member, b.Member)
}

// zsource is a source of a combination: a sorted set or a set.
type zsource struct {
	z      ZSetView
	set    SetView
	isSet  bool
	weight float64
}

// zsources looks the sets of a combination up. For unions and intersections it sorts the sets by
// size, the smallest first. The order decides the last digits of sums of scores.
func (tx *Tx) zsources(c *ZCombination) ([]zsource, error) {
	tx.z.reset()
	sources := make([]zsource, len(c.Keys))
	for i, key := range c.Keys {
		h := tx.read(key)
		if h.r != nil && h.r.Kind() != ZSet && h.r.Kind() != Set {
			return nil, ErrWrongType
		}
		weight := 1.0
		if c.Weights != nil {
			weight = c.Weights[i]
		}
		sources[i] = tx.zsource(&h, weight)
	}
	if c.Operation != ZDiff {
		slices.SortStableFunc(sources, func(a, b zsource) int { return a.len() - b.len() })
	}
	return sources, nil
}

func (tx *Tx) zsource(h *hit, weight float64) zsource {
	if h.r != nil && h.r.Kind() == Set {
		return zsource{set: tx.viewSet(h), isSet: true, weight: weight}
	}
	return zsource{z: tx.viewZSet(h), weight: weight}
}

func (s *zsource) len() int {
	if s.isSet {
		return s.set.Len()
	}
	return s.z.Len()
}

// score returns a member's score without the weight.
func (s *zsource) score(member []byte) (score float64, ok bool) {
	if s.isSet {
		return 1, s.set.Has(member)
	}
	return s.z.Score(member)
}

// each visits the members with their scores until visit returns false. The
// members are valid until the next write.
func (s *zsource) each(visit func(Scored) bool) {
	if !s.isSet {
		for w := s.z.Range(&ZRange{Stop: -1}); w.Next() && visit(Scored{w.Score(), w.stable()}); {
		}
		return
	}
	z, stays := &s.set.tx.z, s.set.large != nil // the members of small sets may lie in scratch memory
	s.set.until(func(m []byte) bool {
		if !stays {
			m = z.copied(m)
		}
		return visit(Scored{1, m})
	})
}

// times multiplies a score by the weight; infinity times 0 is 0.
func (s *zsource) times(score float64) float64 {
	if score *= s.weight; math.IsNaN(score) {
		return 0
	}
	return score
}

func inAll(sources []zsource, member []byte) bool {
	for i := range sources {
		if _, ok := sources[i].score(member); !ok {
			return false
		}
	}
	return true
}

// with combines two scores; the sum of infinities of both signs is 0.
func (a Aggregate) with(x, y float64) float64 {
	switch {
	case a == Min && y < x, a == Max && y > x:
		return y
	case a != Sum:
		return x
	}
	if x += y; math.IsNaN(x) {
		return 0
	}
	return x
}

func zunion(items []Scored, sources []zsource, a Aggregate) []Scored {
	total, last := 0, 0 // last is the index of the first set, by size, that is not empty
	for i := range sources {
		if n := sources[i].len(); n > 0 {
			total += n
		} else {
			last = i + 1
		}
	}
	sources = sources[last:]
	items = slices.Grow(items, total)
	var places map[string]int
	if len(sources) > 1 {
		places = make(map[string]int, total)
	}
	for i := range sources {
		s := &sources[i]
		s.each(func(m Scored) bool {
			m.Score = s.times(m.Score)
			if places != nil {
				name := unsafe.String(unsafe.SliceData(m.Member), len(m.Member))
				if at, there := places[name]; there {
					items[at].Score = a.with(items[at].Score, m.Score)
					return true
				}
				places[name] = len(items)
			}
			items = append(items, m)
			return true
		})
	}
	return items
}

func zinter(items []Scored, sources []zsource, a Aggregate) []Scored {
	first := &sources[0]
	first.each(func(m Scored) bool {
		m.Score = first.times(m.Score)
		for i := range sources[1:] {
			s := &sources[1+i]
			score, ok := s.score(m.Member)
			if !ok {
				return true
			}
			m.Score = a.with(m.Score, score*s.weight)
		}
		items = append(items, m)
		return true
	})
	return items
}

func zdiff(items []Scored, sources []zsource) []Scored {
	sources[0].each(func(m Scored) bool {
		for i := range sources[1:] {
			if _, there := sources[1+i].score(m.Member); there {
				return true
			}
		}
		items = append(items, m)
		return true
	})
	return items
}

// storeZSet stores members, which are in order, under a key, and replaces any value of the key. Without
// members it deletes the key. The members may be in the old value.
func (tx *Tx) storeZSet(dst []byte, items []Scored, event string) error {
	if len(items) == 0 {
		tx.Del(dst)
		return nil
	}
	h := tx.find(dst)
	fx := tx.fx
	if h.r != nil {
		tx.emit("DEL", dst)
	}
	tx.emitScored(dst, items)
	var err error
	if l := tx.db.layout.Load(); len(items) <= min(l.ZSetEntries, packed.MaxItems) && longest(items) <= l.ZSetValue {
		err = tx.put(&h, dst, tx.packScored(items), spec{flags: uint8(ZSet)})
	} else {
		err = tx.storeTree(&h, dst, items)
	}
	if err != nil {
		tx.fx = fx
		return err
	}
	tx.changed(dst, EventZSet, event)
	return nil
}

func longest(items []Scored) (n int) {
	for i := range items {
		n = max(n, len(items[i].Member))
	}
	return n
}

// packScored makes an image of members in order. O(n).
func (tx *Tx) packScored(items []Scored) packed.Packed {
	p := packed.New(nil, packed.KindZSet)
	for _, m := range items {
		p = p.AppendScore(m.Member, smallScore(m.Score))
	}
	return p
}

func (tx *Tx) storeTree(h *hit, dst []byte, items []Scored) error {
	t := tx.newZSetTree()
	for _, m := range items {
		if err := t.Add(m.Member, m.Score, 0); err != nil {
			discard(t)
			return ErrFull
		}
	}
	sp := tx.makeSpace(h)
	handle := sp.addBox(nil, t)
	ref, r := sp.build(uint8(ZSet), dst, nil, handle)
	if r == nil {
		sp.dropExt(handle)
		return ErrFull
	}
	tx.place(h, ref, r, spec{})
	return nil
}

// emitScored logs the addition of members.
func (tx *Tx) emitScored(key []byte, items []Scored) {
	if !tx.db.logging.Load() {
		return
	}
	for part := range slices.Chunk(items, effectItems) {
		var z zscratch // tx.z may hold members
		for _, m := range part {
			z.number(m.Score)
			z.args = append(z.args, m.Member)
		}
		tx.emitItems("ZADD", key, z.args)
	}
}
