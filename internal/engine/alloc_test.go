//go:build !race

package engine

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestSingleOperationsAllocateNothing(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	key, other, val, buf := []byte("key"), []byte("other"), []byte("some value of ordinary size"), make([]byte, 0, 100)
	for name, f := range map[string]func(){
		"Set":        func() { _ = db.set(0, key, val, 0) },
		"Set TTL":    func() { _ = db.set(0, key, val, time.Minute) },
		"Get":        func() { buf, _, _ = db.get(0, key, buf[:0]) },
		"Get missed": func() { buf, _, _ = db.get(0, other, buf[:0]) },
		"Expire":     func() { tx := db.single(0, key); tx.Expire(key, tx.after(time.Hour), 0, 0); tx.Commit() },
		"TTL":        func() { tx := db.single(0, key); tx.TTL(key); tx.Commit() },
		"Set Del":    func() { _ = db.set(0, key, val, time.Minute); db.del(0, key) },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestHashOperationsAllocateNothing(t *testing.T) {
	for form, layout := range map[string]Layout{"small": defaultLayout(), "large": {}} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		defer db.Close()
		db.SetLayout(layout)
		tx := db.NewTx()
		key, field, count := []byte("hash"), []byte("field:7"), []byte("count")
		pairs := [][]byte{field, []byte("some value of ordinary size"), []byte("other"), []byte("12")}
		fields := [][]byte{[]byte("other"), field, count}
		in := func(f func()) func() {
			return func() { tx.LockKey(0, key); f(); tx.Unlock() }
		}
		in(func() { _, _ = tx.HSet(key, pairs) })()
		for name, f := range map[string]func(){
			"HSet":    in(func() { _, _ = tx.HSet(key, pairs) }),
			"HIncrBy": in(func() { _, _ = tx.HIncrBy(key, count, 1) }),
			"HGet":    in(func() { _, _, _ = tx.HGet(key, field) }),
			"HMGet": in(func() {
				v, _ := tx.Hash(key)
				for _, f := range fields {
					v.Get(f)
				}
			}),
			"HSetNX HDel": in(func() { _, _ = tx.HSetNX(key, fields[0], field); _, _ = tx.HDel(key, fields[:1]) }),
		} {
			f()
			if n := testing.AllocsPerRun(200, f); n > 0 {
				t.Errorf("%s, %s allocates %v times", form, name, n)
			}
		}
	}
}
