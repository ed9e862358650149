package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// adders add the items i to i+n to a large container: some 128 bytes each.
func adders() map[string]func(tx *engine.Tx, key []byte, i, n int) error {
	item := func(i int) []byte {
		return fmt.Appendf(nil, "%08d:%s", i*7919, strings.Repeat(string(rune('a'+i%26)), 100))
	}
	items := func(i, n int) (all [][]byte) {
		for j := range n {
			all = append(all, item(i+j))
		}
		return all
	}
	scored := func(i, n int) (all []engine.Scored) {
		for j := range n {
			all = append(all, engine.Scored{Member: item(i + j), Score: float64(j) / 3})
		}
		return all
	}
	hset := func(tx *engine.Tx, key []byte, i, n int) error {
		var pairs [][]byte
		for j := range n {
			pairs = append(pairs, fmt.Append(nil, i+j), item(i+j))
		}
		_, err := tx.HSet(key, pairs)
		return err
	}
	ignore := func(int) {}
	const later = 1_800_000_000_000
	return map[string]func(tx *engine.Tx, key []byte, i, n int) error{
		"hash": hset,
		"hash with deadlines": func(tx *engine.Tx, key []byte, i, n int) error {
			if err := hset(tx, key, i, n); err != nil {
				return err
			}
			return tx.HExpire(key, [][]byte{fmt.Append(nil, i)}, later+int64(i), 0, ignore)
		},
		"set": func(tx *engine.Tx, key []byte, i, n int) error { _, err := tx.SAdd(key, items(i, n)); return err },
		"set with deadlines": func(tx *engine.Tx, key []byte, i, n int) error {
			if _, err := tx.SAdd(key, items(i, n)); err != nil {
				return err
			}
			return tx.SExpire(key, [][]byte{item(i)}, later+int64(i), 0, ignore)
		},
		"zset": func(tx *engine.Tx, key []byte, i, n int) error {
			_, _, err := tx.ZAdd(key, scored(i, n), engine.ZAddOptions{})
			return err
		},
		"zset with deadlines": func(tx *engine.Tx, key []byte, i, n int) error {
			if _, _, err := tx.ZAdd(key, scored(i, n), engine.ZAddOptions{}); err != nil {
				return err
			}
			return tx.ZExpire(key, [][]byte{item(i)}, later+int64(i), 0, ignore)
		},
		"list": func(tx *engine.Tx, key []byte, i, n int) error {
			_, err := tx.LPush(key, engine.End(1), items(i, n), false)
			return err
		},
		"list with deadlines": func(tx *engine.Tx, key []byte, i, n int) error {
			_, err := tx.LPushEx(key, engine.End(1), items(i, n), later+int64(i), 0)
			return err
		},
		"stream": func(tx *engine.Tx, key []byte, i, n int) error {
			for _, it := range items(i, n) {
				if _, _, err := tx.XAdd(key, &engine.XAdd{Auto: true, Pairs: [][]byte{[]byte("field"), it}}); err != nil {
					return err
				}
			}
			return nil
		},
		"queue": func(tx *engine.Tx, key []byte, i, n int) error {
			for _, it := range items(i, n) {
				if _, _, err := tx.QueueAdd(key, &engine.QueueAdd{Payload: it}); err != nil {
					return err
				}
			}
			return nil
		},
		"filter": func(tx *engine.Tx, key []byte, i, n int) error {
			if i == 0 {
				if err := tx.BFReserve(key, engine.BloomConfig{Error: 1e-9, Capacity: 2_000_000, Expansion: 2}); err != nil {
					return err
				}
			}
			for _, it := range items(i, n) { // with bits everywhere, all pieces exist
				if _, err := tx.BFAdd(key, it); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// grow makes a container of at least that size.
func grow(t *testing.T, db *engine.DB, name string, size int) {
	t.Helper()
	key, add := []byte(name), adders()[name]
	for i := 0; ; i += 1000 {
		tx := db.Begin(0, key)
		err := add(tx, key, i, 1000)
		now := tx.ValueSize(key)
		tx.Commit()
		if err != nil {
			t.Fatal(name, err)
		}
		if now >= size || name == "filter" && i > 10_000 {
			return
		}
	}
}

// longest is a writer that records the length of the longest write, and of all writes together.
type longest struct{ one, all int }

func (l *longest) Write(b []byte) (int, error) {
	l.one = max(l.one, len(b))
	l.all += len(b)
	return len(b), nil
}

func TestALargeContainerIsWrittenInLittleMemory(t *testing.T) {
	tier.Sequential(t)
	for name := range adders() {
		size := 16 << 20
		switch {
		case tier.Short():
			size = 4 << 20
		case !strings.Contains(name, " ") && name != "queue" && name != "stream":
			size = 64 << 20
		}
		db := engine.Open(frozen())
		grow(t, db, name, size)
		for _, plain := range []bool{false, true} {
			var before, after runtime.MemStats
			w := new(longest)
			runtime.ReadMemStats(&before)
			err := db.Snapshot(t.Context(), rdb.NewWriter(w, rdb.WriterOptions{}), engine.SnapshotOptions{Plain: plain, NoCompress: plain})
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s, plain %v: %d MiB in the file, %d KiB at most in a write, %d KiB allocated in all", name, plain, w.all>>20, w.one>>10, took>>10)
			if err != nil || took > 2<<20 || w.one > 1<<20 {
				t.Errorf("%s, plain %v: %v, %d bytes allocated", name, plain, err, took)
			}
		}
		db.Close()
	}
}

// cutting is a writer that calls a function at every write.
type cutting struct {
	bytes.Buffer
	at func()
}

func (c *cutting) Write(b []byte) (int, error) {
	c.at()
	return c.Buffer.Write(b)
}

func TestRecordsInPartsAreWhole(t *testing.T) {
	tier.Sequential(t)
	db := opened(t)
	for name := range adders() {
		grow(t, db, name, 3<<20/2)
	}
	for i := range 2000 {
		put(t, db, 0, fmt.Sprint("key:", i), "old")
	}
	var want map[string]string
	n, cut := 0, false
	// Clients write while the snapshot writes a record: to the containers, and to keys whose records must then
	// wait.
	file := &cutting{at: func() {
		if !cut {
			return
		}
		n++
		for i := range 20 {
			put(t, db, 0, fmt.Sprint("key:", (n*20+i)%2500), "new")
		}
		for name, add := range adders() {
			key := []byte(name)
			tx := db.Begin(0, key)
			if err := add(tx, key, n%500+1, 1); err != nil {
				t.Error(name, err)
			}
			tx.Commit()
		}
	}}
	w := rdb.NewWriter(file, rdb.WriterOptions{Checksum: true})
	err := db.Snapshot(t.Context(), w, engine.SnapshotOptions{NoCompress: true, AtCut: func(tx *engine.Tx) { want, cut = picture(tx), true }})
	if err == nil {
		err = w.End()
	}
	if err != nil || n < 30 {
		t.Fatalf("%v after %d writes", err, n)
	}
	second, err := load(t, file.Bytes(), engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	tx := second.BeginAll(0)
	same(t, picture(tx), want)
	tx.Commit()
	if err := second.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotEndsWithinALargeContainer(t *testing.T) {
	db := opened(t)
	for name := range adders() {
		grow(t, db, name, 3<<20/2)
	}
	step := 6
	if tier.Short() {
		step = 19
	}
	for fails := 1; fails < 40; fails += step {
		w := rdb.NewWriter(&failing{left: fails}, rdb.WriterOptions{})
		if err := db.Snapshot(t.Context(), w, engine.SnapshotOptions{NoCompress: true}); err != io.ErrClosedPipe {
			t.Fatalf("it ends with %v", err)
		}
	}
	tx := db.BeginAll(0)
	want := picture(tx)
	tx.Commit()
	second, err := load(t, begin(t, db, engine.SnapshotOptions{}).finish(), engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	tx = second.BeginAll(0)
	same(t, picture(tx), want)
	tx.Commit()
}

// failing is a writer that fails after some writes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}
