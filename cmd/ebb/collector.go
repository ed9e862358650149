package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/ebbdb/ebb/internal/system"
)

// slack is the number of bytes of garbage that Go's heap may hold before a collection even if the live heap is small.
// ebb's data is outside that heap, so the live heap has only a few megabytes. Go's own rule collects when the heap
// has doubled; scripts that create many values would then spend a third of their time in collections. Scripts that
// create garbage raise the resident memory by up to about one and a half times slack.
const slack = 24 << 20

// paceCollector makes Go's collector use slack from now on, and keep to the memory limit of the control group. GOGC
// and GOMEMLIMIT in the environment override these.
func paceCollector() {
	if os.Getenv("GOGC") == "" {
		paceAfter(0)
	}
	if limit := system.MemoryLimit(); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		limitMemory(limit)
	}
}

// limitMemory sets Go's memory limit: the control group's limit minus the data, which is outside of Go's heap. It
// repeats that after each collection.
func limitMemory(group int64) {
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(used)
	ours := int64(used[0].Value.Uint64() - used[1].Value.Uint64())
	debug.SetMemoryLimit(memoryLimit(group, system.ResidentMemory()-ours))
	runtime.AddCleanup(new(sentinel), limitMemory, group)
}

// memoryLimit returns Go's limit for the limit of a control group and the bytes outside of Go's heap. A tenth stays
// free for the kernel's buffers. The result is at least the heap that Go needs to work without constant collections.
func memoryLimit(group, outside int64) int64 {
	const least = 64 << 20
	return max(least, group-group/10-max(outside, 0))
}

// sentinel becomes garbage at once, so its cleanup runs after the next collection.
type sentinel struct{ _ [16]byte }

// paceAfter sets the collector's percentage for the present live heap, unless before is close to it. It repeats that
// after the next collection.
func paceAfter(before int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := collectorPercent(live[0].Value.Uint64())
	if percent*10 < before*9 || percent*9 > before*10 { // setting it stops the program for microseconds
		debug.SetGCPercent(percent)
		before = percent
	}
	runtime.AddCleanup(new(sentinel), paceAfter, before)
}

// collectorPercent returns the percentage by which the heap may grow between two collections: by slack, or by the
// size of the live heap, which is Go's default, if that is more.
func collectorPercent(live uint64) int {
	const least = 4 << 20 // Go's least heap size
	return int(max(100, 100*slack/max(live, least)))
}
