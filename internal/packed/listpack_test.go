package packed

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

// elements appends the strings and scores of a container as elements, one by one.
func elements(p Packed) []byte {
	b := make([]byte, listpackHead)
	for it := p.Iter(0); it.Next(); {
		b = AppendElement(b, it.Key().Append(nil))
		switch p.Kind() {
		case KindHash:
			b = AppendElement(b, it.Value().Append(nil))
		case KindZSet:
			b = AppendElement(b, AppendScore(nil, it.Score()))
		}
	}
	return b
}

// aString draws the strings that are stored in different ways.
func aString(r interface{ IntN(int) int }) []byte {
	switch r.IntN(6) {
	case 0:
		return AppendScore(nil, float64(r.IntN(300)-100))
	case 1:
		return AppendScore(nil, float64(int64(1)<<r.IntN(50)-int64(r.IntN(3))))
	case 2:
		return []byte(strings.Repeat("x", 60+r.IntN(200)))
	}
	return []byte("member"[:r.IntN(7)] + strings.Repeat("y", r.IntN(20)) + string(AppendScore(nil, float64(r.IntN(1000)))))
}

func TestCellsBecomeTheElementsOfAListpack(t *testing.T) {
	r := draw.Rand(t)
	for range draw.Rounds(0, 500) {
		p := New(nil, []Kind{KindList, KindHash, KindZSet}[r.IntN(3)])
		for range r.IntN(150) {
			var e Edit
			switch p.Kind() {
			case KindList:
				e = p.PushBack(aString(r), 0)
			case KindHash:
				e, _ = p.PutField(aString(r), aString(r), 0, 0)
			default:
				score := []float64{float64(r.IntN(100)), r.Float64(), float64(r.Int64()), math.Inf(1), math.Copysign(0, -1)}[r.IntN(5)]
				e, _ = p.PutScore(aString(r), score, 0, 0)
			}
			p = e.Apply(make([]byte, e.Size()))
		}
		cells, want := p.Cells(), elements(p)
		if all, n := cells.AppendListpack(make([]byte, listpackHead), math.MaxInt, math.MaxInt); cells.More() || !bytes.Equal(all, want) {
			t.Fatalf("%d elements\n%x, want\n%x", n, all, want)
		}
		most, part := r.IntN(500), make([]byte, listpackHead)
		for cells = p.Cells(); cells.More(); {
			was := len(part)
			part, _ = cells.AppendListpack(part, most+was, math.MaxInt)
			if len(part) == was {
				most += 100
			}
		}
		if !bytes.Equal(part, want) {
			t.Fatalf("in parts\n%x, want\n%x", part, want)
		}
	}
}
