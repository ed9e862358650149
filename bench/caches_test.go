package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/jellydator/ttlcache/v3"
	"github.com/maypok86/otter/v2"
)

// A cache is what Go programs take for values with a deadline in the process. get reports whether there is a value.
type cache struct {
	name string
	open func(tb testing.TB, keys int) (get func(key string) bool, set func(key string))
}

var caches = []cache{{"ebb", openConn}, {"otter", openOtter}, {"ristretto", openRistretto}, {"ttlcache", openTTLCache}}

func openConn(tb testing.TB, _ int) (func(string) bool, func(string)) {
	c, ctx := openMem(tb), context.Background()
	return func(key string) bool {
			v, err := c.Get(ctx, key)
			return err == nil && len(v) == len(embeddedValue)
		}, func(key string) {
			check(tb, c.SetTTL(ctx, key, embeddedValue, embeddedLife))
		}
}

func openOtter(_ testing.TB, keys int) (func(string) bool, func(string)) {
	c := otter.Must(&otter.Options[string, string]{MaximumSize: 2 * keys,
		ExpiryCalculator: otter.ExpiryWriting[string, string](embeddedLife)})
	return func(key string) bool { _, ok := c.GetIfPresent(key); return ok }, func(key string) { c.Set(key, embeddedValue) }
}

// openRistretto has the options that its page recommends. A Set may be dropped, so that some keys are missing.
func openRistretto(tb testing.TB, keys int) (func(string) bool, func(string)) {
	c, err := ristretto.NewCache(&ristretto.Config[string, string]{NumCounters: 10 * int64(keys), MaxCost: 2 * int64(keys), BufferItems: 64,
		IgnoreInternalCost: true})
	check(tb, err)
	tb.Cleanup(c.Close)
	return func(key string) bool { _, ok := c.Get(key); return ok }, func(key string) { c.SetWithTTL(key, embeddedValue, 1, embeddedLife) }
}

func openTTLCache(testing.TB, int) (func(string) bool, func(string)) {
	c := ttlcache.New(ttlcache.WithTTL[string, string](embeddedLife), ttlcache.WithDisableTouchOnHit[string, string]())
	return func(key string) bool { return c.Get(key) != nil }, func(key string) { c.Set(key, embeddedValue, ttlcache.DefaultTTL) }
}

// BenchmarkCaches compares Conn with libraries for caches, with 100,000, 1 M and 10 M keys, one and two goroutines, in some five minutes
// and 6 GB:
//
//	go test -run - -bench Caches -benchtime 1000000x -timeout 30m .
//
// get and set use the keys of one array. mixed makes its keys, as programs do, and every fifth call is a set: the collector runs
// meanwhile, and its share of the CPU time and its longest pause are printed. collect is one collection with the keys in memory.
func BenchmarkCaches(b *testing.B) {
	for _, keys := range []int{100_000, 1_000_000, 10_000_000} {
		names := make([]string, keys)
		for i := range names {
			names[i] = keyNumber(i)
		}
		for _, c := range caches {
			b.Run(fmt.Sprintf("keys=%d/%s", keys, c.name), func(b *testing.B) {
				get, set := c.open(b, keys)
				for _, name := range names {
					set(name)
				}
				time.Sleep(100 * time.Millisecond) // for what the library does in the background
				measureCache(b, names, get, set)
			})
			debug.FreeOSMemory()
		}
	}
}

func measureCache(b *testing.B, names []string, get func(string) bool, set func(string)) {
	for _, kind := range []struct {
		name string
		do   op
	}{
		{"get", func(n int) { get(names[n]) }},
		{"set", func(n int) { set(names[n]) }},
		{"mixed", func(n int) {
			if key := keyNumber(n); n%5 == 0 {
				set(key)
			} else {
				get(key)
			}
		}},
	} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", kind.name, goroutines), func(b *testing.B) {
				runtime.GC()
				b.ReportAllocs()
				b.ResetTimer()
				before, gc, pauses := cpuTime(), collectorTime(), pauseCounts()
				work(kind.do, len(names), goroutines, b.N, 2)
				used := cpuTime() - before
				b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(100*float64(collectorTime()-gc)/float64(used), "collector-%")
				b.ReportMetric(longestPause(pauses)*1e6, "pause-us")
			})
		}
	}
	b.Run("collect", func(b *testing.B) {
		before, pauses := cpuTime(), pauseCounts()
		runtime.GC()
		b.ReportMetric(0, "ns/op") // of no use
		b.ReportMetric((cpuTime()-before).Seconds()*1e3, "cpu-ms")
		b.ReportMetric(longestPause(pauses)*1e6, "pause-us")
	})
	found := 0
	for _, name := range names {
		if get(name) {
			found++
		}
	}
	if found < len(names)/2 {
		b.Errorf("%d of %d keys are there", found, len(names))
	}
}

// collectorTime returns the CPU time of the collector without that of idle processors, as of the end of its last cycle. The runtime counts
// what its workers were given: the figure is right on a machine that does nothing else.
func collectorTime() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * 1e9)
}

func pauseHistogram() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

func pauseCounts() []uint64 { return append([]uint64(nil), pauseHistogram().Counts...) }

// longestPause returns the longest pause in seconds since the counts were before: the upper end of the histogram's bucket.
func longestPause(before []uint64) (longest float64) {
	h := pauseHistogram()
	for i, n := range h.Counts {
		if n > before[i] {
			if longest = h.Buckets[i+1]; math.IsInf(longest, 1) {
				longest = h.Buckets[i]
			}
		}
	}
	return longest
}
