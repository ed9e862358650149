package engine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/clock"
)

func TestMemoryUsageIsWhatAHashHolds(t *testing.T) {
	value := bytes.Repeat([]byte("v"), 20)
	for _, fields := range []int{1, 10, 500, 5_000, 100_000} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		tx := db.BeginAll(0)
		empty := tx.UsedMemory()
		payload := int64(0)
		for i := range fields {
			f := fmt.Appendf(nil, "field:%d", i)
			payload += int64(len(f) + len(value))
			if _, err := tx.HSet([]byte("h"), [][]byte{f, value}); err != nil {
				t.Fatal(err)
			}
		}
		n, ok := tx.MemoryUsage([]byte("h"))
		if !ok || n < payload || n > 2*payload+200 {
			t.Errorf("%d fields of %d bytes take up %d", fields, payload, n)
		}
		// A space's first table and slab serve all of its keys.
		if used := tx.UsedMemory() - empty; n > used || used > n+32<<10 {
			t.Errorf("%d fields: usage %d, used memory grew by %d", fields, n, used)
		}
		if size := tx.ValueSize([]byte("h")); int64(size) > n || int64(size) < payload {
			t.Errorf("%d fields of %d bytes: value size %d", fields, payload, size)
		}
		tx.Commit()
		db.Close()
	}
}

// A walk shows the living fields, in either layout, and a walk in a replay shows all of them.
func TestAWalkShowsLivingItems(t *testing.T) {
	for _, entries := range []int{0, 512} {
		clock := clock.NewManual(epoch)
		db := Open(Options{Clock: clock})
		db.SetLayout(Layout{HashEntries: entries, HashValue: 64})
		tx := db.BeginAll(0)
		key := []byte("h")
		_, _ = tx.HSet(key, [][]byte{[]byte("a"), []byte("1"), []byte("b"), []byte("2")})
		_ = tx.HExpire(key, [][]byte{[]byte("a")}, tx.Millis()+1, 0, func(int) {})
		tx.At(tx.Now() + 2000)
		items := func() (all string) {
			k, _ := tx.Lookup(key)
			k.Items(func(x Item) { all += fmt.Sprintf("%s=%s until %d;", x.Key, x.Value, x.Deadline) })
			return all
		}
		if got := items(); got != "b=2 until 0;" {
			t.Errorf("%d entries: %s", entries, got)
		}
		tx.Replaying()
		if got := items(); len(got) < len("b=2 until 0;a=1 until 1;") {
			t.Errorf("%d entries: a replay sees %s", entries, got)
		}
		tx.Commit()
		db.Close()
	}
}
