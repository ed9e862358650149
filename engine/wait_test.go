package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"
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

// delayed keeps what is to run after a transaction.
type delayed struct {
	noHooks
	runs *[]func()
}

func (d delayed) Afterwards(run func()) { *d.runs = append(*d.runs, run) }

// lines is an engine with the clients that wait in it.
type lines struct {
	db   *DB
	got  []string
	runs []func()
}

func newLines(t *testing.T) *lines {
	l := &lines{}
	l.db = Open(Options{Shards: 64, Clock: NewManualClock(time.UnixMilli(1e12)), Hooks: delayed{runs: &l.runs}})
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

func TestWhoIsOwedKeepsThePlace(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	l.wait("mover", b, a)
	l.wait("behind", "", a)
	l.push(a, "1", "2")
	l.expect(t)
	tx := l.db.Begin(0, []byte(a))
	if !tx.Pending([]byte(a)) {
		t.Error("the line is not owed")
	}
	tx.Commit()
	for len(l.runs) > 0 {
		run := l.runs[0]
		l.runs = l.runs[1:]
		run()
	}
	l.expect(t, "mover "+a+" 1", "behind "+a+" 2")
	tx = l.db.Begin(0, []byte(a))
	defer tx.Commit()
	if tx.Pending([]byte(a)) {
		t.Error("the line is still owed")
	}
}

func TestWhatIsOwedMayBeGone(t *testing.T) {
	l := newLines(t)
	a, b := l.apart()
	p := l.wait("mover", b, a)
	l.push(a, "1")
	l.db.Del(0, []byte(a))
	l.runs[0]()
	l.expect(t)
	l.runs = nil
	l.push(a, "2")
	p.Leave()
	l.runs[0]()
	l.expect(t)
}

func TestOtherKindsServeNobody(t *testing.T) {
	l := newLines(t)
	l.wait("first", "", "k")
	if err := l.db.Set(0, []byte("k"), []byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	l.db.Del(0, []byte("k"))
	l.expect(t)
	l.push("k", "1")
	l.expect(t, "first k 1")
}
