package stream

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// heap is a Memory that poisons freed memory and runs out of memory when the test says so.
type heap struct {
	chunks  [][]byte
	live    int
	bytes   int
	outside int
	dry     bool
}

func (h *heap) MaxChunk() int     { return 1 << 16 }
func (h *heap) Outside(delta int) { h.outside += delta }

func (h *heap) AllocChunk(size int) uint32 {
	if h.dry {
		return 0
	}
	if size < 1<<10 || size > 1<<16 || size&(size-1) != 0 {
		panic("chunk of " + strconv.Itoa(size))
	}
	h.live++
	h.bytes += size
	h.chunks = append(h.chunks, make([]byte, size))
	return uint32(len(h.chunks))
}

func (h *heap) FreeChunk(ref uint32, size int) {
	b := h.chunks[ref-1]
	if len(b) != size {
		panic("freed with another size")
	}
	for i := range b {
		b[i] = 0xDB
	}
	h.chunks[ref-1] = nil
	h.live--
	h.bytes -= size
}

func (h *heap) Bytes(ref uint32, n int) []byte { return h.chunks[ref-1][:n] }

// want is an entry of the model.
type want struct {
	id    ID
	pairs []string
}

type model struct {
	h       chunktest.Memory
	s       *Stream
	ice     ice
	entries []want
	last    ID
	max     ID
	added   uint64
	node    Node
}

func (e *Entry) strings() (out []string) {
	for range e.Fields() {
		name, value := e.Field()
		out = append(out, string(name), value.String())
	}
	return out
}

func (m *model) check(t *rapid.T) {
	if err := errors.Join(m.s.Check(), m.ice.check()); err != nil {
		t.Fatal(err)
	}
	if m.s.Len() != len(m.entries) || m.s.Last != m.last || m.s.MaxDeleted != m.max || m.s.Added != m.added {
		t.Fatalf("length %d, last %v, deleted %v, added %d; want %d, "+
			"%v, %v, %d", m.s.Len(), m.s.Last, m.s.MaxDeleted, m.s.Added, len(m.entries), m.last, m.max, m.added)
	}
	from := ID{}
	if len(m.entries) > 0 && rapid.Bool().Draw(t, "seek") {
		from = m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(t, "from")].id
		if rapid.Bool().Draw(t, "above") {
			from.Seq++
		}
	}
	k := slices.IndexFunc(m.entries, func(w want) bool { return !w.id.Less(from) })
	if k < 0 {
		k = len(m.entries)
	}
	it := m.s.Iter(from)
	for i := k; it.Next(); i++ {
		if i >= len(m.entries) {
			t.Fatalf("entry %v too many", it.ID())
		}
		if w := m.entries[i]; it.ID() != w.id || !slices.Equal(it.strings(), w.pairs) {
			t.Fatalf("entry %d is %v %q, want %v %q", i, it.ID(), it.strings(), w.id, w.pairs)
		}
		k = i + 1
	}
	if k != len(m.entries) {
		t.Fatalf("ended after %d entries of %d", k, len(m.entries))
	}
	m.checkBack(t, from)
}

func (m *model) checkBack(t *rapid.T, from ID) {
	var b Back
	if from == (ID{}) {
		from = MaxID
	}
	m.s.Back(&b, from)
	k := len(m.entries)
	for k > 0 && from.Less(m.entries[k-1].id) {
		k--
	}
	for b.Next() {
		k--
		if k < 0 || b.ID() != m.entries[k].id || !slices.Equal(b.strings(), m.entries[k].pairs) {
			t.Fatalf("entry %d backward is wrong: %v", k, b.ID())
		}
	}
	if k != 0 {
		t.Fatalf("%d entries more backward", k)
	}
	first, last := ID{}, ID{}
	if n := len(m.entries); n > 0 {
		first, last = m.entries[0].id, m.entries[n-1].id
	}
	if m.s.First() != first || m.s.LastEntry() != last {
		t.Fatalf("edges %v %v, want %v %v", m.s.First(), m.s.LastEntry(), first, last)
	}
}

