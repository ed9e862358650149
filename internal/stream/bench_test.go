package stream

import (
	"fmt"
	"testing"
)

// Bytes an entry takes, and the time to append, read and acknowledge one.
func BenchmarkAppend(b *testing.B) {
	h := &heap{}
	s := New(h)
	pairs := [][]byte{[]byte("order"), []byte("000000001"), []byte("state"), []byte("unpaid")}
	id := ID{Ms: 1700000000000}
	b.ReportAllocs()
	for i := range b.N {
		if i%8 == 0 {
			id = ID{Ms: id.Ms + 1}
		} else {
			id.Seq++
		}
		if err := s.Append(id, pairs, Node{4096, 100}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Size())/float64(b.N), "bytes/entry")
}

func BenchmarkIterate(b *testing.B) {
	s := filled(b, 100000)
	b.ResetTimer()
	n := 0
	for range b.N {
		it := s.Iter(ID{uint64(n % 90000), 0})
		for range 10 {
			if it.Next() {
				for range it.Fields() {
					it.Field()
				}
			}
		}
		n += 7919
	}
}

func BenchmarkDeliverAndAcknowledge(b *testing.B) {
	s := filled(b, 1)
	g := s.AddGroup([]byte("g"), ID{}, 0)
	c, _ := g.AddConsumer([]byte("c"), 0)
	for i := range 10000 {
		_ = g.Put(Pending{ID: ID{uint64(i), 0}, Consumer: c})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		_ = g.Put(Pending{ID: ID{uint64(10000 + i), 0}, Time: 1, Count: 1, Consumer: c})
		g.Remove(ID{uint64(i), 0})
	}
}

func filled(b *testing.B, n int) *Stream {
	s := New(&heap{})
	for i := range n {
		pairs := [][]byte{[]byte("f"), fmt.Appendf(nil, "%011d", i)}
		if err := s.Append(ID{uint64(i + 1), 0}, pairs, Node{4096, 100}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}
