package engine_test

import (
	"fmt"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
)

// The data, without commands: a key expires when its time has come.
func ExampleOpen() {
	clock := clock.NewManual(time.Unix(1_800_000_000, 0))
	db := engine.Open(engine.Options{Clock: clock})
	defer db.Close()

	fmt.Println(db.Set(0, []byte("session"), []byte("ann"), time.Minute))
	val, ok, err := db.Get(0, []byte("session"), nil)
	fmt.Println(string(val), ok, err)
	fmt.Println(db.TTL(0, []byte("session")))

	clock.Advance(time.Minute + time.Millisecond)
	_, ok, err = db.Get(0, []byte("session"), nil)
	fmt.Println(ok, err)
	// Output:
	// <nil>
	// ann true <nil>
	// 1m0s
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
