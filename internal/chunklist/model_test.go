package chunklist

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// heap is a Memory that poisons freed memory and runs out of memory when the test says so.
type heap struct {
	chunks [][]byte
	live   int
	bytes  int
	dry    bool
}

func (h *heap) AllocChunk(size int) uint32 {
	if h.dry {
		return 0
	}
	if size < MinChunk || size > MaxChunk || size&(size-1) != 0 {
		panic("chunk of " + strconv.Itoa(size))
	}
	h.live++
	h.bytes += size
	h.chunks = append(h.chunks, make([]byte, size))
	return uint32(len(h.chunks))
}

func (h *heap) FreeChunk(ref uint32, size int) {
	b := h.Bytes(ref, size)
	for i := range b {
		b[i] = 0xDB
	}
	h.chunks[ref-1] = nil
	h.live--
	h.bytes -= size
}

func (h *heap) Bytes(ref uint32, size int) []byte {
	if b := h.chunks[ref-1]; len(b) == size {
		return b
	}
	panic("chunk " + strconv.Itoa(int(ref)) + " has another size")
}

type item struct {
	s        string
	deadline int64
}

type model struct {
	h     chunktest.Memory
	l     *List
	items []item
	now   int64

	frozen *List // nil: none
	watch  *chunktest.Frozen
}

func (m *model) dead(it item) bool { return it.deadline != 0 && m.now > it.deadline }

// living returns the living items and where they are among the stored.
func (m *model) living() (out []item, at []int) {
	for i, it := range m.items {
		if !m.dead(it) {
			out, at = append(out, it), append(at, i)
		}
	}
	return out, at
}

func (m *model) draw(t *rapid.T) item {
	it := item{s: rapid.SampledFrom([]string{"", "a", "17", "-70000", "element:0001", "b", "a"}).Draw(t, "s")}
	switch rapid.IntRange(0, 11).Draw(t, "length") {
	case 0:
		it.s = strings.Repeat("x", rapid.IntRange(50, 600).Draw(t, "n"))
	case 1:
		it.s = strings.Repeat("y", rapid.IntRange(600, 9000).Draw(t, "n"))
	case 2:
		it.s = strings.Repeat("z", rapid.SampledFrom([]int{4080, 4085, 4086, 4087, 4088, 4089, 4090, 4096, 8176, 8182, 8183, 8190,
			65530, 70000}).Draw(t, "n"))
	}
	if rapid.IntRange(0, 2).Draw(t, "timed") == 0 {
		it.deadline = max(1, m.now+rapid.Int64Range(-5, 20).Draw(t, "ms"))
	}
	return it
}

// clone continues with a copy, or with the original if the chunk memory has run out.
func (m *model) clone(t *rapid.T) {
	c, ok := m.l.Clone()
	if !ok {
		return
	}
	for !m.l.Free(2) {
	}
	m.l = c
}

func (m *model) check(t *rapid.T) {
	if err := m.l.Check(); err != nil {
		t.Fatal(err)
	}
	want, _ := m.living()
	if m.l.Stored() != len(m.items) || m.l.Len(m.now) != len(want) {
		t.Fatalf("stored %d, living %d; want %d, %d", m.l.Stored(), m.l.Len(m.now), len(m.items), len(want))
	}
	i, it := 0, m.l.Iter(m.now)
	for ; it.Next(); i++ {
		if i >= len(want) || it.Value().String() != want[i].s || it.Deadline() != want[i].deadline {
			t.Fatalf("element %d forward is wrong", i)
		}
	}
	for n := i; ; n-- {
		if !it.Prev() {
			if n != 0 {
				t.Fatalf("%d elements more backward", n)
			}
			break
		}
		if it.Value().String() != want[n-1].s {
			t.Fatalf("element %d backward is wrong", n-1)
		}
	}
	if i != len(want) {
		t.Fatalf("%d elements, want %d", i, len(want))
	}
	i = rapid.IntRange(-len(want)-1, len(want)).Draw(t, "index")
	abs := i
	if i < 0 {
		abs += len(want)
	}
	it, ok := m.l.Seek(i, m.now)
	if ok != (abs >= 0 && abs < len(want)) || ok && (!it.Next() || it.Value().String() != want[abs].s) {
		t.Fatalf("Seek(%d) of %d is wrong", i, len(want))
	}
	if m.frozen != nil {
		if err := m.watch.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *model) push(t *rapid.T) {
	n := rapid.SampledFrom([]int{1, 1, 3, 50, 400}).Draw(t, "times")
	front, it := rapid.Bool().Draw(t, "front"), m.draw(t)
	for range n {
		switch {
		case front && m.l.PushFront([]byte(it.s), it.deadline):
			m.items = slices.Insert(m.items, 0, it)
		case !front && m.l.PushBack([]byte(it.s), it.deadline):
			m.items = append(m.items, it)
		case !front || m.h.Limit == 0:
			if m.h.Limit == 0 {
				t.Fatal("push failed with memory to spare")
			}
		}
	}
}

// pushRun adds a run of equal elements, whose size is near those of chunks.
func (m *model) pushRun(t *rapid.T) {
	it, p := item{s: rapid.SampledFrom([]string{"", "17", "element:0001"}).Draw(t, "s")}, packed.New(nil, packed.KindList)
	most := rapid.SampledFrom([]int{5, 600, 1000, 3000, 4090, 8100, 9000}).Draw(t, "bytes")
	for len(p) < most {
		p = p.Append([]byte(it.s))
	}
	if n := p.Count(); n > 0 && m.l.PushRun(p.Run(), n) {
		m.items = append(m.items, slices.Repeat([]item{it}, n)...)
	} else if err := m.l.Check(); err != nil {
		t.Fatal(err)
	}
}

func (m *model) pop(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "times") {
		living, at := m.living()
		pop, i := m.l.PopFront, 0
		if rapid.Bool().Draw(t, "back") {
			pop, i = m.l.PopBack, len(living)-1
		}
		got, deadline, ok := pop([]byte("."), m.now)
		if ok != (len(living) > 0) {
			t.Fatalf("pop %v of %d", ok, len(living))
		}
		if !ok {
			return
		}
		if string(got) != "."+living[i].s || deadline != living[i].deadline {
			t.Fatalf("popped %.20q, want %.20q", got, living[i].s)
		}
		m.items = slices.Delete(m.items, at[i], at[i]+1)
	}
}

