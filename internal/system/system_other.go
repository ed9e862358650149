//go:build !unix

package system

import (
	"runtime"
	"time"
)

// CPUTime returns how long the process has computed: in the kernel, and outside.
// Here it is not known.
func CPUTime() (sys, user time.Duration) { return 0, 0 }

// ResourceUsage returns what the process has used since its start, and whether the system says so. Here it does not.
func ResourceUsage() (Usage, bool) { return Usage{}, false }

// FileLimit returns how many files and sockets the process may have open. Here it is not known.
func FileLimit() float64 { return -1 }

// OSName returns the system's name and architecture.
func OSName() string { return runtime.GOOS + " " + runtime.GOARCH }
