package hll

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func TestSelfTestPasses(t *testing.T) {
	if err := SelfTest(); err != nil {
		t.Fatal(err)
	}
}

// The hashes are those of the reference implementation with Redis's seed, as the
// registers show that redis-server 7.0.15 sets.
func TestElementsSetTheRegistersThatRedisSets(t *testing.T) {
	for _, c := range []struct {
		elem     string
		register int
		value    uint8
	}{
		{"a", 12711, 2},
		{"", 5938, 2},
		{"hello world", 9399, 4},
		{strings.Repeat("0123456789", 10), 874, 1},
	} {
		if register, value := Locate([]byte(c.elem)); register != c.register || value != c.value {
			t.Errorf("%q sets register %d to %d, not %d to %d", c.elem, register, value, c.register, c.value)
		}
	}
}

func TestDenseRegistersDoNotTouchTheirNeighbours(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		img, err := ToDense(nil, New(nil))
		if err != nil {
			t.Fatal(err)
		}
		var model Set
		for range 200 {
			i := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(Registers-40, Registers-1)).Draw(t, "register")
			v := uint8(rapid.IntRange(1, registerMax).Draw(t, "value"))
			var raised bool
			if img, raised, err = Raise(img, i, v, 0); raised != (v > model[i]) || err != nil {
				t.Fatalf("register %d from %d to %d: raised %v, %v", i, model[i], v, raised, err)
			}
			model[i] = max(model[i], v)
		}
		sameSet(t, img, &model)
	})
}

func TestSparseSketchesAgreeWithAModel(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 20, 100, 3000, 1 << 20}).Draw(t, "limit")
		top := rapid.SampledFrom([]int{3, 32, 51}).Draw(t, "top")
		reach := rapid.SampledFrom([]int{12, 300, Registers}).Draw(t, "reach")
		img := New(nil)
		var model Set
		for range rapid.IntRange(1, 300).Draw(t, "changes") {
			i := rapid.IntRange(0, reach-1).Draw(t, "register")
			v := uint8(rapid.IntRange(1, top).Draw(t, "value"))
			before := append([]byte(nil), img...)
			raises, err := Raises(img, i, v)
			if err != nil || raises != (v > model[i]) {
				t.Fatalf("register %d from %d to %d: raises %v, %v", i, model[i], v, raises, err)
			}
			var raised bool
			img, raised, err = Raise(img, i, v, limit)
			if err != nil || raised != raises {
				t.Fatalf("raised %v, %v", raised, err)
			}
			if !raised && !bytes.Equal(before, img) {
				t.Fatal("a sketch changed although no register did")
			}
			if EncodingOf(img) == Sparse && len(img) > max(limit, len(before)) {
				t.Fatalf("a sparse sketch of %d bytes where %d are allowed", len(img), limit)
			}
			model[i] = max(model[i], v)
		}
		sameSet(t, img, &model)
	})
}

// RaiseAll goes on where it was instead of starting again with each register:
// the bytes must be the same.
func TestRaisingAllIsRaisingOneByOne(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		img := New(nil)
		reach := rapid.SampledFrom([]int{30, 300, Registers}).Draw(t, "reach")
		top := rapid.SampledFrom([]int{2, 3, 32, 33}).Draw(t, "top")
		limit := rapid.SampledFrom([]int{100, 3000, 1 << 20}).Draw(t, "limit")
		var err error
		for range rapid.IntRange(0, 200).Draw(t, "before") {
			if img, _, err = Raise(img, rapid.IntRange(0, reach-1).Draw(t, "register"),
				uint8(rapid.IntRange(1, min(top, 32)).Draw(t, "value")), 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		var set Set
		for range rapid.IntRange(0, 300).Draw(t, "raised") {
			set[rapid.IntRange(0, reach-1).Draw(t, "register")] = uint8(rapid.IntRange(0, top).Draw(t, "value"))
		}
		one := append([]byte(nil), img...)
		for i, v := range set {
			if v > 0 {
				if one, _, err = Raise(one, i, v, limit); err != nil {
					t.Fatal(err)
				}
			}
		}
		Invalidate(one)
		all, err := set.RaiseAll(img, limit)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, all) {
			t.Fatalf("one by one % x\nall        % x", one, all)
		}
	})
}

func sameSet(t interface {
	Helper()
	Fatalf(string, ...any)
	Fatal(...any)
}, img []byte, want *Set) {
	t.Helper()
	var got Set
	if err := got.Unite(img); err != nil {
		t.Fatal(err)
	}
	if got != *want {
		t.Fatalf("the registers differ")
	}
	n, err := Count(img)
	if err != nil || n != want.Count() {
		t.Fatalf("counted %d, %v, by the registers %d", n, err, want.Count())
	}
}

