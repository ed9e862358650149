package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// setClock is a clock that a test can set, even back.
type setClock struct{ atomic.Int64 }

func (c *setClock) Micros() int64 { return c.Load() }

// Keys that a replica stored while its clock was ahead expire by the corrected clock.
func TestAReplicaWhoseClockIsSetBackExpiresNothingEarly(t *testing.T) {
	c := &setClock{}
	const begin = int64(1_700_000_000_000)
	c.Store((begin + 30_000) * 1000)
	db := Open(Options{Clock: c, Shards: 16, Reclaimers: 1})
	defer db.Close()
	r := db.Reclaimer(0, func() {})
	db.SetReplica(true)
	in(db, true, func(tx *Tx) {
		for i := range 100 {
			_, _, _ = tx.Set(fmt.Appendf(nil, "k%d", i), []byte("v"), SetOptions{Deadline: begin + int64(i)*1000}, nil)
		}
	})
	living := func() (n int) {
		in(db, false, func(tx *Tx) {
			for i := range 100 {
				if tx.Exists(fmt.Appendf(nil, "k%d", i)) {
					n++
				}
			}
		})
		return n
	}
	for r.Run() == 0 { // the wheels adopt the time
		continue
	}
	if n := living(); n != 70 {
		t.Fatalf("30 s ahead, %d keys are there, want 70", n)
	}
	c.Store(begin * 1000)
	in(db, false, (*Tx).Retime)
	if n := living(); n != 100 {
		t.Errorf("at the time that it was given, %d keys are there, want 100", n)
	}
	db.SetReplica(false)
	for s := range int64(100) {
		c.Store((begin + s*1000 + 1) * 1000)
		for r.Run() == 0 {
			continue
		}
		if n, _ := storedAndOwn(db); n != 99-int(s) {
			t.Fatalf("%v after the first deadline %d keys are stored, want %d", time.Duration(s)*time.Second, n, 99-s)
		}
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}
