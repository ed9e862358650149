package expmap

import (
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
)

// benchmark runs a benchmark on an embedded engine with a map of one entry.
func benchmark(b *testing.B, o Options[string, string], call func(m *Map[string, string]) error) {
	b.Helper()
	c, err := ebb.Open(b.Context(), "mem://")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m, err := New(c, "m", o)
	if err == nil {
		err = m.Set(b.Context(), "key", "value", time.Hour)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := call(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, Options[string, string]{}, func(m *Map[string, string]) error {
		_, _, err := m.Get(b.Context(), "key")
		return err
	})
}

func BenchmarkSet(b *testing.B) {
	benchmark(b, Options[string, string]{}, func(m *Map[string, string]) error { return m.Set(b.Context(), "key", "value", time.Hour) })
}

func BenchmarkSetInAMapWithAnIdleTTL(b *testing.B) {
	benchmark(b, Options[string, string]{IdleTTL: time.Hour}, func(m *Map[string, string]) error {
		return m.Set(b.Context(), "key", "value", time.Hour)
	})
}

func BenchmarkSetThatEvicts(b *testing.B) {
	for _, e := range []Eviction{LRU, LFU} {
		b.Run(e.String(), func(b *testing.B) {
			n := 0
			benchmark(b, Options[string, string]{MaxLen: 1000, Eviction: e}, func(m *Map[string, string]) error {
				n++
				return m.Set(b.Context(), strconv.Itoa(n), "value", time.Hour)
			})
		})
	}
}

func BenchmarkGetInAMapThatEvicts(b *testing.B) {
	benchmark(b, Options[string, string]{MaxLen: 1000, Eviction: LRU}, func(m *Map[string, string]) error {
		_, _, err := m.Get(b.Context(), "key")
		return err
	})
}

func BenchmarkGetOfALocalValue(b *testing.B) {
	benchmark(b, Options[string, string]{Local: 10}, func(m *Map[string, string]) error {
		_, _, err := m.Get(b.Context(), "key")
		return err
	})
}
