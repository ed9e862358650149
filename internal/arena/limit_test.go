//go:build (linux || darwin) && !race

package arena

import (
	"runtime/debug"
	"testing"
)

func TestMappedMemoryCountsTowardsTheMemoryLimit(t *testing.T) {
	const limit = 1 << 40
	old := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(old)
	p := NewPool()
	p.Get()
	if got := debug.SetMemoryLimit(-1); got != limit-hunkSlabs*SlabSize {
		t.Errorf("the limit is %d with one hunk mapped, want %d", got, limit-hunkSlabs*SlabSize)
	}
	p.Close()
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the limit is %d after Close, want %d", got, limit)
	}
}
