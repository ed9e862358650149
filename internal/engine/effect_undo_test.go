package engine

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// A transaction of a master may change any number of keys: Undo finds a remembered key by its hash, in a few
// steps, without comparing all keys.
func TestUndoFindsOneOfManyKeys(t *testing.T) {
	tier.Sequential(t)
	const n = 20_000
	db, _, _ := open(t, Options{Shards: 4, Databases: 2})
	tx := db.BeginAll(0)
	defer tx.Commit()
	name := func(i int) []byte { return strconv.AppendInt([]byte("k"), int64(i), 10) }
	var u Undo
	for i := range n {
		if i%2 == 0 {
			tx.Set(name(i), []byte("old"), SetOptions{}, nil)
		}
	}
	for range 2 { // the second time all are known
		for i := range n {
			for d := range 2 {
				tx.Select(d)
				if !u.Remember(tx, name(i)) {
					t.Fatalf("key %d of %d is not remembered", i, n)
				}
				tx.Set(name(i), []byte("new"), SetOptions{}, nil)
			}
		}
	}
	if len(u.keys) != 2*n {
		t.Fatalf("%d keys are remembered, want %d", len(u.keys), 2*n)
	}
	for i := range u.keys {
		steps := 0
		for at := i; at >= 0; at = u.keys[at].before {
			steps++
		}
		if steps > 8 { // two databases, and hashes of 64 bits
			t.Fatalf("key %d is found in %d steps", i, steps)
		}
	}
	if err := u.TakeBack(tx); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		tx.Select(1)
		if _, ok, _ := tx.Get(name(i)); ok {
			t.Fatalf("key %d of database 1 is still there", i)
		}
		tx.Select(0)
		v, ok, _ := tx.Get(name(i))
		if ok != (i%2 == 0) || ok && string(v) != "old" {
			t.Fatalf("key %d is %q %t", i, v, ok)
		}
	}
}

// The total size of copies is bounded, and large copies are freed with the transaction.
func TestUndoCopiesAreBounded(t *testing.T) {
	tier.Sequential(t)
	db, _, _ := open(t, Options{Shards: 1})
	tx := db.BeginAll(0)
	defer tx.Commit()
	var u Undo
	value := bytes.Repeat([]byte("x"), undoMost)
	refused := 0
	for i := range 2 * undoAll / undoMost {
		key := strconv.AppendInt(nil, int64(i), 10)
		tx.Set(key, value, SetOptions{}, nil)
		if !u.Remember(tx, key) {
			refused++
		}
	}
	if refused == 0 || len(u.bytes) > undoAll {
		t.Errorf("%d keys are refused, and %d bytes copied, of which %d are allowed", refused, len(u.bytes), undoAll)
	}
	if u.Remember(tx, bytes.Repeat([]byte("k"), undoMost)) {
		t.Error("a key is copied beyond the bound")
	}
	u.Reset()
	if cap(u.bytes) > undoKeep || u.last != nil || u.knows(0, 0, []byte("0")) {
		t.Errorf("Reset keeps %d bytes", cap(u.bytes))
	}
	if !u.Remember(tx, []byte("0")) {
		t.Error("nothing is remembered after Reset")
	}
}