// pick seeks a living element and passes it.
func (m *model) pick(t *rapid.T) (*Iter, int, bool) {
	living, at := m.living()
	if len(living) == 0 {
		return nil, 0, false
	}
	i := rapid.IntRange(0, len(living)-1).Draw(t, "element")
	it, ok := m.l.Seek(i, m.now)
	if !ok || !it.Next() {
		t.Fatalf("no element %d of %d", i, len(living))
	}
	return &it, at[i], true
}

func (m *model) insert(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 1, 20}).Draw(t, "times") {
		it, i, ok := m.pick(t)
		if !ok {
			return
		}
		v := m.draw(t)
		insert := m.l.InsertBefore
		if rapid.Bool().Draw(t, "after") {
			insert, i = m.l.InsertAfter, i+1
		}
		if insert(it, []byte(v.s), v.deadline) {
			m.items = slices.Insert(m.items, i, v)
		} else if m.h.Limit == 0 {
			t.Fatal("insert failed with memory to spare")
		}
	}
}

func (m *model) change(t *rapid.T) {
	it, i, ok := m.pick(t)
	if !ok {
		return
	}
	v := m.draw(t)
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		m.l.Remove(it)
		m.items = slices.Delete(m.items, i, i+1)
		return
	case 1:
		ok = m.l.Replace(it, []byte(v.s), v.deadline)
	case 2:
		v.s = m.items[i].s
		ok = m.l.SetDeadline(it, v.deadline)
	}
	if ok {
		m.items[i] = v
	} else if m.h.Limit == 0 {
		t.Fatal("change failed with memory to spare")
	}
}

func (m *model) removeEqual(t *rapid.T) {
	s, count := m.draw(t).s, rapid.SampledFrom([]int{0, 1, -1, 3, -3, 70, -70}).Draw(t, "count")
	left, n := max(count, -count), 0
	if count == 0 {
		left = len(m.items)
	}
	drop := func(it item) bool {
		if n < left && it.s == s && !m.dead(it) {
			n++
			return true
		}
		return false
	}
	if count < 0 {
		slices.Reverse(m.items)
	}
	m.items = slices.DeleteFunc(m.items, drop)
	if count < 0 {
		slices.Reverse(m.items)
	}
	if got := m.l.RemoveEqual([]byte(s), count, m.now); got != n {
		t.Fatalf("removed %d, want %d", got, n)
	}
}

func (m *model) reap(t *rapid.T) {
	budget := rapid.SampledFrom([]int{1, 2, 10, 1 << 30}).Draw(t, "budget")
	n := m.l.Reap(m.now, budget, func(i int, v packed.Str, deadline int64) {
		if it := m.items[i]; v.String() != it.s || deadline != it.deadline || !m.dead(it) {
			t.Fatalf("fired %.20q %d at %d, want %.20q %d", v, deadline, i, it.s, it.deadline)
		}
		m.items = slices.Delete(m.items, i, i+1)
	})
	if n > budget {
		t.Fatalf("fired %d, budget %d", n, budget)
	}
	if living, _ := m.living(); budget == 1<<30 {
		if len(living) != len(m.items) {
			t.Fatalf("%d dead left", len(m.items)-len(living))
		}
		if e := m.l.Earliest(); e != 0 && e < m.now {
			t.Fatalf("earliest %d at %d after all were reaped", e, m.now)
		}
	}
}

