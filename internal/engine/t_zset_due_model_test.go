package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"pgregory.net/rapid"
)

// dueModel is a zsetModel whose scores are times, with clients that wait for due members. The engine decides
// which client it serves. When it does, the model verifies that the member is due, and that no client earlier
// in line could have got it. After each step it verifies that no waiting client is left for which a member is
// due.
type dueModel struct {
	zsetModel
	lists   map[string][]modelElem
	waiters []*dueWaiter // in the order in which they began to wait
	drawn   int          // the number of clients so far
	failed  string
}

// dueWaiter is a client that waits.
type dueWaiter struct {
	Ticket
	m     *dueModel
	name  int
	keys  []string
	d     Due
	count int
	how   dueTake
	to    string
	delay int64
}

// dueTake is the operation on due members.
type dueTake int

const (
	takePop dueTake = iota
	takePeek
	takeHead
	takeTail
	takePostpone
	takeKinds
)

var dueUnits = []float64{1e6, 1e3, 1, 1000. / 4096}

func TestDueMembersBehaveAsSortedSlicesWithClientsInLine(t *testing.T) {
	tier.Sequential(t)
	draw.Check(t, func(t *rapid.T) {
		m := &dueModel{zsetModel: zsetModel{containerModel: newContainerModel(), keys: map[string]map[string]zmember{}}, lists: map[string][]modelElem{}}
		m.layout.ZSetEntries = rapid.SampledFrom([]int{0, 3, 128}).Draw(t, "entries")
		m.layout.ListSize = rapid.SampledFrom([]int{-2, 3}).Draw(t, "list size")
		m.scores = []float64{math.Inf(-1), 0, float64(epoch.UnixMicro()), 1e300} // in the ranges that check examines
		m.open()
		defer m.db.Close()
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"zadd":     m.addDue,
			"zincrby":  m.increase,
			"zrem":     m.zrem,
			"deadline": m.deadline,
			"rename":   m.rename,
			"take":     m.take,
			"wait":     m.wait,
			"wait too": m.wait,
			"leave":    m.leave,
			"advance":  m.pass,
			"reclaim":  m.reclaim,
		})
		for _, w := range m.waiters {
			w.Leave()
		}
		m.check(t)
		m.replayDue(t)
	})
}

// score returns a score that is a time near the current one.
func (m *dueModel) score(t *rapid.T) float64 {
	if rapid.IntRange(0, 19).Draw(t, "extreme") == 0 {
		return rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 0, -5, 1e300}).Draw(t, "score")
	}
	us := m.clock.Micros() + rapid.Int64Range(-5_000, 30_000).Draw(t, "us")
	return float64(us) / rapid.SampledFrom(dueUnits).Draw(t, "unit")
}

