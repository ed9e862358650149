package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// epoch is the time at which manual clocks start: some second of 2026.
var epoch = time.UnixMilli(1767225600000)

// tooFar is a deadline beyond what the wheel can hold.
const tooFar = math.MaxInt64

// entry is a key of the model.
type entry struct {
	val      string
	deadline int64 // ms, 0: none
	span     int64
}

func (e entry) expired(now int64) bool { return e.deadline != 0 && now > e.deadline }

// model is an engine and plain maps with its expected content. At the end a second engine runs the effects.
type model struct {
	db     *DB
	clock  *clock.Manual
	dbs    []map[string]entry
	dying  []map[string]int // how often a key expired without an event so far
	fired  []string         // events "expired" of the last step, as db/key
	active bool
	fx     []Effect
}

var modelKeys = []string{"a", "b", "c", "d", "{a}x", "{a}y", "k" + string(bytes.Repeat([]byte("long"), 30)), ""}

func TestEngineBehavesAsMapsWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{clock: clock.NewManual(epoch), active: true}
		for range 3 {
			m.dbs = append(m.dbs, map[string]entry{})
			m.dying = append(m.dying, map[string]int{})
		}
		m.db = Open(Options{Databases: 3, Shards: 4, Clock: m.clock, Hooks: &recorder{m: m}, RecordEffects: true})
		defer m.db.Close()
		m.db.SetEvents(EventAll)
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"set":     m.set,
			"get":     m.get,
			"getdel":  m.getDel,
			"del":     m.del,
			"expire":  m.expire,
			"persist": m.persist,
			"ask":     m.ask,
			"rename":  m.rename,
			"copy":    m.copy,
			"move":    m.move,
			"append":  m.append,
			"incrby":  m.incrBy,
			"flush":   m.flush,
			"swap":    m.swap,
			"scan":    m.scan,
			"random":  m.random,
			"watch":   m.watch,
			"advance": m.advance,
			"active":  m.setActive,
		})
		m.settleAll(t)
		m.replay(t)
	})
}

// recorder passes the engine's expired events to the model.
type recorder struct {
	noHooks
	m *model
}

func (r *recorder) Event(tx *Tx, _ uint32, event string, key []byte) {
	if event == "expired" {
		r.m.fired = append(r.m.fired, fmt.Sprint(tx.Selected(), "/", string(key)))
	}
}

// do runs f in a transaction on all shards.
func (m *model) do(dbi int, f func(tx *Tx)) {
	tx := m.db.BeginAll(dbi)
	defer tx.Commit()
	f(tx)
}

func (m *model) now() int64 { return m.clock.Micros() / 1000 }

// bury moves the keys that have expired by now from the maps to dying.
func (m *model) bury() {
	for i, d := range m.dbs {
		for k, e := range d {
			if e.expired(m.now()) {
				delete(d, k)
				m.dying[i][k]++
			}
		}
	}
}

// settle matches the events of a step with the keys that have expired.
func (m *model) settle(t *rapid.T) {
	for _, f := range m.fired {
		dbi := int(f[0] - '0')
		if m.dying[dbi][f[2:]] == 0 {
			t.Fatalf("event expired for %s, which has not expired, or had its event before", f)
		}
		if m.dying[dbi][f[2:]]--; m.dying[dbi][f[2:]] == 0 {
			delete(m.dying[dbi], f[2:])
		}
	}
	m.fired = nil
}

func drawDB(t *rapid.T) int       { return rapid.IntRange(0, 2).Draw(t, "db") }
func drawKey(t *rapid.T) string   { return rapid.SampledFrom(modelKeys).Draw(t, "key") }
func drawValue(t *rapid.T) string { return rapid.SampledFrom(modelValues).Draw(t, "value") }

var modelValues = []string{"", "1", "-9223372036854775808", "some text", string(bytes.Repeat([]byte("v"), 300)), string(make([]byte, 70000))}

// drawDeadline draws a deadline, and a span for one that slides: both 0, past, near, far, too far.
func (m *model) drawDeadline(t *rapid.T) (deadline, span int64) {
	switch rapid.IntRange(0, 7).Draw(t, "deadline kind") {
	case 0:
		return m.now() - rapid.Int64Range(0, 100).Draw(t, "ago"), 0
	case 1:
		return tooFar, 0
	case 2:
		return m.now() + rapid.Int64Range(1, 1<<40).Draw(t, "far"), 0
	case 3, 4:
		span = rapid.Int64Range(1, 200).Draw(t, "span")
		return m.now() + span, span
	}
	return m.now() + rapid.Int64Range(1, 100).Draw(t, "near"), 0
}

