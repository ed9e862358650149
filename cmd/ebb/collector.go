package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// slack is how many bytes of garbage may lie in Go's heap before it is collected,
// however small the live heap is. Data is outside that heap, so the live heap has a few
// megabytes, and with Go's own rule, to collect when the heap has doubled, scripts
// that make many values would spend a third of their time in collections. The
// price is so much resident memory and half as much again, once scripts have made
// garbage.
const slack = 24 << 20

// paceCollector has Go's collector leave slack from now on. A value of
// GOGC in the environment wins over it.
func paceCollector() {
	if os.Getenv("GOGC") == "" {
		paceAfter(0)
	}
}

// sentinel is garbage as soon as it is made: its cleanup runs after each
// collection.
type sentinel struct{ _ [16]byte }

// paceAfter sets the pace for what lives now, if that is another than before, in
// percent; and again after the next collection.
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

// collectorPercent is what the heap may grow by from one collection to the next:
// by slack, or as Go's default has it, by as much as lives.
func collectorPercent(live uint64) int {
	const least = 4 << 20 // Go takes no heap to be smaller
	return int(max(100, 100*slack/max(live, least)))
}
