package engine

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/limiter"
)

// steppedDB is an engine with a reclaimer that the test runs, on a clock whose two readings the test sets.
type steppedDB struct {
	*DB
	steppedClock
}

// steppedClock works as clock.System does, but the test sets its two readings, in us.
type steppedClock struct {
	wall, mono int64
	seen, now  int64 // mono at the last call, and the result of that call
}

func newSteppedDB(t *testing.T) *steppedDB {
	s := &steppedDB{steppedClock: steppedClock{wall: 1_700_000_000_000_000, now: 1_700_000_000_000_000}}
	s.DB = Open(Options{Clock: &s.steppedClock, Shards: 4, Reclaimers: 1})
	s.Reclaimer(0, func() {})
	t.Cleanup(s.Close)
	return s
}

// Micros implements clock.Clock: engine time passes as mono does, and approaches wall by 1 %.
func (s *steppedClock) Micros() int64 {
	passed := s.mono - s.seen
	s.seen, s.now = s.mono, s.now+passed
	ahead := s.wall - s.now
	s.now += max(-passed/100, min(ahead, passed/100))
	return s.now
}

// pass advances both clocks, in the steps in which an engine reads its clock.
func (s *steppedDB) pass(d time.Duration) {
	for left := d.Microseconds(); left > 0; {
		n := min(left, 100_000)
		s.mono, s.wall, left = s.mono+n, s.wall+n, left-n
		s.clock.Micros()
	}
	for s.reclaimers[0].Run() == 0 {
	}
}

var steppedKeys = []string{"hash", "lock", "semaphore", "limiter", "queue", "bloom", "key"}

// fillStepped makes a value of each kind that has a deadline after ten seconds.
func fillStepped(t *testing.T, tx *Tx) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	const span = 10_000 // ms
	_, err := tx.HSetEx([]byte("hash"), [][]byte{[]byte("f"), []byte("v")}, ItemOptions{Deadline: tx.Millis() + span})
	fail(err)
	_, _, err = tx.AcquireLock([]byte("lock"), []byte("a"), AcquireOptions{Lease: span})
	fail(err)
	_, _, err = tx.AcquirePermits([]byte("semaphore"), []byte("a"), 1, 1, AcquireOptions{Lease: span})
	fail(err)
	_, err = tx.Take([]byte("limiter"), TakeOptions{Algo: limiter.Log, Limit: 1, Period: span * 1000, Cost: 1})
	fail(err)
	_, _, err = tx.QueueAdd([]byte("queue"), &QueueAdd{ID: []byte("job"), Payload: []byte("p"), Due: tx.Millis() + span})
	fail(err)
	fail(tx.BFReserve([]byte("bloom"), BloomConfig{Error: 0.01, Capacity: 100, Expansion: 2, Window: span, Generations: 10}))
	_, err = tx.BFAdd([]byte("bloom"), []byte("x"))
	fail(err)
	_, _, err = tx.Set([]byte("key"), []byte("v"), SetOptions{Deadline: tx.Millis() + span}, nil)
	fail(err)
}

// held returns the keys of fillStepped whose content is still in force.
func (s *steppedDB) held(t *testing.T) (all []string) {
	t.Helper()
	do(s.DB, func(tx *Tx) {
		b := func(s string) []byte { return []byte(s) }
		_, lock, err1 := tx.AcquireLock(b("lock"), b("b"), AcquireOptions{Lease: 1, Behind: true})
		holders, err2 := tx.Holders(b("lock"), Lock)
		permits, err3 := tx.Holders(b("semaphore"), Semaphore)
		taken, err4 := tx.Take(b("limiter"), TakeOptions{Algo: limiter.Log, Limit: 1, Period: 10_000_000, Cost: 1, Peek: true})
		info, _, err5 := tx.QueueInfo(b("queue"))
		bloom, err6 := tx.BFHas(b("bloom"), b("x"))
		for _, err := range []error{err1, err2, err3, err4, err5, err6} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, in := range []bool{tx.Exists(b("hash")), holders.Len() > 0 && !lock, permits.Len() > 0, !taken.Allowed, info.Delayed > 0, bloom, tx.Exists(b("key"))} {
			if in {
				all = append(all, steppedKeys[i])
			}
		}
	})
	return all
}

