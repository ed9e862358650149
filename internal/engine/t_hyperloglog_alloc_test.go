//go:build !race

package engine

import (
	"encoding/binary"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestSketchesAllocateNothing(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key, elem, n := []byte("key"), make([]byte, 8), uint64(0)
	keys, elems := [][]byte{key}, [][]byte{elem}
	tx := db.NewTx()
	for _, encoding := range []string{"sparse", "dense"} {
		f := func() {
			n++
			binary.LittleEndian.PutUint64(elem, n)
			tx.LockKey(0, key)
			if _, err := tx.PFAdd(key, elems); err != nil {
				t.Error(err)
			}
			if _, err := tx.PFCount(keys); err != nil {
				t.Error(err)
			}
			tx.Unlock()
		}
		f()
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("adding and counting allocate %v times where a sketch is %s", n, encoding)
		}
		tx.LockKey(0, key)
		if _, err := tx.PFDense(key); err != nil {
			t.Error(err)
		}
		tx.Unlock()
	}
}
