package wheel

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/draw"
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
