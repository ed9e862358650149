package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

func TestALentStringStaysAsItWasUntilItIsGivenBack(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0))})
	defer db.Close()
	tx := db.NewTx()
	key, old := []byte("k"), bytes.Repeat([]byte("old!"), 10_000)
	for name, edit := range map[string]func(){
		"SETRANGE": func() { _, _ = tx.SetRange(key, 10, []byte("new")) },
		"SETBIT":   func() { _, _ = tx.SetBit(key, 17, 1) },
		"APPEND":   func() { _, _ = tx.Append(key, []byte("tail")) },
		"SET":      func() { _, _, _ = tx.Set(key, []byte("new"), SetOptions{}, nil) },
		"DEL":      func() { _, _ = tx.DelIf(key, Always, nil) },
	} {
		tx.Lock(0, [][]byte{key})
		if _, _, err := tx.Set(key, old, SetOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		v, _, _ := tx.Get(key)
		uses := tx.Lend(key)
		if uses == nil || uses.Load() != 1 || tx.Lend(key) != uses || uses.Load() != 2 {
			t.Fatalf("%s: a long string is not lent twice", name)
		}
		edit()
		if !bytes.Equal(v, old) {
			t.Errorf("%s changed a string that is lent", name)
		}
		tx.Unlock()
	}

	tx.Lock(0, [][]byte{key, []byte("short"), []byte("nothing")})
	defer tx.Unlock()
	_, _, _ = tx.Set([]byte("short"), []byte("v"), SetOptions{}, nil)
	if tx.Lend([]byte("short")) != nil || tx.Lend([]byte("nothing")) != nil {
		t.Error("a short string, or none, is lent")
	}
	_, _, _ = tx.Set(key, old, SetOptions{}, nil)
	v, _, _ := tx.Get(key)
	tx.Lend(key).Add(-1)
	_, _ = tx.SetRange(key, 10, []byte("new"))
	if w, _, _ := tx.Get(key); &w[0] != &v[0] {
		t.Error("a string that was given back is copied by an edit")
	}
}
