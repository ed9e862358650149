package engine

import (
	"testing"
	"unsafe"
)

// The fields that each call writes are in the first cache line of a shard, and the counters of most writes in
// the second.
func TestACallWritesTwoLinesOfItsShard(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // the layout is for 64 bits
	}
	var sh shard
	if first, second := unsafe.Offsetof(sh.misses)+8, unsafe.Offsetof(sh.dirty); first != cacheLine || second != cacheLine {
		t.Errorf("the fields of each call end at %d, and those of writes begin at %d", first, second)
	}
	if end := unsafe.Offsetof(sh.stats) + unsafe.Offsetof(sh.stats.QueueDelivered) + 8; end > 2*cacheLine {
		t.Errorf("the counts of writes end at %d", end)
	}
	if n := unsafe.Sizeof(paddedShard{}); n%cacheLine != 0 {
		t.Errorf("a shard has %d bytes", n)
	}
	db := Open(Options{})
	defer db.Close()
	for _, sh := range db.shards {
		if at := uintptr(unsafe.Pointer(sh)); at%cacheLine != 0 {
			t.Errorf("shard %d begins at %#x", sh.id, at)
		}
	}
}
