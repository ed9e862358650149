package bench

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// The embedded engine beside what a Go program would take instead, in one process:
//
//	go test -run - -bench Embedded -cpu 1,2 .
//	go test -run - -bench Ratios -benchtime 1x .
//
// Times are CPU time (getrusage), the collector's included: other programs on the machine disturb it least.

const (
	embeddedKeys   = 1_000_000
	embeddedShort  = 100_000 // limiters
	embeddedValue  = "a value of thirty-two characters"
	embeddedLife   = time.Hour
	embeddedPeriod = 1000 // requests in a second
)

var embeddedNames = sync.OnceValue(func() []string {
	all := make([]string, embeddedKeys)
	for i := range all {
		all[i] = keyNumber(i)
	}
	return all
})

func keyNumber(i int) string { return "key:" + strconv.Itoa(i) }

// An op is done by one goroutine for the n-th of the keys.
type op func(n int)

// row is one kind of work: ours, and what a program would take instead. What a map costs is compared with what the same calls of Conn do.
type row struct {
	name   string
	keys   int
	aim    float64 // the most CPU time of ours, in times of theirs; 0: there is no other
	ours   func(tb testing.TB) op
	theirs func(tb testing.TB) op
}

var rows = []row{
	{"get", embeddedKeys, 1.15, oursGet(sharedKey), ottersGet(sharedKey)},
	{"get-fresh-keys", embeddedKeys, 1.0, oursGet(keyNumber), ottersGet(keyNumber)},
	{"append-get", embeddedKeys, 1.15, oursAppendGet, ottersGet(sharedKey)},
	{"set-ttl", embeddedKeys, 1.1, oursSet, ottersSet},
	{"map-get", embeddedKeys, 1.3, oursMapGet, oursGet(sharedKey)},
	{"map-set", embeddedKeys, 1.3, oursMapSet, oursSet},
	{"limit", embeddedShort, 1.4, oursLimit, mapOfLimiters},
	{"lock", embeddedShort, 0, oursLock, nil},
	{"push", embeddedShort, 0, oursPush, nil},
}

// sharedKey returns a key that all calls have in common: what the caches store is the same string.
func sharedKey(n int) string { return embeddedNames()[n] }

func check(tb testing.TB, err error) {
	if err != nil {
		tb.Fatal(err)
	}
}

func openMem(tb testing.TB) *ebb.Conn {
	c, err := ebb.Open(context.Background(), "mem://")
	check(tb, err)
	tb.Cleanup(func() { check(tb, c.Close()) })
	return c
}

func filledMem(tb testing.TB) *ebb.Conn {
	c := openMem(tb)
	for _, k := range embeddedNames() {
		check(tb, c.SetTTL(context.Background(), k, embeddedValue, embeddedLife))
	}
	return c
}

func oursGet(key func(int) string) func(tb testing.TB) op {
	return func(tb testing.TB) op {
		c, ctx := filledMem(tb), context.Background()
		return func(n int) {
			if v, err := c.Get(ctx, key(n)); err != nil || len(v) != len(embeddedValue) {
				tb.Error(v, err)
			}
		}
	}
}

func oursAppendGet(tb testing.TB) op {
	c, ctx := filledMem(tb), context.Background()
	bufs := sync.Pool{New: func() any { b := make([]byte, 0, 64); return &b }}
	return func(n int) {
		b := bufs.Get().(*[]byte)
		if v, err := c.AppendGet(ctx, *b, sharedKey(n)); err != nil || len(v) != len(embeddedValue) {
			tb.Error(v, err)
		}
		bufs.Put(b)
	}
}

func oursSet(tb testing.TB) op {
	c, ctx := filledMem(tb), context.Background()
	return func(n int) { check(tb, c.SetTTL(ctx, sharedKey(n), embeddedValue, embeddedLife)) }
}

func filledMap(tb testing.TB) *expmap.Map[string, string] {
	m, err := expmap.New[string, string](openMem(tb), "sessions")
	check(tb, err)
	for _, k := range embeddedNames() {
		check(tb, m.Set(context.Background(), k, embeddedValue, embeddedLife))
	}
	return m
}

func oursMapGet(tb testing.TB) op {
	m, ctx := filledMap(tb), context.Background()
	return func(n int) {
		if v, ok, err := m.Get(ctx, sharedKey(n)); err != nil || !ok || len(v) != len(embeddedValue) {
			tb.Error(v, ok, err)
		}
	}
}

