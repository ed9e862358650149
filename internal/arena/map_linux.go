//go:build linux && !race

package arena

import "golang.org/x/sys/unix"

func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// unmapPages gives the physical pages back; the memory reads as zero again.
func unmapPages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
