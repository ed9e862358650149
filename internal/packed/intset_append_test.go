package packed

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// AppendIntSet gives the image that Add gives.
func TestAnIntSetOfABodyIsThatOfAdd(t *testing.T) {
	for width, most := range map[int]int64{2: math.MaxInt16, 4: math.MaxInt32, 8: math.MaxInt64} {
		added, body := NewIntSet(nil), []byte(nil)
		for _, v := range []int64{-5, 0, 7, most} {
			e, _ := added.Add(v)
			added = e.Apply(make([]byte, e.Size()))
			body = append(body, binary.LittleEndian.AppendUint64(nil, uint64(v))[:width]...)
		}
		if got := AppendIntSet([]byte("earlier"), width, body); !bytes.Equal(got, added) {
			t.Errorf("width %d: %x, Add gives %x", width, got, added)
		}
	}
	if got := AppendIntSet(nil, 2, nil); !bytes.Equal(got, NewIntSet(nil)) {
		t.Errorf("without members: %x", got)
	}
}
