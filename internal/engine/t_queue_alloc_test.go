//go:build !race

package engine

import (
	"encoding/binary"
	"testing"
	"time"
)

// Under the race detector pools drop objects at random, so this is not tested there.
func TestDelayQueuesAllocateNothing(t *testing.T) {
	db, _ := openQueues(t)
	addJobs(t, db, 2000, 60_000)
	key, id, n := []byte("q"), make([]byte, 8), uint64(0)
	a := QueueAdd{ID: id, Payload: []byte("payload")}
	tx := db.NewTx()
	var token int64
	visit := func(j Job) { token = j.Token }
	f := func() {
		n++
		binary.LittleEndian.PutUint64(id, n)
		tx.LockKey(0, key)
		a.Due = tx.Millis()
		if _, added, err := tx.QueueAdd(key, &a); !added || err != nil {
			t.Error(added, err)
		}
		if n, err := tx.QueuePop(key, 1, 1000, visit); n != 1 || err != nil {
			t.Error(n, err)
		}
		if ok, err := tx.QueueExtend(key, id, token, 2000); !ok || err != nil {
			t.Error(ok, err)
		}
		if ok, err := tx.QueueNack(key, id, token, 0); !ok || err != nil {
			t.Error(ok, err)
		}
		if n, err := tx.QueuePop(key, 1, 1000, visit); n != 1 || err != nil {
			t.Error(n, err)
		}
		if ok, err := tx.QueueAck(key, id, token); !ok || err != nil {
			t.Error(ok, err)
		}
		tx.Unlock()
	}
	f()
	if n := testing.AllocsPerRun(50000, f); n > 0 {
		t.Errorf("a job's life allocates %v times", n)
	}
}

// In BenchmarkOccurrences a schedule adds jobs that no worker takes; -keys sets their number, by default a
// million. The job's id is its schedule's name and its instant, 20 bytes, and the payload has 16 bytes.
func BenchmarkOccurrences(b *testing.B) {
	for b.Loop() {
		db, clock := openQueues(b)
		key := []byte("q")
		s := &QueueSchedule{Name: []byte("report"), Payload: []byte("of all customers")}
		s.Every, s.Overlap = 10, true
		tx := db.Begin(0, key)
		if _, err := tx.QueueSchedule(key, s); err != nil {
			b.Fatal(err)
		}
		tx.Commit()
		before := db.UsedMemory()
		for range *benchKeys {
			clock.Advance(10 * time.Millisecond)
			tx := db.Begin(0, key)
			if _, _, err := tx.queue(key); err != nil {
				b.Fatal(err)
			}
			tx.Commit()
		}
		tx = db.Begin(0, key)
		_, q, err := tx.queue(key)
		if err != nil || q.Len() != *benchKeys {
			b.Fatalf("%d jobs, %v", q.Len(), err)
		}
		tx.Commit()
		b.ReportMetric(float64(db.UsedMemory()-before)/float64(*benchKeys), "bytes/occurrence")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*benchKeys), "ns/occurrence")
}