func (m *model) set(t *rapid.T) {
	dbi, key, val := drawDB(t), drawKey(t), drawValue(t)
	var o SetOptions
	switch rapid.IntRange(0, 3).Draw(t, "option") {
	case 0:
		o.Deadline, o.Span = m.drawDeadline(t)
	case 1:
		o.KeepTTL = true
	case 2:
		o.IfAbsent = rapid.Bool().Draw(t, "NX")
		o.IfExists = !o.IfAbsent
	}
	old, there := m.dbs[dbi][key]
	want := !(o.IfAbsent && there || o.IfExists && !there)
	m.do(dbi, func(tx *Tx) {
		done, _, err := tx.Set([]byte(key), []byte(val), o, nil)
		if err != nil || done != want {
			t.Fatalf("Set: %v, %v", done, err)
		}
	})
	if !want {
		return
	}
	e := entry{val: val, deadline: min(o.Deadline, MaxDeadline), span: o.Span}
	if o.KeepTTL {
		e.deadline, e.span = old.deadline, old.span
	}
	if o.Deadline != 0 && o.Deadline < m.now() { // the key was set, and has expired
		delete(m.dbs[dbi], key)
		m.dying[dbi][key]++
		return
	}
	m.dbs[dbi][key] = e
}

// slid returns an entry after a read of its value.
func (m *model) slid(e entry) entry {
	if e.span != 0 {
		e.deadline = max(e.deadline, min(m.now()+e.span, MaxDeadline))
	}
	return e
}

func (m *model) get(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	e, there := m.dbs[dbi][key]
	m.do(dbi, func(tx *Tx) {
		val, ok, err := tx.Get([]byte(key))
		if err != nil || ok != there || string(val) != e.val {
			t.Fatalf("Get: %q, %v, %v; want %q, %v", val, ok, err, e.val, there)
		}
	})
	if there {
		m.dbs[dbi][key] = m.slid(e)
	}
}

func (m *model) getDel(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	e, there := m.dbs[dbi][key]
	m.do(dbi, func(tx *Tx) {
		val, ok, err := tx.GetDel([]byte(key), nil)
		if err != nil || ok != there || string(val) != e.val {
			t.Fatalf("GetDel: %q, %v, %v; want %q, %v", val, ok, err, e.val, there)
		}
	})
	delete(m.dbs[dbi], key)
}

func (m *model) del(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	_, there := m.dbs[dbi][key]
	m.do(dbi, func(tx *Tx) {
		if got := tx.Del([]byte(key)); got != there {
			t.Fatalf("Del: %v", got)
		}
	})
	delete(m.dbs[dbi], key)
}

// may states the rules of Condition.allows independently.
func may(c Condition, old, new int64) bool {
	if old == 0 {
		old = math.MaxInt64
	}
	hasNone := old == math.MaxInt64
	return (c&IfNone == 0 || hasNone) && (c&IfSome == 0 || !hasNone) && (c&IfLater == 0 || new > old) && (c&IfEarlier == 0 || new < old)
}

func (m *model) expire(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	c := rapid.SampledFrom([]Condition{0, 0, IfNone, IfSome, IfLater, IfEarlier, IfSome | IfLater, IfSome | IfEarlier}).Draw(t, "condition")
	deadline, span := m.drawDeadline(t)
	e, there := m.dbs[dbi][key]
	want := there && may(c, e.deadline, min(deadline, MaxDeadline))
	m.do(dbi, func(tx *Tx) {
		if got := tx.Expire([]byte(key), deadline, span, c); got != want {
			t.Fatalf("Expire: %v, want %v", got, want)
		}
	})
	switch {
	case !want:
	case deadline <= m.now():
		delete(m.dbs[dbi], key)
	default:
		e.deadline, e.span = min(deadline, MaxDeadline), span
		m.dbs[dbi][key] = e
	}
}

func (m *model) persist(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	e, there := m.dbs[dbi][key]
	want := there && e.deadline != 0
	m.do(dbi, func(tx *Tx) {
		if got := tx.Persist([]byte(key)); got != want {
			t.Fatalf("Persist: %v, want %v", got, want)
		}
	})
	if want {
		m.dbs[dbi][key] = entry{val: e.val}
	}
}

