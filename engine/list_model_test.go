package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
	clock *ManualClock
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

// alive drops the dead of a list from the model, as reads do.
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

// Expire gives an element a deadline, which no command does yet.
func (m *listModel) Expire(t *rapid.T) {
	key := m.key(t)
	l := m.alive(key)
	if len(l) == 0 {
		return
	}
	i, ttl := rapid.IntRange(0, len(l)-1).Draw(t, "index"), rapid.Int64Range(0, 50).Draw(t, "ttl")
	tx := m.tx(key)
	defer tx.Commit()
	h, _ := tx.writeList(key)
	deadline := tx.ms + ttl
	if b := h.box(); b != nil {
		it, _ := b.(listBox).Seek(i, tx.ms)
		it.Next()
		if !b.(listBox).SetDeadline(&it, deadline) {
			t.Fatal("no memory")
		}
		tx.wrote(&h)
	} else {
		at, _ := h.image().Index(i, tx.ms)
		if err := tx.applyList(&h, key, h.image().SetDeadline(at, deadline)); err != nil {
			t.Fatal(err)
		}
	}
	l[i].deadline = deadline
}

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

// Check compares everything that reads show.
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
		}
		tx.Commit()
	}
}

func TestListsBehaveAsSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &listModel{clock: NewManualClock(time.UnixMilli(1e12)), lists: map[string][]modelElem{}}
		m.db = Open(Options{Shards: 1, Clock: m.clock, RecordEffects: true})
		defer m.db.Close()
		l := m.db.Layout()
		l.ListSize = rapid.SampledFrom([]int{-2, 3, 10}).Draw(t, "size")
		m.db.SetLayout(l)
		t.Repeat(rapid.StateMachineActions(m))
	})
}
