package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func openQueues(t testing.TB) (*DB, *clock.Manual) {
	clock := clock.NewManual(epoch)
	db := Open(Options{Clock: clock, Shards: 1})
	t.Cleanup(func() { db.Close() })
	return db, clock
}

// addJobs adds n jobs that are due after the given number of ms.
func addJobs(t testing.TB, db *DB, n int, in int64) {
	tx := db.Begin(0, []byte("q"))
	defer tx.Commit()
	for i := range n {
		a := QueueAdd{ID: fmt.Append(nil, i), Payload: []byte("payload"), Due: tx.Millis() + in}
		if _, added, err := tx.QueueAdd([]byte("q"), &a); !added || err != nil {
			t.Fatal(added, err)
		}
	}
}

func popJobs(t testing.TB, db *DB, n int, lease int64, visit func(Job)) int {
	tx := db.Begin(0, []byte("q"))
	defer tx.Commit()
	n, err := tx.QueuePop([]byte("q"), n, lease, visit)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Jobs become ready without any work of the engine, so the number of jobs that fall due together does not
// matter.
func TestJobsThatFallDueTogetherNeedNoWork(t *testing.T) {
	tier.Sequential(t)
	db, clock := openQueues(t)
	addJobs(t, db, 50_000, 10)
	db.SetActiveExpiry(false)
	clock.Advance(10 * time.Millisecond)
	for i := range 100 {
		if n := popJobs(t, db, 1, 1000, func(j Job) {
			if string(j.ID) != fmt.Sprint(i) {
				t.Fatalf("%s comes, it is %d's turn", j.ID, i)
			}
		}); n != 1 {
			t.Fatal("nothing is due")
		}
	}
	if err := db.Check(); err != nil {
		t.Fatal(err)
	}
}

// A queue whose stream takes no job tries again after 100 ms. Its copy does not wait for that.
func TestTheCopyOfASuspendedQueueIsDated(t *testing.T) {
	db, _ := openQueues(t)
	db.SetActiveExpiry(false)
	tx := db.Begin(0, []byte("q"), []byte("{q}stream"), []byte("copy"))
	defer tx.Commit()
	for _, deadline := range []int64{0, tx.Millis() + 50} { // the queue's next attempt is before its deadline, or not
		if _, _, err := tx.Set([]byte("{q}stream"), []byte("no stream"), SetOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueueConfigure([]byte("q"), QueueConfig{Deliver: []byte("{q}stream")}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := tx.QueueAdd([]byte("q"), &QueueAdd{ID: []byte("1"), Due: tx.Millis()}); err != nil {
			t.Fatal(err)
		}
		if deadline != 0 {
			tx.Expire([]byte("q"), deadline, 0, 0)
		}
		if ok, err := tx.Copy([]byte("q"), []byte("copy"), 0, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for _, sp := range tx.db.shards[0].spaces {
			if sp != nil {
				if _, err := sp.check(0); err != nil {
					t.Errorf("with the deadline %d: %v", deadline, err)
				}
			}
		}
	}
}

// If many leases end together, a command settles no more than lapseMet of them, and still finds its job; no
// job is lost or delivered twice.
func TestManyLeasesThatEndTogetherAreSettledInSlices(t *testing.T) {
	const jobs = 5000
	db, clock := openQueues(t)
	addJobs(t, db, jobs, 0)
	if n := popJobs(t, db, jobs, 50, func(Job) {}); n != jobs {
		t.Fatal(n)
	}
	db.SetActiveExpiry(false)
	clock.Advance(51 * time.Millisecond)
	before := db.Stats().QueueLapsed
	if n := popJobs(t, db, 1, 1000, func(Job) {}); n != 1 {
		t.Fatal(n)
	}
	if n := db.Stats().QueueLapsed - before; n != lapseMet {
		t.Errorf("one command settled %d leases, want %d", n, lapseMet)
	}
	if err := db.Check(); err != nil {
		t.Fatal(err)
	}
	got := 1
	seen := map[string]bool{}
	for range 2 * jobs {
		got += popJobs(t, db, 100, 1000, func(j Job) {
			if seen[string(j.ID)] || j.Deliveries != 2 {
				t.Fatalf("%s comes again, %d deliveries", j.ID, j.Deliveries)
			}
			seen[string(j.ID)] = true
		})
		if got == jobs {
			break
		}
	}
	if got != jobs {
		t.Errorf("%d jobs came again, of %d", got, jobs)
	}
	if err := db.Check(); err != nil {
		t.Fatal(err)
	}
}

// A delivery counts its lateness.
func TestLatenessIsCounted(t *testing.T) {
	db, clock := openQueues(t)
	addJobs(t, db, 1, 10)
	clock.Advance(17 * time.Millisecond)
	popJobs(t, db, 1, 5, func(Job) {})
	clock.Advance(20 * time.Millisecond)
	popJobs(t, db, 1, 5, func(j Job) {})
	c := db.Stats()
	if c.QueueLate.Count != 2 || c.QueueLate.Max != 14_000 || c.QueueAdded != 1 || c.QueueDelivered != 2 || c.QueueRedelivered != 1 || c.QueueLapsed != 1 {
		t.Errorf("%+v", c.QueueLate.Max)
	}
}

// A payload that was damaged before it was sealed is refused, or is a valid queue.
func FuzzRestoreQueue(f *testing.F) {
	db, _ := openQueues(f)
	addJobs(f, db, 3, 10)
	addJobs3 := func(a QueueAdd) {
		tx := db.Begin(0, []byte("q"))
		defer tx.Commit()
		if _, _, err := tx.QueueAdd([]byte("q"), &a); err != nil {
			f.Fatal(err)
		}
	}
	addJobs3(QueueAdd{Payload: []byte("p"), Due: 1, Expire: 1 << 40, Priority: 9, Unique: 1000})
	popJobs(f, db, 1, 1000, func(Job) {})
	tx := db.Begin(0, []byte("q"))
	h := tx.find([]byte("q"))
	f.Add(dumpQueue(tx, new(rdb.Encoder), &h))
	tx.Commit()
	f.Fuzz(func(t *testing.T, data []byte) {
		tx := db.Begin(0, []byte("q"))
		defer tx.Commit()
		_, b, err := restoreQueue(tx, data)
		if err != nil {
			return
		}
		defer discard(b)
		q := b.(queueBox)
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		c, err := q.Clone(tx)
		if err != nil {
			t.Fatal(err)
		}
		defer discard(c)
		if err := c.(queueBox).Check(); err != nil {
			t.Fatal(err)
		}
	})
}
