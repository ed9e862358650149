package clock

import "golang.org/x/sys/unix"

// suspended returns how long the machine has slept since it was started, in
// microseconds.
func suspended() int64 {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	// The two readings are never of the same instant, so suspended rounds to tenths of a second.
	return (boot.Nano() - mono.Nano()) / 1e8 * 1e5
}
