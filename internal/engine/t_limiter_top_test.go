package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/limiter"
)

func TestTheKeysThatDenyMostAreWithinTheirError(t *testing.T) {
	db, clock := surveyed(t)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(9, 10)), 1.1, 1, 1_000_000-1)
	denied, shards := map[string]int64{}, map[int]int64{}
	take := func(dbi int, key string) {
		tx := db.Begin(dbi, []byte(key))
		defer tx.Commit()
		got, err := tx.Take([]byte(key), TakeOptions{Limit: 1, Period: 1e6, Cost: 2}) // more than the limiter ever allows
		if err != nil || got.Allowed {
			t.Fatal(got, err)
		}
	}
	for range 60_000 {
		key := fmt.Sprint("user:", zipf.Uint64())
		take(0, key)
		denied[key]++
		s, _ := db.shardOf([]byte(key))
		shards[s]++
	}
	rows := db.Throttled(0, 1000)
	if want := len(db.shards) * 128; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i, x := range rows {
		s, _ := db.shardOf(x.Key)
		if n := denied[string(x.Key)]; n > x.Denied || n < x.Denied-x.Error || x.Error > shards[s]/128 {
			t.Errorf("%s: %d with an error of %d, it has denied %d of %d", x.Key, x.Denied, x.Error, n, shards[s])
		}
		if i > 0 && x.Denied > rows[i-1].Denied {
			t.Errorf("%s with %d is behind %d", x.Key, x.Denied, rows[i-1].Denied)
		}
	}
	if string(rows[0].Key) != "user:0" {
		t.Errorf("%s is the first", rows[0].Key)
	}
	clock.Advance(20 * time.Minute)
	if rows := db.Throttled(0, 1000); len(rows) != 0 {
		t.Errorf("after 20 minutes %d rows are left, with %d denials", len(rows), rows[0].Denied)
	}
	take(3, "other")
	if rows := db.Throttled(3, 10); len(rows) != 1 || rows[0].Denied != 1 || rows[0].Since != clock.Micros()/1000 {
		t.Errorf("another database: %+v", rows)
	}
	db.ResetStats()
	if rows := db.Throttled(3, 10); len(rows) != 0 {
		t.Errorf("after a reset: %+v", rows)
	}
}

func BenchmarkTakeFromMany(b *testing.B) {
	for _, x := range []struct {
		name string
		o    TakeOptions
	}{{"allowed", TakeOptions{Limit: limiter.MaxTokens, Period: 1e9, Cost: 1}}, {"denied", TakeOptions{Limit: 1, Period: 1e9, Cost: 2}}} {
		b.Run(x.name, func(b *testing.B) {
			db := Open(Options{Shards: 16})
			defer db.Close()
			zipf := rand.NewZipf(rand.New(rand.NewPCG(9, 10)), 1.1, 1, 100_000-1)
			keys := make([][]byte, 1<<16)
			for i := range keys {
				keys[i] = fmt.Append(nil, "user:", zipf.Uint64())
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				key := keys[i&0xffff]
				tx := db.Begin(0, key)
				_, _ = tx.Take(key, x.o)
				tx.Commit()
				i++
			}
		})
	}
}
