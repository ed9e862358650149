package arena

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// The model keeps every chunk's bytes; freed memory is lent again.
func TestChunksKeepTheirBytes(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		pool := NewPool()
		defer pool.Close()
		c := NewChunks(pool)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		model := map[uint32][]byte{}
		live := 0
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rnd.IntN(5) < 3 {
				size := MinChunk << rnd.IntN(7)
				ref := c.AllocChunk(size)
				b := c.Bytes(ref, size)
				if len(bytes.Trim(b, "\x00")) > 0 {
					t.Fatalf("a chunk of %d bytes is not zeroed", size)
				}
				if model[ref] != nil {
					t.Fatalf("chunk %d was lent twice", ref)
				}
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				model[ref] = bytes.Clone(b)
				live += size
				continue
			}
			for ref, want := range model {
				if !bytes.Equal(c.Bytes(ref, len(want)), want) {
					t.Fatalf("a chunk of %d bytes has changed", len(want))
				}
				c.FreeChunk(ref, len(want))
				live -= len(want)
				delete(model, ref)
				break
			}
		}
		if c.Live() != live {
			t.Fatalf("%d bytes live, want %d", c.Live(), live)
		}
		for ref, want := range model {
			c.FreeChunk(ref, len(want))
		}
		if held := pool.Used(); held > 6*SlabSize {
			t.Fatalf("an empty Chunks holds %d bytes", held)
		}
	})
}

func TestChunksAreSafeForConcurrentUse(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	c := NewChunks(pool)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var mine []uint32
			for i := range 500 {
				size := MinChunk << (i % 7)
				ref := c.AllocChunk(size)
				c.Bytes(ref, size)[0] = byte(g + 1)
				mine = append(mine, ref)
				if i%3 == 2 {
					old := i / 2
					if mine[old] != 0 {
						if c.Bytes(mine[old], 1)[0] != byte(g+1) {
							t.Error("a chunk has changed")
						}
						c.FreeChunk(mine[old], MinChunk<<(old%7))
						mine[old] = 0
					}
				}
			}
		})
	}
	wg.Wait()
}
