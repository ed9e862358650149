package packed

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// item and model are what a container promises, as a plain slice.
type item struct {
	key, value string
	score      float64
	deadline   int64
}

type model struct {
	kind  Kind
	items []item
	now   int64
	img   Packed
}

func (m *model) living() (out []item) {
	for _, it := range m.items {
		if !expired(it.deadline, m.now) {
			out = append(out, it)
		}
	}
	return out
}

func (m *model) find(key string) int {
	return slices.IndexFunc(m.items, func(it item) bool { return it.key == key })
}

// apply carries out an edit in place, or into other memory, poisoned.
func (m *model) apply(t *rapid.T, e Edit) {
	n := e.Size()
	if rapid.Bool().Draw(t, "in place") {
		room := make([]byte, len(m.img), max(n, len(m.img))+3)
		// The plan must refer to the room, so replay the bytes under it.
		copy(room, m.img)
		e.src = Packed(room[:len(m.img)])
		m.img = e.Apply(room[:cap(room)])
	} else {
		dst := bytes.Repeat([]byte{0xAA}, n+3)
		m.img = e.Apply(dst)
		if !bytes.Equal(dst[n:], []byte{0xAA, 0xAA, 0xAA}) {
			t.Fatalf("Apply wrote beyond Size")
		}
	}
	if len(m.img) != n {
		t.Fatalf("image of %d bytes, planned %d", len(m.img), n)
	}
}

// put is the model's own idea of a write under a key.
func (m *model) put(it item) State {
	i, state, old := m.find(it.key), Absent, item{}
	if i >= 0 {
		if old, state = m.items[i], Living; expired(old.deadline, m.now) {
			state = Dead
		}
	}
	if it.deadline == Keep {
		it.deadline = 0
		if state == Living {
			it.deadline = old.deadline
		}
	}
	if i >= 0 {
		m.items[i] = it
	} else {
		m.items = append(m.items, it)
	}
	if m.kind == KindZSet {
		slices.SortFunc(m.items, func(a, b item) int {
			return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.key, b.key))
		})
	}
	return state
}

func (m *model) read(it *Iter) item {
	got := item{key: it.Key().String(), deadline: it.Deadline()}
	switch m.kind {
	case KindHash:
		got.value = it.Value().String()
	case KindZSet:
		got.score = it.Score()
	}
	return got
}

// check compares every read with the model.
func (m *model) check(t *rapid.T) {
	if err := m.img.Check(); err != nil {
		t.Fatal(err)
	}
	want, now := m.living(), m.now
	if m.img.Len(now) != len(want) || m.img.Count() != len(m.items) {
		t.Fatalf("Len %d, Count %d; want %d, %d", m.img.Len(now), m.img.Count(), len(want), len(m.items))
	}
	var got []item
	it := m.img.Iter(now)
	for it.Next() {
		got = append(got, m.read(&it))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("forward %v, want %v %x", got, want, []byte(m.img))
	}
	for i := len(want) - 1; it.Prev(); i-- {
		if g := m.read(&it); g != want[i] {
			t.Fatalf("item %d backward %v, want %v", i, g, want[i])
		}
	}
	i := rapid.IntRange(-len(want)-2, len(want)+2).Draw(t, "index")
	abs := i
	if i < 0 {
		abs += len(want)
	}
	at, ok := m.img.Index(i, now)
	if ok != (abs >= 0 && abs < len(want)) || ok && m.img.Key(at).String() != want[abs].key {
		t.Fatalf("Index(%d) %v", i, ok)
	}
	key := drawKey(t)
	at, ok = m.img.Find([]byte(key), now)
	j := slices.IndexFunc(want, func(it item) bool { return it.key == key })
	if ok != (j >= 0) || ok && (m.img.Deadline(at) != want[j].deadline || m.img.Key(at).Compare([]byte(key)) != 0) {
		t.Fatalf("Find(%q) %v, want %d", key, ok, j)
	}
	if rank, _, ok := m.img.Rank([]byte(key), now); ok != (j >= 0) || ok && rank != j {
		t.Fatalf("Rank(%q) %d %v, want %d", key, rank, ok, j)
	}
	if m.kind == KindZSet {
		m.checkScores(t, want)
	}
}