func drawValue(t *rapid.T) string {
	switch rapid.IntRange(0, 40).Draw(t, "kind") {
	case 0:
		return strings.Repeat("x", rapid.SampledFrom([]int{63, 64, 127, 128, 191, 192, 1000, 4070, 4090, 5400}).Draw(t, "n"))
	case 1:
		return strings.Repeat("y", rapid.SampledFrom([]int{5461, 6000, 16384, 21845, 22000, 70000}).Draw(t, "n"))
	}
	return rapid.SampledFrom([]string{"", "0", "54", "55", "-1", "-128", "128", "unpaid", "70000", "-8388609", "2147483648",
		"9223372036854775807", "-9223372036854775808", "007", "+1", "12345678901234", "abcdefghijk"}).Draw(t, "value")
}

func (m *model) appendSome(t *rapid.T) {
	n := rapid.SampledFrom([]int{1, 1, 2, 30, 150}).Draw(t, "times")
	names := rapid.SampledFrom([][]string{{"f"}, {"order", "state"}, {"order", "other"}, {"a", "", "f"},
		{"order", "state", "order"}}).Draw(t, "names")
	var pairs []string
	for _, f := range names {
		pairs = append(pairs, f, drawValue(t))
	}
	args := make([][]byte, len(pairs))
	for i, p := range pairs {
		args[i] = []byte(p)
	}
	move := rapid.IntRange(0, 5).Draw(t, "step")
	for range n {
		id := m.last
		switch move {
		case 0:
			id.Ms += rapid.Uint64Range(1, 1<<62).Draw(t, "ms")
			id.Seq = rapid.SampledFrom([]uint64{0, 0, 5, 1 << 63}).Draw(t, "seq")
		case 1:
			id.Seq += 3
		case 2:
			id.Ms, id.Seq = id.Ms+1, 0
		default:
			id.Seq++
		}
		if err := m.s.Append(id, args, m.node); err != nil {
			if err == ErrNoMemory && m.h.Limit != 0 || err == ErrOrder && !m.last.Less(id) {
				continue
			}
			t.Fatal(err)
		}
		m.last = id
		m.added++
		m.entries = append(m.entries, want{id: id, pairs: pairs})
	}
}

func (m *model) deleteSome(t *rapid.T) {
	if len(m.entries) == 0 || m.s.Delete(ID{0, 0}) || m.s.Delete(MaxID) {
		return
	}
	n := rapid.SampledFrom([]int{1, 1, 5, 100, 500}).Draw(t, "times")
	i := rapid.IntRange(0, len(m.entries)-1).Draw(t, "at")
	for range n {
		if i >= len(m.entries) {
			return
		}
		id := m.entries[i].id
		if !m.s.Delete(id) || m.s.Delete(id) {
			t.Fatalf("deleting %v", id)
		}
		if m.max.Less(id) {
			m.max = id
		}
		m.entries = slices.Delete(m.entries, i, i+1)
		if rapid.Bool().Draw(t, "skip") {
			i++
		}
	}
}

func (m *model) trim(t *rapid.T) {
	tr := Trim{Approx: rapid.Bool().Draw(t, "approx"), ByID: rapid.Bool().Draw(t, "minid")}
	tr.Len = uint64(rapid.IntRange(0, len(m.entries)+2).Draw(t, "maxlen"))
	cut := 0
	if tr.ByID {
		if len(m.entries) > 0 {
			tr.MinID = m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(t, "id")].id
		}
		if rapid.Bool().Draw(t, "beyond") {
			tr.MinID = m.last
			tr.MinID.Seq++
		}
		for cut < len(m.entries) && m.entries[cut].id.Less(tr.MinID) {
			cut++
		}
	} else {
		cut = max(len(m.entries)-int(tr.Len), 0)
	}
	if tr.Approx && rapid.Bool().Draw(t, "limited") {
		tr.Limit = rapid.IntRange(1, 300).Draw(t, "limit")
	}
	n := m.s.Trim(tr)
	if n > cut || !tr.Approx && n != cut || tr.Limit > 0 && n > tr.Limit {
		t.Fatalf("%+v removed %d of %d", tr, n, cut)
	}
	m.entries = m.entries[n:]
}

func TestStreamBehavesAsASliceOfEntries(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{}
		m.s = New(&m.h)
		m.node = Node{
			Bytes:   rapid.SampledFrom([]int{4096, 0, 300}).Draw(t, "bytes"),
			Entries: rapid.SampledFrom([]int{100, 0, 7, 1}).Draw(t, "entries"),
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"append": m.appendSome,
			"delete": m.deleteSome,
			"trim":   m.trim,
			"freeze": func(*rapid.T) { m.ice.freeze(m.s, &m.h) },
			"thaw":   func(t *rapid.T) { m.ice.thaw(t) },
			"dry":    func(*rapid.T) { m.h.Limit ^= 1 },
		})
		m.h.Limit = 0
		if !rapid.Bool().Draw(t, "live one first") {
			m.ice.thaw(t)
		}
		for m.s.FreeAll(3) == 3 {
		}
		m.ice.thaw(t)
		if m.h.Held() != 0 || m.h.Taken() != 0 {
			t.Fatalf("%d bytes of chunks and %d outside are left", m.h.Held(), m.h.Taken())
		}
	})
}