// However the wall clock steps, data that lasts ten seconds lasts ten seconds, within the 1 % by which engine
// time is slewed.
func TestAStepOfTheWallNeitherEndsNorRevives(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			s := newSteppedDB(t)
			setRule(t, s.DB, "all", "*", "told")
			do(s.DB, func(tx *Tx) { fillStepped(t, tx) })
			s.pass(time.Second)
			s.wall += step.Microseconds()
			s.pass(8880 * time.Millisecond) // at most 9.98 s by a clock that is 1 % fast
			if got := s.held(t); !slices.Equal(got, steppedKeys) {
				t.Fatalf("after 9.88 s only these last: %q", got)
			}
			s.pass(240 * time.Millisecond) // at least 10.02 s by a clock that is 1 % slow
			// A filter forgets whole generations: up to a tenth of its window later.
			if got := s.held(t); !slices.Equal(got, []string{"bloom"}) {
				t.Fatalf("after 10.12 s these last: %q", got)
			}
			s.pass(1200 * time.Millisecond)
			s.wall -= step.Microseconds() // and back
			s.pass(time.Second)
			if got := s.held(t); got != nil {
				t.Fatalf("after the step back these are there again: %q", got)
			}
			s.checkTimes(t)
		})
	}
}

// checkTimes verifies that the rule recorded each expiration, after its deadline, in order and by engine
// time.
func (s *steppedDB) checkTimes(t *testing.T) {
	t.Helper()
	var entries []string
	do(s.DB, func(tx *Tx) {
		entries = told(tx, "told")
		last := int64(0)
		_, err := tx.XRange([]byte("told"), XRange{Last: MaxStreamID}, func(e *StreamEntry) {
			x := map[string]int64{}
			for range e.Fields() {
				name, value := e.Field()
				n, _ := strconv.ParseInt(value.String(), 10, 64)
				x[string(name)] = n
			}
			at := int64(e.ID().Ms)
			if late := x["fired-at"] - x["deadline"]; late < 1 || late > 300 || at < last || at < x["fired-at"] {
				t.Errorf("an entry at %d, after one at %d, was told at %d of %d", at, last, x["fired-at"], x["deadline"])
			}
			last = at
		})
		if err != nil {
			t.Error(err)
		}
	})
	slices.Sort(entries)
	if want := []string{"field hash f", "key key", "lease lock a", "lease semaphore a"}; !slices.Equal(entries, want) {
		t.Errorf("told of %q, want %q", entries, want)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// As in Redis, save points count the changes of clients, not expirations, and not the slices that free
// memory.
func TestWhatExpiresDoesNotCountForSavePoints(t *testing.T) {
	s := newSteppedDB(t)
	do(s.DB, func(tx *Tx) { fillStepped(t, tx) })
	before := s.Dirty()
	s.pass(11 * time.Second)
	if got := s.held(t); len(got) > 0 {
		t.Fatalf("%q last", got)
	}
	if after := s.Dirty(); after != before {
		t.Errorf("%d changes before, %d after all has expired", before, after)
	}
	do(s.DB, func(tx *Tx) { tx.Flush(-1) })
	before = s.Dirty()
	s.pass(time.Second)
	if after := s.Dirty(); after != before {
		t.Errorf("%d changes before the memory of a flush was freed, %d after", before, after)
	}
}

// The queue's own changes are not in the last save, so save points count them: five jobs of a schedule, and a
// job that becomes a dead letter.
func TestWhatAQueueDoesCountsForSavePoints(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(tx *Tx) error
		want int64
	}{
		"schedule": {func(tx *Tx) error {
			s := &QueueSchedule{Name: []byte("n"), Payload: []byte("p"), Rule: cron.Rule{Every: 200, Overlap: true}}
			_, err := tx.QueueSchedule([]byte("q"), s)
			return err
		}, 5},
		"dead letters": {func(tx *Tx) error {
			if err := tx.QueueConfigure([]byte("q"), QueueConfig{MaxDeliveries: 1, DeadLetter: []byte("{q}dead")}); err != nil {
				return err
			}
			if _, _, err := tx.QueueAdd([]byte("q"), &QueueAdd{ID: []byte("job")}); err != nil {
				return err
			}
			_, err := tx.QueuePop([]byte("q"), 1, 50, func(Job) {})
			return err
		}, 1},
		"a lease that ends": {func(tx *Tx) error {
			if _, _, err := tx.QueueAdd([]byte("q"), &QueueAdd{ID: []byte("job")}); err != nil {
				return err
			}
			_, err := tx.QueuePop([]byte("q"), 1, 50, func(Job) {})
			return err
		}, 0},
	} {
		s := newSteppedDB(t)
		do(s.DB, func(tx *Tx) {
			if err := test.fill(tx); err != nil {
				t.Fatal(err)
			}
		})
		before := s.Dirty()
		for range 11 {
			s.pass(100 * time.Millisecond)
		}
		if n := s.Dirty() - before; n != test.want {
			t.Errorf("%s: %d changes, want %d", name, n, test.want)
		}
	}
}
