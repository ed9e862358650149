package main

import (
	"fmt"
	"time"

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

// sinceBoot returns a clock: the time since the machine's start, also that for which it slept.
func sinceBoot() func() time.Duration {
	return func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic("the clock of the system cannot be read: " + err.Error()) // Linux has it since 2.6.39
		}
		return time.Duration(t.Nano())
	}
}
