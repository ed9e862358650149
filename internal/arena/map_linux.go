//go:build linux && !race

package arena

import "golang.org/x/sys/unix"

func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// unmapPages returns the physical pages to the system; the memory then reads as zero.
func unmapPages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
