package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// hollowMakers make values whose items all expire after 10 ms.
var hollowMakers = map[string]func(tx *Tx, key []byte) error{
	"hash": func(tx *Tx, key []byte) error {
		_, err := tx.HSetEx(key, [][]byte{[]byte("f"), []byte("v")}, ItemOptions{Deadline: tx.Millis() + 10})
		return err
	},
	"large list": func(tx *Tx, key []byte) (err error) {
		for i := range 1000 {
			if _, err = tx.LPushEx(key, Tail, [][]byte{fmt.Append(nil, i)}, tx.Millis()+10, 0); err != nil {
				break
			}
		}
		return err
	},
	"sorted set": func(tx *Tx, key []byte) error {
		_, _, err := tx.ZAddEx(key, []Scored{{1, []byte("m")}}, ZAddOptions{}, ItemOptions{Deadline: tx.Millis() + 10})
		return err
	},
	"set with a deadline": func(tx *Tx, key []byte) error {
		_, err := tx.SAdd(key, [][]byte{[]byte("m")})
		if err == nil {
			err = tx.SExpire(key, [][]byte{[]byte("m")}, tx.Millis()+10, 0, func(int) {})
		}
		tx.Expire(key, tx.Millis()+100_000, 0, 0)
		return err
	},
	"lock": func(tx *Tx, key []byte) error {
		_, _, err := tx.AcquireLock(key, []byte("a"), AcquireOptions{Lease: 10})
		return err
	},
	"semaphore": func(tx *Tx, key []byte) error {
		_, _, err := tx.AcquirePermits(key, []byte("a"), 1, 1, AcquireOptions{Lease: 10})
		return err
	},
	"queue": func(tx *Tx, key []byte) (err error) {
		for i := range 600 { // more than one slice removes
			if _, _, err = tx.QueueAdd(key, &QueueAdd{ID: fmt.Append(nil, i), Due: tx.Millis(), Expire: 10}); err != nil {
				break
			}
		}
		return err
	},
}

// No read sees a key without living items, even before the reclaimer has run.
func TestAKeyInWhichNothingLivesIsNotSeen(t *testing.T) {
	for name, fill := range hollowMakers {
		t.Run(name, func(t *testing.T) {
			clock := clock.NewManual(epoch)
			db := Open(Options{Clock: clock, Shards: 1})
			defer db.Close()
			db.SetActiveExpiry(false)
			do(db, func(tx *Tx) {
				if err := fill(tx, []byte("k")); err != nil {
					t.Fatal(err)
				}
			})
			clock.Advance(10 * time.Millisecond)
			if got := waysSeen(db); got != [5]int{1, 1, 1, 1, 1} {
				t.Errorf("at its last moment it is seen by %v of size, each, scan, next, random", got)
			}
			clock.Advance(time.Millisecond)
			if got := waysSeen(db); got != [5]int{} {
				t.Errorf("it is seen by %v of size, each, scan, next, random", got)
			}
			do(db, func(tx *Tx) {
				if tx.Exists([]byte("k")) {
					t.Error("it exists")
				}
			})
			if err := db.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// waysSeen counts the visible keys in several ways; the last way removes dead keys.
func waysSeen(db *DB) (n [5]int) {
	db.Scan(0, 0, 100, func(Key) { n[2]++ })
	do(db, func(tx *Tx) {
		n[0] = tx.Size()
		tx.Each(func(Key) { n[1]++ })
		_, next := tx.NextDue()
		if next {
			n[3] = 1
		}
		if tx.RandomKey(rand.NewPCG(1, 2).Uint64) != nil {
			n[4] = 1
		}
	})
	return n
}
