//go:build (linux || darwin) && !race

package arena

import (
	"math"
	"runtime/debug"
	"sync"
)

// limitMu serialises changes of the process's memory limit.
var limitMu sync.Mutex

// chargeLimit takes memory that the Go runtime does not see, bytes of it, off
// the limit that GOMEMLIMIT or debug.SetMemoryLimit have set, if they have: the
// collector then keeps the rest of the process below what remains. A negative
// number gives back.
func chargeLimit(bytes int64) {
	limitMu.Lock()
	defer limitMu.Unlock()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-bytes, 0))
	}
}
