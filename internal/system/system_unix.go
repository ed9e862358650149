//go:build unix

package system

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns how long the process has computed: in the kernel, and outside.
func CPUTime() (sys, user time.Duration) {
	u, _ := ResourceUsage()
	return u.System, u.User
}

// ResourceUsage returns what the process has used since its start, and whether the system says so.
func ResourceUsage() (Usage, bool) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return Usage{}, false
	}
	return Usage{
		System: time.Duration(r.Stime.Nano()), User: time.Duration(r.Utime.Nano()),
		MajorFaults: float64(r.Majflt), MinorFaults: float64(r.Minflt),
	}, true
}

// FileLimit returns how many files and sockets the process may have open, -1 where that is not known.
func FileLimit() float64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return -1
	}
	return float64(limit.Cur)
}

// OSName returns the system's name, version and architecture.
func OSName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}
