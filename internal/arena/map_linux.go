//go:build linux && !race

package arena

import "golang.org/x/sys/unix"

func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// collapseHuge moves the pages of b to huge pages, while others use it. Before Linux 6.1 the system does so in its own time.
func collapseHuge(b []byte) {
	adviseHuge(b)
	_ = unix.Madvise(b, unix.MADV_COLLAPSE)
}

// unmapPages returns the physical pages to the system; the memory then reads as zero.
func unmapPages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// populate makes the system back memory by pages in one call, which costs less than a fault for each page that is written to.
// Before Linux 5.14 it does nothing.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
