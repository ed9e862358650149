package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// journal records events as "db event key".
type journal struct {
	noHooks
	mu     sync.Mutex // guards events
	events []string
}

func (j *journal) Event(tx *Tx, _ uint32, event string, key []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprint(tx.Selected(), " ", event, " ", string(key)))
}

// take returns the events since the last call.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.events
	j.events = nil
	return e
}

// open returns an engine on a manual clock whose events go to the journal.
func open(t testing.TB, o Options) (*DB, *clock.Manual, *journal) {
	clock, j := clock.NewManual(epoch), &journal{}
	o.Clock, o.Hooks = clock, j
	db := Open(o)
	t.Cleanup(db.Close)
	db.SetEvents(EventAll)
	return db, clock, j
}

func do(db *DB, f func(tx *Tx)) {
	tx := db.BeginAll(0)
	defer tx.Commit()
	f(tx)
}

func set(t testing.TB, db *DB, key, val string, ttl time.Duration) {
	t.Helper()
	if err := db.set(0, []byte(key), []byte(val), ttl); err != nil {
		t.Fatal(err)
	}
}

func TestEventsComeInTheOrderOfRedis(t *testing.T) {
	db, _, j := open(t, Options{})
	db.SetEvents(EventAll | EventMiss)
	a, b, none := []byte("a"), []byte("b"), []byte("none")
	for _, x := range []struct {
		what string
		do   func(tx *Tx)
		want []string
	}{
		{"RENAME onto an existing key", func(tx *Tx) { _, _ = tx.Rename(a, b, false) }, []string{"0 rename_from a", "0 rename_to b"}},
		{"RENAME onto itself", func(tx *Tx) { _, _ = tx.Rename(a, a, false) }, nil},
		{"RENAMENX refused", func(tx *Tx) { _, _ = tx.Rename(a, b, true) }, nil},
		{"COPY REPLACE", func(tx *Tx) { _, _ = tx.Copy(a, b, 0, true) }, []string{"0 copy_to b"}},
		{"COPY DB", func(tx *Tx) { _, _ = tx.Copy(a, a, 1, false) }, []string{"1 copy_to a"}},
		{"COPY of nothing", func(tx *Tx) { _, _ = tx.Copy(none, a, 1, true) }, []string{"0 keymiss none"}},
		{"MOVE", func(tx *Tx) { _, _ = tx.Move(a, 2) }, []string{"0 move_from a", "2 move_to a"}},
		{"MOVE of nothing", func(tx *Tx) { _, _ = tx.Move(none, 2) }, nil},
		{"DEL", func(tx *Tx) { tx.Del(a); tx.Del(none) }, []string{"0 del a"}},
		{"EXPIRE", func(tx *Tx) { tx.Expire(a, tx.Millis()+1, 0, 0); tx.Expire(none, 1, 0, 0) }, []string{"0 expire a"}},
		{"EXPIRE in the past", func(tx *Tx) { tx.Expire(a, tx.Millis(), 0, 0) }, []string{"0 del a"}},
		{"PERSIST", func(tx *Tx) { tx.Expire(a, tx.Millis()+9, 0, 0); tx.Persist(a); tx.Persist(a) }, []string{"0 expire a", "0 persist a"}},
		{"questions", func(tx *Tx) { tx.Exists(none); tx.Type(none); tx.TTL(none); tx.Touch(none) },
			slices.Repeat([]string{"0 keymiss none"}, 4)},
		{"FLUSHALL and SWAPDB", func(tx *Tx) { tx.Swap(0, 1); tx.Flush(-1) }, nil},
	} {
		do(db, func(tx *Tx) { tx.Flush(-1) })
		set(t, db, "a", "1", 0)
		set(t, db, "b", "2", 0)
		j.take()
		do(db, x.do)
		if got := j.take(); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
}

func TestEveryExpiryHasOneEvent(t *testing.T) {
	for _, active := range []bool{true, false} {
		db, clock, j := open(t, Options{})
		db.SetActiveExpiry(active)
		for i := range 100 {
			set(t, db, fmt.Sprint(i), "v", time.Duration(i+1)*time.Millisecond)
		}
		j.take()
		clock.Advance(51 * time.Millisecond)
		for range 2 {
			for i := range 100 {
				if _, ok, _ := db.get(0, []byte(fmt.Sprint(i)), nil); ok != (i >= 50) {
					t.Errorf("active %v: key %d is there: %v", active, i, ok)
				}
			}
		}
		clock.Advance(time.Second)
		db.SetActiveExpiry(true)
		clock.Advance(time.Millisecond)
		got := j.take()
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); len(got) != 100 || n != 100 {
			t.Errorf("active %v: %d events, %d of them different, want 100", active, len(got), n)
		}
	}
}

