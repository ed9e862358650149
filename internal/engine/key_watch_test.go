package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// tooMuch is a growth that linear work never reaches, and quadratic work always does.
const tooMuch = 4

// growth returns how many times longer one piece of work takes than ten pieces of a tenth of it: about 1 if
// the work is linear, 10 if it is quadratic. Both take about equally long, so that other programs disturb
// both alike. It takes the best of three measurements, and more of them if that is above tooMuch.
func growth(t *testing.T, few int, work func(n int)) (g float64) {
	t.Helper()
	var least [2]time.Duration
	for i := range 30 {
		for j, n := range []int{few, 10 * few} {
			began := time.Now()
			for range 10 * few / n {
				work(n)
			}
			if d := time.Since(began); i == 0 || d < least[j] {
				least[j] = d
			}
		}
		if g = float64(least[1]) / float64(least[0]); i >= 2 && g <= tooMuch {
			break
		}
	}
	return g
}

// A watch of ten times as many keys takes about ten times as long, and so does its end, even for keys that
// others watch.
func TestWatchingCostsTheSameForEachKey(t *testing.T) {
	tier.Sequential(t)
	db, _, _ := open(t, Options{})
	keys := make([][]byte, 40_000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%d", i)
	}
	watch := func(n int) {
		w := db.NewWatch()
		tx := db.BeginAll(0)
		for _, k := range keys[:n] {
			w.Add(tx, k)
			w.Add(tx, k)
		}
		tx.Commit()
		if w.Len() != n {
			t.Fatalf("%d keys are watched, want %d", w.Len(), n)
		}
		w.Clear(nil)
	}
	if g := growth(t, 4000, watch); g > tooMuch {
		t.Errorf("ten times as many keys take %.0f times as long", 10*g)
	}
	others := func(n int) { // n clients watch one key
		all := make([]*Watch, n)
		tx := db.BeginAll(0)
		for i := range all {
			all[i] = db.NewWatch()
			all[i].Add(tx, keys[0])
		}
		tx.Commit()
		for i := range all {
			all[n-1-i].Clear(nil)
		}
	}
	if g := growth(t, 4000, others); g > tooMuch {
		t.Errorf("ten times as many watches of a key take %.0f times as long", 10*g)
	}
}

// Watched keys count as used memory until they are no longer watched. The limit of the data does not include
// them.
func TestWatchesAndLinesCountAsUsedMemory(t *testing.T) {
	db, _, _ := open(t, Options{})
	before := db.UsedMemory()
	w := db.NewWatch()
	tx := db.BeginAll(0)
	for i := range 1000 {
		w.Add(tx, fmt.Appendf(nil, "key:%d", i))
	}
	var names [][]byte
	for i := range 1000 {
		names = append(names, fmt.Appendf(nil, "list:%d", i))
	}
	ticket := &Ticket{Kinds: AnyKind}
	tx.Enqueue(ticket, names...)
	tx.Commit()
	if got := db.UsedMemory() - before; got < 500_000 || got != db.Charged() || got != db.Apart() {
		t.Errorf("%d bytes more are used, %d are charged, %d apart", got, db.Charged(), db.Apart())
	}
	db.LimitMemory(before + 1)
	if db.OverLimit() {
		t.Error("the limit of the data counts the watched keys")
	}
	if db.ApartFull() {
		t.Error("half a MiB fills the memory beside the data")
	}
	w.Forget(nil, 10)
	if w.Len() != 10 || w.Bytes() != 10*markBytes+10*int64(len("key:1")) {
		t.Errorf("%d keys of %d bytes are left", w.Len(), w.Bytes())
	}
	w.Clear(nil)
	ticket.Leave()
	ticket.Leave()
	if got := db.UsedMemory(); got != before || db.Charged() != 0 || db.Waiters() != 0 || db.Watches() != 0 {
		t.Errorf("%d bytes are used, were %d; %d are charged, %d places and %d watches are left", got, before, db.Charged(), db.Waiters(), db.Watches())
	}
}

