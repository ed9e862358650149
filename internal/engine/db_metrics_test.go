package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// surveyed opens an engine on a manual clock.
func surveyed(t *testing.T) (*DB, *clock.Manual) {
	t.Helper()
	clock := clock.NewManual(time.Unix(1_700_000_000, 0))
	db := Open(Options{Clock: clock, Shards: 4})
	t.Cleanup(db.Close)
	return db, clock
}

// setFor sets a key in a database; it expires after ms, or never if that is 0.
func setFor(t *testing.T, db *DB, dbi int, key string, ms int64) {
	t.Helper()
	tx := db.Begin(dbi, []byte(key))
	defer tx.Commit()
	o := SetOptions{}
	if ms > 0 {
		o.Deadline = tx.Millis() + ms
	}
	if _, _, err := tx.Set([]byte(key), []byte("value"), o, nil); err != nil {
		t.Fatal(err)
	}
}

func TestASurveyAddsUpAllShards(t *testing.T) {
	db, clock := surveyed(t)
	s := db.NewSurveyor()
	for i := range 100 {
		setFor(t, db, 0, fmt.Sprint("forever", i), 0)
		setFor(t, db, 0, fmt.Sprint("soon", i), 100)
		setFor(t, db, 3, fmt.Sprint("later", i), 30_000)
	}
	v := s.Survey()
	if v.Stale != 0 || v.Databases[0].Keys != 200 || v.Databases[0].Expires != 100 || v.Databases[3].Keys != 100 || v.Databases[1].Keys != 0 {
		t.Errorf("%d stale, %+v", v.Stale, v.Databases)
	}
	if d := v.Databases[3].AvgTTL; d != 30*time.Second {
		t.Errorf("an average of %v", d)
	}
	if v.Keys.Entries != 200 || v.Keys.Due != 0 || v.Keys.Ahead != [6]int64{100, 200, 200, 200, 200, 200} {
		t.Errorf("keys: %+v", v.Keys)
	}
	if v.Used != db.UsedMemory() || v.Used == 0 {
		t.Errorf("%d bytes of %d", v.Used, db.UsedMemory())
	}

	db.SetActiveExpiry(false)
	clock.Advance(101 * time.Millisecond)
	v = s.Survey()
	if v.Keys.Due != 100 || v.Databases[0].Keys != 100 || v.Databases[0].Expires != 0 || v.Databases[0].Due != 100 {
		t.Errorf("with dead keys: %+v, %+v", v.Keys, v.Databases[0])
	}
	db.SetActiveExpiry(true)
	clock.Advance(time.Millisecond)
	v = s.Survey()
	if v.Keys.Due != 0 || v.Counters.Expired != 100 || v.Counters.Lag[LevelKey].Count != 100 {
		t.Errorf("after them: %+v, %d", v.Keys, v.Counters.Expired)
	}
	if sum, most := v.Counters.Lag[LevelKey].Sum, v.Counters.Lag[LevelKey].Max; sum != 100*most {
		t.Errorf("lags of %d us at most add up to %d", most, sum)
	}
}

func TestASurveyHasTheNumbersThatInfoHas(t *testing.T) {
	db, _ := surveyed(t)
	for i := range 50 {
		setFor(t, db, 0, fmt.Sprint("k", i), int64(i)*977)
		setFor(t, db, 2, fmt.Sprint("k", i), 0)
	}
	v := db.NewSurveyor().Survey()
	tx := db.BeginAll(0)
	defer tx.Commit()
	for n, want := range tx.Keyspaces() {
		if got := v.Databases[n].KeyspaceStats; got != want {
			t.Errorf("database %d: %+v, want %+v", n, got, want)
		}
		tables, deadlines := tx.TableMemory(n)
		if got := v.Databases[n]; got.Tables != tables || got.Deadlines != deadlines {
			t.Errorf("database %d: %d and %d bytes, want %d and %d", n, got.Tables, got.Deadlines, tables, deadlines)
		}
	}
	if v.Counters != tx.Stats() {
		t.Error("other counters")
	}
}

func TestASurveyDoesNotWaitForShardsThatAreHeld(t *testing.T) {
	db, _ := surveyed(t)
	s := db.NewSurveyor()
	setFor(t, db, 0, "before", 0)
	if v := s.Survey(); v.Stale != 0 || v.Databases[0].Keys != 1 {
		t.Fatalf("%+v", v.Databases[0])
	}
	setFor(t, db, 0, "after", 0)
	tx := db.BeginAll(0)
	v := s.Survey() // it would never end if it waited for the lock
	tx.Commit()
	if v.Stale != db.Shards() || v.Databases[0].Keys != 1 {
		t.Errorf("%d stale shards, %d keys", v.Stale, v.Databases[0].Keys)
	}
	if v := s.Survey(); v.Stale != 0 || v.Databases[0].Keys != 2 {
		t.Errorf("afterwards: %d stale shards, %d keys", v.Stale, v.Databases[0].Keys)
	}
}

func TestSurveysDisturbNoTransaction(t *testing.T) {
	db := Open(Options{Shards: 4})
	defer db.Close()
	s := db.NewSurveyor()
	stop := make(chan struct{})
	var work sync.WaitGroup
	for w := range 2 {
		work.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					setFor(t, db, 0, fmt.Sprint("w", w, "-", i%1000), int64(i%7))
				}
			}
		})
	}
	var surveys sync.WaitGroup
	for range 2 {
		surveys.Go(func() {
			for range 200 {
				if v := s.Survey(); v.Databases[0].Keys > 2000 {
					t.Errorf("%d keys", v.Databases[0].Keys)
				}
			}
		})
	}
	surveys.Wait()
	close(stop)
	work.Wait()
}

func BenchmarkSurvey(b *testing.B) {
	db := Open(Options{Shards: 16})
	defer db.Close()
	for i := range 100_000 {
		tx := db.Begin(0, fmt.Append(nil, i))
		_, _, _ = tx.Set(fmt.Append(nil, i), []byte("v"), SetOptions{Deadline: tx.Millis() + 1000 + int64(i)*7919%3_600_000}, nil)
		tx.Commit()
	}
	s := db.NewSurveyor()
	for b.Loop() {
		s.Survey()
	}
}