func oursMapSet(tb testing.TB) op {
	m, ctx := filledMap(tb), context.Background()
	return func(n int) { check(tb, m.Set(ctx, sharedKey(n), embeddedValue, embeddedLife)) }
}

func filledOtter() *otter.Cache[string, string] {
	c := otter.Must(&otter.Options[string, string]{MaximumSize: 2 * embeddedKeys,
		ExpiryCalculator: otter.ExpiryWriting[string, string](embeddedLife)})
	for _, k := range embeddedNames() {
		c.Set(k, embeddedValue)
	}
	return c
}

func ottersGet(key func(int) string) func(tb testing.TB) op {
	return func(tb testing.TB) op {
		c := filledOtter()
		return func(n int) {
			if v, ok := c.GetIfPresent(key(n)); !ok || len(v) != len(embeddedValue) {
				tb.Error(v, ok)
			}
		}
	}
}

func ottersSet(testing.TB) op {
	c := filledOtter()
	return func(n int) { c.Set(sharedKey(n), embeddedValue) }
}

func oursLimit(tb testing.TB) op {
	l, err := limit.New(openMem(tb), "api", limit.PerSecond(embeddedPeriod), limit.FailClosed)
	check(tb, err)
	ctx := context.Background()
	return func(n int) {
		if r, err := l.Allow(ctx, sharedKey(n)); err != nil || !r.Allowed {
			tb.Error(r, err)
		}
	}
}

func oursLock(tb testing.TB) op {
	c, ctx := openMem(tb), context.Background()
	return func(n int) {
		lease, err := lock.Acquire(ctx, c, sharedKey(n), time.Minute)
		check(tb, err)
		check(tb, lease.Release(ctx))
	}
}

func oursPush(tb testing.TB) op {
	q, err := queue.New[string](openMem(tb), "jobs")
	check(tb, err)
	ctx := context.Background()
	return func(int) {
		_, err := q.Push(ctx, embeddedValue)
		check(tb, err)
	}
}

func mapOfLimiters(tb testing.TB) op {
	var all sync.Map
	return func(n int) {
		key := sharedKey(n)
		l, ok := all.Load(key)
		if !ok {
			l, _ = all.LoadOrStore(key, rate.NewLimiter(embeddedPeriod, embeddedPeriod))
		}
		if !l.(*rate.Limiter).Allow() {
			tb.Error("refused")
		}
	}
}

// work lets goroutines do ops on keys drawn at random.
func work(do op, keys, goroutines, ops int, seed uint32) {
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			x := seed + uint32(g)*7919
			for range ops / goroutines {
				x = x*1664525 + 1013904223
				do(int(uint64(x) * uint64(keys) >> 32))
			}
		})
	}
	all.Wait()
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEmbedded(b *testing.B) {
	for _, r := range rows {
		for who, open := range map[string]func(testing.TB) op{"ebb": r.ours, "other": r.theirs} {
			if open == nil {
				continue
			}
			b.Run(r.name+"/"+who, func(b *testing.B) {
				do := open(b)
				goroutines := runtime.GOMAXPROCS(0)
				work(do, r.keys, goroutines, r.keys, 1)
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime()
				work(do, r.keys, goroutines, b.N, 2)
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkRatios fails if the CPU time of the embedded engine, in times of the other library's, is a third above its aim. Rounds of
// both alternate, whatever b.N is.
func BenchmarkRatios(b *testing.B) {
	const rounds, ops, goroutines = 15, 400_000, 2
	for _, r := range rows {
		if r.theirs == nil {
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			ours, theirs := r.ours(b), r.theirs(b)
			var ratios, cpu, other []float64
			for n := range rounds + 1 {
				measure := func(do op) float64 {
					before := cpuTime()
					work(do, r.keys, goroutines, ops, uint32(n))
					return float64(cpuTime()-before) / ops
				}
				x, y := measure(ours), measure(theirs)
				if n > 0 { // the first round warms up
					ratios, cpu, other = append(ratios, x/y), append(cpu, x), append(other, y)
				}
			}
			for _, all := range [][]float64{ratios, cpu, other} {
				slices.Sort(all)
			}
			ratio := ratios[rounds/2]
			b.ReportMetric(0, "ns/op") // of no use
			b.ReportMetric(cpu[rounds/2], "cpu-ns")
			b.ReportMetric(other[rounds/2], "cpu-ns-other")
			b.ReportMetric(ratio, "times")
			if ratio > r.aim*4/3 {
				b.Errorf("%.2f times the CPU time of the other; the aim is %.2f, and a third above it fails", ratio, r.aim)
			}
		})
	}
}
