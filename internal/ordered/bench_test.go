package ordered_test

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

const million = 1 << 20

func member11(b []byte, i int) []byte {
	return fmt.Appendf(b[:0], "m%010d", uint32(i)*2654435761)
}

func shuffled(i int) float64 { return float64(uint32(i) * 2246822519) }

// fill puts n members of 11 bytes with shuffled scores into a new set.
func fill(tb testing.TB, n int) *ordered.Set {
	s := ordered.New(&chunktest.Memory{}, maphash.MakeSeed())
	var b []byte
	for i := range n {
		b = member11(b, i)
		if _, err := s.Insert(b, shuffled(i), 0); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func TestMemoryPerMemberStaysWithinItsBudget(t *testing.T) {
	const n, budget = 100_000, 68
	if per := float64(fill(t, n).Size()) / n; per > budget {
		t.Errorf("a member of 11 bytes takes %.1f bytes, budget %d", per, budget)
	}
}

func BenchmarkInsert(b *testing.B) {
	size := 0
	for b.Loop() {
		size = fill(b, million).Size()
	}
	b.ReportMetric(float64(size)/million, "B/member")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/member")
}

func BenchmarkRank(b *testing.B) {
	s := fill(b, million)
	var member []byte
	for i := 0; b.Loop(); i++ {
		member = member11(member, i&(million-1))
		if _, ok := s.Rank(member, 0); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkByRank(b *testing.B) {
	s := fill(b, million)
	for i := 0; b.Loop(); i++ {
		if _, ok := s.ByRank(i*2654435761&(million-1), 0); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkRescore(b *testing.B) {
	s := fill(b, million)
	var member []byte
	for i := 0; b.Loop(); i++ {
		member = member11(member, i&(million-1))
		if _, err := s.Put(member, shuffled(i+77), ordered.Keep, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIter(b *testing.B) {
	s := fill(b, million)
	n := 0
	for b.Loop() {
		for range s.Iter(0) {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/member")
}
