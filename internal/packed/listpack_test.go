package packed

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
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

// whole returns the listpack of elements that follow a head.
func whole(b []byte, n int) []byte {
	b = append(b, 0xff)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(n))
	return b
}

// A container that is made of a listpack is the one that its items make one by one, and there is none if the listpack has other
// items or another order. A damaged listpack makes a valid container or none.
func TestAListpackBecomesAnImage(t *testing.T) {
	r, seed, rounds, made, broken := draw.Rand(t), maphash.MakeSeed(), 0, 0, 0
	var room Packed
	for range draw.Rounds(0, 2000) {
		kind := []Kind{KindList, KindSet, KindHash, KindZSet}[r.IntN(4)]
		p, pack, n, score := New(nil, kind), make([]byte, listpackHead), 0, -2.0
		for range r.IntN(1 << r.IntN(8)) {
			key, value := tail(aString(r)), tail(aString(r))
			if _, twice := p.Find(key, 0); twice && r.IntN(100) > 0 {
				continue
			}
			score += []float64{0.25, 1, 1 << 40, 1 << 52, 1e17}[r.IntN(5)]
			if r.IntN(100) == 0 {
				score -= 0.25
			}
			pack, n = AppendElement(pack, key), n+1
			var e Edit
			switch kind {
			case KindList:
				e = p.PushBack(key, 0)
			case KindSet:
				e, _ = p.PutMember(key, 0, 0)
			case KindHash:
				e, _ = p.PutField(key, value, 0, 0)
				pack, n = AppendElement(pack, value), n+1
			default:
				e, _ = p.PutScore(key, score, 0, 0)
				pack, n = AppendElement(pack, AppendScore(nil, score)), n+1
			}
			p = e.Apply(make([]byte, e.Size()))
		}
		want := bytes.Equal(elements(p), pack)
		pack = whole(pack, n)
		got, ok := FromListpack(room, kind, pack, 100, seed)
		if ok != want || ok && !bytes.Equal(got, p) {
			t.Fatalf("kind %d: %v %x, want %v %x", kind, ok, got, want, p)
		}
		if rounds++; ok {
			made, room = made+1, got
		}
		pack[listpackHead+r.IntN(len(pack)-listpackHead)] ^= 1 << r.IntN(8)
		if got, ok := FromListpack(room, kind, pack, 100, seed); ok {
			broken++
			if err := Validate(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if t.Log(made, broken, rounds); made < rounds/2 || made == rounds || broken < rounds/20 {
		t.Error(made, "containers, and", broken, "of a damaged listpack, in", rounds, "rounds")
	}
}

// An element that AppendElement would write in another way is left to others.
func TestUnusualElementsMakeNoImage(t *testing.T) {
	for name, b := range map[string][]byte{
		"a digit as text":           {0x81, '7', 2},
		"7 in 13 bits":              {0xc0, 7, 2},
		"300 in 16 bits":            {0xf1, 44, 1, 3},
		"-1 in 64 bits":             {0xf4, 255, 255, 255, 255, 255, 255, 255, 255, 9},
		"a short string of 12 bits": {0xe0, 1, 'a', 3},
		"a wrong length after it":   {0x81, 'a', 3},
		"more than there is":        {0x85, 'a', 2},
		"no encoding":               {0xf5, 1},
	} {
		pack := whole(append(make([]byte, listpackHead), b...), 1)
		if p, ok := FromListpack(nil, KindList, pack, 100, maphash.MakeSeed()); ok {
			t.Errorf("%s: %x", name, p)
		}
	}
}

// tail returns the end of a string, up to 100 bytes.
func tail(s []byte) []byte { return s[max(len(s)-100, 0):] }
