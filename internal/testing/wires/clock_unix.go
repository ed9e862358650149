//go:build unix

package wires

import (
	"syscall"
	"time"
)

// machineTime returns the machine's time, also in a bubble.
func machineTime() time.Time {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		return time.Now()
	}
	return time.Unix(tv.Unix())
}
