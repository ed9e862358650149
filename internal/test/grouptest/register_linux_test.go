package grouptest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
)

// op is an operation on a register. Each write has a unique value; the register is 0 before the first write.
type op struct {
	write    bool
	value    int64
	from, to int64 // the time of the request and of the reply
}

// never is the end of a write whose outcome is uncertain: it may take effect at any time after it began.
const never = math.MaxInt64

// zone holds the operations with one value: its write, and the reads that returned it. If first < last, the register
// had the value from first to last; otherwise a single instant between last and first explains all of them.
type zone struct {
	value       int64
	first, last int64 // the earliest end and the latest beginning of these operations
	written     int64 // the beginning of the write
}

// against returns the reasons, in words, for which the history of a register is not linearizable; none if it is. It
// implements the test of Gibbons and Korach (Testing shared memories, 1997) for writes with unique values: the spans in
// which the register must have had two values do not overlap, and no span contains the whole zone of a different value.
func against(history []op) (all []string) {
	zones := map[int64]*zone{0: {first: math.MinInt64, last: math.MinInt64, written: math.MinInt64}}
	for _, o := range history {
		if o.write {
			zones[o.value] = &zone{value: o.value, first: o.to, last: o.from, written: o.from}
		}
	}
	read := map[int64]bool{}
	for _, o := range history {
		if o.write {
			continue
		}
		z := zones[o.value]
		if z == nil || o.to < z.written {
			all = append(all, fmt.Sprintf("a read returns %d before a client writes it", o.value))
			continue
		}
		read[o.value] = true
		z.first, z.last = min(z.first, o.to), max(z.last, o.from)
	}
	var spans, points []*zone
	for _, z := range zones {
		switch {
		case z.first == never && !read[z.value]: // the write may never have taken effect
		case z.first < z.last:
			spans = append(spans, z)
		default:
			points = append(points, z)
		}
	}
	slices.SortFunc(spans, func(a, b *zone) int { return cmp.Compare(a.first, b.first) })
	var longest *zone
	for _, z := range spans {
		if longest != nil && z.first < longest.last {
			all = append(all, fmt.Sprintf("it had %d from %d to %d, and %d from %d to %d", longest.value, longest.first, longest.last,
				z.value, z.first, z.last))
		}
		if longest == nil || z.last > longest.last {
			longest = z
		}
	}
	for _, p := range points {
		i, _ := slices.BinarySearchFunc(spans, p.last, func(z *zone, at int64) int { return cmp.Compare(z.first, at) })
		for _, z := range spans[:i] {
			if z.first < p.last && p.first < z.last {
				all = append(all, fmt.Sprintf("it had %d from %d to %d, and %d was there within %d to %d", z.value, z.first, z.last,
					p.value, p.last, p.first))
				break
			}
		}
	}
	return all
}

func TestTheHistoryOfARegisterIsJudged(t *testing.T) {
	set := func(value, from, to int64) op { return op{true, value, from, to} }
	get := func(value, from, to int64) op { return op{false, value, from, to} }
	for name, x := range map[string]struct {
		ops  []op
		want int
	}{
		"nothing was written":                       {[]op{get(0, 1, 2)}, 0},
		"a read follows a write":                    {[]op{set(1, 1, 2), get(1, 3, 4)}, 0},
		"a read beside a write sees either":         {[]op{set(1, 1, 9), get(0, 2, 3), get(1, 4, 5)}, 0},
		"a write was lost":                          {[]op{set(1, 1, 2), get(0, 3, 4)}, 1},
		"a write was lost behind another":           {[]op{set(1, 1, 2), set(2, 3, 4), get(1, 5, 6)}, 1},
		"a read goes back":                          {[]op{set(1, 1, 9), get(1, 2, 3), get(0, 4, 5)}, 1},
		"two reads disagree":                        {[]op{set(1, 1, 2), set(2, 1, 2), get(1, 3, 4), get(2, 5, 6)}, 1},
		"two writes at once":                        {[]op{set(1, 1, 4), set(2, 2, 3), get(1, 5, 6)}, 0},
		"a write without an answer was not done":    {[]op{set(1, 1, never), get(0, 3, 4)}, 0},
		"it was done late":                          {[]op{set(1, 1, never), get(0, 3, 4), get(1, 5, 6)}, 0},
		"it was done behind one that came after it": {[]op{set(1, 1, never), set(2, 2, 3), get(2, 4, 5), get(1, 6, 7)}, 0},
		"it was done twice":                         {[]op{set(1, 1, never), get(1, 2, 3), set(2, 4, 5), get(1, 6, 7)}, 1},
		"a value from nowhere":                      {[]op{get(1, 3, 4)}, 1},
		"a read of what is written later":           {[]op{get(1, 1, 2), set(1, 3, 4)}, 1},
	} {
		if got := against(x.ops); len(got) != x.want {
			t.Errorf("%s: %q, want %d", name, got, x.want)
		}
	}
}