// ask queries a key without reading its value.
func (m *model) ask(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	e, there := m.dbs[dbi][key]
	deadline, ttl, kind := int64(NoKey), int64(NoKey), None
	switch {
	case there && e.deadline != 0:
		deadline, ttl, kind = e.deadline, e.deadline-m.now(), String
	case there:
		deadline, ttl, kind = NoDeadline, NoDeadline, String
	}
	m.do(dbi, func(tx *Tx) {
		k := []byte(key)
		if tx.Exists(k) != there || tx.Deadline(k) != deadline || tx.TTL(k) != ttl || tx.Type(k) != kind {
			t.Fatalf("%q: %v, deadline %d, TTL %d, %v; want %v, %d, %d, %v", key, tx.Exists(k), tx.Deadline(k), tx.TTL(k), tx.Type(k),
				there, deadline, ttl, kind)
		}
	})
}

func (m *model) rename(t *rapid.T) {
	dbi, from, to := drawDB(t), drawKey(t), drawKey(t)
	onlyNew := rapid.Bool().Draw(t, "NX")
	e, there := m.dbs[dbi][from]
	_, taken := m.dbs[dbi][to]
	want := there && !(onlyNew && taken)
	m.do(dbi, func(tx *Tx) {
		done, err := tx.Rename([]byte(from), []byte(to), onlyNew)
		if done != want || (err == ErrNoKey) == there {
			t.Fatalf("Rename: %v, %v", done, err)
		}
	})
	if want {
		delete(m.dbs[dbi], from)
		m.dbs[dbi][to] = e
	}
}

func (m *model) copy(t *rapid.T) {
	dbi, from, to, key := drawDB(t), drawKey(t), drawDB(t), drawKey(t)
	replace := rapid.Bool().Draw(t, "REPLACE")
	e, there := m.dbs[dbi][from]
	_, taken := m.dbs[to][key]
	want := there && (replace || !taken) && !(dbi == to && from == key)
	m.do(dbi, func(tx *Tx) {
		done, err := tx.Copy([]byte(from), []byte(key), to, replace)
		if err != nil || done != want {
			t.Fatalf("Copy: %v, %v", done, err)
		}
	})
	if want {
		m.dbs[to][key] = e
	}
}

func (m *model) move(t *rapid.T) {
	dbi, key, to := drawDB(t), drawKey(t), drawDB(t)
	e, there := m.dbs[dbi][key]
	_, taken := m.dbs[to][key]
	want := there && !taken
	m.do(dbi, func(tx *Tx) {
		done, err := tx.Move([]byte(key), to)
		if err != nil || done != want {
			t.Fatalf("Move: %v, %v", done, err)
		}
	})
	if want {
		delete(m.dbs[dbi], key)
		m.dbs[to][key] = e
	}
}

func (m *model) append(t *rapid.T) {
	dbi, key, tail := drawDB(t), drawKey(t), drawValue(t)
	e := m.dbs[dbi][key]
	e.val += tail
	m.do(dbi, func(tx *Tx) {
		n, err := tx.Append([]byte(key), []byte(tail))
		if err != nil || n != len(e.val) {
			t.Fatalf("Append: %d, %v", n, err)
		}
	})
	m.dbs[dbi][key] = e
}

func (m *model) incrBy(t *rapid.T) {
	dbi, key, by := drawDB(t), drawKey(t), rapid.SampledFrom([]int64{1, -1, 41}).Draw(t, "by")
	e, there := m.dbs[dbi][key]
	n, err := strconv.ParseInt(e.val, 10, 64)
	if !there {
		n, err = 0, nil
	}
	fails := err != nil || by < 0 && n < math.MinInt64-by
	m.do(dbi, func(tx *Tx) {
		got, err := tx.IncrBy([]byte(key), by)
		if (err != nil) != fails || err == nil && got != n+by {
			t.Fatalf("IncrBy: %d, %v", got, err)
		}
	})
	if !fails {
		e.val = strconv.FormatInt(n+by, 10)
		m.dbs[dbi][key] = e
	}
}

