package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// popper waits for a list's element and keeps it.
type popper struct {
	Ticket
	name string
	got  *[]string
	to   []byte // "": nowhere
}

func (p *popper) Serve(tx *Tx, key []byte) (done bool) {
	keep := func(e []byte) { *p.got = append(*p.got, fmt.Sprintf("%s %s %s", p.name, key, e)) }
	if p.to != nil {
		done, _ = tx.LMove(key, p.to, Head, Tail, keep)
	} else {
		done, _ = tx.LPop(key, Head, 1, func(int) {}, keep)
	}
	return done
}

// delayed keeps the work that a transaction passes to another goroutine.
type delayed struct {
	noHooks
	runs *[]func()
}

func (d delayed) Afterwards(_ any, run func()) { *d.runs = append(*d.runs, run) }

// lines is an engine with waiting clients.
type lines struct {
	db   *DB
	got  []string
	runs []func()
}

func newLines(t *testing.T) *lines {
	l := &lines{}
	l.db = Open(Options{Shards: 64, Clock: clock.NewManual(time.UnixMilli(1e12)), Hooks: delayed{runs: &l.runs}})
	t.Cleanup(l.db.Close)
	return l
}

func (l *lines) wait(name, to string, keys ...string) *popper {
	p := &popper{name: name, got: &l.got}
	p.Waiter, p.Kinds = p, KindsOf(List)
	if to != "" {
		p.to = []byte(to)
		p.Also = [][]byte{p.to}
	}
	b := make([][]byte, len(keys))
	for i, k := range keys {
		b[i] = []byte(k)
	}
	tx := l.db.Begin(0, b...)
	tx.Enqueue(&p.Ticket, b...)
	tx.Commit()
	return p
}

func (l *lines) push(key string, elems ...string) {
	tx := l.db.Begin(0, []byte(key))
	defer tx.Commit()
	for _, e := range elems {
		_, _ = tx.LPush([]byte(key), Tail, [][]byte{[]byte(e)}, false)
	}
}

func (l *lines) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.got, want) {
		t.Errorf("served %q, want %q", l.got, want)
	}
	l.got = nil
}

// apart returns two keys of different shards.
func (l *lines) apart() (a, b string) {
	a = "a"
	for i := 0; ; i++ {
		b = fmt.Sprint("b", i)
		x, _ := l.db.shardOf([]byte(a))
		if y, _ := l.db.shardOf([]byte(b)); x != y {
			return a, b
		}
	}
}

