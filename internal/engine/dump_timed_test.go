package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// timedKeys makes a list, a set and a sorted set some of whose items have
// deadlines, 10, 20, 30 ... ms from now, with n items each.
func timedKeys(t testing.TB, tx *Tx, n int) {
	t.Helper()
	list, set, zset := []byte("list"), []byte("set"), []byte("zset")
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		item := []byte(fmt.Sprint("item", i))
		if i%3 == 0 {
			item = []byte(fmt.Sprint(i))
		}
		deadline := int64(0)
		if i%2 == 0 {
			deadline = tx.ms + int64(i/2+1)*10
		}
		_, err := tx.LPushEx(list, Tail, [][]byte{item}, deadline, 0)
		fail(err)
		_, err = tx.SAdd(set, [][]byte{item})
		fail(err)
		_, _, err = tx.ZAddEx(zset, []Scored{{float64(i) / 3, item}}, ZAddOptions{}, ItemOptions{Deadline: deadline})
		fail(err)
		if deadline != 0 {
			fail(tx.SExpire(set, [][]byte{item}, deadline, 0, func(int) {}))
		}
	}
}

func TestItemsKeepTheirDeadlinesThroughDumpAndRestore(t *testing.T) {
	for _, n := range []int{1, 5, 1000} {
		clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
		db := Open(Options{Clock: clock})
		db.SetActiveExpiry(false)
		tx := db.BeginAll(0)
		timedKeys(t, tx, n)
		tx.Commit()
		for _, wait := range []int{0, 10, 11, 25, 10_000} {
			clock.Advance(time.Duration(wait) * time.Millisecond)
			tx := db.BeginAll(0)
			for _, key := range []string{"list", "set", "zset"} {
				want := show(tx, key)
				dump, ok := tx.Dump(nil, []byte(key))
				if !ok {
					if n > 1 {
						t.Errorf("%d items after %d ms: no %s", n, wait, key)
					}
					continue
				}
				mustRestore(t, tx, "copy", dump, RestoreOptions{Replace: true})
				got := show(tx, "copy")
				if n == 1000 { // a large container that has shrunk stays large; its copy is small
					got, want = got[2:], want[2:]
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d items after %d ms:\n got %.500q\nwant %.500q", n, wait, got, want)
				}
			}
			tx.Commit()
		}
		if err := db.Check(); err != nil {
			t.Error(err)
		}
		db.Close()
	}
}

func TestWhatHasDiedIsNotRestored(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Clock: clock, RecordEffects: true})
	defer db.Close()
	tx := db.BeginAll(0)
	timedKeys(t, tx, 9)
	dumps := map[string][]byte{}
	for _, key := range []string{"list", "set", "zset"} {
		dumps[key], _ = tx.Dump(nil, []byte(key))
	}
	tx.Commit()
	clock.Advance(25 * time.Millisecond)
	db.Drain()
	tx = db.BeginAll(0)
	for key, dump := range dumps {
		mustRestore(t, tx, "r"+key, dump, RestoreOptions{})
		if got, want := show(tx, "r"+key)[2:], show(tx, key)[2:]; !slices.Equal(got, want) || len(got) != 7 {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	tx.Commit()
	for _, e := range db.Drain() { // the log has the rest
		if strings.HasSuffix(string(e.Args[0]), "RESTORE") && slices.Equal(e.Args[3], dumps[string(e.Args[1][1:])]) {
			t.Errorf("%q is logged with its dead", e.Args[1])
		}
	}
	tx = db.BeginAll(0)
	tx.Replaying()
	mustRestore(t, tx, "all", dumps["list"], RestoreOptions{})
	if got := show(tx, "all")[2:]; len(got) != 9 {
		t.Errorf("a replay restores %q", got)
	}
	tx.Commit()
	clock.Advance(time.Minute)
	tx = db.BeginAll(0)
	defer tx.Commit()
	dump := sealTimed("ebb-tsets", 1, 1, 1000, 1, 1, 'a')
	mustRestore(t, tx, "gone", dump, RestoreOptions{})
	if tx.Exists([]byte("gone")) {
		t.Error("a set of the dead is there")
	}
}

// sealTimed is a payload of a module's bytes, given as varints.
func sealTimed(name string, numbers ...uint64) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return sealModule(name, b)
}

func sealModule(name string, b []byte) []byte {
	e := rdb.Encoder{}
	e.Reset(nil)
	e.Module(name, b)
	return rdb.Seal(e.Buf, e.Version())
}

