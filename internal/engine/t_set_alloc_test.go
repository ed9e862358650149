//go:build !race

package engine

import (
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestSetsAllocateNothing(t *testing.T) {
	for form, l := range map[string]Layout{"intset": {SetIntegers: 1 << 20}, "listpack": {SetEntries: 1 << 20, SetValue: 64}, "hashtable": {}} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		defer db.Close()
		db.SetLayout(l)
		tx, key, n, other, buf := db.NewTx(), []byte("key"), 0, []byte("absent"), make([]byte, 0, 100)
		member := make([]byte, 0, 20)
		members := make([][]byte, 1)
		f := func() {
			n++
			member = strconv.AppendInt(member[:0], int64(n%1000), 10)
			members[0] = member
			tx.LockKey(0, key)
			if _, err := tx.SAdd(key, members); err != nil {
				t.Error(err)
			}
			v, err := tx.Members(key)
			if err != nil || !v.Has(member) || v.Has(other) {
				t.Error("the member is not there", err)
			}
			if n%3 == 0 {
				if _, _, err := tx.SPop(key, buf[:0]); err != nil {
					t.Error(err)
				}
			}
			if n%5 == 0 {
				if _, err := tx.SRem(key, members); err != nil {
					t.Error(err)
				}
			}
			tx.Unlock()
		}
		for range 3000 { // afterwards chunks and tables have their final size
			f()
		}
		if n := testing.AllocsPerRun(1000, f); n > 0 {
			t.Errorf("%s: %v allocations", form, n)
		}
		tx.LockKey(0, key)
		if e := tx.Encoding(key); e != form {
			t.Errorf("%s, want %s", e, form)
		}
		tx.Unlock()
	}
}
