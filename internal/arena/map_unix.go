//go:build (linux || darwin) && !race

package arena

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	slabShift = 16
	// hugeFrom is the size of a pool, in bytes, from which on it requests huge pages, also for what it has. A small store
	// should touch little memory; a large one should rarely miss in the translation buffer (TLB).
	hugeFrom = 64 << 20
)

// mapHunk maps zeroed memory outside the Go heap. Running out of address space
// or of committed memory ends the process, as it does in the Go heap.
func mapHunk(size int, huge bool) []byte {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("arena: cannot map %d bytes: %v", size, err))
	}
	chargeLimit(int64(size))
	if huge {
		adviseHuge(b)
	}
	return b
}

func unmapHunk(b []byte) {
	if unix.Munmap(b) == nil {
		chargeLimit(-int64(len(b)))
	}
}
