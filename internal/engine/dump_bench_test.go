package engine

import (
	"fmt"
	"testing"
)

// BenchmarkDump measures DUMP, and RESTORE over an existing value, for containers like those of
// bench/cmd/sweep.
func BenchmarkDump(b *testing.B) {
	db := Open(Options{})
	defer db.Close()
	key, to := []byte("src:000000000000"), []byte("d:000000000000")
	rows := []struct {
		name string
		add  func(tx *Tx, i, n int) error
	}{
		{"hash", func(tx *Tx, i, n int) error {
			_, err := tx.HSet(key, [][]byte{padded("f", i, n), padded("value:", i, n)})
			return err
		}},
		{"set", func(tx *Tx, i, n int) error { _, err := tx.SAdd(key, [][]byte{padded("m", i, n)}); return err }},
		{"ints", func(tx *Tx, i, n int) error { _, err := tx.SAdd(key, [][]byte{fmt.Append(nil, i)}); return err }},
		{"list", func(tx *Tx, i, n int) error {
			_, err := tx.LPush(key, Tail, [][]byte{fmt.Appendf(nil, "element:%08d", i)}, false)
			return err
		}},
		{"zset", func(tx *Tx, i, n int) error {
			_, _, err := tx.ZAdd(key, []Scored{{Member: padded("m", i, n), Score: float64(i)}}, ZAddOptions{})
			return err
		}},
	}
	for _, r := range rows {
		for _, n := range []int{10, 100, 1000} {
			tx := db.BeginAll(0)
			tx.Del(key)
			for i := range n {
				if err := r.add(tx, i, n); err != nil {
					b.Fatal(err)
				}
			}
			payload, _ := tx.Dump(nil, key)
			b.Run(fmt.Sprintf("dump/%s/%d", r.name, n), func(b *testing.B) {
				b.ReportAllocs()
				var buf []byte
				for b.Loop() {
					buf, _ = tx.Dump(buf[:0], key)
				}
			})
			b.Run(fmt.Sprintf("restore/%s/%d", r.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := tx.Restore(to, payload, RestoreOptions{Replace: true}); err != nil {
						b.Fatal(err)
					}
				}
			})
			tx.Commit()
		}
	}
}

func padded(name string, i, n int) []byte {
	return fmt.Appendf(nil, "%s%0*d", name, len(fmt.Sprint(n-1)), i)
}