// A client that stops watching does not wait for a shard that another one holds, and what it does not reach at once another
// goroutine removes.
func TestAWatchIsClearedWithoutWaiting(t *testing.T) {
	db, _, _ := open(t, Options{})
	keys := [][]byte{[]byte("a"), []byte("b")}
	for db.NewTx().shardID(keys[0]) == db.NewTx().shardID(keys[1]) {
		keys[1] = append(keys[1], 'b')
	}
	w, tx := db.NewWatch(), db.NewTx()
	watch := func() {
		tx.Lock(0, keys)
		for _, k := range keys {
			w.Add(tx, k)
		}
		tx.Unlock()
	}
	for _, held := range keys {
		watch()
		holder := db.Begin(0, held)
		if w.TryClear() || w.Len() == 0 {
			t.Errorf("a watch whose key %q is held is cleared", held)
		}
		holder.Commit()
		w.Clear(nil)
		if w.Len() != 0 || w.Bytes() != 0 || db.Watches() != 0 || db.Apart() != 0 {
			t.Errorf("%d keys of %d bytes are left, the engine counts %d", w.Len(), w.Bytes(), db.Watches())
		}
	}
	watch()
	tx.Lock(0, keys)
	_ = tx.Del(keys[0])
	if got := w.AppendKeys(nil); len(got) != 2 || string(got[1]) != string(keys[1]) {
		t.Errorf("the keys %q are watched, want %q", got, keys)
	}
	tx.Unlock()
	if !w.TryClear() || w.Len() != 0 || w.Bytes() != 0 || db.Watches() != 0 || w.Changed() {
		t.Errorf("%d keys of %d bytes are left, the engine counts %d", w.Len(), w.Bytes(), db.Watches())
	}
	if n := testing.AllocsPerRun(100, func() { watch(); w.TryClear() }); n > 3*float64(len(keys)) {
		t.Errorf("to watch %d keys, and to stop, allocates %v times", len(keys), n)
	}
}

// sweeper is an implementation of Hooks that keeps the containers to sweep.
type sweeper struct {
	noHooks
	swept []func()
}

func (s *sweeper) Sweep(run func()) { s.swept = append(s.swept, run) }

// done is a waiter that accepts any wake-up.
type done struct{ served int }

func (d *done) Serve(*Tx, []byte) bool { d.served++; return true }

// A ticket for many keys that is served leaves its other lines later. From then on it is neither served nor
// ahead of others.
func TestATicketOfManyKeysLeavesItsLinesLater(t *testing.T) {
	hooks := &sweeper{}
	db := Open(Options{Clock: clock.NewManual(time.Unix(1e9, 0)), Hooks: hooks})
	defer db.Close()
	var names [][]byte
	for i := range leaveAtOnce + 1 {
		names = append(names, fmt.Appendf(nil, "list:%d", i))
	}
	many, next := &done{}, &done{}
	tx := db.BeginAll(0)
	tx.Enqueue(&Ticket{Waiter: many, Kinds: KindsOf(List)}, names...)
	tx.Enqueue(&Ticket{Waiter: next, Kinds: KindsOf(List)}, names[1])
	tx.Commit()
	push := func(key []byte) {
		tx := db.Begin(0, key)
		if _, err := tx.LPush(key, Head, [][]byte{[]byte("x")}, false); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	push(names[0])
	if many.served != 1 || len(hooks.swept) != 1 {
		t.Fatalf("served %d times, %d sweeps", many.served, len(hooks.swept))
	}
	tx = db.BeginAll(0)
	if tx.Awaited(names[2], List) || len(tx.Line(names[2])) != 0 || !tx.Awaited(names[1], List) || len(tx.Line(names[1])) != 1 {
		t.Error("the ticket stands in a line still, or another does not")
	}
	tx.Commit()
	push(names[1])
	push(names[2])
	if many.served != 1 || next.served != 1 {
		t.Errorf("the first was served %d times, the next %d times", many.served, next.served)
	}
	hooks.swept[0]()
	if db.Waiters() != 0 || db.Charged() != 0 {
		t.Errorf("%d places are left, %d bytes charged", db.Waiters(), db.Charged())
	}
}

// A watch without a transaction reports each change once, continues, and waits for no lock.
func TestAWatchTellsOfEachChangeOnce(t *testing.T) {
	db, _, _ := open(t, Options{})
	k, w := []byte("k"), db.NewWatch()
	set := func(key, value string) {
		tx := db.Begin(0, []byte(key))
		tx.Set([]byte(key), []byte(value), SetOptions{}, nil)
		tx.Commit()
	}
	tx := db.BeginAll(0)
	if w.TryAdd(0, k) || w.Len() != 0 {
		t.Error("a key is watched while a transaction holds its shard")
	}
	tx.Commit()
	if !w.TryAdd(0, k) || w.Len() != 1 {
		t.Fatal("a key is not watched")
	}
	for i := range 3 {
		if w.Changed() {
			t.Errorf("round %d: the key has changed", i)
		}
		set("other", "v")
		set("k", fmt.Sprint(i))
		set("k", fmt.Sprint(i))
		if !w.Changed() {
			t.Errorf("round %d: the change was not noticed", i)
		}
	}
	w.Clear(nil)
	set("k", "v")
	if w.Changed() || db.Watches() != 0 {
		t.Error("the watch goes on after Clear")
	}
}
