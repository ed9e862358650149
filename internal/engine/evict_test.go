package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// fillUntil stores n keys of about 200 bytes, making room before each, and
// reports whether it found room every time.
func fillUntil(db *DB, clock *clock.Manual, prefix string, n int, deadline func(i int) int64) bool {
	val := make([]byte, 200)
	for i := range n {
		if !db.MakeRoom(time.Second) {
			return false
		}
		key := fmt.Appendf(nil, "%s%d", prefix, i)
		tx := db.Begin(0, key)
		var o SetOptions
		if deadline != nil {
			o.Deadline = deadline(i)
		}
		if _, _, err := tx.Set(key, val, o, nil); err != nil {
			panic(err)
		}
		tx.Commit()
		clock.Advance(time.Second)
	}
	return true
}

func countKeys(db *DB, prefix string, from, to int) (n int) {
	for i := from; i < to; i++ {
		key := fmt.Appendf(nil, "%s%d", prefix, i)
		tx := db.Begin(0, key)
		if tx.Exists(key) {
			n++
		}
		tx.Commit()
	}
	return n
}

// openLimited returns an engine whose limit leaves room for some 4,000 keys of
// fillUntil.
func openLimited(t *testing.T, e Eviction) (*DB, *clock.Manual) {
	clock := clock.NewManual(time.UnixMilli(1700000000000))
	db := Open(Options{Clock: clock, Shards: 4})
	t.Cleanup(db.Close)
	db.SetEviction(e)
	db.UseLFU(e.By == ByFrequency)
	db.LimitMemory(1 << 20)
	return db, clock
}

func TestEvictionKeepsMemoryBelowTheLimit(t *testing.T) {
	tier.Sequential(t)
	for _, e := range []Eviction{{Keys: EvictAll, By: ByRecency}, {Keys: EvictAll, By: ByFrequency}, {Keys: EvictAll, By: ByChance}} {
		db, clock := openLimited(t, e)
		if !fillUntil(db, clock, "k", 20000, nil) {
			t.Fatalf("%+v: no room was made", e)
		}
		if used := db.UsedMemory(); used > 1<<20+4096 {
			t.Errorf("%+v: %d bytes are used", e, used)
		}
		if n := countKeys(db, "k", 0, 20000); n < 2000 || int64(20000-n) != db.Stats().Evicted {
			t.Errorf("%+v: %d keys are left, %d were evicted", e, n, db.Stats().Evicted)
		}
	}
}

func TestEvictionByRecencyKeepsWhatWasUsedLast(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByRecency})
	fillUntil(db, clock, "k", 20000, nil)
	old, young := countKeys(db, "k", 0, 15000), countKeys(db, "k", 19000, 20000)
	if young < 950 || old > 150 {
		t.Errorf("%d of 15000 old keys and %d of 1000 young ones are left", old, young)
	}
}

// If few large values are spread over many shards, the most recently used ones still stay.
func TestEvictionOfFewKeysKeepsWhatWasUsedLast(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1700000000000))
	db := Open(Options{Clock: clock, Shards: 16})
	t.Cleanup(db.Close)
	val := make([]byte, 50<<10)
	for i := range 200 {
		key := fmt.Appendf(nil, "k%d", i)
		tx := db.Begin(0, key)
		if _, _, err := tx.Set(key, val, SetOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		clock.Advance(time.Second)
	}
	db.SetEviction(Eviction{Keys: EvictAll, By: ByRecency, Samples: 20})
	db.LimitMemory(int64(7 << 20))
	db.MakeRoom(time.Hour)
	db.MakeRoom(time.Hour)
	if old, young := countKeys(db, "k", 0, 100), countKeys(db, "k", 100, 200); young < 82 || old > 45 {
		t.Errorf("%d of 100 old keys and %d of 100 young ones are left", old, young)
	}
}

func TestEvictionByFrequencyKeepsWhatIsUsedOften(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByFrequency})
	fillUntil(db, clock, "hot", 500, nil)
	for range 100 {
		countHot(db)
	}
	fillUntil(db, clock, "cold", 5000, nil)
	if n := countKeys(db, "hot", 0, 500); n < 480 {
		t.Errorf("%d of 500 often used keys are left", n)
	}
}

// countHot reads the hot keys, which counts as accesses.
func countHot(db *DB) {
	for i := range 500 {
		key := fmt.Appendf(nil, "hot%d", i)
		tx := db.Begin(0, key)
		_, _, _ = tx.Get(key)
		tx.Commit()
	}
}

func TestEvictionByDeadlineTakesTheSoonest(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictVolatile, By: ByDeadline})
	far := time.UnixMilli(1700000000000).Add(1000 * time.Hour).UnixMilli()
	if !fillUntil(db, clock, "k", 10000, func(i int) int64 { return far - int64(i)*1000 }) {
		t.Fatal("no room was made")
	}
	if early := countKeys(db, "k", 0, 1000); early < 950 {
		t.Errorf("%d of the 1000 keys that live longest are left", early)
	}
}

func TestVolatilePoliciesLeaveOtherKeysAlone(t *testing.T) {
	for _, by := range []EvictionOrder{ByRecency, ByFrequency, ByDeadline, ByChance} {
		db, clock := openLimited(t, Eviction{Keys: EvictVolatile, By: by})
		far := time.UnixMilli(1700000000000).Add(1000 * time.Hour).UnixMilli()
		if !fillUntil(db, clock, "kept", 1000, nil) || !fillUntil(db, clock, "v", 8000, func(int) int64 { return far }) {
			t.Fatalf("order %d: no room was made", by)
		}
		if n := countKeys(db, "kept", 0, 1000); n != 1000 {
			t.Errorf("order %d: %d of 1000 keys without deadline are left", by, n)
		}
		if fillUntil(db, clock, "more", 10000, nil) {
			t.Errorf("order %d: keys without deadline found room beyond the limit", by)
		}
	}
}

func TestNothingIsEvictedWithoutAPolicy(t *testing.T) {
	db, clock := openLimited(t, Eviction{})
	if fillUntil(db, clock, "k", 20000, nil) {
		t.Error("room was made")
	}
	if n := db.Stats().Evicted; n != 0 {
		t.Errorf("%d keys were evicted", n)
	}
}

func TestALowerLimitIsReachedWithoutWrites(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictAll})
	fillUntil(db, clock, "k", 3000, nil)
	db.LimitMemory(200 << 10)
	clock.Advance(time.Millisecond)
	if used := db.UsedMemory(); used > 200<<10 {
		t.Errorf("%d bytes are used", used)
	}
}

// An event loop that waited for a shard that a script holds could not read the SCRIPT KILL that ends it.
func TestEvictionPassesOverShardsThatAreHeld(t *testing.T) {
	db, _, _ := open(t, Options{Shards: 1})
	write := func(key string) {
		tx := db.Begin(0, []byte(key))
		defer tx.Commit()
		if _, _, err := tx.Set([]byte(key), make([]byte, 1000), SetOptions{}, nil); err != nil {
			t.Error(err)
		}
	}
	write("a")
	db.SetEviction(Eviction{Keys: EvictAll})
	db.LimitMemory(1)
	script := db.BeginAll(0)
	if !db.MakeRoom(time.Second) {
		t.Error("a write is refused while another transaction holds the only shard")
	}
	script.Commit()
	db.MakeRoom(time.Second)
	if n := db.Stats().Evicted; n != 1 {
		t.Errorf("%d keys are evicted after the shard was free", n)
	}
}
