package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// openReplica returns a replica on a clock that stands still, with a journal that must stay empty.
func openReplica(t *testing.T, shards int) (*DB, *clock.Manual, *journal) {
	db, clock, j := open(t, Options{Shards: shards, RecordEffects: true})
	db.SetReplica(true)
	return db, clock, j
}

// replayed runs f as a replay of the master's stream.
func replayed(db *DB, f func(tx *Tx)) {
	tx := db.BeginAll(0)
	defer tx.Commit()
	tx.Replaying()
	f(tx)
}

// stored returns the number of keys in all databases, including dead ones.
func stored(db *DB) (n int) {
	replayed(db, func(tx *Tx) { tx.Each(func(Key) { n++ }) })
	return n
}

// silent fails the test if a replica has reported, logged or counted an expiration.
func silent(t *testing.T, db *DB, j *journal, events ...string) {
	t.Helper()
	if got := j.take(); strings.Join(got, " ") != strings.Join(events, " ") {
		t.Errorf("events %q, want %q", got, events)
	}
	if fx := db.Drain(); len(fx) != 0 {
		t.Errorf("effects %v", fx)
	}
	if s := db.Stats(); s.Expired+s.ExpiredLazily+s.ExpiredItems+s.LeasesExpired+s.RuleFired != 0 {
		t.Errorf("counted as expired: %+v", s)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}

func TestAReplicaKeepsWhatHasExpiredUntilTheMasterSaysSo(t *testing.T) {
	for name, fill := range hollowMakers {
		t.Run(name, func(t *testing.T) {
			db, clock, j := openReplica(t, 1)
			replayed(db, func(tx *Tx) {
				if err := fill(tx, []byte("k")); err != nil {
					t.Fatal(err)
				}
			})
			j.take()
			clock.Advance(time.Minute)
			if n := waysSeen(db); n != [5]int{} {
				t.Errorf("it is seen: %v", n)
			}
			if stored(db) != 1 {
				t.Error("it is no longer there")
			}
			silent(t, db, j)
			replayed(db, func(tx *Tx) { tx.Del([]byte("k")) })
			if stored(db) != 0 {
				t.Error("the master's DEL did nothing")
			}
		})
	}
}

func TestANewKeyTakesThePlaceOfAHiddenOneWithoutAWord(t *testing.T) {
	tier.Sequential(t)
	k, from := []byte("k"), []byte("from")
	writes := map[string]func(tx *Tx){
		"set":    func(tx *Tx) { _, _, _ = tx.Set(k, []byte("new"), SetOptions{}, nil) },
		"hset":   func(tx *Tx) { _, _ = tx.HSet(k, [][]byte{[]byte("f"), []byte("v")}) },
		"zadd":   func(tx *Tx) { _, _, _ = tx.ZAdd(k, []Scored{{1, []byte("m")}}, ZAddOptions{}) },
		"xadd":   func(tx *Tx) { _, _, _ = tx.XAdd(k, &XAdd{Auto: true, Pairs: [][]byte{[]byte("f"), []byte("v")}}) },
		"lock":   func(tx *Tx) { _, _, _ = tx.AcquireLock(k, []byte("me"), AcquireOptions{Lease: 1000}) },
		"rename": func(tx *Tx) { _, _ = tx.Rename(from, k, true) },
		"copy":   func(tx *Tx) { _, _ = tx.Copy(from, k, 0, false) },
	}
	for name, write := range writes {
		for old, fill := range hollowMakers {
			db, clock, j := openReplica(t, 1)
			replayed(db, func(tx *Tx) {
				must(fill(tx, k))
				_, _, _ = tx.Set(from, []byte("new"), SetOptions{}, nil)
			})
			clock.Advance(time.Minute)
			j.take()
			do(db, write)
			do(db, func(tx *Tx) {
				if !tx.Exists(k) {
					t.Errorf("%s over a hidden %s: there is no key", name, old)
				}
			})
			if n := map[bool]int{true: 1, false: 2}[name == "rename"]; stored(db) != n {
				t.Errorf("%s over a hidden %s: %d records, want %d", name, old, stored(db), n)
			}
			for _, e := range j.take() {
				if strings.Contains(e, "expired") || strings.Contains(e, "del") {
					t.Errorf("%s over a hidden %s: event %s", name, old, e)
				}
			}
			silent(t, db, j)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestWritesOfAReplicasClientsTreatTheDeadAsAbsent(t *testing.T) {
	db, clock, j := openReplica(t, 1)
	soon, k := epoch.UnixMilli()+10, func(s string) []byte { return []byte(s) }
	replayed(db, func(tx *Tx) {
		_, _, _ = tx.Set(k("s"), k("5"), SetOptions{Deadline: soon}, nil)
		_, _ = tx.HSet(k("h"), [][]byte{k("a"), k("1"), k("b"), k("2")})
		must(tx.HExpire(k("h"), [][]byte{k("a")}, soon, 0, func(int) {}))
		_, _ = tx.LPush(k("l"), Tail, [][]byte{k("a"), k("b"), k("c")}, false)
		must(tx.LExpire(k("l"), []int64{0}, soon, 0, func(int) {}))
		_, _, _ = tx.ZAdd(k("z"), []Scored{{1, k("a")}, {2, k("b")}}, ZAddOptions{})
		must(tx.ZExpire(k("z"), [][]byte{k("a")}, soon, 0, func(int) {}))
		_, _, _ = tx.AcquireLock(k("lock"), k("a"), AcquireOptions{Lease: 10, Shared: true})
		_, _, _ = tx.AcquireLock(k("lock"), k("b"), AcquireOptions{Lease: 1000, Shared: true})
		_, _, _ = tx.QueueAdd(k("q"), &QueueAdd{ID: k("j"), Due: tx.Millis()})
		_, _ = tx.QueuePop(k("q"), 1, 10, func(Job) {})
	})
	clock.Advance(20 * time.Millisecond)
	j.take()
	do(db, func(tx *Tx) {
		if n, err := tx.IncrBy(k("s"), 1); n != 1 || err != nil {
			t.Errorf("INCR of a dead 5: %d, %v", n, err)
		}
		if n, err := tx.HIncrBy(k("h"), k("a"), 1); n != 1 || err != nil {
			t.Errorf("HINCRBY of a dead field: %d, %v", n, err)
		}
		if n, err := tx.LPush(k("l"), Head, [][]byte{k("x")}, false); n != 3 || err != nil {
			t.Errorf("LPUSH: %d, %v", n, err)
		}
		if n, err := tx.ZRem(k("z"), [][]byte{k("a")}); n != 0 || err != nil {
			t.Errorf("ZREM of a dead member: %d, %v", n, err)
		}
		if _, ok, err := tx.AcquireLock(k("lock"), k("b"), AcquireOptions{Lease: 1000}); !ok || err != nil {
			t.Errorf("the only holder whose lease is not over does not get the lock: %v", err)
		}
		n, err := tx.QueuePop(k("q"), 1, 10, func(job Job) {
			if job.Deliveries != 2 {
				t.Errorf("delivery %d", job.Deliveries)
			}
		})
		if n != 1 || err != nil {
			t.Errorf("DQ.POP of a job whose lease is over: %d, %v", n, err)
		}
	})
	for _, e := range j.take() {
		if strings.Contains(e, "expired") || strings.Contains(e, "lapsed") {
			t.Errorf("event %s", e)
		}
	}
	silent(t, db, j)
}

func TestAPromotedReplicaRemovesWhatItHasHidden(t *testing.T) {
	db, clock, j := openReplica(t, 4)
	replayed(db, func(tx *Tx) {
		for i := range 1000 {
			_, _, _ = tx.Set(fmt.Appendf(nil, "k%d", i), []byte("v"), SetOptions{Deadline: tx.Millis() + 5}, nil)
			key := fmt.Appendf(nil, "h%d", i)
			_, _ = tx.HSet(key, [][]byte{[]byte("a"), []byte("1"), []byte("b"), []byte("2")})
			must(tx.HExpire(key, [][]byte{[]byte("a")}, tx.Millis()+5, 0, func(int) {}))
		}
	})
	clock.Advance(time.Hour)
	j.take()
	silent(t, db, j)
	db.SetReplica(false)
	clock.Advance(time.Millisecond)
	if n := stored(db); n != 1000 {
		t.Errorf("%d keys are left", n)
	}
	if s := db.Stats(); s.Expired != 1000 || s.ExpiredItems != 1000 {
		t.Errorf("%d keys and %d items are counted as expired", s.Expired, s.ExpiredItems)
	}
	dels, hdels := 0, 0
	for _, e := range db.Drain() {
		switch string(e.Args[0]) {
		case "DEL":
			dels += len(e.Args) - 1
		case "HDEL":
			hdels += len(e.Args) - 2
		}
	}
	if dels != 1000 || hdels != 1000 {
		t.Errorf("%d keys and %d fields are logged", dels, hdels)
	}
	if len(j.take()) == 0 {
		t.Error("Hooks got no events")
	}
}

// A container whose dead fields the master has removed does not stay due: otherwise counting keys would
// examine every such container.
func TestWhatTheMasterHasRemovedIsNotDueAnyMore(t *testing.T) {
	db, clock, _ := openReplica(t, 1)
	fields := func(i int) [][]byte { return [][]byte{fmt.Append(nil, i), []byte("v")} }
	replayed(db, func(tx *Tx) {
		for i := range 10 {
			key := fmt.Append(nil, "h", i)
			_, _ = tx.HSet(key, append(fields(1), fields(2)...))
			must(tx.HExpire(key, fields(1)[:1], tx.Millis()+5, 0, func(int) {}))
			must(tx.HExpire(key, fields(2)[:1], tx.Millis()+5000, 0, func(int) {}))
		}
	})
	clock.Advance(10 * time.Millisecond)
	due := func() (n int64) {
		do(db, func(tx *Tx) { n, _ = tx.Backlog() })
		return n
	}
	do(db, func(tx *Tx) { tx.Size() }) // it brings the wheels up to the present
	if n := due(); n != 10 {
		t.Errorf("%d containers are due", n)
	}
	replayed(db, func(tx *Tx) {
		for i := range 10 {
			_, _ = tx.HDel(fmt.Append(nil, "h", i), fields(1)[:1])
		}
	})
	if n := due(); n != 0 {
		t.Errorf("%d containers are due whose dead are gone", n)
	}
	must(db.Check())
}

func TestReadsOfAReplicaMoveNoSlidingDeadline(t *testing.T) {
	db, clock, j := openReplica(t, 1)
	k, until := []byte("k"), epoch.UnixMilli()+1000
	replayed(db, func(tx *Tx) {
		_, _, _ = tx.Set(k, []byte("v"), SetOptions{}, nil)
		tx.Expire(k, until, 1000, 0)
	})
	j.take()
	clock.Advance(900 * time.Millisecond)
	do(db, func(tx *Tx) {
		if _, ok, err := tx.Get(k); !ok || err != nil || tx.Deadline(k) != until {
			t.Errorf("%v, %v, the deadline is %d ms off", ok, err, tx.Deadline(k)-until)
		}
	})
	silent(t, db, j)
}

func TestRandomKeyOfAReplicaFindsTheOneThatLives(t *testing.T) {
	db, clock, _ := openReplica(t, 2)
	replayed(db, func(tx *Tx) {
		for i := range 5000 {
			_, _, _ = tx.Set(fmt.Appendf(nil, "k%d", i), nil, SetOptions{Deadline: tx.Millis() + 1}, nil)
		}
		_, _, _ = tx.Set([]byte("living"), nil, SetOptions{}, nil)
	})
	clock.Advance(time.Second)
	do(db, func(tx *Tx) {
		if k := tx.RandomKey(rand.NewPCG(1, 2).Uint64); string(k) != "living" {
			t.Errorf("found %q", k)
		}
		if n := tx.Size(); n != 1 {
			t.Errorf("%d keys", n)
		}
		tx.Replaying()
		tx.Del([]byte("living"))
	})
	do(db, func(tx *Tx) {
		if k := tx.RandomKey(rand.NewPCG(1, 2).Uint64); k != nil {
			t.Errorf("found %q", k)
		}
	})
}

func TestAReplicaEvictsOnlyIfItIsTold(t *testing.T) {
	db, clock := openLimited(t, Eviction{Keys: EvictAll})
	db.SetReplica(true)
	if !fillUntil(db, clock, "k", 8000, nil) {
		t.Fatal("a replica was refused what its master has room for")
	}
	if n := db.Stats().Evicted; n != 0 {
		t.Errorf("%d keys are evicted", n)
	}
	db.SetReplicaEviction(true)
	clock.Advance(time.Second)
	if db.Stats().Evicted == 0 || db.OverLimit() {
		t.Error("told to, it does not evict")
	}
}

// A watch notices that a hidden key has expired.
func TestAWatchOnAReplicaBreaksAtTheDeadline(t *testing.T) {
	db, clock, _ := openReplica(t, 1)
	k, w := []byte("k"), db.NewWatch()
	set(t, db, "k", "v", 10*time.Millisecond)
	do(db, func(tx *Tx) { w.Add(tx, k) })
	clock.Advance(20 * time.Millisecond)
	do(db, func(tx *Tx) {
		if !w.Broken(tx) {
			t.Error("the key has expired")
		}
	})
	w.Clear(nil)
}
