package packed

import (
	"fmt"
	"testing"
)

func hashOf(n int) Packed {
	p := New(nil, KindHash)
	for i := range n {
		e, _ := p.PutField(fmt.Appendf(nil, "field:%d", i), fmt.Appendf(nil, "value-%d", i), 0, 0)
		p = e.Apply(make([]byte, e.Size()))
	}
	return p
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{8, 128} {
		p, i := hashOf(n), 0
		var fields [][]byte
		for i := range n {
			fields = append(fields, fmt.Appendf(nil, "field:%d", i))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if at, ok := p.Find(fields[i%n], 1); !ok || p.Value(at).IsInt() {
					b.Fatal("lost")
				}
				i++
			}
		})
	}
}

func BenchmarkPutField(b *testing.B) {
	p := hashOf(8)
	room := make([]byte, len(p)+64)
	copy(room, p)
	p = Packed(room[:len(p)])
	field, values := []byte("field:5"), [][]byte{[]byte("short"), []byte("a longer value")}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		e, _ := p.PutField(field, values[i&1], 0, 1)
		p = e.Apply(room)
		i++
	}
}

func BenchmarkRange100(b *testing.B) {
	p := New(nil, KindList)
	for i := range 128 {
		e := p.PushBack(fmt.Appendf(nil, "elem%d", 1_000_000+i), 0)
		p = e.Apply(make([]byte, e.Size()))
	}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		it, _ := p.Seek(10, 1)
		for k := 0; k < 100 && it.Next(); k++ {
			buf = it.Key().Append(buf)
		}
	}
}
