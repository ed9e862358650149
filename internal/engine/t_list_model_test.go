package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// modelElem is an element of a modelled list.
type modelElem struct {
	val      string
	deadline int64
}

// listModel compares lists with slices.
type listModel struct {
	db    *DB
	clock *clock.Manual
	lists map[string][]modelElem
}

func (m *listModel) key(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
}

func (m *listModel) elem(t *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return fmt.Sprint(rapid.Int64().Draw(t, "int"))
	case 1:
		return string(make([]byte, rapid.IntRange(0, 3000).Draw(t, "length")))
	case 2:
		return string(make([]byte, rapid.IntRange(8000, 70000).Draw(t, "length")))
	}
	return rapid.SampledFrom([]string{"x", "y", "zzz", "7", ""}).Draw(t, "elem")
}

// alive removes the dead elements of a list from the model, as reads do.
func (m *listModel) alive(key []byte) []modelElem {
	now := m.clock.Micros() / 1000
	l := slices.DeleteFunc(m.lists[string(key)], func(e modelElem) bool { return e.deadline != 0 && now > e.deadline })
	m.lists[string(key)] = l
	return l
}

func (m *listModel) tx(keys ...[]byte) *Tx { return m.db.Begin(0, keys...) }

func (m *listModel) Push(t *rapid.T) {
	key, end := m.key(t), End(rapid.IntRange(0, 1).Draw(t, "end"))
	l := m.alive(key)
	var elems [][]byte
	for range rapid.IntRange(1, 6).Draw(t, "n") {
		e := m.elem(t)
		elems = append(elems, []byte(e))
		if end == Head {
			l = append([]modelElem{{val: e}}, l...)
		} else {
			l = append(l, modelElem{val: e})
		}
	}
	tx := m.tx(key)
	n, err := tx.LPush(key, end, elems, false)
	tx.Commit()
	if err != nil || n != len(l) {
		t.Fatalf("push: %d, %v; want %d", n, err, len(l))
	}
	m.lists[string(key)] = l
}

func (m *listModel) Pop(t *rapid.T) {
	key, end, count := m.key(t), End(rapid.IntRange(0, 1).Draw(t, "end")), rapid.IntRange(0, 5).Draw(t, "count")
	l := m.alive(key)
	var want, got []string
	for range min(count, len(l)) {
		if end == Head {
			want, l = append(want, l[0].val), l[1:]
		} else {
			want, l = append(want, l[len(l)-1].val), l[:len(l)-1]
		}
	}
	tx := m.tx(key)
	_, err := tx.LPop(key, end, count, func(int) {}, func(e []byte) { got = append(got, string(e)) })
	tx.Commit()
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("pop %d: %q, %v; want %q", count, got, err, want)
	}
	m.lists[string(key)] = slices.Clone(l)
}

func (m *listModel) Move(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	out, in := End(rapid.IntRange(0, 1).Draw(t, "out")), End(rapid.IntRange(0, 1).Draw(t, "in"))
	m.alive(to)
	var want, got string
	if l := m.alive(from); len(l) > 0 {
		e := l[0]
		if out == Tail {
			e, l = l[len(l)-1], l[:len(l)-1]
		} else {
			l = l[1:]
		}
		want = e.val
		m.lists[string(from)] = slices.Clone(l)
		if l = m.lists[string(to)]; in == Head {
			l = append([]modelElem{e}, l...)
		} else {
			l = append(l, e)
		}
		m.lists[string(to)] = l
	}
	tx := m.tx(from, to)
	_, err := tx.LMove(from, to, out, in, func(e []byte) { got = string(e) })
	tx.Commit()
	if err != nil || got != want {
		t.Fatalf("move: %q, %v; want %q", got, err, want)
	}
}

