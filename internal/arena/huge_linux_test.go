//go:build linux && !race

package arena

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// A pool that passes hugeFrom requests huge pages for what it had before, and their contents stay.
func TestAPoolThatHasGrownHasHugePages(t *testing.T) {
	_, err := os.Stat("/sys/kernel/mm/transparent_hugepage")
	has := err == nil // what the kernel has
	p := NewPool()
	defer p.Close()
	var slabs []*uint64
	get := func() {
		b := (*uint64)(p.Get())
		*b = uint64(len(slabs) + 1)
		slabs = append(slabs, b)
	}
	for range hugeFrom / SlabSize {
		get()
	}
	if requested(t, slabs[0]) {
		t.Error("a small pool has huge pages")
	}
	get()
	p.collapsing.Wait()
	for i, b := range slabs {
		if *b != uint64(i+1) {
			t.Errorf("slab %d has %d", i, *b)
		}
	}
	for _, i := range []int{0, len(slabs) / 2, len(slabs) - 1} {
		if requested(t, slabs[i]) != has {
			t.Errorf("slab %d of %d: huge pages are requested: %v", i, len(slabs), !has)
		}
	}
}

// requested reports whether huge pages are requested for an address: its mapping has the flag hg.
func requested(t *testing.T, at *uint64) bool {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			in = from <= uintptr(unsafe.Pointer(at)) && uintptr(unsafe.Pointer(at)) < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && in {
			return strings.Contains(flags+" ", " hg ")
		}
	}
	t.Fatal("the address is in no mapping")
	return false
}
