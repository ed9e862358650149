package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// dueTaker waits for due members, and keeps them.
type dueTaker struct {
	Ticket
	name  string
	due   Due
	got   *[]string
	looks int // the number of times that it was served or checked in vain
}

func (w *dueTaker) Serve(tx *Tx, key []byte) bool {
	w.looks++
	n, _ := tx.ZPopDue(key, w.due, 1, func(int) {}, func(member []byte, _ float64) {
		*w.got = append(*w.got, fmt.Sprintf("%s %s at %d", w.name, member, tx.Now()))
	})
	return n > 0
}

func (l *lines) waitDue(name string, due Due, keys ...string) *dueTaker {
	w := &dueTaker{name: name, due: due, got: &l.got}
	w.Waiter, w.Kinds, w.Want = w, KindsOf(ZSet), Want{Due: due}
	b := make([][]byte, len(keys))
	for i, k := range keys {
		b[i] = []byte(k)
	}
	tx := l.db.Begin(0, b...)
	tx.Enqueue(&w.Ticket, b...)
	tx.Commit()
	return w
}

func (l *lines) zadd(t *testing.T, key string, us int64, member string) {
	t.Helper()
	tx := l.db.Begin(0, []byte(key))
	defer tx.Commit()
	if _, _, err := tx.ZAdd([]byte(key), []Scored{{float64(us) / 1e6, []byte(member)}}, ZAddOptions{}); err != nil {
		t.Fatal(err)
	}
}

// seconds are the scores of time.Now().Unix() and their fractions.
var seconds = Due{Unit: 1e6}

func TestALineWakesInTheMillisecondInWhichAMemberIsDue(t *testing.T) {
	l := newLines(t)
	clock := l.db.clock.(*clock.Manual)
	start := clock.Micros()
	for _, after := range []int64{1, 999, 1000, 1001, 250_000, 90_000_123} {
		at := clock.Micros()
		l.zadd(t, "z", at+after, "m")
		w := l.waitDue("first", seconds, "other", "z")
		clock.Advance(time.Duration(after-1) * time.Microsecond)
		l.expect(t)
		clock.Advance(2 * time.Millisecond)
		if want := (at + after + 999) / 1000 * 1000; !slices.Equal(l.got, []string{fmt.Sprintf("first m at %d", want)}) {
			t.Errorf("%d us after %d: %q, want it at %d", after, at-start, l.got, want)
		}
		if w.looks != 1 {
			t.Errorf("it was served %d times", w.looks)
		}
		l.got = nil
	}
	if n := l.db.Waiters(); n != 0 {
		t.Error(n, "places are taken")
	}
}

// The product of a score and its unit is rounded. The wake-up still happens in the first millisecond in which
// the score is due, or in the one before, and then the line wakes twice.
func TestTheInstantOfAWakeUpIsNeverLate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		d := Due{Unit: []float64{1e6, 1e3, 1, 1000. / 4096, 1000. / 3, 1e4}[rng.IntN(6)], Age: []int64{0, 1, 999, 30_000_000}[rng.IntN(4)]}
		now := int64(1.7e15) + rng.Int64N(1e12)
		score := d.Score(now - d.Age + rng.Int64N(1e10))
		if rng.IntN(2) == 0 {
			score += rng.Float64() / d.Unit
		}
		ms, ok := d.millis(score, now)
		if !ok || ms <= now/1000 {
			t.Fatalf("%v of %+v at %d: %d, %v", score, d, now, ms, ok)
		}
		if before := (ms - 1) * 1000; before > now && score <= d.Cutoff(before) {
			t.Fatalf("%v of %+v is due at %d, and the line wakes at %d", score, d, before, ms*1000)
		}
		if after := (ms + 1) * 1000; score > d.Cutoff(after) {
			t.Fatalf("%v of %+v is not due at %d, and the line wakes at %d", score, d, after, ms*1000)
		}
	}
	for _, score := range []float64{math.Inf(1), 1e300, MaxDeadline} {
		if ms, ok := seconds.millis(score, 0); ok {
			t.Errorf("%v is due at %d", score, ms)
		}
	}
}

