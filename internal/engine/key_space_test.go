package engine

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// The memory of a list of few blocks is free before its transaction ends, so that the next list gets memory that is still in the cache. The
// reclaimer frees a long list in slices.
func TestALargeContainerOfFewChunksIsFreedAtOnce(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key := []byte("list")
	for n, left := range map[int]bool{1_000: false, 200_000: true} {
		tx := db.Begin(0, key)
		elems := slices.Repeat([][]byte{[]byte("element:00000000")}, n)
		if _, err := tx.LPush(key, Tail, elems, false); err != nil {
			t.Fatal(err)
		}
		had := db.chunks.Live()
		tx.Del(key)
		if live := db.chunks.Live(); had == 0 || (live > 0) != left {
			t.Errorf("of the %d bytes of %d elements %d are left", had, n, live)
		}
		tx.Commit()
		db.work()
		if live := db.chunks.Live(); live != 0 {
			t.Errorf("the reclaimer leaves %d bytes of %d elements", live, n)
		}
	}
}
