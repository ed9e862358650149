package engine

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// BenchmarkCollector reports the cost of the Go collector for a large store: its longest pause and its share
// of the CPU during a mixed load of reads, overwrites with new TTLs and values of 10 to 200 bytes. The load
// lasts for -benchtime (60s for the published figures); -keys sets the size.
func BenchmarkCollector(b *testing.B) {
	db := Open(Options{})
	defer db.Close()
	n := uint64(*benchKeys)
	val := make([]byte, 200)
	var key, buf []byte
	for i := range n {
		key = benchKey(key, i)
		if err := db.set(0, key, val[:32], time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	rng := rand.New(rand.NewPCG(1, 2))
	before := collector()
	var garbage [64][]byte
	for i := 0; b.Loop(); i++ {
		key = benchKey(key, rng.Uint64N(n))
		switch i % 4 {
		case 0:
			_ = db.set(0, key, val[:10+rng.IntN(190)], time.Duration(1+rng.IntN(3600))*time.Second)
		default:
			buf, _, _ = db.get(0, key, buf[:0])
			garbage[i%len(garbage)] = append([]byte(nil), buf...) // a caller that keeps the values that it reads
		}
	}
	after := collector()
	b.ReportMetric(after.longest*1e6, "us-longest-pause")
	b.ReportMetric(100*(after.gc-before.gc)/(after.total-before.total), "%-cpu-collecting")
	b.ReportMetric(after.cycles-before.cycles, "collections")
}

type collectorState struct{ gc, total, longest, cycles float64 }

func collector() collectorState {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(s)
	c := collectorState{gc: s[0].Value.Float64(), cycles: float64(s[3].Value.Uint64())}
	c.total = c.gc + s[1].Value.Float64()
	h := s[2].Value.Float64Histogram()
	for i, n := range h.Counts {
		if n > 0 && !math.IsInf(h.Buckets[i+1], 0) {
			c.longest = h.Buckets[i+1]
		}
	}
	return c
}
