package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// storedAndOwn counts the records of an engine, dead ones included, and the keys that its
// shards remember as a replica's own.
func storedAndOwn(db *DB) (records, own int) {
	for _, sh := range db.shards {
		sh.lock.Lock()
		for _, sp := range sh.spaces {
			if sp != nil {
				records += sp.tab.Len()
			}
		}
		if sh.own != nil {
			own += len(sh.own.keys)
			if len(sh.own.keys) != len(sh.own.queue) {
				panic("keys and queue differ")
			}
		}
		sh.lock.Unlock()
	}
	return records, own
}

func replicaEngine(t *testing.T) (*DB, *clock.Manual) {
	t.Helper()
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Clock: clock})
	t.Cleanup(db.Close)
	db.SetReplica(true)
	return db, clock
}

func in(db *DB, replay bool, do func(tx *Tx)) {
	tx := db.BeginAll(0)
	if replay {
		tx.Replaying()
	}
	do(tx)
	tx.Commit()
}

// Keys and items to which clients of a writable replica have given a deadline are freed when they are due;
// the master's deadlines take effect only when the master removes the data.
func TestAReplicaFreesWhatItsOwnClientsHaveStored(t *testing.T) {
	db, clock := replicaEngine(t)
	at := clock.Micros()/1000 + 50
	in(db, false, func(tx *Tx) {
		for i := range 3000 {
			key := fmt.Appendf(nil, "own%d", i)
			_, _, _ = tx.Set(key, []byte("v"), SetOptions{Deadline: at}, nil)
		}
		_, _, _ = tx.Set([]byte("later"), []byte("v"), SetOptions{}, nil)
		tx.Expire([]byte("later"), at, 0, 0)
		tx.Expire([]byte("later"), at+1000, 0, 0)
	})
	in(db, true, func(tx *Tx) {
		for i := range 100 {
			_, _, _ = tx.Set(fmt.Appendf(nil, "master%d", i), []byte("v"), SetOptions{Deadline: at}, nil)
		}
	})
	clock.Advance(51 * time.Millisecond)
	if n, own := storedAndOwn(db); n != 101 || own != 1 {
		t.Errorf("%d records are left, %d of clients; want the master's 100 and 1", n, own)
	}
	clock.Advance(time.Second)
	if n, own := storedAndOwn(db); n != 100 || own != 0 {
		t.Errorf("%d records are left, %d of clients; want the master's 100 and 0", n, own)
	}
	db.SetReplica(false)
	clock.Advance(time.Millisecond)
	if n, _ := storedAndOwn(db); n != 0 {
		t.Errorf("after the promotion %d records are left", n)
	}
}

// A client's key that the master writes to belongs to the master from then on.
func TestWhatTheMasterSpeaksOfIsTheMasters(t *testing.T) {
	db, clock := replicaEngine(t)
	at := clock.Micros()/1000 + 50
	key := []byte("k")
	in(db, false, func(tx *Tx) { _, _, _ = tx.Set(key, []byte("v"), SetOptions{Deadline: at}, nil) })
	in(db, true, func(tx *Tx) { _, _, _ = tx.Set(key, []byte("m"), SetOptions{Deadline: at}, nil) })
	clock.Advance(time.Second)
	if n, own := storedAndOwn(db); n != 1 || own != 0 {
		t.Errorf("%d records, %d of clients", n, own)
	}
	in(db, true, func(tx *Tx) { tx.Persist(key) }) // the key lived on at the master
	in(db, false, func(tx *Tx) {
		if v, ok, _ := tx.Get(key); !ok || string(v) != "m" {
			t.Errorf("the key is %q", v)
		}
	})
}

// Own keys are forgotten together with their database.
func TestOwnKeysAreForgotten(t *testing.T) {
	db, clock := replicaEngine(t)
	at := clock.Micros()/1000 + 50
	set := func(tx *Tx) { _, _, _ = tx.Set([]byte("k"), []byte("v"), SetOptions{Deadline: at}, nil) }
	for name, do := range map[string]func(tx *Tx){
		"DEL": func(tx *Tx) { set(tx); tx.Del([]byte("k")) }, "FLUSHDB": func(tx *Tx) { set(tx); tx.Flush(0) }, "FLUSHALL": func(tx *Tx) { set(tx); tx.Flush(-1) },
		"a load": func(tx *Tx) { set(tx); tx.Install(db.Stage()) }, "promotion": func(tx *Tx) { set(tx); tx.SetReplica(false); tx.SetReplica(true) },
	} {
		in(db, false, do)
		if _, own := storedAndOwn(db); own != 0 {
			t.Errorf("%s: %d are left", name, own)
		}
	}
	in(db, false, func(tx *Tx) { tx.Flush(-1); set(tx); tx.Swap(0, 1) })
	clock.Advance(time.Second)
	if n, own := storedAndOwn(db); n != 0 || own != 0 {
		t.Errorf("after SWAPDB %d records and %d own keys are left", n, own)
	}
}

// Items with a client's deadline are freed too; if the master has items in the same hash, all wait for the
// master.
func TestAReplicaFreesItsOwnItems(t *testing.T) {
	db, clock := replicaEngine(t)
	at := clock.Micros()/1000 + 50
	fields := func(tx *Tx, key string, names ...string) {
		for _, f := range names {
			_, _ = tx.HSet([]byte(key), [][]byte{[]byte(f), []byte("v")})
		}
		for _, f := range names[1:] {
			_ = tx.HExpire([]byte(key), [][]byte{[]byte(f)}, at, 0, func(int) {})
		}
	}
	in(db, false, func(tx *Tx) { fields(tx, "own", "stays", "a", "b") })
	in(db, true, func(tx *Tx) { fields(tx, "mixed", "stays", "a") })
	in(db, false, func(tx *Tx) { fields(tx, "mixed", "stays", "b") })
	clock.Advance(time.Second)
	in(db, true, func(tx *Tx) { // a replay sees all stored data
		for _, c := range []struct {
			key, field string
			want       bool
		}{{"own", "stays", true}, {"own", "a", false}, {"own", "b", false}, {"mixed", "a", true}, {"mixed", "b", true}} {
			if _, ok, _ := tx.HGet([]byte(c.key), []byte(c.field)); ok != c.want {
				t.Errorf("%s %s is stored: %v", c.key, c.field, ok)
			}
		}
	})
}