// MoveMany moves elements one by one, or in a block.
func (m *listModel) MoveMany(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	o := ListMove{From: End(rapid.IntRange(0, 1).Draw(t, "out")), To: End(rapid.IntRange(0, 1).Draw(t, "in")),
		Count: rapid.IntRange(1, 9).Draw(t, "count"), Exactly: rapid.Bool().Draw(t, "exactly"), OneByOne: rapid.Bool().Draw(t, "one by one")}
	m.alive(to)
	l := m.alive(from)
	n := min(o.Count, len(l))
	if o.Exactly && n < o.Count {
		n = 0
	}
	block, rest := l[:n], l[n:]
	if o.From == Tail {
		block, rest = l[len(l)-n:], l[:len(l)-n]
	}
	block = slices.Clone(block)
	if o.OneByOne && o.From == o.To {
		slices.Reverse(block)
	}
	if n > 0 {
		m.lists[string(from)] = slices.Clone(rest)
		if l := m.lists[string(to)]; o.To == Head {
			m.lists[string(to)] = slices.Concat(block, l)
		} else {
			m.lists[string(to)] = slices.Concat(l, block)
		}
	}
	begun, got := 0, []string{}
	tx := m.tx(from, to)
	moved, err := tx.LMoveMany(from, to, o, func(n int) { begun = n }, func(e []byte) { got = append(got, string(e)) })
	tx.Commit()
	want := []string{}
	for _, e := range block {
		want = append(want, e.val)
	}
	if err != nil || moved != n || begun != n || !slices.Equal(got, want) {
		t.Fatalf("move %+v: %d, %q, %v; want %q", o, moved, got, err, want)
	}
}

func (m *listModel) Set(t *rapid.T) {
	key, i, e := m.key(t), rapid.IntRange(-4, 4).Draw(t, "index"), m.elem(t)
	l := m.alive(key)
	var want error
	switch at := (i + len(l)) % max(len(l), 1); {
	case len(l) == 0:
		want = ErrNoKey
	case i >= len(l) || i < -len(l):
		want = ErrIndex
	default:
		l[at] = modelElem{val: e}
	}
	tx := m.tx(key)
	err := tx.LSet(key, int64(i), []byte(e))
	tx.Commit()
	if err != want {
		t.Fatalf("set %d: %v, want %v", i, err, want)
	}
}

func (m *listModel) Insert(t *rapid.T) {
	key, before, pivot, e := m.key(t), rapid.Bool().Draw(t, "before"), m.elem(t), m.elem(t)
	l := m.alive(key)
	i, want := slices.IndexFunc(l, func(x modelElem) bool { return x.val == pivot }), 0
	switch {
	case len(l) == 0:
	case i < 0:
		want = -1
	default:
		if !before {
			i++
		}
		l = slices.Insert(l, i, modelElem{val: e})
		m.lists[string(key)], want = l, len(l)
	}
	tx := m.tx(key)
	n, err := tx.LInsert(key, before, []byte(pivot), []byte(e))
	tx.Commit()
	if err != nil || n != want {
		t.Fatalf("insert: %d, %v; want %d", n, err, want)
	}
}

func (m *listModel) Rem(t *rapid.T) {
	key, count, e := m.key(t), rapid.IntRange(-3, 3).Draw(t, "count"), m.elem(t)
	l, left, n := m.alive(key), max(count, -count), 0
	if count == 0 {
		left = len(l)
	}
	if count < 0 {
		slices.Reverse(l)
	}
	l = slices.DeleteFunc(l, func(x modelElem) bool {
		if n < left && x.val == e {
			n++
			return true
		}
		return false
	})
	if count < 0 {
		slices.Reverse(l)
	}
	m.lists[string(key)] = l
	tx := m.tx(key)
	got, err := tx.LRem(key, int64(count), []byte(e))
	tx.Commit()
	if err != nil || got != n {
		t.Fatalf("rem: %d, %v; want %d", got, err, n)
	}
}

func (m *listModel) Trim(t *rapid.T) {
	key, start, stop := m.key(t), rapid.IntRange(-30, 30).Draw(t, "start"), rapid.IntRange(-30, 30).Draw(t, "stop")
	l := m.alive(key)
	from, to := span(int64(start), int64(stop), len(l))
	m.lists[string(key)] = slices.Clone(l[from : to+1])
	tx := m.tx(key)
	err := tx.LTrim(key, int64(start), int64(stop))
	tx.Commit()
	if err != nil {
		t.Fatal(err)
	}
}