func TestALineIsServedInItsOrder(t *testing.T) {
	l := newLines(t)
	l.wait("first", "", "k")
	second := l.wait("second", "", "k", "j", "k")
	l.wait("third", "", "k")
	l.push("k", "1")
	l.expect(t, "first k 1")
	second.Leave()
	second.Leave()
	l.push("j", "2")
	l.push("k", "3")
	l.expect(t, "third k 3")
	if n := l.db.Waiters(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// held runs f while another goroutine holds the shard of a key.
func (l *lines) held(t *testing.T, f func(), key string) {
	t.Helper()
	i, _ := l.db.shardOf([]byte(key))
	l.db.shards[i].lock.Lock()
	defer l.db.shards[i].lock.Unlock()
	promptly(t, f)
}

// promptly runs f in a goroutine, and fails the test if f waits for a lock that the caller holds.
func promptly(t *testing.T, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(tier.Patience):
		t.Error("the transaction waits for a shard that another transaction holds")
	}
}

// runDelayed runs the work that the transactions have passed to another goroutine.
func (l *lines) runDelayed() {
	for len(l.runs) > 0 {
		run := l.runs[0]
		l.runs = l.runs[1:]
		run()
	}
}

func TestALineIsPendingUntilItsWaiterIsServed(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	l.wait("mover", b, a)
	l.wait("behind", "", a)
	l.held(t, func() { l.push(a, "1", "2") }, b)
	l.expect(t)
	tx := l.db.Begin(0, []byte(a))
	if !tx.Pending([]byte(a)) {
		t.Error("the line is not pending")
	}
	tx.Commit()
	l.runDelayed()
	l.expect(t, "mover "+a+" 1", "behind "+a+" 2")
	tx = l.db.Begin(0, []byte(a))
	defer tx.Commit()
	if tx.Pending([]byte(a)) {
		t.Error("the line is still pending")
	}
}

// Shards that no other transaction holds are locked in the caller's own goroutine, before Commit returns.
func TestAWaiterOfTwoShardsIsServedAtOnce(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	l.wait("mover", b, a)
	l.wait("next", "", b)
	l.push(a, "1")
	l.expect(t, "mover "+a+" 1", "next "+b+" 1")
	if len(l.runs) > 0 {
		t.Error("the work was left to another goroutine")
	}
}

// Waiters of other shards do not overtake one that cannot be served yet.
func TestDelayedWaitersAreServedInTheOrderOfTheSignals(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	var near string // in the shard of a, so that one push transaction reaches both
	for i := 0; near == ""; i++ {
		k := fmt.Sprint("near", i)
		x, _ := l.db.shardOf([]byte(a))
		if y, _ := l.db.shardOf([]byte(k)); x == y {
			near = k
		}
	}
	free := apart(l.db, "free", a, b)
	l.wait("first", b, a)
	l.wait("second", free, near)
	l.held(t, func() {
		tx := l.db.Begin(0, []byte(a), []byte(near))
		for _, k := range []string{a, near} {
			_, _ = tx.LPush([]byte(k), Tail, [][]byte{[]byte("1")}, false)
		}
		tx.Commit()
	}, b)
	l.expect(t)
	l.runDelayed()
	l.expect(t, "first "+a+" 1", "second "+near+" 1")
}

// Work on keys that follows a transaction does not wait either.
func TestWorkOnKeysIsDelayedWhileTheirShardsAreHeld(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	keys := [][]byte{[]byte(a), []byte(b)}
	var got []string
	work := func() {
		l.db.Do(0, keys, func(tx *Tx) {
			if !tx.Holds(keys[0]) || !tx.Holds(keys[1]) {
				t.Error("the shards are not locked")
			}
			got = append(got, "done")
		})
	}
	l.held(t, work, b)
	if len(got) != 0 || len(l.runs) != 1 {
		t.Fatal(got, len(l.runs))
	}
	l.runDelayed()
	work()
	if len(got) != 2 || len(l.runs) != 0 {
		t.Error(got, len(l.runs))
	}
}

// A snapshot whose queue is full makes writers wait before they lock a shard; a waiter is served later then.
func TestWorkAfterATransactionDoesNotWaitForASnapshot(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	l.wait("mover", b, a)
	s := &snapshot{}
	s.room.L = &s.mu
	promptly(t, func() {
		tx := l.db.Begin(0, []byte(a))
		_, _ = tx.LPush([]byte(a), Tail, [][]byte{[]byte("1")}, false)
		s.full.Store(true)
		l.db.snap.Store(s)
		tx.Commit()
	})
	l.expect(t)
	s.mu.Lock()
	s.full.Store(false)
	s.room.Broadcast()
	s.mu.Unlock()
	l.db.snap.Store(nil)
	l.runDelayed()
	l.expect(t, "mover "+a+" 1")
}

func TestADelayedLineMayHaveNothingLeft(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	p := l.wait("mover", b, a)
	l.held(t, func() { l.push(a, "1") }, b)
	l.db.del(0, []byte(a))
	l.runDelayed()
	l.expect(t)
	l.held(t, func() { l.push(a, "2") }, b)
	p.Leave()
	l.runDelayed()
	l.expect(t)
}

func TestOtherKindsServeNoWaiter(t *testing.T) {
	l := newLines(t)
	l.wait("first", "", "k")
	if err := l.db.set(0, []byte("k"), []byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	l.db.del(0, []byte("k"))
	l.expect(t)
	l.push("k", "1")
	l.expect(t, "first k 1")
}
