package engine

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
)

func payloads(t testing.TB) []rdbtest.Payload {
	return rdbtest.Payloads(t, "../rdb/testdata", "*")
}

// show lists the content of a key, items in a fixed order.
func show(tx *Tx, key string) []string {
	k, ok := tx.Lookup([]byte(key))
	if !ok {
		return nil
	}
	out := []string{k.Kind().String(), tx.Encoding([]byte(key))}
	var items []string
	k.Items(func(it Item) {
		items = append(items, fmt.Sprintf("%q %q %v %d", it.Key, it.Value, it.Score, it.Deadline))
	})
	if k.Kind() != List {
		sort.Strings(items)
	}
	switch k.Kind() {
	case String:
		out = append(out, string(k.Value()))
	case Stream:
		p, _ := tx.Dump(nil, []byte(key)) // the value has only one form
		out = append(out, string(p))
	}
	return append(out, items...)
}

func mustRestore(t testing.TB, tx *Tx, key string, payload []byte, o RestoreOptions) {
	t.Helper()
	if err := tx.Restore([]byte(key), payload, o); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
}

func TestWhatIsRestoredIsDumpedAgain(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Clock: clock})
	defer db.Close()
	tx := db.BeginAll(0)
	defer tx.Commit()
	for _, p := range payloads(t) {
		mustRestore(t, tx, "a", p.Dump, RestoreOptions{Replace: true})
		again, _ := tx.Dump(nil, []byte("a"))
		mustRestore(t, tx, "b", again, RestoreOptions{Replace: true})
		a, b := show(tx, "a"), show(tx, "b")
		if a[0] != p.Kind || !slices.Equal(a, b) {
			t.Errorf("%s:\n got %.500q\nthen %.500q", p, a, b)
		}
	}
}

func TestFieldsKeepTheirDeadlinesUntilTheyPass(t *testing.T) {
	for _, p := range payloads(t) {
		if !strings.Contains(p.Name, "hash timed") {
			continue
		}
		clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
		db := Open(Options{Clock: clock})
		tx := db.BeginAll(0)
		mustRestore(t, tx, "h", p.Dump, RestoreOptions{})
		var want []string
		first := int64(0)
		for i := 0; i < len(p.Want); i += 3 {
			want = append(want, fmt.Sprintf("%q %q 0 %s", p.Want[i], p.Want[i+1], p.Want[i+2]))
			if d, _ := strconv.ParseInt(p.Want[i+2], 10, 64); d != 0 && (first == 0 || d < first) {
				first = d
			}
		}
		sort.Strings(want)
		if got := show(tx, "h")[2:]; !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", p, got, want)
		}
		tx.Commit()

		clock.Advance(time.Duration(first+1-1_700_000_000_000) * time.Millisecond)
		tx = db.BeginAll(0)
		mustRestore(t, tx, "late", p.Dump, RestoreOptions{}) // the first deadline has passed already
		dump, _ := tx.Dump(nil, []byte("h"))
		mustRestore(t, tx, "dumped", dump, RestoreOptions{})
		for _, key := range []string{"late", "dumped"} {
			if n := len(show(tx, key)) - 2; n != len(want)-1 {
				t.Errorf("%s: %s has %d fields, not %d", p, key, n, len(want)-1)
			}
		}
		tx.Commit()
		db.Close()
	}
}

func TestAHashOfDeadFieldsIsNotRestored(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(time.UnixMilli(1_700_000_000_000))})
	defer db.Close()
	tx := db.BeginAll(0)
	defer tx.Commit()
	var e rdb.Encoder
	e.BeginHash(1, 1000)
	e.Field([]byte("f"), []byte("v"), 1000)
	e.EndHash()
	p := rdb.Seal(e.Buf, e.Version())
	mustRestore(t, tx, "h", p, RestoreOptions{})
	if tx.Exists([]byte("h")) {
		t.Error("it is there")
	}
	if _, _, err := tx.Set([]byte("h"), []byte("old"), SetOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	mustRestore(t, tx, "h", p, RestoreOptions{Replace: true})
	if tx.Exists([]byte("h")) {
		t.Error("what it replaces is there")
	}
}

func TestABadPayloadChangesNothing(t *testing.T) {
	db := Open(Options{RecordEffects: true})
	defer db.Close()
	tx := db.BeginAll(0)
	if _, _, err := tx.Set([]byte("k"), []byte("old"), SetOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	before := tx.dirty
	for _, p := range payloads(t) {
		value, version, _ := rdb.Open(p.Dump)
		for i := 1; i < len(value); i += 1 + len(value)/20 {
			cut := rdb.Seal(slices.Clone(value[:i]), version)
			if err := tx.Restore([]byte("k"), cut, RestoreOptions{Replace: true}); !errors.Is(err, ErrBadFormat) {
				t.Errorf("%s: %d of %d bytes: %v", p, i, len(value), err)
			}
		}
		damaged := slices.Clone(p.Dump)
		damaged[len(damaged)/2] ^= 1
		if err := tx.Restore([]byte("k"), damaged, RestoreOptions{Replace: true}); err != ErrPayload {
			t.Errorf("%s, damaged: %v", p, err)
		}
		if err := tx.Restore([]byte("k"), p.Dump, RestoreOptions{}); err != ErrBusyKey {
			t.Errorf("%s: %v", p, err)
		}
	}
	if v, _, _ := tx.Get([]byte("k")); string(v) != "old" || tx.dirty != before {
		t.Errorf("the key holds %q", v)
	}
	tx.Commit()
	if n := len(db.Drain()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// FuzzRestore restores arbitrary bytes: the engine must be able to dump any value that it accepts, and to
// restore it again.
func FuzzRestore(f *testing.F) {
	for _, p := range payloads(f) {
		value, version, _ := rdb.Open(p.Dump)
		f.Add(value, version == rdb.Version)
	}
	db := Open(Options{Shards: 1})
	f.Cleanup(func() { db.Close() })
	f.Fuzz(func(t *testing.T, value []byte, newest bool) {
		version := rdb.PlainVersion
		if newest {
			version = rdb.Version
		}
		tx := db.BeginAll(0)
		defer tx.Commit()
		defer tx.Flush(-1)
		err := tx.Restore([]byte("a"), rdb.Seal(slices.Clone(value), version), RestoreOptions{})
		if err != nil {
			if !errors.Is(err, ErrBadFormat) || tx.Size() != 0 {
				t.Fatal(err, tx.Size())
			}
			return
		}
		dump, ok := tx.Dump(nil, []byte("a"))
		if !ok {
			return // all its fields have expired
		}
		if err := tx.Restore([]byte("b"), dump, RestoreOptions{}); err != nil {
			t.Fatalf("%v: %q", err, dump)
		}
		if a, b := show(tx, "a"), show(tx, "b"); !slices.Equal(a, b) {
			t.Fatalf("%q\n%q", a, b)
		}
	})
}
