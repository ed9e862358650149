//go:build darwin || linux

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // not on every system
}