func (m *model) trim(t *rapid.T) {
	m.l.Reap(m.now, 1<<30, nil)
	m.items, _ = m.living()
	n := len(m.items)
	from := rapid.IntRange(0, max(1, n/3)).Draw(t, "from")
	to := rapid.IntRange(n-n/3-2, n).Draw(t, "to")
	m.l.Trim(from, to, m.now)
	if from >= n || to < from {
		m.items = nil
		return
	}
	m.items = slices.Clone(m.items[from:min(to+1, n)])
}

func TestListBehavesAsAPlainSlice(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{now: 1000}
		cfg := Config{Size: rapid.SampledFrom([]int{-2, -1, 0, 3, 100, -5}).Draw(t, "size")}
		if rapid.Bool().Draw(t, "small chunks") {
			cfg.MaxChunk = 16 << 10
		}
		m.l = New(&m.h, cfg)
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"push":   m.push,
			"push2":  m.push,
			"run":    m.pushRun,
			"pop":    m.pop,
			"insert": m.insert,
			"clone":  m.clone,
			"freeze": m.freeze,
			"thaw":   m.thaw,
			"change": m.change,
			"remove": m.removeEqual,
			"reap":   m.reap,
			"trim":   m.trim,
			"time":   func(t *rapid.T) { m.now += rapid.Int64Range(0, 10).Draw(t, "ms") },
			"memory": func(t *rapid.T) { m.h.Limit = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "limit") },
		})
		if !rapid.Bool().Draw(t, "live one first") {
			m.thaw(t)
		}
		for !m.l.Free(2) {
		}
		m.thaw(t)
		if m.h.Held() != 0 || m.l.chunkBytes != 0 || m.l.bigBytes != 0 {
			t.Fatalf("%d bytes left", m.h.Held())
		}
	})
}

func filled(n int, elem func(i int) []byte) (*List, *heap) {
	h := &heap{}
	l := New(h, Config{})
	for i := range n {
		l.PushBack(elem(i), 0)
	}
	return l, h
}

func TestAShortElementCostsOneByteMore(t *testing.T) {
	const n = 1_000_000
	l, h := filled(n, func(i int) []byte { return strconv.AppendInt([]byte("elem"), int64(1_000_000+i), 10) })
	if per := float64(l.Bytes()) / n; per > 12.1 || l.chunkBytes != h.bytes {
		t.Errorf("%.3f bytes for 11", per)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

func TestClosedBlocksWasteUnderFivePercent(t *testing.T) {
	for _, size := range []int{11, 65, 255, 300, 409, 700, 1500, 3000, 5000, 8000} {
		elem := bytes.Repeat([]byte("x"), size)
		c := packed.Encode(elem)
		n := (4 << 20) / size
		l, _ := filled(n, func(int) []byte { return elem })
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		if waste := float64(l.Bytes())/float64(n*c.Size(0)) - 1; waste > 0.06 { // and the open block, and the directory
			t.Errorf("%d-byte elements: %.1f %% waste", size, 100*waste)
		}
	}
}

func TestAQueueKeepsItsMemory(t *testing.T) {
	l, h := filled(50, func(i int) []byte { return []byte("job") })
	var buf []byte
	for range 100_000 {
		l.PushBack([]byte("job:17"), 0)
		buf, _, _ = l.PopFront(buf[:0], 0)
	}
	if l.Stored() != 50 || h.bytes > 2<<10 {
		t.Errorf("%d elements in %d bytes", l.Stored(), h.bytes)
	}
}

func TestInsertsInTheMiddleSplitAndRemovalsMerge(t *testing.T) {
	l, h := filled(50_000, func(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) })
	for i := range 50_000 {
		it, _ := l.Seek((i*7919)%l.Stored(), 0)
		it.Next()
		l.InsertBefore(&it, []byte("inserted"), 0)
	}
	if err := l.Check(); err != nil || l.blocks < 20 {
		t.Fatal(err, len(l.groups))
	}
	if n := l.RemoveEqual([]byte("inserted"), 0, 0); n != 50_000 {
		t.Fatalf("removed %d", n)
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	for i, it := 0, l.Iter(0); it.Next(); i++ {
		if it.Value().N != int64(i) {
			t.Fatalf("element %d is %v", i, it.Value())
		}
	}
	if per := float64(h.bytes) / 50_000; per > 8 {
		t.Errorf("%.1f bytes per element after the removal", per)
	}
}

func TestADirectoryOfSmallGroupsIsRebuilt(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 8400)
	l := New(&heap{}, Config{})
	for i := range 2500 { // each big one a block of its own
		if i%200 == 0 {
			l.PushBack([]byte("keep"), 0)
		}
		l.PushBack(big, 0)
	}
	if len(l.groups) < 8 {
		t.Fatalf("%d groups", len(l.groups))
	}
	if n := l.RemoveEqual(big, 0, 0); n != 2500 || l.Stored() != 13 {
		t.Fatalf("removed %d, left %d", n, l.Stored())
	}
	if err := l.Check(); err != nil || len(l.groups) != 1 {
		t.Fatal(err, len(l.groups))
	}
}
