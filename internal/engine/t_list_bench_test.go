package engine

import "testing"

func benchList(b *testing.B) (*DB, []byte) {
	db := Open(Options{Shards: 1})
	b.Cleanup(db.Close)
	key, elem := []byte("l"), [][]byte{[]byte("an element")}
	for range 1 << 20 {
		tx := db.Begin(0, key)
		if _, err := tx.LPush(key, Tail, elem, false); err != nil {
			b.Fatal(err)
		}
		tx.Commit()
	}
	b.ReportAllocs()
	b.ResetTimer()
	return db, key
}

func BenchmarkListPushAndPop(b *testing.B) {
	db, key := benchList(b)
	elem, out := [][]byte{[]byte("an element")}, []byte(nil)
	tx := db.NewTx()
	for range b.N {
		tx.LockKey(0, key)
		_, _ = tx.LPush(key, Tail, elem, false)
		tx.Unlock()
		tx.LockKey(0, key)
		_, _ = tx.LPop(key, Head, 1, func(int) {}, func(e []byte) { out = append(out[:0], e...) })
		tx.Unlock()
	}
}

func BenchmarkListRange100(b *testing.B) {
	db, key := benchList(b)
	n := 0
	tx := db.NewTx()
	for i := range b.N {
		tx.LockKey(0, key)
		v, _ := tx.List(key)
		from, to := v.Span(int64(i), int64(i+99))
		v.Range(from, to, func(e []byte) { n += len(e) })
		tx.Unlock()
	}
}