func TestAPayloadWithDeadlinesThatIsWrongChangesNothing(t *testing.T) {
	tier.Sequential(t)
	db := Open(Options{Clock: clock.NewManual(time.UnixMilli(1000))})
	defer db.Close()
	tx := db.BeginAll(0)
	defer tx.Commit()
	nan := append([]byte{1, 1, 1, 1}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))...)
	for name, payload := range map[string][]byte{
		"nothing":        sealTimed("ebb-tsets"),
		"version":        sealTimed("ebb-tsets", 2, 1, 5000, 1, 1, 'a'),
		"no items":       sealTimed("ebb-tsets", 1, 0, 5000),
		"no deadline":    sealTimed("ebb-tsets", 1, 1, 0, 1, 1, 'a'),
		"a late first":   sealTimed("ebb-tsets", 1, 1, 1<<46, 1, 1, 'a'),
		"a late one":     sealTimed("ebb-tsets", 1, 1, 5000, 1<<46, 1, 'a'),
		"an overflow":    sealTimed("ebb-tsets", 1, 1, 5000, 1<<63, 1, 'a'),
		"too many":       sealTimed("ebb-tsets", 1, 1<<40, 5000, 1, 1, 'a'),
		"too long":       sealTimed("ebb-tlist", 1, 1, 5000, 1, 2, 'a'),
		"very long":      sealTimed("ebb-tlist", 1, 1, 5000, 1, 1<<62, 'a'),
		"more":           sealTimed("ebb-tlist", 1, 1, 5000, 1, 1, 'a', 'b'),
		"twice":          sealTimed("ebb-tsets", 1, 2, 5000, 1, 1, 'a', 0, 1, 'a'),
		"no score":       sealTimed("ebb-tzset", 1, 1, 5000, 1, 1, 'a'),
		"not a number":   sealModule("ebb-tzset", append(nan, 1, 'a')),
		"unknown module": sealTimed("ebb-tnone", 1, 1, 5000, 1, 1, 'a'),
	} {
		if err := tx.Restore([]byte("k"), payload, RestoreOptions{}); !errors.Is(err, ErrBadFormat) || tx.Exists([]byte("k")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	timedKeys(t, tx, 200)
	for _, key := range []string{"list", "set", "zset"} {
		h := tx.find([]byte(key))
		body := slices.Clone(tx.dumpTimed(new(rdb.Encoder), &h, tx.earliestItem(&h)))
		for i := range len(body) - 1 {
			payload := sealModule(timedName(h.r.Kind()), body[:i])
			if err := tx.Restore([]byte("k"), payload, RestoreOptions{}); !errors.Is(err, ErrBadFormat) {
				t.Errorf("%d of %d bytes of a %s: %v", i, len(body), key, err)
			}
		}
	}
}

// FuzzRestoreTimed restores arbitrary bytes as one of the types with deadlines: a value that the engine
// accepts must be sound, and the engine must be able to dump it and to restore it again.
func FuzzRestoreTimed(f *testing.F) {
	kinds := []Kind{Set, ZSet, List}
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := Open(Options{Shards: 1, Clock: clock})
	f.Cleanup(func() { db.Close() })
	tx := db.BeginAll(0)
	timedKeys(f, tx, 10)
	for i, key := range []string{"set", "zset", "list"} {
		h := tx.find([]byte(key))
		f.Add(slices.Clone(tx.dumpTimed(new(rdb.Encoder), &h, tx.earliestItem(&h))), uint8(i))
	}
	tx.Flush(-1)
	tx.Commit()
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		payload := sealModule(timedName(kinds[int(kind)%len(kinds)]), body)
		restore := func() bool {
			tx := db.BeginAll(0)
			defer tx.Commit()
			if err := tx.Restore([]byte("a"), payload, RestoreOptions{}); err != nil {
				if !errors.Is(err, ErrBadFormat) || tx.Size() != 0 {
					t.Fatal(err, tx.Size())
				}
				return false
			}
			dump, ok := tx.Dump(nil, []byte("a"))
			if !ok {
				return false // all items have expired
			}
			mustRestore(t, tx, "b", dump, RestoreOptions{})
			if a, b := show(tx, "a"), show(tx, "b"); !slices.Equal(a[2:], b[2:]) {
				t.Fatalf("%q\n%q", a, b)
			}
			return true
		}
		if restore() {
			if err := db.Check(); err != nil {
				t.Fatal(err)
			}
		}
		tx := db.BeginAll(0)
		tx.Flush(-1)
		tx.Commit()
	})
}
