//go:build !race

package engine

import (
	"encoding/binary"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestBloomFiltersAllocateNothing(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key, item, n := []byte("key"), make([]byte, 8), uint64(0)
	tx := db.NewTx()
	tx.LockKey(0, key)
	if err := tx.BFReserve(key, BloomConfig{Error: 0.01, Capacity: 1000, Window: 1000, Generations: 4}); err != nil {
		t.Fatal(err)
	}
	tx.Unlock()
	f := func() {
		n++
		binary.LittleEndian.PutUint64(item, n)
		tx.LockKey(0, key)
		if _, err := tx.BFAdd(key, item); err != nil {
			t.Error(err)
		}
		if found, err := tx.BFHas(key, item); !found || err != nil {
			t.Error(found, err)
		}
		tx.Unlock()
	}
	f()
	if n := testing.AllocsPerRun(200, f); n > 0 {
		t.Errorf("adding and asking allocate %v times", n)
	}
}

func BenchmarkBloom(b *testing.B) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key, item := []byte("key"), make([]byte, 8)
	tx := db.NewTx()
	tx.LockKey(0, key)
	if err := tx.BFReserve(key, BloomConfig{Error: 0.01, Capacity: 1 << 20, Expansion: 2}); err != nil {
		b.Fatal(err)
	}
	tx.Unlock()
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				binary.LittleEndian.PutUint64(item, i&(1<<20-1))
				tx.LockKey(0, key)
				f()
				tx.Unlock()
			}
		})
	}
	run("add", func() { tx.BFAdd(key, item) })
	run("exists", func() { tx.BFHas(key, item) })
}
