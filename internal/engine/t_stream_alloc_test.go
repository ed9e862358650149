//go:build !race

package engine

import (
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestAddingToAStreamAllocatesNothing(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.NewTx()
	x := XAdd{Auto: true, Pairs: [][]byte{[]byte("order"), []byte(strconv.Itoa(17)), []byte("state"), []byte("unpaid")},
		Trim: true, Bounds: StreamTrim{Len: 1000, Approx: true}}
	add := func() {
		tx.LockKey(0, streamKey)
		if _, _, err := tx.XAdd(streamKey, &x); err != nil {
			t.Fatal(err)
		}
		tx.Unlock()
	}
	for range 5000 {
		add()
	}
	if n := testing.AllocsPerRun(5000, add); n >= 0.5 {
		t.Errorf("XADD allocates %v times", n)
	}
}
