package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

func TestAWalkSeesWhatALookupOfEachKeySees(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Clock: clock, Shards: 4})
	defer db.Close()
	tx := db.BeginAll(0)
	set := func(key, value string, deadline int64) {
		if _, _, err := tx.Set([]byte(key), []byte(value), SetOptions{Deadline: deadline}, nil); err != nil {
			t.Fatal(err)
		}
	}
	now := clock.Micros() / 1000
	for i := range 200 {
		set(fmt.Sprint("plain:", i), string(bytes.Repeat([]byte("v"), i*37)), 0)
		set(fmt.Sprint("timed:", i), "v", now+int64(i)*1000+1)
		if _, err := tx.HSet(fmt.Append(nil, "hash:", i%20), [][]byte{fmt.Append(nil, "f", i), []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	set(string(bytes.Repeat([]byte("long name "), 9000)), "v", now+5000)
	for i, lease := range []int64{1000, 30_000} {
		if _, ok, err := tx.AcquireLock([]byte("lock"), fmt.Append(nil, "owner", i), AcquireOptions{Lease: lease, Shared: true}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	tx.Commit()
	clock.Advance(100 * time.Second) // half of the timed keys have expired, and the lock too
	for _, advance := range []time.Duration{0, 50 * time.Second} {
		clock.Advance(advance)
		type seen struct {
			kind       Kind
			ttl, usage int64
		}
		walked := map[string]seen{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var ok bool
			cursor, ok = db.TryScan(0, cursor, 16, func(k Key) {
				walked[string(k.Name())] = seen{k.Kind(), k.TTL(), k.MemoryUsage()}
			})
			if !ok {
				t.Fatal("no transaction holds a shard")
			}
		}
		tx := db.BeginAll(0)
		n := 0
		tx.Each(func(k Key) {
			n++
			x := walked[string(k.Name())]
			if x.kind != k.Kind() {
				t.Errorf("%.20q: the walk saw %+v", k.Name(), x)
			}
		})
		for name, x := range walked {
			usage, ok := tx.MemoryUsage([]byte(name))
			if y := (seen{tx.Type([]byte(name)), tx.TTL([]byte(name)), usage}); !ok || x != y {
				t.Errorf("%.20q: the walk saw %+v, a lookup sees %+v", name, x, y)
			}
		}
		if n != len(walked) || n < 200 {
			t.Errorf("the walk saw %d keys of %d", len(walked), n)
		}
		tx.Commit()
	}
}

func TestAWalkWaitsForNoLock(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0)), Shards: 2})
	defer db.Close()
	for i := range 50 {
		if err := db.set(0, fmt.Append(nil, "k", i), []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
	}
	tx := db.BeginAll(0)
	n := 0
	next, ok := db.TryScan(0, 0, 10, func(Key) { n++ })
	if ok || next != 0 || n != 0 {
		t.Errorf("the walk went on to %d, over %d keys, though its shard is locked", next, n)
	}
	if v := db.TrySurveyDue(1); v != nil {
		t.Error("the survey went on though all shards are locked")
	}
	tx.Commit()
	if next, ok = db.TryScan(0, 0, 10, func(Key) { n++ }); !ok || next == 0 || n == 0 {
		t.Error(next, ok, n)
	}
	if v := db.TrySurveyDue(1); v == nil || *v != *db.SurveyDue() {
		t.Error(v)
	}
	if next, ok := db.TryScan(0, 1<<60, 10, func(Key) { t.Error("a key") }); next != 0 || !ok {
		t.Error(next, ok)
	}
}

// BenchmarkTryScan walks over a million keys, and reads the facts about each that the console's walk needs.
func BenchmarkTryScan(b *testing.B) {
	db := Open(Options{Shards: 16})
	defer db.Close()
	const keys = 1_000_000
	for i := range keys {
		if err := db.set(0, fmt.Append(nil, "prefix", i%50, ":", i), []byte("v"), time.Duration(i%3)*10*time.Minute); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n, size, ttl := 0, int64(0), int64(0)
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			cursor, _ = db.TryScan(0, cursor, 128, func(k Key) {
				n++
				size += k.MemoryUsage() + int64(bytes.IndexByte(k.Name(), ':'))
				ttl += k.TTL()
			})
		}
		if n < keys {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}

// A step of a walk over keys with long names visits few of them, because SCAN copies the names.
func TestAStepOfAWalkVisitsFewLongNames(t *testing.T) {
	db := Open(Options{Shards: 1})
	defer db.Close()
	const keys, size = 400, 4 * nameCost
	tx := db.BeginAll(0)
	for i := range keys {
		if _, _, err := tx.Set(fmt.Appendf(nil, "%0*d", size, i), []byte("v"), SetOptions{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	all := map[string]bool{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		visited := 0
		cursor = db.Scan(0, cursor, 100, func(k Key) {
			visited++
			all[string(k.Name())] = true
		})
		if visited > 60 {
			t.Errorf("a step with the count 100 visits %d names of %d bytes", visited, size)
		}
	}
	if len(all) != keys {
		t.Errorf("the walk visits %d keys of %d", len(all), keys)
	}
}
