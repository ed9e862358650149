package rdb

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/internal/packed"
)

// IntSet writes what Member writes for each integer, even if there are too many for an intset.
func TestIntSetWritesTheBytesOfMembers(t *testing.T) {
	for _, x := range []struct {
		n    int
		step int64
	}{{1, 1}, {100, 3}, {512, 1000}, {512, 1 << 40}, {513, 1}} {
		one, each := Encoder{Compress: true}, Encoder{Compress: true}
		at := func(i int) int64 { return int64(i)*x.step - 7 }
		set := packed.NewIntSet(nil)
		for i := range x.n {
			e, _ := set.Add(at(i))
			set = e.Apply(make([]byte, e.Size()))
		}
		one.IntSet(set)
		each.BeginSet(x.n)
		for i := range x.n {
			each.Member(strconv.AppendInt(nil, at(i), 10))
		}
		each.EndSet()
		if !bytes.Equal(one.Buf, each.Buf) {
			t.Errorf("%d integers in steps of %d: %x, want %x", x.n, x.step, one.Buf, each.Buf)
		}
	}
}
