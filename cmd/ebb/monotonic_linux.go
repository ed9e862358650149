package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// monotonic returns the assignment of sd_notify(3) that says when a reload began.
func monotonic() []string {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("MONOTONIC_USEC=%d", t.Nano()/1000)}
}
