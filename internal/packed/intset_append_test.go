package packed

import (
	"bytes"
	"math"
	"testing"
)

// Append gives the image that Add gives, and refuses a number that is not the greatest or that needs more bytes.
func TestAppendToAnIntSetIsAddAtTheEnd(t *testing.T) {
	appended, added := NewIntSet(nil), NewIntSet(nil)
	for _, v := range []int64{-5, 0, 7, math.MaxInt16} {
		var ok bool
		if appended, ok = appended.Append(v); !ok {
			t.Fatalf("%d is refused", v)
		}
		e, _ := added.Add(v)
		added = e.Apply(make([]byte, e.Size()))
	}
	if !bytes.Equal(appended, added) {
		t.Errorf("Append gives %x, Add %x", appended, added)
	}
	for _, v := range []int64{math.MaxInt16, 3, math.MinInt64, math.MaxInt16 + 1} {
		if s, ok := appended.Append(v); ok || !bytes.Equal(s, added) {
			t.Errorf("%d is accepted: %x", v, s)
		}
	}
}