// places draws some positions, and returns their places in the list: -1 for none.
func (m *listModel) places(t *rapid.T, l []modelElem) (indexes []int64, at []int) {
	for range rapid.IntRange(1, 4).Draw(t, "places") {
		i := rapid.IntRange(-len(l)-1, len(l)).Draw(t, "index")
		indexes = append(indexes, int64(i))
		if i < 0 {
			i += len(l)
		}
		if i < 0 || i >= len(l) {
			i = -1
		}
		at = append(at, i)
	}
	return indexes, at
}

// condition draws a condition of EXPIRE.
func condition(t *rapid.T) Condition {
	return rapid.SampledFrom([]Condition{0, 0, 0, IfNone, IfSome, IfLater, IfEarlier}).Draw(t, "condition")
}

// Expire gives elements a deadline, or removes them.
func (m *listModel) Expire(t *rapid.T) {
	key, c := m.key(t), condition(t)
	l := m.alive(key)
	indexes, at := m.places(t, l)
	deadline := m.now() + rapid.Int64Range(-2, 40).Draw(t, "ttl")
	var want, got []int
	gone := map[int]bool{}
	for _, i := range at {
		switch {
		case i < 0 || gone[i]:
			want = append(want, ItemMissing)
		case !c.allows(l[i].deadline, deadline):
			want = append(want, ItemRefused)
		case deadline <= m.now():
			gone[i] = true
			want = append(want, ItemOutlived)
		default:
			l[i].deadline = deadline
			want = append(want, ItemDone)
		}
	}
	m.without(key, gone)
	tx := m.tx(key)
	err := tx.LExpire(key, indexes, deadline, c, func(code int) { got = append(got, code) })
	tx.Commit()
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("LExpire %v: %v, %v, want %v", indexes, got, err, want)
	}
}

// without removes elements from the model.
func (m *listModel) without(key []byte, gone map[int]bool) {
	var left []modelElem
	for i, e := range m.lists[string(key)] {
		if !gone[i] {
			left = append(left, e)
		}
	}
	m.lists[string(key)] = left
}

func (m *listModel) Persist(t *rapid.T) {
	key := m.key(t)
	l := m.alive(key)
	indexes, at := m.places(t, l)
	var want, got []int
	for _, i := range at {
		switch {
		case i < 0:
			want = append(want, ItemMissing)
		case l[i].deadline == 0:
			want = append(want, ItemUntimed)
		default:
			l[i].deadline = 0
			want = append(want, ItemDone)
		}
	}
	tx := m.tx(key)
	err := tx.LPersist(key, indexes, func(code int) { got = append(got, code) })
	tx.Commit()
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("LPersist %v: %v, %v, want %v", indexes, got, err, want)
	}
}

func (m *listModel) PushEx(t *rapid.T) {
	key, end, most := m.key(t), End(rapid.IntRange(0, 1).Draw(t, "end")), rapid.IntRange(0, 12).Draw(t, "most")
	l, deadline := m.alive(key), int64(0)
	if rapid.Bool().Draw(t, "timed") {
		deadline = m.now() + rapid.Int64Range(-1, 40).Draw(t, "ttl")
	}
	var elems [][]byte
	for range rapid.IntRange(1, 6).Draw(t, "n") {
		elems = append(elems, []byte(m.elem(t)))
	}
	past, want := deadline != 0 && deadline <= m.now(), error(nil)
	switch {
	case past:
	case most > 0 && len(l)+len(elems) > most:
		want = new(BoundError)
	default:
		for _, e := range elems {
			if x := (modelElem{string(e), deadline}); end == Head {
				l = append([]modelElem{x}, l...)
			} else {
				l = append(l, x)
			}
		}
	}
	m.lists[string(key)] = l
	tx := m.tx(key)
	n, err := tx.LPushEx(key, end, elems, deadline, most)
	tx.Commit()
	if full := errors.As(err, new(*BoundError)); full != (want != nil) || err != nil && !full || err == nil && n != len(l) {
		t.Fatalf("LPushEx at most %d: %d, %v, want %d, %v", most, n, err, len(l), want)
	}
}