func (m *model) flush(t *rapid.T) {
	dbi := rapid.SampledFrom([]int{0, 1, 2, -1}).Draw(t, "flushed")
	m.do(0, func(tx *Tx) { tx.Flush(dbi) })
	m.settle(t)
	for i := range m.dbs {
		if dbi < 0 || i == dbi {
			clear(m.dbs[i])
			clear(m.dying[i]) // a flush removes them without an event
		}
	}
}

func (m *model) swap(t *rapid.T) {
	a, b := drawDB(t), drawDB(t)
	m.do(0, func(tx *Tx) { tx.Swap(a, b) })
	m.settle(t)
	m.dbs[a], m.dbs[b] = m.dbs[b], m.dbs[a]
	m.dying[a], m.dying[b] = m.dying[b], m.dying[a]
}

// scan walks over a database while nothing changes: it must return every key at least once, and nothing else.
func (m *model) scan(t *rapid.T) {
	dbi, count, inside := drawDB(t), rapid.IntRange(1, 12).Draw(t, "count"), rapid.Bool().Draw(t, "inside")
	got := map[string]entry{}
	visit := func(k Key) { got[string(k.Name())] = entry{val: string(k.Value()), deadline: k.Deadline()} }
	for cursor := uint64(0); ; {
		if inside {
			m.do(dbi, func(tx *Tx) { cursor = tx.Scan(cursor, count, visit) })
		} else {
			cursor = m.db.Scan(dbi, cursor, count, visit)
		}
		if cursor == 0 {
			break
		}
	}
	m.compare(t, got, m.dbs[dbi])
}

func (m *model) compare(t *rapid.T, got, want map[string]entry) {
	if len(got) != len(want) {
		t.Fatalf("%d keys %q, want %d %q", len(got), slices.Collect(maps.Keys(got)), len(want), slices.Collect(maps.Keys(want)))
	}
	for k, e := range want {
		if g := got[k]; g.val != e.val || g.deadline != e.deadline {
			t.Fatalf("%q: %q until %d, want %q until %d", k, g.val, g.deadline, e.val, e.deadline)
		}
	}
}

func (m *model) random(t *rapid.T) {
	dbi, word := drawDB(t), rapid.Uint64().Draw(t, "word")
	m.do(dbi, func(tx *Tx) {
		key := tx.RandomKey(func() uint64 { word = word*6364136223846793005 + 1442695040888963407; return word ^ word>>29 })
		if _, there := m.dbs[dbi][string(key)]; there == (key == nil) {
			t.Fatalf("RandomKey: %q", key)
		}
	})
}

// watch watches a key, performs an operation on it, and checks the watch.
func (m *model) watch(t *rapid.T) {
	dbi, key := drawDB(t), drawKey(t)
	w := m.db.NewWatch()
	m.do(dbi, func(tx *Tx) { w.Add(tx, []byte(key)) })
	before, there := m.dbs[dbi][key]
	rapid.SampledFrom([]func(*rapid.T){m.set, m.del, m.rename, m.copy, m.move, m.flush, m.expire, m.append, m.advance}).Draw(t, "change")(t)
	m.bury()
	m.settle(t)
	after, still := m.dbs[dbi][key]
	m.do(dbi, func(tx *Tx) {
		if (there != still || before != after) && !w.Broken(tx) {
			t.Fatalf("%q changed from %v to %v, and its watch is not broken", key, there, still)
		}
	})
	w.Clear(nil)
	for _, sh := range m.db.shards {
		if len(sh.watched) != 0 {
			t.Fatal("a cleared watch is still there")
		}
	}
}

func (m *model) advance(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int64{1, 1, 3, 10, 50, 300, 1 << 20}).Draw(t, "ms")) * time.Millisecond)
}

func (m *model) setActive(t *rapid.T) {
	m.active = rapid.Bool().Draw(t, "active")
	m.db.SetActiveExpiry(m.active)
}

