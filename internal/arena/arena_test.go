package arena

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func TestClassesCoverAllSizes(t *testing.T) {
	for n := 1; n <= MaxRecord; n++ {
		c := classOf(n)
		size := classSize(c)
		if size < n || c > 1 && classSize(c-1) >= n {
			t.Fatalf("classOf(%d) = %d of %d bytes", n, c, size)
		}
		if n > smallMax && size-n > n/8 {
			t.Fatalf("a record of %d bytes takes %d", n, size)
		}
	}
}

// The model keeps every record's bytes; compaction runs in between.
func TestRecordsKeepTheirBytes(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		pool := NewPool()
		defer pool.Close()
		a := New(pool)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		sizes := rapid.SampledFrom([]int{40, 100, 700, 5000}).Draw(t, "sizes")
		model := map[Ref][]byte{}
		live := 0
		var refs []Ref
		at := map[Ref]int{}
		add := func(r Ref, b []byte) {
			if _, taken := model[r]; taken {
				t.Fatalf("slot %d was handed out twice", r)
			}
			model[r] = b
			at[r] = len(refs)
			refs = append(refs, r)
		}
		drop := func(r Ref) {
			i := at[r]
			last := refs[len(refs)-1]
			refs[i], at[last] = last, i
			refs = refs[:len(refs)-1]
			delete(model, r)
			delete(at, r)
		}
		grow := true
		for step := range rapid.IntRange(1, 6000).Draw(t, "steps") {
			if step%1500 == 0 {
				grow = !grow
			}
			switch k := rnd.IntN(10); {
			case k < 4 || grow && k < 7 || len(refs) == 0:
				b := make([]byte, 1+rnd.IntN(sizes))
				for i := range b {
					b[i] = byte(rnd.Uint32()) | 1
				}
				r := a.Alloc(len(b))
				copy(a.Bytes(r, len(b)), b)
				live += a.SlotOf(r)
				add(r, b)
			case k < 9:
				r := refs[rnd.IntN(len(refs))]
				if !bytes.Equal(a.Bytes(r, len(model[r])), model[r]) {
					t.Fatalf("record %d changed", r)
				}
				live -= a.SlotOf(r)
				drop(r)
				a.Free(r)
			default:
				a.Compact(rnd.IntN(20), func(old, new Ref) {
					b := model[old]
					if b == nil {
						t.Fatalf("a free slot was moved")
					}
					drop(old)
					add(new, b)
				})
			}
		}
		for r, b := range model {
			if !bytes.Equal(a.Bytes(r, len(b)), b) {
				t.Fatalf("record %d changed", r)
			}
		}
		if a.Live() != live {
			t.Fatalf("Live %d, want %d", a.Live(), live)
		}
		for _, r := range refs {
			a.Free(r)
		}
		if a.Live() != 0 {
			t.Fatalf("%d bytes live after all was freed", a.Live())
		}
		a.Release()
		if pool.Used() != 0 {
			t.Fatalf("%d bytes lent after Release", pool.Used())
		}
	})
}

func TestCompactionGivesSlabsBack(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	a := New(pool)
	var refs []Ref
	for range 20 * SlabSize / 128 {
		r := a.Alloc(128)
		a.Bytes(r, 1)[0] = 1
		refs = append(refs, r)
	}
	before := a.Held()
	kept := map[Ref]bool{}
	for i, r := range refs {
		if i%8 != 0 {
			a.Free(r)
		} else {
			kept[r] = true
		}
	}
	for a.Compact(100, func(old, new Ref) {
		if !kept[old] {
			t.Fatalf("moved %d, which is not living", old)
		}
		delete(kept, old)
		kept[new] = true
	}) > 0 {
	}
	if a.Wasteful() || a.Held() > before/4 {
		t.Fatalf("%d bytes held of %d, %d living", a.Held(), before, a.Live())
	}
}

func TestFreedRecordsArePoisoned(t *testing.T) {
	if !poison {
		t.Log("poisoning is off in this build; the race build runs this test")
		return
	}
	a := New(NewPool())
	r := a.Alloc(64)
	b := a.Bytes(r, 64)
	b[0] = 1
	a.Free(r)
	if b[20] != 0xDB {
		t.Fatal("a freed record still reads")
	}
}
