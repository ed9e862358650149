package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// slack is the number of bytes of garbage that Go's heap may hold before a collection,
// also when the live heap is small. ebb's data is outside that heap, so the live heap has
// a few megabytes. Go's own rule collects when the heap has doubled; under it, scripts
// that make many values would spend a third of their time in collections. Once scripts
// have made garbage, the resident memory is greater by about one and a half times slack.
const slack = 24 << 20

// paceCollector makes Go's collector keep to slack from now on. A value of GOGC in the
// environment overrides it.
func paceCollector() {
	if os.Getenv("GOGC") == "" {
		paceAfter(0)
	}
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