func (m *model) checkScores(t *rapid.T, want []item) {
	low, open := drawScore(t), rapid.Bool().Draw(t, "open")
	it := m.img.SeekScore(low, open, m.now)
	i := slices.IndexFunc(want, func(it item) bool { return it.score > low || it.score == low && !open })
	if ok := it.Next(); ok != (i >= 0) || ok && m.read(&it) != want[i] {
		t.Fatalf("SeekScore(%v, %v) wrong", low, open)
	}
}

var keys = []string{"", "a", "b", "ab", "field:1", "0", "1", "49", "50", "-1", "007", "-0", "127", "128", "-32769", "8388607", "8388608",
	"2147483648", "-140737488355329", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("y", 255), strings.Repeat("y", 256), strings.Repeat("z", 70000)}

func drawKey(t *rapid.T) string { return rapid.SampledFrom(keys).Draw(t, "key") }

func drawScore(t *rapid.T) float64 {
	return rapid.SampledFrom([]float64{0, 1, 2, -3, 1.5, 0.1, 1e300, math.Inf(1), math.Inf(-1), 1 << 53, 1e15, math.MaxFloat32}).Draw(t,
		"score")
}

func (m *model) drawDeadline(t *rapid.T, keep bool) int64 {
	switch rapid.IntRange(0, 3).Draw(t, "deadline") {
	case 0:
		return max(1, m.now+rapid.Int64Range(-5, 20).Draw(t, "ms"))
	case 1:
		if keep {
			return Keep
		}
	}
	return 0
}

func TestContainersBehaveAsAPlainSlice(t *testing.T) {
	for _, kind := range []Kind{KindList, KindSet, KindHash, KindZSet} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			draw.Check(t, func(t *rapid.T) {
				m := &model{kind: kind, now: 1000, img: New(nil, kind)}
				actions := map[string]func(*rapid.T){
					"":         m.check,
					"time":     func(t *rapid.T) { m.now += rapid.Int64Range(0, 10).Draw(t, "ms") },
					"reap":     m.reap,
					"delete":   m.deleteRange,
					"deadline": m.setDeadline,
				}
				if kind == KindList {
					actions["push"] = m.push
					actions["replace"] = m.replace
				} else {
					actions["put"] = m.putAny
					actions["put2"] = m.putAny
				}
				t.Repeat(actions)
			})
		})
	}
}

func (m *model) putAny(t *rapid.T) {
	it := item{key: drawKey(t), deadline: m.drawDeadline(t, true)}
	var e Edit
	var state State
	switch m.kind {
	case KindSet:
		e, state = m.img.PutMember([]byte(it.key), it.deadline, m.now)
	case KindHash:
		it.value = drawKey(t)
		e, state = m.img.PutField([]byte(it.key), []byte(it.value), it.deadline, m.now)
	case KindZSet:
		it.score = drawScore(t)
		e, state = m.img.PutScore([]byte(it.key), it.score, it.deadline, m.now)
	}
	if want := m.put(it); state != want {
		t.Fatalf("state %d, want %d", state, want)
	}
	m.apply(t, e)
}

func (m *model) push(t *rapid.T) {
	it := item{key: drawKey(t), deadline: m.drawDeadline(t, false)}
	at, where := rapid.IntRange(0, len(m.items)).Draw(t, "at"), []byte(it.key)
	place := func(i int) At { a, _ := m.img.Index(i, 0); return a }
	switch {
	case at == len(m.items):
		m.apply(t, m.img.PushBack(where, it.deadline))
	case at == 0:
		m.apply(t, m.img.PushFront(where, it.deadline))
	case rapid.Bool().Draw(t, "before"):
		m.apply(t, m.img.InsertBefore(place(at), where, it.deadline))
	default:
		m.apply(t, m.img.InsertAfter(place(at-1), where, it.deadline))
	}
	m.items = slices.Insert(m.items, at, it)
}

