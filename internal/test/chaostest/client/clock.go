//go:build unix

package main

import "golang.org/x/sys/unix"

// monotonic is the system's monotonic clock, in ns.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
