// Package tier says how much the tests do, and how long they wait.
//
//	go test ./...               the short tier: Go alone, three minutes
//	EBB_FULL=1 go test ./...    the full tier, which CI runs: more cases, and other programs
package tier

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Short reports whether the tests of this run are the short tier: EBB_FULL is not 1, or -short is there.
func Short() bool { return testing.Short() || os.Getenv("EBB_FULL") != "1" }

// Patience is how long a test waits for what another goroutine or program does before it fails: a minute, times EBB_SLOW. That
// is a number that .ci/run measures: how many times slower the machine is than a quiet one of two cores. No test waits for a
// time; it waits for an event, and Patience ends the wait.
var Patience = time.Duration(slow() * float64(time.Minute))

// slow returns the number in EBB_SLOW, 1 at least.
func slow() float64 {
	n, err := strconv.ParseFloat(os.Getenv("EBB_SLOW"), 64)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
