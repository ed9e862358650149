package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// valuables makes n keys of every protected kind.
func valuables(t *testing.T, db *DB, n int) {
	t.Helper()
	tx := db.BeginAll(0)
	defer tx.Commit()
	for _, r := range []string{"one", "two"} {
		if err := tx.SetRule(Rule{Name: r, Match: "nothing*", Levels: AllLevels, Stream: "stream-" + r, MaxLen: 100}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := tx.XAdd([]byte("stream-"+r), &XAdd{Auto: true, Pairs: [][]byte{[]byte("f"), make([]byte, 100)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.SetRule(Rule{Name: "three", Match: "nothing*", Levels: AllLevels, ToQueue: true, Queue: "queue-three"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueueConfigure([]byte("{mail}:queue"), QueueConfig{Deliver: []byte("{mail}:stream")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"queue-three", "{mail}:queue"} {
		if _, _, err := tx.QueueAdd([]byte(name), &QueueAdd{ID: []byte("job"), Payload: make([]byte, 100), Due: tx.Millis()}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		key := func(kind string) []byte { return fmt.Appendf(nil, "%s-%d", kind, i) }
		owner, lease := []byte("a"), AcquireOptions{Lease: 1e9}
		_, _, lockErr := tx.AcquireLock(key("lock"), owner, lease)
		_, _, semErr := tx.AcquirePermits(key("semaphore"), owner, 1, 1, lease)
		_, _, addErr := tx.QueueAdd(key("queue"), &QueueAdd{ID: []byte("job"), Payload: make([]byte, 100), Due: tx.Millis()})
		_, takeErr := tx.Take(key("limiter"), TakeOptions{Limit: 1, Period: limiter.MaxPeriod, Burst: 1, Cost: 1})
		for _, err := range []error{lockErr, semErr, addErr, takeErr} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func left(db *DB, names ...string) (n int) {
	for _, name := range names {
		tx := db.Begin(0, []byte(name))
		if tx.Exists([]byte(name)) {
			n++
		}
		tx.Commit()
	}
	return n
}

// Data that an eviction would lose for good stays, under every policy, however long it was not used.
func TestWhatCannotBeFetchedAgainIsNotEvicted(t *testing.T) {
	tier.Sequential(t)
	deadline := func(i int) int64 { return 1800000000000 + int64(i) }
	for _, keys := range []EvictionKeys{EvictAll, EvictVolatile} {
		for _, by := range []EvictionOrder{ByRecency, ByFrequency, ByDeadline, ByChance} {
			db, clock := openLimited(t, Eviction{Keys: keys, By: by})
			const n = 50
			valuables(t, db, n)
			tx := db.BeginAll(0)
			p := tx.ProtectedMemory()
			tx.Commit()
			if p.Protected < n*1000 || p.Protected > n*8000 || p.Limiters < n*48 || p.Limiters > n*200 {
				t.Errorf("%d bytes are protected, %d of limiters", p.Protected, p.Limiters)
			}
			if !fillUntil(db, clock, "k", 8000, deadline) {
				t.Fatalf("%v, %v: no room was made", keys, by)
			}
			for i := range n {
				if x := left(db, fmt.Sprint("lock-", i), fmt.Sprint("semaphore-", i), fmt.Sprint("queue-", i), fmt.Sprint("limiter-", i)); x != 4 {
					t.Fatalf("%v, %v: %d of 4 valuables are left", keys, by, x)
				}
			}
			if x := left(db, "stream-one", "stream-two", "queue-three"); x != 3 {
				t.Errorf("%v, %v: %d of the rules' 3 targets are left", keys, by, x)
			}
			if x := left(db, "{mail}:stream"); x != 1 {
				t.Errorf("%v, %v: the stream that a queue delivers to is gone", keys, by)
			}
			if db.Stats().Evicted < 3000 {
				t.Errorf("%v, %v: only %d keys were evicted", keys, by, db.Stats().Evicted)
			}
			if err := db.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The protection of queues also covers the streams that they deliver to, and the protection of rules covers
// their queues.
func TestTargetsAreProtectedWithTheirKind(t *testing.T) {
	for un, want := range map[Protected][2]bool{ProtectQueues: {false, true}, ProtectRules: {true, true}, ProtectQueues | ProtectRules: {false, false}} {
		db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByRecency, Unprotected: un})
		valuables(t, db, 1)
		clock.Advance(time.Hour)
		fillUntil(db, clock, "k", 8000, nil)
		if got := [2]bool{left(db, "{mail}:stream") == 1, left(db, "queue-three") == 1}; got != want {
			t.Errorf("without protection of %d: the queue's stream and the rule's queue are there: %v, want %v", un, got, want)
		}
	}
}

// Each part of the protection can be disabled by itself.
func TestWhatIsNotProtectedIsEvicted(t *testing.T) {
	tier.Sequential(t)
	names := map[Protected]string{
		ProtectLocks: "lock-0", ProtectSemaphores: "semaphore-0", ProtectQueues: "queue-0",
		ProtectLimiters: "limiter-0", ProtectRules: "stream-one",
	}
	for un, name := range names {
		db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByRecency, Unprotected: un})
		valuables(t, db, 1)
		clock.Advance(time.Hour)
		fillUntil(db, clock, "k", 8000, nil)
		for part, other := range names {
			if gone := left(db, other) == 0; gone != (part == un) {
				t.Errorf("without protection of %s: %s is gone: %v", name, other, gone)
			}
		}
	}
}

// A stream that a rule wrote to is like any other once the rule is removed; a key of another type is not a
// rule's target.
func TestAStreamIsProtectedAsLongAsARuleWritesToIt(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByRecency})
	valuables(t, db, 1)
	tx := db.BeginAll(0)
	tx.DelRule("one")
	tx.Commit()
	clock.Advance(time.Hour)
	fillUntil(db, clock, "k", 8000, nil)
	if left(db, "stream-one") != 0 || left(db, "stream-two") != 1 {
		t.Errorf("left of the stream without a rule: %d, of that with one: %d", left(db, "stream-one"), left(db, "stream-two"))
	}
}

// A stream that a queue delivers to is protected as long as the queue delivers to it, however the queue was
// made and whatever its name is.
func TestAStreamIsProtectedAsLongAsAQueueDeliversToIt(t *testing.T) {
	queue, stream := []byte("{mail}:queue"), []byte("{mail}:stream")
	other := []byte("{mail}:other")
	for name, c := range map[string]struct {
		change func(tx *Tx) error
		stays  bool
	}{
		"nothing": {func(*Tx) error { return nil }, true},
		"paused": {func(tx *Tx) error {
			return tx.QueueConfigure(queue, QueueConfig{Deliver: stream, PausedUntil: PausedForGood})
		}, true},
		"renamed":    {func(tx *Tx) error { _, err := tx.Rename(queue, other, false); return err }, true},
		"configured": {func(tx *Tx) error { return tx.QueueConfigure(queue, QueueConfig{MaxLen: 5}) }, false},
		"deleted":    {func(tx *Tx) error { tx.Del(queue); return nil }, false},
		"replaced": {func(tx *Tx) error {
			_, _, err := tx.Set(queue, []byte("v"), SetOptions{}, nil)
			return err
		}, false},
		"copied": {func(tx *Tx) error {
			_, err := tx.Copy(queue, other, 0, false)
			tx.Del(queue)
			return err
		}, true},
		"moved": {func(tx *Tx) error { _, err := tx.Move(queue, 1); return err }, false},
		"restored": {func(tx *Tx) error {
			payload, _ := tx.Dump(nil, queue)
			tx.Del(queue)
			return tx.Restore(queue, payload, RestoreOptions{})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, clock := openLimited(t, Eviction{Keys: EvictAll, By: ByRecency})
			valuables(t, db, 1)
			tx := db.BeginAll(0)
			before := tx.ProtectedMemory()
			err := c.change(tx)
			after := tx.ProtectedMemory()
			tx.Commit()
			if err != nil {
				t.Fatal(err)
			}
			if !c.stays && after.Protected >= before.Protected {
				t.Errorf("%d bytes are protected, before it were %d", after.Protected, before.Protected)
			}
			if err := db.Check(); err != nil {
				t.Error(err)
			}
			clock.Advance(time.Hour)
			fillUntil(db, clock, "k", 8000, nil)
			if stays := left(db, string(stream)) == 1; stays != c.stays {
				t.Errorf("the stream is there: %v, want %v", stays, c.stays)
			}
			if err := db.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Many limiters do not displace other data: beyond their share the fullest limiters are evicted first, so
// that cached data stays, and so do the limiters in use.
func TestTooManyLimitersGoFirstAndTheFullestOfThem(t *testing.T) {
	tier.Sequential(t)
	const share = 256 << 10
	for _, by := range []EvictionOrder{ByRecency, ByChance} {
		db, clock := openLimited(t, Eviction{Keys: EvictAll, By: by, Limiters: share})
		take := func(name string, n, cost int64) {
			if !db.MakeRoom(time.Second) {
				t.Fatal("no room was made")
			}
			key := fmt.Appendf(nil, "%s-%d", name, n)
			tx := db.Begin(0, key)
			if _, err := tx.Take(key, TakeOptions{Limit: 1000, Period: limiter.MaxPeriod, Burst: 1000, Cost: cost}); err != nil {
				t.Fatal(err)
			}
			tx.Commit()
		}
		const used, cached = 200, 1500
		for n := range int64(used) {
			take("used", n, 1000)
		}
		fillUntil(db, clock, "k", cached, nil)
		for n := range int64(20000) {
			take("flood", n, 1)
		}
		tx := db.BeginAll(0)
		p := tx.ProtectedMemory()
		tx.Commit()
		inUse := countKeys(db, "used-", 0, used)
		if inUse < used*95/100 {
			t.Errorf("%d of %d limiters that are used up are left", inUse, used)
		}
		if n := countKeys(db, "k", 0, cached); n < cached*9/10 {
			t.Errorf("%d of %d keys are left beside a flood of limiters", n, cached)
		}
		if p.Limiters < share/2 || db.Stats().Evicted < 5000 {
			t.Errorf("%d bytes of limiters are left, %d keys were evicted", p.Limiters, db.Stats().Evicted)
		}
		if err := db.Check(); err != nil {
			t.Error(err)
		}
	}
}