// check compares the engine with the model after a step.
func (m *model) check(t *rapid.T) {
	m.bury()
	m.settle(t)
	m.fx = append(m.fx, m.db.Drain()...)
	for dbi := range m.dbs {
		m.do(dbi, func(tx *Tx) {
			if n := tx.Size(); n != len(m.dbs[dbi]) {
				t.Fatalf("database %d has size %d, want %d", dbi, n, len(m.dbs[dbi]))
			}
			m.compare(t, contents(tx), m.dbs[dbi])
		})
	}
	for _, sh := range m.db.shards {
		for _, sp := range sh.spaces {
			if sp == nil {
				continue
			}
			if err := sp.tab.Check(); err != nil {
				t.Fatal(err)
			}
			if sp.due != nil {
				if err := sp.due.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func contents(tx *Tx) map[string]entry {
	all := map[string]entry{}
	tx.Each(func(k Key) {
		e := entry{val: string(k.Value()), deadline: k.Deadline()}
		if k.r.has(flagSlide) {
			e.span = k.r.slide().span
		}
		all[string(k.Name())] = e
	})
	return all
}

// settleAll lets the engine remove everything that has expired: afterwards each of these keys must have had
// its event.
func (m *model) settleAll(t *rapid.T) {
	m.db.SetActiveExpiry(true)
	m.clock.Advance(time.Millisecond)
	m.check(t)
	for dbi, d := range m.dying {
		if len(d) > 0 {
			t.Fatalf("no event told of %q in database %d", slices.Collect(maps.Keys(d)), dbi)
		}
	}
}

// replay runs all effects in a second engine, and compares. A sliding deadline may be earlier there, by less
// than a tenth of its span.
func (m *model) replay(t *rapid.T) {
	second := Open(Options{Databases: 3, Shards: 2, Clock: clock.NewManual(epoch)})
	defer second.Close()
	for len(m.fx) > 0 {
		n := 1
		for n < len(m.fx) && m.fx[n].Seq == m.fx[0].Seq {
			n++
		}
		if e, err := applyAll(second, m.fx[:n]); err != nil {
			t.Fatalf("%.200q: %v", e.Args, err)
		}
		m.fx = m.fx[n:]
	}
	for dbi, d := range m.dbs {
		tx := second.BeginAll(dbi)
		tx.Replaying()
		got := contents(tx)
		tx.Commit()
		for k, e := range got {
			if want := d[k]; e.span != want.span {
				t.Fatalf("replayed %q has the span %d, want %d", k, e.span, want.span)
			} else if late := want.deadline - e.deadline; want.span != 0 && late >= 0 && 10*late < want.span+10 {
				e.deadline = want.deadline
				got[k] = e
			}
		}
		m.compare(t, got, d)
	}
}

// applyAll runs the effects of one transaction again, as one.
func applyAll(db *DB, fx []Effect) (failed Effect, err error) {
	tx := db.BeginAll(0)
	defer tx.Commit()
	tx.Replaying()
	for _, e := range fx {
		tx.Select(e.DB)
		if err := apply(tx, e.Args); err != nil {
			return e, err
		}
	}
	return Effect{}, nil
}

// apply runs one effect again.
func apply(tx *Tx, args [][]byte) error {
	num := func(i int) int64 {
		n, err := strconv.ParseInt(string(args[i]), 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	var key []byte
	if len(args) > 1 {
		key = args[1]
	}
	done, err := true, error(nil)
	switch name := strings.TrimPrefix(string(args[0]), OwnPrefix); name {
	case "DEL":
		for _, k := range args[1:] {
			done = tx.Del(k) && done
		}
	case "SET":
		var o SetOptions
		if len(args) > 3 {
			o.Deadline = num(4)
		}
		if len(args) > 5 {
			o.Span = num(6)
		}
		done, _, err = tx.Set(key, args[2], o, nil)
	case "PEXPIREAT":
		span := int64(0)
		if len(args) > 3 {
			span = num(4)
		}
		done = tx.Expire(key, num(2), span, 0)
	case "PERSIST":
		done = tx.Persist(key)
	case "RENAME":
		done, err = tx.Rename(key, args[2], false)
	case "MOVE":
		done, err = tx.Move(key, int(num(2)))
	case "COPY":
		to := tx.Selected()
		if string(args[3]) == "DB" {
			to = int(num(4))
		}
		done, err = tx.Copy(key, args[2], to, true)
	case "APPEND":
		_, err = tx.Append(key, args[2])
	case "INCRBY":
		_, err = tx.IncrBy(key, num(2))
	case "FLUSHDB":
		tx.Flush(tx.Selected())
	case "FLUSHALL":
		tx.Flush(-1)
	case "SWAPDB":
		tx.Swap(int(num(1)), int(num(2)))
	default:
		return fmt.Errorf("no such effect")
	}
	if !done && err == nil {
		err = fmt.Errorf("the effect changed nothing")
	}
	return err
}