func (m *listModel) Copy(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	l := m.alive(from)
	tx := m.tx(from, to)
	ok, err := tx.Copy(from, to, 0, true)
	tx.Commit()
	if want := len(l) > 0 && string(from) != string(to); ok != want || err != nil {
		t.Fatalf("Copy: %v, %v, want %v", ok, err, want)
	}
	if ok {
		m.lists[string(to)] = slices.Clone(l)
	}
}

func (m *listModel) Rename(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	l := m.alive(from)
	tx := m.tx(from, to)
	ok, err := tx.Rename(from, to, false)
	tx.Commit()
	if ok != (len(l) > 0) || ok != (err == nil) {
		t.Fatalf("Rename: %v, %v", ok, err)
	}
	if ok && string(from) != string(to) {
		m.lists[string(to)] = l
		delete(m.lists, string(from))
	}
}

func (m *listModel) DumpAndRestore(t *rapid.T) {
	from, to := m.key(t), m.key(t)
	l := m.alive(from)
	tx := m.tx(from, to)
	defer tx.Commit()
	payload, ok := tx.Dump(nil, from)
	if ok != (len(l) > 0) {
		t.Fatalf("Dump: %v, of %d elements", ok, len(l))
	}
	if !ok {
		return
	}
	if err := tx.Restore(to, payload, RestoreOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	m.lists[string(to)] = slices.Clone(l)
}

// Reclaim turns the reclaimer on or off.
func (m *listModel) Reclaim(t *rapid.T) { m.db.SetActiveExpiry(rapid.Bool().Draw(t, "active")) }

func (m *listModel) now() int64 { return m.clock.Micros() / 1000 }

func (m *listModel) Wait(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
}

func (m *listModel) Layout(t *rapid.T) {
	l := m.db.Layout()
	l.ListSize = rapid.SampledFrom([]int{-2, -1, -5, 3, 10, 100, 0}).Draw(t, "size")
	m.db.SetLayout(l)
}

func (m *listModel) Find(t *rapid.T) {
	key, e := m.key(t), m.elem(t)
	rank := rapid.SampledFrom([]int64{1, 2, -1, -2}).Draw(t, "rank")
	count, limit := rapid.Int64Range(0, 2).Draw(t, "count"), rapid.Int64Range(0, 5).Draw(t, "limit")
	l := m.alive(key)
	var want, got []int
	skip := max(rank, -rank) - 1
	for n := range l {
		i := n
		if rank < 0 {
			i = len(l) - 1 - n
		}
		if limit > 0 && int64(n) >= limit || count > 0 && int64(len(want)) >= count {
			break
		}
		if l[i].val == e {
			if skip--; skip < 0 {
				want = append(want, i)
			}
		}
	}
	tx := m.tx(key)
	defer tx.Commit()
	v, _ := tx.List(key)
	v.Positions([]byte(e), rank, count, limit, func(pos int) { got = append(got, pos) })
	if !slices.Equal(got, want) {
		t.Fatalf("positions of %.10q: %v, want %v", e, got, want)
	}
}

// Check compares the results of all reads.
func (m *listModel) Check(t *rapid.T) {
	for _, k := range []string{"a", "b"} {
		key := []byte(k)
		l := m.alive(key)
		tx := m.tx(key)
		v, err := tx.List(key)
		if err != nil || v.Len() != len(l) {
			t.Fatalf("%s has %d elements, %v; want %d", k, v.Len(), err, len(l))
		}
		if v.large != nil {
			if err := v.large.Check(); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		v.Range(0, len(l)-1, func(e []byte) { got = append(got, string(e)) })
		for i, e := range l {
			if got[i] != e.val {
				t.Fatalf("%s[%d] is %.20q, want %.20q", k, i, got[i], e.val)
			}
			if x, ok := v.Index(int64(i - len(l))); !ok || string(x) != e.val {
				t.Fatalf("index %d of %s: %.20q", i-len(l), k, x)
			}
			if d := max(v.Deadline(int64(i)), 0); d != e.deadline {
				t.Fatalf("%s[%d] has deadline %d, want %d", k, i, d, e.deadline)
			}
		}
		tx.Commit()
	}
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestListsBehaveAsSlicesWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &listModel{clock: clock.NewManual(time.UnixMilli(1e12)), lists: map[string][]modelElem{}}
		m.db = Open(Options{Shards: 1, Clock: m.clock, RecordEffects: true})
		defer m.db.Close()
		l := m.db.Layout()
		l.ListSize = rapid.SampledFrom([]int{-2, 3, 10}).Draw(t, "size")
		m.db.SetLayout(l)
		t.Repeat(rapid.StateMachineActions(m))
		m.replay(t)
	})
}

