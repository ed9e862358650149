package engine

import (
	"fmt"
	"testing"
)

// BenchmarkScanKind walks over 100 locks among a million keys: by their index, and by visiting all keys.
func BenchmarkScanKind(b *testing.B) {
	db := Open(Options{Shards: 16})
	defer db.Close()
	for i := range 1_000_000 {
		if err := db.set(0, fmt.Append(nil, "key", i), []byte("v"), 0); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100 {
		key := fmt.Append(nil, "lock", i)
		tx := db.Begin(0, key)
		if _, _, err := tx.AcquireLock(key, []byte("ann"), AcquireOptions{Lease: hour}); err != nil {
			b.Fatal(err)
		}
		tx.Commit()
	}
	for _, x := range []struct {
		name string
		kind Kind
	}{{"index", Lock}, {"all", None}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				n, cursor := 0, uint64(0)
				for {
					cursor = db.ScanKind(0, x.kind, cursor, 1000, func(k Key) {
						if k.Kind() == Lock {
							n++
						}
					})
					if cursor == 0 {
						break
					}
				}
				if n < 100 {
					b.Fatalf("%d locks", n)
				}
			}
		})
	}
}
