package bloom

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// TestAFrozenFilterStaysWhatItWas adds to a filter of one small piece, of many
// pieces, of several layers, and of generations, even without memory for copies.
func TestAFrozenFilterStaysWhatItWas(t *testing.T) {
	for _, cfg := range []Config{
		{Error: 0.01, Capacity: 100, Expansion: 2},
		{Error: 0.001, Capacity: 200_000, Expansion: 2},
		{Error: 0.01, Capacity: 60_000, Window: 1000, Generations: 4},
	} {
		mem := &chunktest.Memory{}
		f, err := New(mem, cfg)
		if err != nil {
			t.Fatal(err)
		}
		next, now := uint64(0), int64(1_700_000_000_000)
		add := func(n int) {
			for range n {
				if _, err := f.Add(item(next), now); err != nil && err != ErrNoMemory {
					t.Fatal(err)
				}
				next++
			}
		}
		add(30_000)
		for turn := range 20 {
			was := f.AppendDump(nil)
			c := f.Freeze()
			watch := chunktest.Watch(mem, func() error {
				if !bytes.Equal(c.AppendDump(nil), was) {
					return errors.New("the frozen filter has changed")
				}
				return c.Check()
			})
			if turn%3 == 0 {
				mem.Limit = 1
			}
			add(20)
			mem.Limit = 0
			now += 150
			if dead := f.Rotate(now); dead != nil {
				dead.FreeAll(math.MaxInt)
			}
			add(500)
			if turn == 19 {
				f.FreeAll(math.MaxInt)
			}
			if err := watch.End(); err != nil {
				t.Fatal(err)
			}
			for c.FreeAll(2) == 2 {
			}
		}
		if mem.Held()+mem.Taken() != 0 {
			t.Fatalf("%d bytes left, %d outside", mem.Held(), mem.Taken())
		}
	}
}
