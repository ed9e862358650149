package engine

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/hll"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// A sketch moves in memory when its size changes, even out of the slabs and back, and its effects give the
// same bytes.
func TestSketchesOfAllSizesAreKept(t *testing.T) {
	tier.Sequential(t)
	for _, limit := range []int{0, 3000, 1 << 20} {
		db := Open(Options{Clock: clock.NewManual(epoch), RecordEffects: true})
		defer db.Close()
		l := db.Layout()
		l.HyperLogLogSparse = limit
		db.SetLayout(l)
		model, err := hll.ToDense(nil, hll.New(nil))
		if err != nil {
			t.Fatal(err)
		}
		key := make([]byte, arena.MaxRecord/4)
		for i := range 8000 {
			elem := []byte(fmt.Sprint(i))
			register, value := hll.Locate(elem)
			_, want, _ := hll.Raise(model, register, value, 0)
			tx := db.Begin(0, key)
			changed, err := tx.PFAdd(key, [][]byte{elem})
			if err != nil || changed != (want || i == 0) {
				t.Fatalf("limit %d, element %d: changed %v, %v", limit, i, changed, err)
			}
			if i%1000 == 999 {
				n, err := tx.PFCount([][]byte{key})
				if want, _ := hll.Count(model); err != nil || uint64(n) != want {
					t.Fatalf("limit %d, %d elements: %d, %v, want %d", limit, i+1, n, err, want)
				}
			}
			tx.Commit()
		}
		tx := db.Begin(0, key, []byte("to"), []byte("none"))
		if err := tx.PFMerge([]byte("to"), [][]byte{key}); err != nil {
			t.Fatal(err)
		}
		a, _ := tx.PFCount([][]byte{key})
		b, _ := tx.PFCount([][]byte{[]byte("to"), []byte("none")})
		if a != b {
			t.Errorf("limit %d: %d became %d", limit, a, b)
		}
		tx.Commit()
	}
}

func TestRefusedSketchesStayAsTheyAre(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key := []byte("key")
	corrupt := string(hll.New(nil)[:hll.HeaderSize]) + "\x00\x00"
	for val, want := range map[string]error{"text": ErrNotHLL, corrupt: ErrCorruptHLL} {
		if err := db.set(0, key, []byte(val), 0); err != nil {
			t.Fatal(err)
		}
		tx := db.Begin(0, key)
		if _, err := tx.PFAdd(key, [][]byte{[]byte("a")}); err != want {
			t.Errorf("PFAdd to %q: %v", val, err)
		}
		if err := tx.PFMerge(key, nil); err != want {
			t.Errorf("PFMerge to %q: %v", val, err)
		}
		if _, err := tx.PFDense(key); err != want {
			t.Errorf("PFDense of %q: %v", val, err)
		}
		if got, _, _ := tx.Get(key); string(got) != val {
			t.Errorf("%q has become %q", val, got)
		}
		tx.Commit()
	}
}
