//go:build race || !(linux || darwin)

package arena

// On systems without mmap, and under the race detector, which does not see mapped memory, slabs are
// Go memory without pointers.
const (
	slabShift = 16
	hugeFrom  = 0
)

// mapHunk returns zeroed memory, aligned to 8 bytes at least.
func mapHunk(size int, _ bool) []byte { return make([]byte, size) }

func unmapHunk([]byte) {}

func collapseHuge([]byte) {}

func unmapPages([]byte) {}

func populate([]byte) {}
