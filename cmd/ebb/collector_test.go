package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestCollectorPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 600, 1 << 20: 600, 4 << 20: 600, slack: 100, 1 << 30: 100} {
		if got := collectorPercent(live); got != want {
			t.Errorf("with %d living bytes %d%%, want %d%%", live, got, want)
		}
	}
}

// TestPaceCollector lets the live heap grow, and checks that the collector's percentage follows.
func TestPaceCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "")
	runtime.GC() // collects the garbage of other tests
	paceCollector()
	now := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	if now() <= 100 {
		t.Fatalf("%d%% with next to nothing in the heap", now())
	}
	held := make([]byte, 2*slack)
	for now() != 100 { // the cleanup runs after a collection, in a goroutine of the runtime
		runtime.GC()
	}
	runtime.KeepAlive(held)
}

func TestGoLeavesAControlGroupsMemoryToTheData(t *testing.T) {
	for _, x := range []struct{ group, outside, want int64 }{
		{1000 << 20, 0, 900 << 20},
		{1000 << 20, 300 << 20, 600 << 20},
		{1000 << 20, 990 << 20, 64 << 20},
		{10 << 20, -1, 64 << 20},
	} {
		if got := memoryLimit(x.group, x.outside); got != x.want {
			t.Errorf("%d with %d outside: %d, want %d", x.group, x.outside, got, x.want)
		}
	}
}