func TestALineHasOneWakeUpHoweverManyWait(t *testing.T) {
	l := newLines(t)
	at := l.db.clock.Micros()
	l.zadd(t, "z", at+60e6, "late")
	var all []*dueTaker
	for i := range 1000 {
		all = append(all, l.waitDue(fmt.Sprint(i), seconds, "z"))
	}
	id, _ := l.db.shardOf([]byte("z"))
	wakes := &l.db.shards[id].lines.wakes
	if n := wakes.wheel.Len(); n != 1 {
		t.Errorf("%d wake-ups", n)
	}
	for i := range 100 { // an earlier one each time
		l.zadd(t, "z", at+50e6-int64(i)*1e5, fmt.Sprint("m", i))
	}
	if n := wakes.wheel.Len(); n != 1 {
		t.Errorf("%d wake-ups after earlier members", n)
	}
	l.db.clock.(*clock.Manual).Advance(40 * time.Second)
	l.expect(t)
	for _, w := range all {
		if w.looks > 0 {
			t.Fatal("a client was run in vain")
		}
	}
	if err := l.db.Check(); err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		w.Leave()
	}
	if n := wakes.wheel.Len(); n != 0 || len(wakes.free)+1 != len(wakes.slots) {
		t.Errorf("%d wake-ups are left, %d of %d slots are free", n, len(wakes.free), len(wakes.slots)-1)
	}
}

// Clients that wait for short times again and again leave no wake-up behind, however late the member is due.
func TestAWakeUpGoesWithTheLastOfItsLine(t *testing.T) {
	l := newLines(t)
	at := l.db.clock.Micros()
	for i := range 50 {
		l.zadd(t, fmt.Sprint("z", i), at+1e12, "late")
	}
	for i := range 5000 {
		l.waitDue("w", seconds, fmt.Sprint("z", i%50)).Leave()
	}
	for _, sh := range l.db.shards {
		if w := &sh.lines.wakes; w.wheel != nil && w.wheel.Len() > 0 || len(w.slots) > 3 {
			t.Errorf("%d wake-ups, %d slots", w.wheel.Len(), len(w.slots))
		}
	}
}

func TestAWakeUpNeedsNoActiveExpiry(t *testing.T) {
	l := newLines(t)
	l.db.SetActiveExpiry(false)
	l.waitDue("first", seconds, "z")
	at := l.db.clock.Micros() + 5000
	l.zadd(t, "z", at, "m")
	l.db.clock.(*clock.Manual).Advance(5 * time.Millisecond)
	l.expect(t, fmt.Sprintf("first m at %d", at))
}

// A want that is not met is checked once for the line, and lets later clients pass.
func TestTicketsWithOneWantAreCheckedOnce(t *testing.T) {
	l := newLines(t)
	const many = 2000
	for i := range many {
		w := l.wait(fmt.Sprint("many", i), "", "k")
		w.Leave()
		w = &popper{name: fmt.Sprint("many", i), got: &l.got}
		w.Waiter, w.Kinds, w.Want = w, KindsOf(List), Want{Elems: 3}
		tx := l.db.Begin(0, []byte("k"))
		tx.Enqueue(&w.Ticket, []byte("k"))
		tx.Commit()
	}
	l.wait("last", "", "k")
	l.push("k", "1")
	l.expect(t, "last k 1")
	l.push("k", "1", "2")
	l.expect(t)
	l.push("k", "3")
	l.expect(t, "many0 k 1")
	if err := l.db.Check(); err != nil {
		t.Error(err)
	}
}

// starve runs f with memory that suffices for some of its pushes but not for a later one, and verifies that f
// changes nothing.
func starve(t *testing.T, name string, build func(tx *Tx), f func(tx *Tx) error) {
	t.Helper()
	for spare := 0; ; spare += 1 << 10 {
		db := Open(Options{Databases: 1, Shards: 1, Clock: clock.NewManual(epoch), RecordEffects: true})
		layout := defaultLayout()
		layout.ListSize, layout.ZSetEntries = 2, 2
		db.SetLayout(layout)
		run := func(f func(tx *Tx)) {
			tx := db.BeginAll(0)
			defer tx.Commit()
			f(tx)
		}
		run(build)
		before := everything(db)
		db.Drain()
		db.chunks.Limit(db.chunks.Live() + spare)
		var err error
		run(func(tx *Tx) { err = f(tx) })
		db.chunks.Limit(0)
		effects := db.Drain()
		if err == nil {
			db.Close()
			if spare == 0 {
				t.Errorf("%s needs no memory", name)
			}
			return
		}
		if !errors.Is(err, ErrFull) {
			t.Errorf("%s: %v", name, err)
		}
		if after := everything(db); after != before || len(effects) > 0 {
			t.Errorf("%s with %d bytes: %d effects; there was %.300s\nand is %.300s", name, spare, len(effects), before, after)
		}
		if err := db.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		db.Close()
	}
}

