package chunklist

import (
	"strconv"
	"testing"
)

func BenchmarkPushPop(b *testing.B) {
	l, _ := filled(10_000, func(i int) []byte { return strconv.AppendInt([]byte("elem"), int64(1_000_000+i), 10) })
	elem := []byte("elem1234567")
	b.Run("push+pop", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			l.PushBack(elem, 0)
			buf, _, _ = l.PopFront(buf[:0], 0)
		}
	})
	b.Run("push", func(b *testing.B) {
		b.ReportAllocs()
		l := New(&heap{}, Config{})
		for b.Loop() {
			l.PushBack(elem, 0)
		}
	})
}

// BenchmarkRange100 reads 100 elements as LRANGE does.
func BenchmarkRange100(b *testing.B) {
	const n = 1_000_000
	l, _ := filled(n, func(i int) []byte { return strconv.AppendInt([]byte("elem"), int64(1_000_000+i), 10) })
	for _, at := range []int{0, n / 2, n - 100} {
		b.Run(strconv.Itoa(at), func(b *testing.B) {
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				it, _ := l.Seek(at, 1)
				for k := 0; k < 100 && it.Next(); k++ {
					buf = it.Value().Append(buf)
				}
			}
		})
	}
}

func BenchmarkInsertInTheMiddle(b *testing.B) {
	l, _ := filled(100_000, func(i int) []byte { return strconv.AppendInt([]byte("elem"), int64(1_000_000+i), 10) })
	i := 0
	for b.Loop() {
		i = (i + 7919) % l.Stored()
		it, _ := l.Seek(i, 0)
		it.Next()
		l.InsertAfter(&it, []byte("elem1234567"), 0)
	}
}