// replay runs the effects in a second engine, whose living elements must then be the same.
func (m *listModel) replay(t *rapid.T) {
	c := containerModel{db: m.db, clock: m.clock}
	c.replayInto(t, replayList, func(tx *Tx) {
		for _, key := range []string{"a", "b"} {
			var got []modelElem
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if x.Deadline == 0 || x.Deadline >= m.now() {
						got = append(got, modelElem{string(x.Key), x.Deadline})
					}
				})
			}
			if want := m.alive([]byte(key)); !slices.Equal(got, want) {
				t.Fatalf("%s is replayed as %.300v, want %.300v", key, got, want)
			}
		}
	})
}

// replayList runs an effect on lists.
func replayList(tx *Tx, args [][]byte) (err error) {
	key, none := args[1], func(int) {}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(args[i]), 10, 64)
		return n
	}
	ends := map[string]End{"LEFT": Head, "RIGHT": Tail}
	switch name := string(args[0]); name {
	case "LPUSH", "RPUSH":
		_, err = tx.LPush(key, ends[map[byte]string{'L': "LEFT", 'R': "RIGHT"}[name[0]]], args[2:], false)
	case "LPOP", "RPOP":
		n := int64(1)
		if len(args) > 2 {
			n = number(2)
		}
		_, err = tx.LPop(key, ends[map[byte]string{'L': "LEFT", 'R': "RIGHT"}[name[0]]], int(n), none, func([]byte) {})
	case "LMOVE":
		_, err = tx.LMove(key, args[2], ends[string(args[3])], ends[string(args[4])], func([]byte) {})
	case "LSET":
		err = tx.LSet(key, number(2), args[3])
	case "LINSERT":
		_, err = tx.LInsert(key, string(args[2]) == "BEFORE", args[3], args[4])
	case "LREM":
		_, err = tx.LRem(key, number(2), args[3])
	case "LTRIM":
		err = tx.LTrim(key, number(2), number(3))
	case "LPEXPIREAT":
		err = tx.LExpire(key, replayPlaces(args[5:]), number(2), 0, none)
	case "LPERSIST":
		err = tx.LPersist(key, replayPlaces(args[4:]), none)
	default:
		return replayKey(tx, args)
	}
	return err
}

func replayPlaces(args [][]byte) (places []int64) {
	for _, a := range args {
		n, _ := strconv.ParseInt(string(a), 10, 64)
		places = append(places, n)
	}
	return places
}

// replayKey runs an effect that any kind of key has.
func replayKey(tx *Tx, args [][]byte) (err error) {
	switch name := strings.TrimPrefix(string(args[0]), OwnPrefix); name {
	case "DEL":
		for _, k := range args[1:] {
			tx.Del(k)
		}
	case "COPY":
		_, err = tx.Copy(args[1], args[2], 0, true)
	case "RENAME":
		_, err = tx.Rename(args[1], args[2], false)
	case "RESTORE":
		deadline, _ := strconv.ParseInt(string(args[2]), 10, 64)
		err = tx.Restore(args[1], args[3], RestoreOptions{Deadline: deadline, Replace: true})
	default:
		err = fmt.Errorf("an effect %s", name)
	}
	return err
}
