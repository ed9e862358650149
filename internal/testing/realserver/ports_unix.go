//go:build unix

package realserver

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ports is a file whose bytes stand for ports: a test process locks those that it uses. It is nil if
// the file cannot be opened; then nothing is reserved. The process keeps the file open, because closing it would
// end the locks, and the system unlocks them when the process ends.
var ports = sync.OnceValue(func() *os.File {
	caches, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	dir := filepath.Join(caches, "ebb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, "ports"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil
	}
	return f
})

// reserve reserves a port for this process, and reports false if another one has it.
func reserve(port int) bool {
	f := ports()
	if f == nil {
		return true
	}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK,
		&syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1})
	return err != syscall.EAGAIN && err != syscall.EACCES
}