func TestEstimatesStayWithinTheirError(t *testing.T) {
	img := New(nil)
	var err error
	var elem [8]byte
	n := 0
	for _, goal := range []int{1, 10, 100, 1000, 5000, 20000, 50000, 100000, 400000} {
		for ; n < goal; n++ {
			binary.LittleEndian.PutUint64(elem[:], uint64(n))
			register, value := Locate(elem[:])
			if img, _, err = Raise(img, register, value, 3000); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Count(img)
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(float64(got)/float64(goal) - 1); off > 4*0.0081 {
			t.Errorf("%d elements are counted as %d", goal, got)
		}
	}
}

func TestWhatIsNoSketchIsRefused(t *testing.T) {
	head := "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"
	for _, s := range []string{"", "HYLL", strings.Repeat("x", 20), head[:15], "HYLL\x00" + head[5:], "HYLL\x02" + head[5:] + "\x7f\xff"} {
		if Valid([]byte(s)) {
			t.Errorf("%q is taken for a sketch", s)
		}
	}
	for _, ops := range []string{"", "\x7f", "\x7f\xfe", "\x7f\xff\x00", "\x7f\xff\x80", "\x7f\xfe\x81", "\x7f\xff\x7f"} {
		img := []byte(head + ops)
		if !Valid(img) {
			t.Errorf("%q has a valid header", img)
		}
		if _, err := Count(img); err != ErrCorrupt {
			t.Errorf("%q is counted: %v", ops, err)
		}
		if _, err := ToDense(nil, img); err != ErrCorrupt {
			t.Errorf("%q is made dense: %v", ops, err)
		}
		if err := new(Set).Unite(img); err != ErrCorrupt {
			t.Errorf("%q is united: %v", ops, err)
		}
	}
}

// FuzzHLL feeds images from outside: nothing panics, and what is accepted gives
// the same registers in both encodings.
func FuzzHLL(f *testing.F) {
	img := New(nil)
	for i := range 50 {
		register, value := Locate([]byte{byte(i)})
		img, _, _ = Raise(img, register, value, 3000)
	}
	f.Add(img, uint16(7), uint8(3), uint16(3000))
	f.Add(New(nil), uint16(0), uint8(33), uint16(0))
	f.Add(append(New(nil)[:HeaderSize], 0x7f), uint16(16383), uint8(1), uint16(100))
	f.Add(append(New(nil)[:HeaderSize], 0xff, 0x7f, 0xff, 0x7f, 0xff), uint16(16383), uint8(1), uint16(100))
	f.Fuzz(func(t *testing.T, img []byte, at uint16, value uint8, limit uint16) {
		if !Valid(img) {
			return
		}
		register, value := int(at)%Registers, value%51+1
		_, bad := Count(img)
		var before Set
		if err := before.Unite(img); err != bad {
			t.Fatalf("counting gives %v, uniting %v", bad, err)
		}
		dense, err := ToDense(nil, img)
		if err != bad {
			t.Fatalf("counting gives %v, making dense %v", bad, err)
		}
		if bad == nil {
			sameSet(t, dense, &before)
		}
		raised, changed, err := Raise(append([]byte(nil), img...), register, value, int(limit))
		if bad == nil && (err != nil || changed != (before[register] < value)) {
			t.Fatalf("register %d is %d, raising to %d: %v, %v", register, before[register], value, changed, err)
		}
		if bad == nil {
			before[register] = max(before[register], value)
			sameSet(t, raised, &before)
		}
		_, _ = before.RaiseAll(append([]byte(nil), img...), int(limit))
	})
}

func TestNothingIsAllocated(t *testing.T) {
	sparse, buf := New(make([]byte, 0, DenseSize)), make([]byte, DenseSize)
	dense, _ := ToDense(nil, sparse)
	elem, n := make([]byte, 8), uint64(0)
	var set Set
	if got := testing.AllocsPerRun(1000, func() {
		n++
		binary.LittleEndian.PutUint64(elem, n)
		register, value := Locate(elem)
		sparse, _, _ = Raise(sparse, register, value, 3000)
		dense, _, _ = Raise(dense, register, value, 0)
		buf, _ = ToDense(buf, sparse)
		_ = set.Unite(sparse)
		_ = set.Unite(dense)
		_, _ = Count(dense)
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkRaise(b *testing.B) {
	for _, limit := range []int{0, 3000} {
		name := map[int]string{0: "dense", 3000: "sparse"}[limit]
		b.Run(name, func(b *testing.B) {
			img := New(make([]byte, 0, DenseSize))
			elem, n := make([]byte, 8), uint64(0)
			for len(img) < 2900 {
				n++
				binary.LittleEndian.PutUint64(elem, n)
				register, value := Locate(elem)
				img, _, _ = Raise(img, register, min(value, 32), limit)
			}
			for b.Loop() {
				n = (n*5 + 1) & 1023
				binary.LittleEndian.PutUint64(elem, n)
				register, value := Locate(elem)
				img, _, _ = Raise(img, register, min(value, 32), limit)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	img, _ := ToDense(nil, New(nil))
	for i := range uint64(100000) {
		var elem [8]byte
		binary.LittleEndian.PutUint64(elem[:], i)
		register, value := Locate(elem[:])
		img, _, _ = Raise(img, register, value, 0)
	}
	for b.Loop() {
		_, _ = Count(img)
	}
}