func TestCountsAreExactWhileTheDeadAreStillThere(t *testing.T) {
	db, clock, _ := open(t, Options{})
	db.SetActiveExpiry(false)
	const n = 5000
	want := make([]int, 3001) // by ms
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		ttl := 1 + rng.IntN(3000)
		set(t, db, fmt.Sprint(i), "v", time.Duration(ttl)*time.Millisecond)
		for ms := range ttl + 1 {
			if ms < len(want) {
				want[ms]++ // it lives through its last millisecond
			}
		}
	}
	for ms := 0; ms <= 3000; ms += 37 {
		do(db, func(tx *Tx) {
			if got := tx.Size(); got != want[ms] {
				t.Fatalf("after %d ms there are %d keys, want %d", ms, got, want[ms])
			}
		})
		if s := db.Keyspace(0); s.Keys != want[ms] || s.Keys+s.Due != n || s.Expires != s.Keys {
			t.Fatalf("after %d ms: %+v, want %d keys", ms, s, want[ms])
		}
		clock.Advance(37 * time.Millisecond)
	}
	clock.Advance(time.Second)
	do(db, func(tx *Tx) {
		if key := tx.RandomKey(rand.NewPCG(1, 2).Uint64); key != nil {
			t.Errorf("the random key %q is dead", key)
		}
		tx.Each(func(k Key) { t.Errorf("%q is dead and visited", k.Name()) })
		tx.Scan(0, 2*n, func(k Key) { t.Errorf("%q is dead and scanned", k.Name()) })
	})
}

func TestExpiriesOfASliceAreOneEffect(t *testing.T) {
	db, clock, _ := open(t, Options{Shards: 1, RecordEffects: true})
	for i := range 100 {
		set(t, db, fmt.Sprint(i), "v", 5*time.Millisecond)
	}
	db.Drain()
	clock.Advance(6 * time.Millisecond)
	fx := db.Drain()
	if len(fx) != 1 || len(fx[0].Args) != 101 || string(fx[0].Args[0]) != "DEL" {
		t.Errorf("%d effects, the first with %d arguments; want one DEL of 100 keys", len(fx), len(fx[0].Args))
	}
}

func TestADeadlineBeyondTheWheelIsTheLatestOne(t *testing.T) {
	db, _, _ := open(t, Options{})
	key := []byte("k")
	set(t, db, "k", "v", 0)
	do(db, func(tx *Tx) {
		if !tx.Expire(key, tooFar, 0, 0) || tx.Deadline(key) != MaxDeadline {
			t.Errorf("the deadline is %d, want %d", tx.Deadline(key), int64(MaxDeadline))
		}
		if tx.Expire(key, tooFar, 0, IfLater) || tx.Expire(key, tooFar-1, 0, IfEarlier) {
			t.Error("a deadline beyond the latest one was taken for another")
		}
	})
}