func (m *dueModel) addDue(t *rapid.T) {
	key := drawZSet(t)
	var items []Scored
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		name, score := drawZMember(t), m.score(t)
		items = append(items, Scored{score, []byte(name)})
		m.addOne(key, name, score, ZAddOptions{})
	}
	m.run(t, func(tx *Tx) {
		if _, _, err := tx.ZAdd([]byte(key), items, ZAddOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

func (m *dueModel) increase(t *rapid.T) {
	key, name := drawZSet(t), drawZMember(t)
	old, there := m.of(key)[name]
	by := float64(rapid.IntRange(-20, 20).Draw(t, "by"))
	if !there || math.IsInf(old.score, 0) {
		return
	}
	m.put(key, name, old.score+by, old.deadline)
	m.run(t, func(tx *Tx) {
		if _, _, err := tx.ZIncrBy([]byte(key), []byte(name), by, ZAddOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// run runs a transaction on all shards, or on the shards of some keys.
func (m *dueModel) run(t *rapid.T, f func(tx *Tx), keys ...string) {
	if len(keys) == 0 {
		m.do(f)
	} else {
		b := make([][]byte, len(keys))
		for i, k := range keys {
			b[i] = []byte(k)
		}
		tx := m.db.Begin(0, b...)
		f(tx)
		tx.Commit()
	}
	if m.failed != "" {
		t.Fatal(m.failed)
	}
}

func (m *dueModel) drawDue(t *rapid.T) Due {
	return Due{Unit: rapid.SampledFrom(dueUnits).Draw(t, "unit"), Age: rapid.SampledFrom([]int64{0, 0, 7_000}).Draw(t, "age")}
}

// draw draws the request of a client.
func (m *dueModel) draw(t *rapid.T) *dueWaiter {
	m.drawn++
	w := &dueWaiter{m: m, name: m.drawn, keys: []string{drawZSet(t)}, d: m.drawDue(t), count: rapid.IntRange(1, 3).Draw(t, "count")}
	w.how = dueTake(rapid.IntRange(0, int(takeKinds)-1).Draw(t, "how"))
	switch w.how {
	case takePop, takePeek:
		if k := drawZSet(t); k != w.keys[0] && rapid.Bool().Draw(t, "two keys") {
			w.keys = append(w.keys, k)
		}
	case takeHead, takeTail:
		w.to = rapid.SampledFrom([]string{"l", "{a}l"}).Draw(t, "list")
	case takePostpone:
		w.to, w.delay = drawZSet(t), rapid.Int64Range(1, 20).Draw(t, "delay")*1000
	}
	return w
}

// take runs a command that does not wait.
func (m *dueModel) take(t *rapid.T) {
	w := m.draw(t)
	m.do(func(tx *Tx) { w.take(tx, w.keys[0]) })
	if m.failed != "" {
		t.Fatal(m.failed)
	}
}

// dueOf returns the members that are due for w according to the model.
func (w *dueWaiter) dueOf(key string, now int64) (due []zmember) {
	for _, e := range w.m.list(key) {
		if e.score <= float64(now-w.d.Age)/w.d.Unit {
			due = append(due, e)
		}
	}
	return due
}

// take takes due members of a key in the engine and in the model, and reports whether there were any.
func (w *dueWaiter) take(tx *Tx, key string) bool {
	m := w.m
	due := w.dueOf(key, tx.Now())
	due = due[:min(len(due), w.count)]
	var got, want []string
	begin := func(n int) {
		if n != len(due) {
			m.fail("%d members are announced, want %d", n, len(due))
		}
	}
	visit := func(member []byte, score float64) { got = append(got, fmt.Sprint(string(member), " ", score)) }
	var n int
	var err error
	switch k, to := []byte(key), []byte(w.to); w.how {
	case takePop:
		n, err = tx.ZPopDue(k, w.d, w.count, begin, visit)
	case takePeek:
		var v ZSetView
		v, err = tx.ZSet(k, true)
		walk := v.Due(w.d, w.count)
		for n = walk.Len(); walk.Next(); {
			visit(walk.Member(), walk.Score())
		}
	case takePostpone:
		n, err = tx.ZPostponeDue(k, to, w.delay, w.d, w.count, begin, visit)
	default:
		n, err = tx.ZMoveDue(k, to, End(w.how-takeHead), w.d, w.count, begin, visit)
	}
	for _, e := range due {
		want = append(want, fmt.Sprint(e.name, " ", e.score))
		if w.how != takePeek {
			delete(m.of(key), e.name)
		}
		switch w.how {
		case takeHead:
			m.lists[w.to] = append([]modelElem{{e.name, e.deadline}}, m.lists[w.to]...)
		case takeTail:
			m.lists[w.to] = append(m.lists[w.to], modelElem{e.name, e.deadline})
		case takePostpone:
			m.put(w.to, e.name, float64(tx.Now()+w.delay)/w.d.Unit, e.deadline)
		}
	}
	if err != nil || n != len(due) || !slices.Equal(got, want) {
		m.fail("%d of %s: %d, %q, %v; want %q", w.how, key, n, got, err, want)
	}
	return n > 0
}

func (m *dueModel) fail(format string, args ...any) {
	if m.failed == "" {
		m.failed = fmt.Sprintf(format, args...)
	}
}

// wait lets a client wait, like a command that has found nothing.
func (m *dueModel) wait(t *rapid.T) {
	w := m.draw(t)
	w.Waiter, w.Kinds, w.Want = w, KindsOf(ZSet), Want{Due: w.d}
	if w.to != "" {
		w.Also = [][]byte{[]byte(w.to)}
	}
	keys := make([][]byte, len(w.keys))
	for i, k := range w.keys {
		keys[i] = []byte(k)
	}
	m.run(t, func(tx *Tx) {
		for _, k := range w.keys {
			if tx.DueAwaited([]byte(k)) {
				continue
			}
			m.mayPass(w, k, m.waiters, tx.Now())
			if w.take(tx, k) {
				return
			}
		}
		m.waiters = append(m.waiters, w)
		tx.Enqueue(&w.Ticket, keys...)
	}, w.held()...)
}

// held returns the keys that a command locks.
func (w *dueWaiter) held() []string {
	if w.to == "" {
		return w.keys
	}
	return append(slices.Clone(w.keys), w.to)
}

// Serve implements Waiter.
func (w *dueWaiter) Serve(tx *Tx, key []byte) bool {
	m := w.m
	at := slices.Index(m.waiters, w)
	if at < 0 {
		m.fail("a client is served that waits no longer")
		return true
	}
	m.mayPass(w, string(key), m.waiters[:at], tx.Now())
	if !w.take(tx, string(key)) {
		m.fail("client %d is served, and nothing is due in %s", w.name, key)
		return false
	}
	m.waiters = slices.Delete(m.waiters, at, at+1)
	return true
}

// mayPass verifies that a client that is about to take from a key passes no other for which a member is due.
func (m *dueModel) mayPass(w *dueWaiter, key string, before []*dueWaiter, now int64) {
	for _, b := range before {
		if slices.Contains(b.keys, key) && len(b.dueOf(key, now)) > 0 {
			m.fail("client %d is served before %d, which stands before it in the line of %s", w.name, b.name, key)
		}
	}
}

func (m *dueModel) leave(t *rapid.T) {
	if len(m.waiters) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.waiters)-1).Draw(t, "who")
	m.waiters[i].Leave()
	m.waiters = slices.Delete(m.waiters, i, i+1)
}

func (m *dueModel) pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.Int64Range(1, 25_000).Draw(t, "us")) * time.Microsecond)
	if m.failed != "" {
		t.Fatal(m.failed)
	}
}

func (m *dueModel) check(t *rapid.T) {
	if m.failed != "" {
		t.Fatal(m.failed)
	}
	m.zsetModel.check(t)
	now := m.clock.Micros() / 1000 * 1000 // a wake-up within a millisecond happens at its end
	for _, w := range m.waiters {
		for _, k := range w.keys {
			if due := w.dueOf(k, now); len(due) > 0 {
				t.Fatalf("client %d still waits at %d, and %q of %s is due since %v", w.name, now, due[0].name, k, due[0].score)
			}
		}
	}
	for key := range m.lists {
		m.alive(key)
		var got []modelElem
		m.do(func(tx *Tx) {
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if x.Deadline == 0 || x.Deadline >= tx.Millis() {
						got = append(got, modelElem{string(x.Key), x.Deadline})
					}
				})
			}
		})
		if !slices.Equal(got, m.lists[key]) {
			t.Fatalf("%s is %.300v, want %.300v", key, got, m.lists[key])
		}
	}
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
}

