package main

import (
	"strings"
	"testing"
)

const lines = `goos: linux
BenchmarkLimiter/redis/c=64/ebb-2     100   50000 ns/op   20000 op/s   1 B/op
BenchmarkLimiter/redis/c=64/redis_rate-2  100   100000 ns/op   10000 op/s
BenchmarkLimiter/redis/c=64/redis_rate-2  100   100000 ns/op   12000 op/s
BenchmarkLimiter/redis/c=64/redis_rate-2  100   100000 ns/op    8000 op/s
BenchmarkLimiter/ebb/c=64/ebb-2       100   25000 ns/op   40000 op/s
BenchmarkQueueDelayed/redis/c=64/asynq-10ms-2  5   12.5 max-ms  -3 min-ms  1 p50-ms  9.25 p99-ms
PASS
`

func TestATableComparesWithTheFastestOtherLibraryOnRedis(t *testing.T) {
	all, err := parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, s := range subjects {
		if all[s.name] != nil {
			if err := s.print(&out, all); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{"20,000  2.00x", "10,000  1.00x", "40,000  4.00x", "asynq-10ms on redis", "12.50   -3.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
