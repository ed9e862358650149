package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData calls fdatasync, which syncs the bytes and the size, but not the times. That saves a
// write to the journal if the file did not grow.
func syncData(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		for {
			if failed = unix.Fdatasync(int(fd)); failed != unix.EINTR {
				return
			}
		}
	})
	if err == nil && failed != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return err
}
