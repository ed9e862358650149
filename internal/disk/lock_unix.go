//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock reports whether we have the file's lock now. It belongs to the open
// file: a second one in the same process does not get it either.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}
