package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The comparisons of the toolkit are benchmarks named
//
//	Benchmark<Subject>/<server>/c=<goroutines>/<contender>
//
// which cmd/toolkit runs in turns and turns into tables. A contender of ours is
// called "ebb"; what stands beside it in a name says how it is set.

// contender is one library's way to do the work of a subject.
type contender struct {
	name string
	// open prepares it on a server; what it returns does the work once, for one
	// of several goroutines.
	open func(b *testing.B, s *server) func(ctx context.Context, worker int) error
}

// compare runs contenders on both servers at each concurrency.
func compare(b *testing.B, concurrency []int, contenders []contender) {
	for _, s := range servers {
		for _, n := range concurrency {
			for _, c := range contenders {
				b.Run(fmt.Sprintf("%s/c=%d/%s", s.name, n, c.name), func(b *testing.B) {
					s.start(b)
					spread(b, n, c.open(b, s))
				})
			}
		}
	}
}

// spread lets n goroutines do b.N pieces of work, each taking the next piece when it
// has done one: ns/op is the wall time of a piece, all goroutines together.
func spread(b *testing.B, n int, work func(ctx context.Context, worker int) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for w := range n { // connections are made, scripts are loaded
		if err := work(ctx, w); err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var workers sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for w := range n {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := work(ctx, w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// goRedis returns the client of a contender over go-redis. Each contender has its own,
// with a connection for each of 64 goroutines, so that no goroutine waits for the pool.
// The client does not retry commands that may have run.
func goRedis(b *testing.B, s *server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.start(b), PoolSize: 64, MaxRetries: -1})
	b.Cleanup(func() { _ = c.Close() })
	if err := c.FlushDB(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	return c
}

// spans are the latencies that a benchmark has measured.
type spans struct {
	mu  sync.Mutex // guards what follows
	all []time.Duration
}

func (s *spans) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

// report writes the metrics p50, p99, max and min, in milliseconds, instead of ns/op,
// which says nothing where the benchmark paces itself.
func (s *spans) report(b *testing.B) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		b.Fatal("nothing was measured")
	}
	slices.Sort(s.all)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(s.all)))) - 1
		return float64(s.all[max(i, 0)]) / float64(time.Millisecond)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(at(0), "min-ms")
}
