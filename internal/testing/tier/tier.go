// Package tier says how much the tests do, and how long they wait.
//
//	go test ./...               the short tier: Go alone, four minutes
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

// Share reports whether the i-th of many cases of one goroutine is played: in the short tier one of four.
func Share(i int) bool { return !Short() || i%4 == 0 }

// Sequential leaves a slow test of one goroutine out of a run with -race and -short, as the step race of .ci/test is one: the race
// detector finds nothing in it, and makes it ten times slower. The step unit runs it.
func Sequential(t testing.TB) {
	if raced && testing.Short() {
		t.Helper()
		t.Skip("the test has one goroutine, in which the race detector finds nothing")
	}
}

// Patience is the time that a test waits for what another goroutine or program does before it fails: a minute, times EBB_SLOW. That
// is a number that .ci/run measures: how many times slower the machine is than a quiet one of two cores. No test waits for a
// time; it waits for an event, and Patience ends the wait. It is at most mostPatience, so that a test that waits three times in
// vain still fails by itself: the limit of a package is 15 minutes, and go test then prints all goroutines, and no message of the test.
var Patience = patience()

// Eventually waits until a check succeeds that looks at other goroutines or programs, for 2*Patience at most.
func Eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.After(2 * Patience); !yes(); {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("not within %v: %s", 2*Patience, what)
		}
	}
}

// mostPatience is the limit of Patience: three of them are eleven and a half minutes.
const mostPatience = 3*time.Minute + 50*time.Second

func patience() time.Duration {
	return time.Duration(min(slow()*float64(time.Minute), float64(mostPatience)))
}

// slow returns the number in EBB_SLOW, 1 at least.
func slow() float64 {
	n, err := strconv.ParseFloat(os.Getenv("EBB_SLOW"), 64)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
