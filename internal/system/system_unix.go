//go:build unix

package system

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns how long the process has computed: in the kernel, and outside.
func CPUTime() (sys, user time.Duration) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Stime.Nano()), time.Duration(r.Utime.Nano())
}

// OSName returns the system's name, version and architecture.
func OSName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}
