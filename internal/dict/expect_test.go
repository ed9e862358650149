package dict_test

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// TestATableThatExpectsItemsIsAsLargeAsOneThatGrew fills both, and empties the one that expected its items.
func TestATableThatExpectsItemsIsAsLargeAsOneThatGrew(t *testing.T) {
	for _, n := range []int{0, 1, 11, 12, 100, 1000} {
		sizes, seed := map[bool]int{}, maphash.MakeSeed() // the items have the same buckets in both
		for _, expects := range []bool{false, true} {
			mem := &chunktest.Memory{Max: 16 << 10}
			d := dict.New(dict.Config{Memory: mem, Seed: seed})
			if expects {
				d.Expect(n)
			}
			for i := range 2 * n {
				added, err := d.Insert(fmt.Appendf(nil, "m%d", i/2), 0)
				if err != nil || added != (i%2 == 0) {
					t.Fatalf("Insert %d: %v, %v", i, added, err)
				}
			}
			if err := d.Check(); err != nil {
				t.Fatalf("%d items, expected: %v: %v", n, expects, err)
			}
			d.Expect(10 * n) // not empty: nothing changes
			if sizes[expects] = d.Used(); !expects {
				continue
			}
			for i := range n {
				if found, _ := d.Delete(fmt.Appendf(nil, "m%d", i), 0); !found {
					t.Fatalf("m%d is lost", i)
				}
			}
			if err := d.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if n > 11 && sizes[true] > sizes[false]+n || n <= 11 && sizes[true] != sizes[false] {
			t.Errorf("%d items: %d bytes, %d after growth", n, sizes[true], sizes[false])
		}
	}
}
