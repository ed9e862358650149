//go:build !unix

package command

import (
	"runtime"
	"time"
)

// cpuTime returns how long the process has computed: in the kernel, and outside.
// Here it is not known.
func cpuTime() (sys, user time.Duration) { return 0, 0 }

// osName is the system's name and architecture.
func osName() string { return runtime.GOOS + " " + runtime.GOARCH }
