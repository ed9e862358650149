package engine_test

import (
	"fmt"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
)

// The engine without commands: a key expires at its deadline.
func ExampleOpen() {
	clock := clock.NewManual(time.Unix(1_800_000_000, 0))
	db := engine.Open(engine.Options{Clock: clock})
	defer db.Close()

	key := []byte("session")
	tx := db.Begin(0, key)
	_, _, err := tx.Set(key, []byte("ann"), engine.SetOptions{Deadline: clock.Micros()/1000 + 60_000}, nil)
	val, ok, _ := tx.Get(key)
	fmt.Println(string(val), ok, tx.TTL(key), err)
	tx.Commit()

	clock.Advance(time.Minute + time.Millisecond)
	tx = db.Begin(0, key)
	_, ok, err = tx.Get(key)
	tx.Commit()
	fmt.Println(ok, err)
	// Output:
	// ann true 60000 <nil>
	// false <nil>
}

// A transaction locks its keys, and takes one instant.
func ExampleDB_Begin() {
	db := engine.Open(engine.Options{})
	defer db.Close()

	visits, last := []byte("visits"), []byte("last")
	tx := db.Begin(0, visits, last)
	n, err := tx.IncrBy(visits, 1)
	if err == nil {
		_, _, err = tx.Set(last, []byte("ann"), engine.SetOptions{}, nil)
	}
	tx.Commit()
	fmt.Println(n, err)
	// Output: 1 <nil>
}
