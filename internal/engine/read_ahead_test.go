package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// manyKeys is a number of keys that makes a keyspace of one shard large.
const manyKeys = 30_000

func manyKey(i int) []byte { return fmt.Appendf(nil, "key:%06d", i) }

// openLarge returns an engine of some shards, each with a large table. On a manual clock only the test takes locks.
func openLarge(t *testing.T, shards int, c clock.Clock) *DB {
	t.Helper()
	db := Open(Options{Shards: shards, Clock: c})
	t.Cleanup(db.Close)
	for i := range manyKeys * shards {
		if err := db.set(0, manyKey(i), []byte("value"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestReadAheadReadsTheBucketsAndRecordsOfItsKeys(t *testing.T) {
	const shards = 4
	db := openLarge(t, shards, clock.NewManual(epoch))
	rng := draw.Rand(t)
	missed := 0
	const rounds = 100
	for range rounds {
		var a Ahead
		buckets, records := map[unsafe.Pointer]bool{}, map[unsafe.Pointer]bool{}
		for range AheadMost {
			key := manyKey(rng.IntN(manyKeys * shards))
			a.Add(db, key)
			s, hash := db.shardOf(key)
			sp := db.shards[s].spaces[0]
			pos, _ := sp.tab.Find(hash, key)
			buckets[sp.tab.Line(hash)], records[unsafe.Pointer(sp.rec(pos.Ref()))] = true, true
		}
		a.Add(db, []byte("one more")) // there is no room for it
		var at [2 * AheadMost]unsafe.Pointer
		n, small := db.lines(0, &a, false, &at)
		if small || n != AheadMost {
			t.Fatalf("%d buckets; small: %v", n, small)
		}
		for _, p := range at[:n] {
			delete(buckets, p)
		}
		n, _ = db.lines(0, &a, true, &at)
		for _, p := range at[:n] {
			delete(records, p)
		}
		if len(buckets) > 0 {
			t.Fatalf("%d buckets are not read", len(buckets))
		}
		missed += len(records)
	}
	if missed > rounds*AheadMost/10 { // some keys are in overflow buckets, or behind a record with the same tag
		t.Errorf("%d of %d records are not read", missed, rounds*AheadMost)
	}
}

func TestReadAheadLeavesOutShardsThatAreLocked(t *testing.T) {
	db := openLarge(t, 2, clock.NewManual(epoch))
	var a Ahead
	in := [2]int{}
	for i := range AheadMost {
		a.Add(db, manyKey(i))
		s, _ := db.shardOf(manyKey(i))
		in[s]++
	}
	db.shards[0].lock.Lock()
	defer db.shards[0].lock.Unlock()
	var at [2 * AheadMost]unsafe.Pointer
	if n, small := db.lines(0, &a, false, &at); n != in[1] || n == 0 || small {
		t.Errorf("%d keys, small %v; the shard that is free has %d", n, small, in[1])
	}
	if !db.ReadAhead(0, &a) {
		t.Error("the keyspace is small")
	}
}

func TestReadAheadTellsASmallKeyspace(t *testing.T) {
	db := openLarge(t, 1, clock.NewManual(epoch))
	var a Ahead
	if db.ReadAhead(0, &a) {
		t.Error("it would save something without a key")
	}
	for i := range AheadMost {
		a.Add(db, manyKey(i))
	}
	if !db.ReadAhead(0, &a) {
		t.Error("database 0 is small")
	}
	if db.ReadAhead(1, &a) {
		t.Error("an empty database is large")
	}
	if n := testing.AllocsPerRun(100, func() { db.ReadAhead(0, &a) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Under the race detector and with poison this shows that ReadAhead does not race with writers, and that its
// results are not used.
func TestReadAheadBesideWritersThatFreeMemory(t *testing.T) {
	db := openLarge(t, 2, clock.NewSystem())
	seed := draw.Seed(t, 0)
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range draw.Rounds(0, 20_000) {
			key := manyKey(rng.IntN(2 * manyKeys))
			switch i % 3 {
			case 0:
				tx := db.Begin(0, key)
				tx.Del(key)
				tx.Commit()
			case 1:
				if err := db.set(0, key, make([]byte, rng.IntN(200)), 0); err != nil {
					t.Error(err)
				}
			default:
				if err := db.set(0, fmt.Appendf(nil, "new:%d", i), nil, 0); err != nil {
					t.Error(err)
				}
			}
		}
		tx := db.BeginAll(0)
		tx.Flush(0)
		tx.Commit()
	})
	for g := range 2 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(2+g)))
			for {
				select {
				case <-done:
					return
				default:
				}
				var a Ahead
				for range AheadMost {
					a.Add(db, manyKey(rng.IntN(2*manyKeys)))
				}
				db.ReadAhead(0, &a)
			}
		})
	}
	all.Wait()
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}
