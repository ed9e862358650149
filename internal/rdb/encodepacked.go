package rdb

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/packed"
)

// Packed appends a small hash or sorted set as a whole, in the bytes that the calls for its items give. It appends nothing and
// returns false if they make no packed container, or an item has a deadline.
func (e *Encoder) Packed(p packed.Packed) bool {
	t := TypeHashListpack
	if p.Kind() == packed.KindZSet {
		t = TypeZSetListpack
	}
	if p.Timed() > 0 || p.Count() > smallItems {
		return false
	}
	e.pack.reset()
	cells := p.Cells()
	e.pack.b, e.pack.n = cells.AppendListpack(e.pack.b, math.MaxInt, smallBytes)
	if cells.More() {
		return false
	}
	e.begin(t)
	e.string(e.pack.finish())
	return true
}

// Elements appends a list's next elements, which have no deadlines. It does the work of Element for each.
func (e *Encoder) Elements(cells packed.Cells) {
	for cells.More() {
		n := 0
		e.pack.b, n = cells.AppendListpack(e.pack.b, nodeBytes, math.MaxInt32)
		if e.pack.n += n; cells.More() {
			e.listNode()
		}
	}
}

// IntSet appends a set of integers, in the bytes that Member for each gives.
func (e *Encoder) IntSet(s packed.IntSet) {
	n := s.Len()
	if n > smallInts {
		e.BeginSet(n)
		for i := range n {
			e.Member(strconv.AppendInt(e.nums[first][:0], s.At(i), 10))
		}
		e.EndSet()
		return
	}
	e.begin(TypeSetIntset)
	e.pack.b = s.AppendRedis(e.pack.b[:0])
	e.string(e.pack.b)
}