type pendingModel struct {
	h    chunktest.Memory
	s    *Stream
	ice  ice
	g    *Group
	want map[ID]Pending
}

func (m *pendingModel) check(t *rapid.T) {
	if err := errors.Join(m.s.Check(), m.ice.check()); err != nil {
		t.Fatal(err)
	}
	var ids []ID
	for id := range m.want {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, ID.Compare)
	i := 0
	for it := m.g.PendingFrom(ID{}); it.Next(); i++ {
		if p := it.Pending(); i >= len(ids) || p != m.want[ids[i]] {
			t.Fatalf("pending %d is %+v", i, p)
		}
	}
	if i != len(ids) || m.g.Pending() != len(ids) {
		t.Fatalf("%d pending, counted %d, want %d", i, m.g.Pending(), len(ids))
	}
	for _, c := range m.g.Consumers() {
		from := m.drawID(t)
		it := m.g.PendingOf(c, from)
		for _, id := range ids {
			if w := m.want[id]; w.Consumer == c && !id.Less(from) && (!it.Next() || it.Pending() != w) {
				t.Fatalf("pending of %s", c.Name())
			}
		}
		if it.Next() {
			t.Fatalf("more pending of %s", c.Name())
		}
	}
}

func (m *pendingModel) drawID(t *rapid.T) ID {
	ms := rapid.Uint64Range(0, 6).Draw(t, "ms")
	if rapid.IntRange(0, 5).Draw(t, "far") == 0 {
		ms = 1<<64 - 1 - ms
	}
	return ID{ms, rapid.Uint64Range(0, 60).Draw(t, "seq")}
}

func TestPendingListsBehaveAsAMap(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &pendingModel{want: map[ID]Pending{}}
		m.s = New(&m.h)
		m.g = m.s.AddGroup([]byte("g"), ID{}, 0)
		consumer := func(t *rapid.T) *Consumer {
			name := []byte(fmt.Sprintf("c%d", rapid.IntRange(0, 4).Draw(t, "consumer")))
			if c := m.g.Consumer(name); c != nil {
				return c
			}
			c, err := m.g.AddConsumer(name, 5)
			if err != nil || c.Seen != 5 {
				t.Fatal(err)
			}
			return c
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"put": func(t *rapid.T) {
				id := m.drawID(t)
				for range rapid.SampledFrom([]int{1, 5, 200}).Draw(t, "n") {
					p := Pending{ID: id, Time: int64(id.Seq), Count: uint32(len(m.want)), Consumer: consumer(t)}
					if m.g.Put(p) == nil {
						m.want[id] = p
					} else if m.h.Limit == 0 {
						t.Fatal("not put")
					}
					id.Seq++
				}
			},
			"remove": func(t *rapid.T) {
				id := m.drawID(t)
				for range rapid.SampledFrom([]int{1, 5, 200}).Draw(t, "n") {
					_, ok := m.want[id]
					if m.g.Remove(id) != ok {
						t.Fatalf("removing %v", id)
					}
					if _, found := m.g.Find(id); found {
						t.Fatalf("%v is still pending", id)
					}
					delete(m.want, id)
					id.Seq++
				}
			},
			"delconsumer": func(t *rapid.T) {
				c := consumer(t)
				m.g.RemoveConsumer(c)
				for id, p := range m.want {
					if p.Consumer == c {
						delete(m.want, id)
					}
				}
			},
			"freeze": func(*rapid.T) { m.ice.freeze(m.s, &m.h) },
			"thaw":   func(t *rapid.T) { m.ice.thaw(t) },
			"dry":    func(*rapid.T) { m.h.Limit ^= 1 },
		})
		for m.s.FreeAll(2) == 2 {
		}
		m.ice.thaw(t)
		if m.h.Held() != 0 {
			t.Fatalf("%d bytes are left", m.h.Held())
		}
	})
}
