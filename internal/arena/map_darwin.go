//go:build darwin && !race

package arena

import "golang.org/x/sys/unix"

func adviseHuge([]byte) {}

func collapseHuge([]byte) {}

func unmapPages(b []byte) { _ = unix.Madvise(b, unix.MADV_FREE) }

func populate([]byte) {}
