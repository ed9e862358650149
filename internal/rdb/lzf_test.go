package rdb

import (
	"bytes"
	"math"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

// One table serves texts of all lengths, also where the sum of their lengths no longer fits its positions.
func TestATableOfPositionsServesManyTexts(t *testing.T) {
	r := draw.Rand(t)
	var table lzfTable
	packed := 0
	for i := range draw.Rounds(0, 3000) {
		if i%100 == 50 {
			table.base = math.MaxUint32 - uint32(r.IntN(1000))
		}
		src := make([]byte, r.IntN(1<<r.IntN(14)+1))
		letters := r.IntN(30) + 1
		for k := range src {
			src[k] = byte(r.IntN(letters))
			if back := r.IntN(40) + 1; k >= back && r.IntN(8) > 0 {
				src[k] = src[k-back]
			}
		}
		head := []byte("before")
		out, ok := table.packLZF(bytes.Clone(head), src)
		if !ok {
			if !bytes.Equal(out, head) {
				t.Fatalf("%q instead of a text that is not packed", out)
			}
			continue
		}
		packed++
		if len(out)-len(head) > len(src)-4 {
			t.Fatalf("%d bytes for %d", len(out)-len(head), len(src))
		}
		again, err := unpackLZF(bytes.Clone(head), bytes.Clone(out[len(head):]), len(src))
		if err != nil || !bytes.HasPrefix(again, head) || !bytes.Equal(again[len(head):], src) {
			t.Fatalf("%v\n%x becomes\n%x", err, src, again)
		}
	}
	if packed < 100 {
		t.Error("only", packed, "texts were packed")
	}
}
