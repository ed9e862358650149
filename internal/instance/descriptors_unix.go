//go:build unix

package instance

import "golang.org/x/sys/unix"

// descriptorLimit returns the number of files and sockets that this process may have open; 0: the system has no
// limit.
func descriptorLimit() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > 1<<40 { //nolint:unconvert // int64 on FreeBSD
		return 0
	}
	return int64(l.Cur)
}
