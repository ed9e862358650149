package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the assignment of sd_notify(3) with the time at which a reload began.
func monotonic() []string {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("MONOTONIC_USEC=%d", t.Nano()/1000)}
}

// sinceBoot returns a clock of the time since the machine booted, which includes the time of its sleep.
func sinceBoot() func() time.Duration {
	return func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic("cannot read the system's clock: " + err.Error()) // Linux has it since 2.6.39
		}
		return time.Duration(t.Nano())
	}
}
