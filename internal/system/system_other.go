//go:build !unix

package system

import (
	"runtime"
	"time"
)

// CPUTime returns how long the process has computed: in the kernel, and outside.
// Here it is not known.
func CPUTime() (sys, user time.Duration) { return 0, 0 }

// OSName returns the system's name and architecture.
func OSName() string { return runtime.GOOS + " " + runtime.GOARCH }