func TestASlidingDeadlineIsKnownToTheLogWithinATenth(t *testing.T) {
	key, other := []byte("k"), []byte("other")
	for name, change := range map[string]func(tx *Tx) []byte{
		"nothing": func(*Tx) []byte { return key },
		"RENAME":  func(tx *Tx) []byte { _, _ = tx.Rename(key, other, false); return other },
		"COPY":    func(tx *Tx) []byte { _, _ = tx.Copy(key, other, 0, true); return other },
		"APPEND":  func(tx *Tx) []byte { _, _ = tx.Append(key, make([]byte, 100)); return key },
		"INCRBY":  func(tx *Tx) []byte { _, _ = tx.IncrBy(key, 1000); return key },
	} {
		db, clock, _ := open(t, Options{RecordEffects: true})
		do(db, func(tx *Tx) {
			_, _, _ = tx.Set(key, []byte("1"), SetOptions{Deadline: tx.Millis() + 1000, Span: 1000}, nil)
		})
		read := key
		for range 2 {
			clock.Advance(99 * time.Millisecond)
			do(db, func(tx *Tx) {
				_, _, _ = tx.Get(read)
				if ttl := tx.TTL(read); ttl != 1000 {
					t.Errorf("%s: the key lives for %d ms after a read, want 1000", name, ttl)
				}
				read = change(tx)
			})
		}
		clock.Advance(2 * time.Millisecond)
		do(db, func(tx *Tx) { _, _, _ = tx.Get(read) })
		second, _, _ := open(t, Options{})
		for _, e := range db.Drain() {
			if failed, err := applyAll(second, []Effect{e}); err != nil {
				t.Fatalf("%q: %v", failed.Args, err)
			}
		}
		var have, want int64
		do(db, func(tx *Tx) { want = tx.Deadline(read) })
		do(second, func(tx *Tx) { tx.Replaying(); have = tx.Deadline(read) })
		if want-have >= 100 || have > want {
			t.Errorf("%s: the log is %d ms behind a span of 1000", name, want-have)
		}
	}
}

func TestScanReturnsWhatIsThereThroughout(t *testing.T) {
	db := Open(Options{Shards: 4})
	defer db.Close()
	const stay = 2000
	for i := range stay {
		set(t, db, fmt.Sprint("stay", i), "v", 0)
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() { // the tables grow and shrink all the time
			for round := 0; !stop.Load(); round++ {
				for i := range 5000 {
					key := fmt.Append(nil, "w", w, ":", i)
					if round%2 == 0 {
						_ = db.set(0, key, key, 0)
					} else {
						db.del(0, key)
					}
				}
			}
		})
	}
	for range 5 {
		seen := map[string]bool{}
		for cursor := uint64(0); ; {
			cursor = db.Scan(0, cursor, 50, func(k Key) { seen[string(k.Name())] = true })
			if cursor == 0 {
				break
			}
			if cursor >= maxCursor {
				t.Fatalf("cursor %d", cursor)
			}
		}
		for i := range stay {
			if !seen[fmt.Sprint("stay", i)] {
				t.Fatalf("stay%d was there all the time, and was not returned", i)
			}
		}
	}
	stop.Store(true)
	writers.Wait()
}

// A small keyspace is returned in one call, and the last keys come with the cursor 0.
func TestScanEndsWithTheLastKey(t *testing.T) {
	db, _, _ := open(t, Options{})
	for n := range 11 {
		got := 0
		if c := db.Scan(0, 0, 10, func(Key) { got++ }); c != 0 || got != n {
			t.Fatalf("%d keys: %d returned with cursor %d", n, got, c)
		}
		set(t, db, fmt.Sprint(n), "v", 0)
	}
}

func TestCompactionLosesNothing(t *testing.T) {
	db, clock, _ := open(t, Options{Shards: 2})
	want, rng := map[string]string{}, rand.New(rand.NewPCG(3, 4))
	value := func(i int) string { return string(slices.Repeat([]byte{byte('a' + i%26)}, 20+i%400)) }
	for round := range 3 {
		for i := range 20000 {
			key := fmt.Sprint(round, ":", i)
			ttl := time.Duration(0)
			if i%3 == 0 {
				ttl = time.Duration(1+i%7) * time.Hour
			}
			set(t, db, key, value(i), ttl)
			want[key] = value(i)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if rng.IntN(8) > 0 {
				delete(want, key)
				db.del(0, []byte(key))
			}
		}
		clock.Advance(time.Second)
		for key, val := range want {
			if got, ok, _ := db.get(0, []byte(key), nil); !ok || string(got) != val {
				t.Fatalf("%s: %.40q, %v; want %.40q", key, got, ok, val)
			}
		}
	}
	for _, sh := range db.shards {
		for _, sp := range sh.spaces {
			if sp == nil {
				continue
			}
			if sp.mem.Wasteful() {
				t.Error("there is something left to compact")
			}
			if err := sp.due.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