// alive removes the expired elements of a list.
func (m *dueModel) alive(key string) {
	now := m.clock.Micros() / 1000
	m.lists[key] = slices.DeleteFunc(m.lists[key], func(e modelElem) bool { return e.deadline != 0 && now > e.deadline })
}

// replayDue runs the effects in a second engine.
func (m *dueModel) replayDue(t *rapid.T) {
	run := func(tx *Tx, args [][]byte) error {
		if name := string(args[0]); name[0] == 'L' || name == "RPUSH" || name == "RPOP" {
			return replayList(tx, args)
		}
		return replayZSet(tx, args)
	}
	now := m.clock.Micros() / 1000
	m.replayInto(t, run, func(tx *Tx) {
		for _, key := range append(slices.Clone(zsetKeys), slices.Collect(maps.Keys(m.lists))...) {
			var got, want []string
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if x.Deadline == 0 || x.Deadline >= now {
						got = append(got, fmt.Sprint(string(x.Key), x.Score, x.Deadline))
					}
				})
			}
			for _, e := range m.list(key) {
				want = append(want, fmt.Sprint(e.name, e.score, e.deadline))
			}
			for _, e := range m.lists[key] {
				want = append(want, fmt.Sprint(e.val, 0., e.deadline))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s is replayed as %.300v, want %.300v", key, got, want)
			}
		}
	})
}
