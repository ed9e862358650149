package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// someDeadline returns a time to live, in ms, of any magnitude that a survey distinguishes; 0 for none.
func someDeadline(rng *rand.Rand) int64 {
	span := []int64{0, second, minute, hour, 48 * hour, 31 * day, 400 * day}[rng.IntN(7)]
	if span == 0 {
		return 0
	}
	return 1 + rng.Int64N(span)
}

// fillDeadlines makes keys and hashes in two databases.
func fillDeadlines(t *testing.T, db *DB, rng *rand.Rand, keys, hashes int) {
	t.Helper()
	for i := range keys {
		setFor(t, db, i%2, fmt.Sprint("key", i), someDeadline(rng))
	}
	for i := range hashes {
		key := fmt.Append(nil, "hash", i)
		tx := db.Begin(i%2, key)
		if _, err := tx.HSet(key, [][]byte{[]byte("a"), []byte("1"), []byte("b"), []byte("2"), []byte("c"), []byte("3")}); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"a", "b", "c"} {
			if ms := someDeadline(rng); ms > 0 {
				if err := tx.HExpire(key, [][]byte{[]byte(f)}, tx.Millis()+ms, 0, func(int) {}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ms := someDeadline(rng); ms > 0 {
			tx.Expire(key, tx.Millis()+ms, 0, 0)
		}
		tx.Commit()
	}
}

// walkDeadlines returns the deadlines of the keys of all databases, and for each container with an item that
// expires before it, the first deadline of an item.
func walkDeadlines(db *DB) (keys, containers []int64) {
	for i := range db.Databases() {
		tx := db.BeginAll(i)
		tx.Each(func(k Key) {
			if d := k.Deadline(); d != 0 {
				keys = append(keys, d)
			}
			next := int64(0)
			k.Items(func(it Item) {
				if it.Deadline != 0 && (next == 0 || it.Deadline < next) {
					next = it.Deadline
				}
			})
			if d := k.Deadline(); next != 0 && (d == 0 || next < d) {
				containers = append(containers, next)
			}
		})
		tx.Commit()
	}
	return keys, containers
}

// sortedDue counts deadlines as a survey does.
func sortedDue(at int64, deadlines []int64) (c DueCounts) {
	for _, d := range deadlines {
		ms := d - at
		if ms < 0 {
			c.Due++
			continue
		}
		for _, s := range []struct {
			counts []int64
			unit   int64
		}{{c.Seconds[:], second}, {c.Minutes[:], minute}, {c.Hours[:], hour}, {c.Days[:], day}} {
			if i := ms / s.unit; i < int64(len(s.counts)) {
				s.counts[i]++
			}
		}
		if ms >= 31*day {
			c.Later++
		}
	}
	return c
}

func TestADueSurveyIsASortOfAWalk(t *testing.T) {
	db, clock := surveyed(t)
	rng := rand.New(rand.NewPCG(1, 2))
	fillDeadlines(t, db, rng, 250, 60)
	for range 5 {
		v := db.SurveyDue()
		keys, containers := walkDeadlines(db)
		if len(keys) < 50 || len(containers) < 10 {
			t.Fatalf("%d keys and %d containers are too few", len(keys), len(containers))
		}
		if v.At != clock.Micros()/1000 {
			t.Errorf("a survey of %d at %d", v.At, clock.Micros()/1000)
		}
		if want := sortedDue(v.At, keys); v.Keys != want {
			t.Errorf("keys: %+v, want %+v", v.Keys, want)
		}
		if want := sortedDue(v.At, containers); v.Containers != want {
			t.Errorf("containers: %+v, want %+v", v.Containers, want)
		}
		tx := db.BeginAll(0)
		if in := tx.DueSurvey(); *in != *v {
			t.Errorf("in a transaction: %+v, want %+v", in, v)
		}
		tx.Commit()
		clock.Advance(time.Duration(rng.Int64N(10*minute)) * time.Millisecond)
		fillDeadlines(t, db, rng, 60, 10)
	}
}

// A lock has no deadline of its own, and lives until the end of its last lease.
func TestASurveyCountsLocksAndSemaphores(t *testing.T) {
	db, _ := surveyed(t)
	leased := func(dbi int, key string) {
		t.Helper()
		tx := db.Begin(dbi, []byte(key))
		defer tx.Commit()
		if _, _, err := tx.AcquireLock([]byte(key), []byte("a"), AcquireOptions{Lease: minute}); err != nil {
			t.Fatal(err)
		}
	}
	for want := range int64(4) {
		if v := db.TrySurveyDue(second); v == nil || v.Leased != want {
			t.Errorf("the survey is %+v, want %d keys with leases", v, want)
		}
		leased(int(want)%2, fmt.Sprint("lock", want))
	}
	tx := db.Begin(0, []byte("semaphore"))
	if _, _, err := tx.AcquirePermits([]byte("semaphore"), []byte("a"), 1, 2, AcquireOptions{Lease: minute}); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	if v := db.SurveyDue(); v.Leased != 5 || v.Keys != (DueCounts{}) {
		t.Errorf("the survey is %+v, want 5 keys with leases and no key with a deadline", v)
	}
}

// A deadline at a full second counts in the interval that begins there, whenever the survey is made.
func TestASurveyOnAGridCountsAStormAtItsSecond(t *testing.T) {
	db, clock := surveyed(t)
	storm := (clock.Micros()/1000/minute + 1) * minute
	for i := range 3000 {
		setFor(t, db, 0, fmt.Sprint("k", i), storm-clock.Micros()/1000)
	}
	for range 40 {
		v := db.TrySurveyDue(second)
		at := clock.Micros() / 1000
		if v == nil || v.At != at-at%second {
			t.Fatalf("%+v at %d", v, at)
		}
		if i := (storm - v.At) / second; i < 0 || i >= 60 || v.Keys.Seconds[i] != 3000 {
			t.Fatalf("%d ms before the storm: %v", storm-at, v.Keys.Seconds)
		}
		clock.Advance(137 * time.Millisecond)
	}
	if v := db.TrySurveyDue(hour); v.At%hour != 0 || v.Keys.Hours[(storm-v.At)/hour] != 3000 {
		t.Errorf("%+v", v)
	}
}

func TestADueSurveyIsAForecastWhereKeysAreMany(t *testing.T) {
	db, _ := surveyed(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		setFor(t, db, 0, fmt.Sprint("k", i), someDeadline(rng))
	}
	v := db.SurveyDue()
	keys, _ := walkDeadlines(db)
	slices.Sort(keys)
	total := v.Keys.Due + v.Keys.Later
	for _, n := range v.Keys.Days {
		total += n
	}
	if total != int64(len(keys)) {
		t.Errorf("%d deadlines, want %d", total, len(keys))
	}
	tx := db.BeginAll(0)
	defer tx.Commit()
	for _, x := range []struct {
		counts []int64
		unit   int64
		slot   int64 // of the wheel, there
	}{{v.Keys.Seconds[:], second, 256}, {v.Keys.Minutes[:], minute, 1 << 16}, {v.Keys.Hours[:], hour, 1 << 24}, {v.Keys.Days[:], day, 1 << 24}} {
		f := tx.Forecast(x.unit*int64(len(x.counts)), len(x.counts), nil) // exact: below 4,096 keys a shard it reads each of them
		upTo, want := int64(0), int64(0)
		for i, n := range x.counts {
			upTo += n
			want += int64(f.Counts[i])
			in := 0 // deadlines in the slots that the bound may cut
			for _, d := range keys {
				if b := f.Bounds[i]; d >= b-x.slot && d < b+x.slot {
					in++
				}
			}
			if off := upTo - want; off > int64(in) || -off > int64(in) {
				t.Errorf("%d deadlines up to %d x %d ms, want %d, and %d are near", upTo, i+1, x.unit, want, in)
			}
		}
	}
}

func BenchmarkDueSurvey(b *testing.B) {
	db := Open(Options{Shards: 16})
	defer db.Close()
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 1_000_000 {
		tx := db.Begin(0, fmt.Append(nil, i))
		_, _, _ = tx.Set(fmt.Append(nil, i), []byte("v"), SetOptions{Deadline: tx.Millis() + 1000 + someDeadline(rng)}, nil)
		tx.Commit()
	}
	for b.Loop() {
		db.SurveyDue()
	}
}
