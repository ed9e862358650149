package wheel

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// TestAHistogramIsASortUpToTheSlotsThatItsBoundsCut compares with a map, while time passes
// and entries move between the levels.
func TestAHistogramIsASortUpToTheSlotsThatItsBoundsCut(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{r: make(records, 400), held: map[uint32]int64{}, now: start}
		for ref := range m.r {
			if ref > 0 {
				m.free = append(m.free, uint32(ref))
			}
		}
		m.w = New(m.now, m.r)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, few := range []int{0, 7, 1000} {
					m.histogram(t, few)
				}
			},
			"add":     m.add,
			"addMany": m.addMany,
			"remove":  m.remove,
			"sync":    m.sync,
			"advance": m.advance,
		})
	})
}

func (m *model) histogram(t *rapid.T, few int) {
	var bounds []int64
	for range rapid.IntRange(1, 8).Draw(t, "bounds") {
		bounds = append(bounds, m.now+distance(t, "bound"))
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	got := make([]int64, len(bounds)+1)
	got[0] = 3 // it adds
	m.w.Histogram(bounds, got, few)
	got[0] -= 3

	late := int64(0) // the entries before a bound, by Histogram
	for i, b := range bounds {
		late += got[i]
		want, cut := int64(0), int64(0)
		for _, d := range m.held {
			if d < b || d < m.w.time {
				want++
			}
		}
		for l := range levels {
			if i := b >> (l * levelBits); i<<(l*levelBits) < b {
				cut += int64(m.w.levels[l].slots[i&ringMask].count)
			}
		}
		if few >= len(m.held) {
			cut = 0
		}
		if late < want-cut || late > want+cut {
			t.Fatalf("%d entries before %d, want %d, and the slots that it cuts hold %d; few is %d", late, b, want, cut, few)
		}
	}
	if all := late + got[len(bounds)]; all != int64(len(m.held)) {
		t.Fatalf("%d entries are counted, there are %d", all, len(m.held))
	}
}

// A storm has one deadline, and counts for one interval where a bound cuts its slot, with some others around it.
func TestAStormIsInOneIntervalOfAHistogram(t *testing.T) {
	const n, others = 5000, 12
	for off := range int64(300) {
		r := make(records, n+2*others+1)
		w := New(start, r)
		at, ref := start+30_000+off, uint32(0)
		add := func(count int, deadline func(i int64) int64) {
			for i := range int64(count) {
				ref++
				w.Add(ref, deadline(i))
			}
		}
		add(others, func(i int64) int64 { return at - 6 + i })
		add(n, func(int64) int64 { return at })
		add(2, func(i int64) int64 { return at - 20 + 7*i })
		counts := make([]int64, 3)
		w.Histogram([]int64{at, at + 1000}, counts, 64)
		if counts[1] < n || counts[0]+counts[1]+counts[2] != n+others+2 {
			t.Fatalf("%d before the storm, %d in its second, %d later; the storm of %d is at %d", counts[0], counts[1], counts[2], n, at)
		}
	}
}

// Many writes with one lifetime are not a storm: they count as spread evenly.
func TestASteadyLoadIsNoStormInAHistogram(t *testing.T) {
	const each, span = 50, 4000 // entries of a millisecond, and milliseconds
	r := make(records, each*span+1)
	w := New(start, r)
	for i := range int64(each * span) {
		w.Add(uint32(i+1), start+30_000+i/each)
	}
	for off := range int64(300) {
		counts := make([]int64, 4)
		b := start + 31_000 + off
		w.Histogram([]int64{b, b + 1000, b + 2000}, counts, 64)
		for i := range counts[1:3] {
			if n := counts[1+i]; n < 1000*each-2*each || n > 1000*each+2*each {
				t.Fatalf("%d in second %d, want %d", n, i, 1000*each)
			}
		}
	}
}

func BenchmarkHistogram(b *testing.B) {
	const n = 100_000
	r := make(records, n+1)
	w := New(start, r)
	for i := range n {
		w.Add(uint32(i+1), start+int64(i)*7919%(30*86_400_000))
	}
	bounds, counts := make([]int64, 0, 200), make([]int64, 201)
	for i := range int64(200) {
		bounds = append(bounds, start+1000*(i+1))
	}
	for b.Loop() {
		w.Histogram(bounds, counts, 64)
	}
}