// everything returns the keys and items of a database as a text.
func everything(db *DB) string {
	var all []string
	tx := db.BeginAll(0)
	defer tx.Commit()
	tx.Each(func(k Key) {
		line := fmt.Sprint(string(k.Name()), k.Kind(), k.Deadline())
		k.Items(func(x Item) { line += fmt.Sprintf(" %.9s/%d %v %d", x.Key, len(x.Key), x.Score, x.Deadline) })
		all = append(all, line)
	})
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestAMoveChangesNothingWhenMemoryIsFull(t *testing.T) {
	long := func(i int) []byte { return []byte(fmt.Sprint(i, strings.Repeat("x", 700))) }
	const n = 40
	list := func(key string) func(tx *Tx) {
		return func(tx *Tx) {
			for i := range n {
				_, _ = tx.LPush([]byte(key), Tail, [][]byte{long(i)}, false)
			}
			_ = tx.LExpire([]byte(key), []int64{3, -4}, epoch.UnixMilli()+1000, 0, func(int) {})
		}
	}
	set := func(tx *Tx) {
		for i := range n {
			_, _, _ = tx.ZAdd([]byte("z"), []Scored{{float64(i), long(i)}}, ZAddOptions{})
		}
		_ = tx.ZExpire([]byte("z"), [][]byte{long(5), long(9)}, epoch.UnixMilli()+1000, 0, func(int) {})
	}
	to := func(tx *Tx) { // a part of the members exists there
		for i := range n / 4 {
			_, _, _ = tx.ZAdd([]byte("w"), []Scored{{-float64(i), long(2 * i)}}, ZAddOptions{})
		}
		_ = tx.ZExpire([]byte("w"), [][]byte{long(2), long(9)}, epoch.UnixMilli()+2000, 0, func(int) {})
	}
	begin, visit, both := func(int) {}, func([]byte) {}, func([]byte, float64) {}
	for _, m := range []ListMove{{Head, Tail, 30, false, false}, {Tail, Tail, 30, true, true}} {
		move := func(from, to string) func(tx *Tx) error {
			return func(tx *Tx) error {
				_, err := tx.LMoveMany([]byte(from), []byte(to), m, begin, visit)
				return err
			}
		}
		starve(t, fmt.Sprintf("LMoveMany %+v", m), list("l"), move("l", "m"))
		starve(t, fmt.Sprintf("LMoveMany %+v to another", m), func(tx *Tx) { list("l")(tx); list("m")(tx) }, move("l", "m"))
		starve(t, fmt.Sprintf("LMoveMany %+v within a list", m), list("l"), move("l", "l"))
	}
	starve(t, "ZMoveDue", set, func(tx *Tx) error {
		_, err := tx.ZMoveDue([]byte("z"), []byte("l"), Head, seconds, 30, begin, both)
		return err
	})
	starve(t, "ZMoveDue to a list", func(tx *Tx) { set(tx); list("l")(tx) }, func(tx *Tx) error {
		_, err := tx.ZMoveDue([]byte("z"), []byte("l"), Tail, seconds, 30, begin, both)
		return err
	})
	for _, build := range []func(tx *Tx){set, func(tx *Tx) { set(tx); to(tx) }} {
		starve(t, "ZPostponeDue", build, func(tx *Tx) error {
			_, err := tx.ZPostponeDue([]byte("z"), []byte("w"), 1000, seconds, 30, begin, both)
			return err
		})
	}
}

// BenchmarkAMemberThatIsNotDueYet adds to a set for which many clients wait.
func BenchmarkAMemberThatIsNotDueYet(b *testing.B) {
	for _, n := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(n, " wait"), func(b *testing.B) {
			l := &lines{}
			l.db = Open(Options{Shards: 1, Clock: clock.NewManual(epoch)})
			defer l.db.Close()
			for range n {
				l.waitDue("w", seconds, "z")
			}
			key, items := []byte("z"), []Scored{{0, []byte("m")}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				items[0].Score = 2e9 + float64(i%1000)
				tx := l.db.Begin(0, key)
				_, _, _ = tx.ZAdd(key, items, ZAddOptions{})
				tx.Commit()
			}
		})
	}
}
