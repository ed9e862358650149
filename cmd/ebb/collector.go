package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/ebbdb/ebb/internal/system"
)

// slack is the number of bytes of garbage that Go's heap may hold before a collection,
// even when the live heap is small. ebb's data is outside that heap, so the live heap has
// a few megabytes. Go's own rule collects when the heap has doubled; under it, scripts
// that make many values would spend a third of their time in collections. Once scripts
// have made garbage, the resident memory is greater by about one and a half times slack.
const slack = 24 << 20

// paceCollector makes Go's collector keep to slack from now on, and to the memory that a control group leaves
// it. Values of GOGC and GOMEMLIMIT in the environment override them.
func paceCollector() {
	if os.Getenv("GOGC") == "" {
		paceAfter(0)
	}
	if limit := system.MemoryLimit(); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		limitMemory(limit)
	}
}

// limitMemory sets Go's memory limit to what a control group's limit leaves for Go beside the data, which is
// outside of Go's heap, and does the same after each collection.
func limitMemory(group int64) {
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(used)
	ours := int64(used[0].Value.Uint64() - used[1].Value.Uint64())
	debug.SetMemoryLimit(memoryLimit(group, system.ResidentMemory()-ours))
	runtime.AddCleanup(new(sentinel), limitMemory, group)
}

// memoryLimit returns Go's limit for a control group's limit and the bytes outside of Go's heap. A tenth stays
// free, for the kernel's buffers. The least is what Go needs to work without collecting all the time.
func memoryLimit(group, outside int64) int64 {
	const least = 64 << 20
	return max(least, group-group/10-max(outside, 0))
}

// sentinel is garbage as soon as it is made: its cleanup runs after each
// collection.
type sentinel struct{ _ [16]byte }

// paceAfter sets the collector's percentage for the present live heap, unless before is
// close to it, and does the same after the next collection.
func paceAfter(before int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := collectorPercent(live[0].Value.Uint64())
	if percent*10 < before*9 || percent*9 > before*10 { // a change stops the program for microseconds
		debug.SetGCPercent(percent)
		before = percent
	}
	runtime.AddCleanup(new(sentinel), paceAfter, before)
}

// collectorPercent returns the percentage by which the heap may grow between two
// collections: by slack, or by the size of the live heap, as Go's default says, if that is
// more.
func collectorPercent(live uint64) int {
	const least = 4 << 20 // Go's least heap size
	return int(max(100, 100*slack/max(live, least)))
}
