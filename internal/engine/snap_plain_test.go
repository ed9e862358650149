package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// fillOwn makes values that redis-server 7.0 does not know in this form, a small and a large one of each
// kind, and some that it knows.
func fillOwn(t *testing.T, db *engine.DB) {
	t.Helper()
	for name, add := range adders() {
		for _, n := range []int{2, 3000} {
			key := []byte(fmt.Sprint(name, " ", n))
			tx := db.Begin(0, key)
			if err := add(tx, key, 0, n); err != nil {
				t.Fatal(name, err)
			}
			tx.Commit()
		}
	}
	tx := db.BeginAll(0)
	defer tx.Commit()
	if err := tx.SetRule(engine.Rule{Name: "r", Match: "a*", Levels: engine.AllLevels, Stream: "s", MaxLen: 10, MaxValue: -1}); err != nil {
		t.Fatal(err)
	}
	tx.SawToken(tx.NextToken() + 1000)
	if _, _, err := tx.Set([]byte("slides"), []byte("v"), engine.SetOptions{Deadline: tx.Millis() + 5000, Span: 5000}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestAPlainSnapshotHasNothingOfOurs: the file has version 10, none of ebb's texts and modules, and the items
// with deadlines, without their deadlines.
func TestAPlainSnapshotHasNothingOfOurs(t *testing.T) {
	db := opened(t)
	fillOwn(t, db)
	version := 0
	file := begin(t, db, engine.SnapshotOptions{Plain: true, Preamble: func(w *rdb.Writer, v int) error {
		version = v
		w.Header(v)
		return w.Err()
	}}).finish()
	if version != 10 || !bytes.HasPrefix(file, []byte("REDIS0010")) {
		t.Errorf("it is of version %d: %q", version, file[:9])
	}
	types := map[string]rdb.Type{}
	r := rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		return fmt.Errorf("there is a text %q", name)
	}})
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		types[string(e.Key)] = e.Type()
		if (e.Deadline != 0) != (string(e.Key) == "slides") {
			t.Errorf("%q has the deadline %d", e.Key, e.Deadline)
		}
	}
	want := map[string]rdb.Type{"slides": rdb.TypeString}
	for name, small := range map[string]rdb.Type{
		"hash": rdb.TypeHash, "set": rdb.TypeSet, "zset": rdb.TypeZSet2, "list": rdb.TypeQuicklist2,
	} {
		for _, n := range []int{2, 3000} {
			want[fmt.Sprint(name, " ", n)] = small
			want[fmt.Sprint(name, " with deadlines ", n)] = small
		}
	}
	want["stream 2"], want["stream 3000"] = rdb.TypeStream2, rdb.TypeStream2
	if fmt.Sprint(types) != fmt.Sprint(want) {
		t.Errorf("the types are\n%v, want\n%v", types, want)
	}
	samePlainItems(t, db, file)
}

// samePlainItems compares the items of a plain file with those in the engine.
func samePlainItems(t *testing.T, db *engine.DB, file []byte) {
	t.Helper()
	second, err := load(t, file, engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := db.BeginAll(0), second.BeginAll(0)
	defer ours.Commit()
	defer theirs.Commit()
	theirs.Each(func(k engine.Key) {
		if k.Kind() == engine.String || k.Kind() == engine.Stream {
			return
		}
		items := map[string]int{}
		k.Items(func(it engine.Item) {
			items[fmt.Sprintf("%s=%s %v", it.Key, it.Value, it.Score)]++
			if it.Deadline != 0 {
				t.Fatalf("%q: an item has a deadline", k.Name())
			}
		})
		there, ok := ours.Lookup(k.Name())
		if !ok {
			t.Fatalf("%q should not be there", k.Name())
		}
		there.Items(func(it engine.Item) { items[fmt.Sprintf("%s=%s %v", it.Key, it.Value, it.Score)]-- })
		for it, n := range items {
			if n != 0 {
				t.Fatalf("%q: %.50q is there %d times too often", k.Name(), it, n)
			}
		}
	})
}
