//go:build (linux || darwin) && !race

package arena

import (
	"math"
	"runtime/debug"
	"sync"
)

// limitMu serialises changes of the process's memory limit.
var limitMu sync.Mutex

// chargeLimit subtracts bytes of memory that the Go runtime does not see from the limit of
// GOMEMLIMIT or debug.SetMemoryLimit, if there is one. The collector then keeps the rest of the
// process below the remaining limit. A negative number raises the limit again.
func chargeLimit(bytes int64) {
	limitMu.Lock()
	defer limitMu.Unlock()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-bytes, 0))
	}
}
