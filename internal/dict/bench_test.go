package dict_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

const million = 1 << 20

// key11 writes the i-th key of 11 bytes, in an order without order.
func key11(b []byte, i int) []byte {
	return fmt.Appendf(b[:0], "f%010d", uint32(i)*2654435761)
}

// fill puts n items of 11-byte keys into a new dict.
func fill(tb testing.TB, n, valueSize int, deadline func(i int) int64) (*dict.Dict, *chunktest.Memory) {
	mem := &chunktest.Memory{}
	d := dict.New(dict.Config{Memory: mem, Seed: maphash.MakeSeed(), ValueSize: valueSize})
	value := make([]byte, 16)
	if valueSize != dict.Variable {
		value = value[:valueSize]
	}
	var b []byte
	for i := range n {
		b = key11(b, i)
		if _, err := d.Put(b, value, deadline(i), 0); err != nil {
			tb.Fatal(err)
		}
	}
	return d, mem
}

func never(int) int64       { return 0 }
func shuffled(i int) int64  { return int64(uint32(i)*2654435761) + 1 }
func ascending(i int) int64 { return int64(i) + 1 }

func TestMemoryPerItemStaysWithinItsBudget(t *testing.T) {
	n := 50_000
	set, _ := fill(t, n, 0, never)
	hash, _ := fill(t, n, dict.Variable, never)
	for _, c := range []struct {
		name   string
		dict   *dict.Dict
		budget float64
	}{
		{"set member of 11 bytes", set, 27},
		{"hash field of 11 bytes, value of 16", hash, 52},
	} {
		if per := float64(c.dict.Size()) / float64(n); per > c.budget {
			t.Errorf("%s: %.1f bytes, budget %.0f", c.name, per, c.budget)
		}
	}
	for name, deadline := range map[string]func(int) int64{"shuffled": shuffled, "ascending": ascending} {
		dated, _ := fill(t, n, dict.Variable, deadline)
		if per := float64(dated.Size()-hash.Size()) / float64(n); per > 20 {
			t.Errorf("a deadline (%s): %.1f bytes, budget 20", name, per)
		}
	}
}

func BenchmarkBytesPerItem(b *testing.B) {
	for _, c := range []struct {
		name      string
		valueSize int
		deadline  func(int) int64
	}{
		{"set", 0, never}, {"set/deadlines", 0, shuffled},
		{"hash", dict.Variable, never}, {"hash/deadlines", dict.Variable, shuffled}, {"hash/ascending", dict.Variable, ascending},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				d, _ := fill(b, million, c.valueSize, c.deadline)
				size = d.Size()
			}
			b.ReportMetric(float64(size)/million, "B/item")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/item")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	d, _ := fill(b, million, dict.Variable, never)
	var key []byte
	for i := 0; b.Loop(); i++ {
		key = key11(key, i&(million-1))
		if _, ok := d.Get(key, 0); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkOverwrite(b *testing.B) {
	d, _ := fill(b, million, dict.Variable, never)
	var key []byte
	value := make([]byte, 16)
	for i := 0; b.Loop(); i++ {
		key = key11(key, i&(million-1))
		binary.LittleEndian.PutUint64(value, uint64(i))
		if _, err := d.Set(key, value, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInsertAndDelete(b *testing.B) {
	d, _ := fill(b, million, dict.Variable, never)
	var key []byte
	value := make([]byte, 16)
	for i := 0; b.Loop(); i++ {
		key = key11(key, i)
		d.Delete(key, 0)
		key = key11(key, i+million)
		if _, err := d.Set(key, value, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSetDeadline(b *testing.B) {
	d, _ := fill(b, million, dict.Variable, shuffled)
	var key []byte
	for i := 0; b.Loop(); i++ {
		key = key11(key, i&(million-1))
		if ok, err := d.SetDeadline(key, shuffled(i+7), 0); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkKeyOnly measures the time that the other benchmarks spend on making keys.
func BenchmarkKeyOnly(b *testing.B) {
	var key []byte
	for i := 0; b.Loop(); i++ {
		key = key11(key, i)
	}
}

func BenchmarkReap(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		d, _ := fill(b, million, dict.Variable, shuffled)
		b.StartTimer()
		d.Reap(1<<40, million, func(dict.Item) {})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/item")
}