// pick draws a stored item, or none.
func (m *model) pick(t *rapid.T, from int) (int, At, bool) {
	if from >= len(m.items) {
		return 0, At{}, false
	}
	i := rapid.IntRange(from, len(m.items)-1).Draw(t, "item")
	at, ok := m.img.Index(i, 0)
	if !ok {
		t.Fatalf("no item %d of %d", i, len(m.items))
	}
	return i, at, true
}

func (m *model) replace(t *rapid.T) {
	if i, at, ok := m.pick(t, 0); ok {
		key, d := drawKey(t), m.drawDeadline(t, true)
		m.apply(t, m.img.Replace(at, []byte(key), d))
		if m.items[i].key = key; d != Keep {
			m.items[i].deadline = d
		}
	}
}

func (m *model) setDeadline(t *rapid.T) {
	if i, at, ok := m.pick(t, 0); ok {
		m.items[i].deadline = m.drawDeadline(t, false)
		m.apply(t, m.img.SetDeadline(at, m.items[i].deadline))
	}
}

func (m *model) deleteRange(t *rapid.T) {
	i, first, ok := m.pick(t, 0)
	if !ok {
		return
	}
	j, last := i, first
	if rapid.Bool().Draw(t, "range") {
		j, last, _ = m.pick(t, i)
	}
	m.img = m.img.DeleteRange(first, last)
	m.items = slices.Delete(m.items, i, j+1)
}

func (m *model) reap(t *rapid.T) {
	var got, want []string
	m.img = m.img.Reap(m.now, func(at At) {
		got = append(got, m.img.Key(at).String()+strconv.FormatInt(m.img.Deadline(at), 10))
	})
	m.items = slices.DeleteFunc(m.items, func(it item) bool {
		if !expired(it.deadline, m.now) {
			return false
		}
		want = append(want, it.key+strconv.FormatInt(it.deadline, 10))
		return true
	})
	if !slices.Equal(got, want) {
		t.Fatalf("reaped %q, want %q", got, want)
	}
}

func TestIntSetBehavesAsASortedSlice(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, want := NewIntSet(nil), []int64(nil)
		draw := rapid.OneOf(rapid.Int64Range(-20, 20), rapid.Int64Range(-40000, 40000), rapid.Int64())
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := Validate(s); err != nil {
					t.Fatal(err)
				}
				for i, v := range want {
					if at, ok := s.Find(v); s.At(i) != v || at != i || !ok {
						t.Fatalf("member %d is %d, found at %d, want %d", i, s.At(i), at, v)
					}
				}
				if s.Len() != len(want) {
					t.Fatalf("%d members, want %d", s.Len(), len(want))
				}
			},
			"add": func(t *rapid.T) {
				v := draw.Draw(t, "v")
				i, found := slices.BinarySearch(want, v)
				e, ok := s.Add(v)
				if ok == found {
					t.Fatalf("Add(%d) %v", v, ok)
				}
				if ok {
					want = slices.Insert(want, i, v)
					dst := make([]byte, e.Size())
					if rapid.Bool().Draw(t, "in place") {
						s = append(make([]byte, 0, e.Size()), s...)
						e, _ = s.Add(v)
						dst = s[:cap(s)]
					}
					s = e.Apply(dst)
				}
			},
			"seek": func(t *rapid.T) {
				from, v := rapid.IntRange(0, len(want)).Draw(t, "from"), draw.Draw(t, "v")
				i, _ := slices.BinarySearch(want[from:], v)
				if at := s.Seek(from, v); at != from+i {
					t.Fatalf("Seek(%d, %d) = %d, want %d", from, v, at, from+i)
				}
			},
			"delete": func(t *rapid.T) {
				if len(want) > 0 {
					i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
					s, want = s.Delete(i), slices.Delete(want, i, i+1)
				}
			},
		})
	})
}
