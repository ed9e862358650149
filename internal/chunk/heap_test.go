package chunk_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// heapModel is a heap beside a map from reference to what it should hold.
type heapModel struct {
	mem  chunktest.Memory
	heap chunk.Heap
	want map[uint32]record
	next byte
}

type record struct {
	data []byte
	mark bool
}

func newHeapModel(t *rapid.T) *heapModel {
	m := &heapModel{want: make(map[uint32]record)}
	m.mem.Max = rapid.SampledFrom([]int{1 << 10, 16 << 10, 64 << 10}).Draw(t, "max")
	m.mem.Limit = rapid.SampledFrom([]int{0, 24 << 10}).Draw(t, "limit")
	m.heap.Init(&m.mem)
	return m
}

func (m *heapModel) size(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 40), rapid.IntRange(0, 400),
		rapid.IntRange(0, 10000)).Draw(t, "size")
}

func (m *heapModel) pick(t *rapid.T) uint32 {
	if len(m.want) == 0 {
		t.Skip("empty")
	}
	refs := make([]uint32, 0, len(m.want))
	m.heap.Each(func(ref uint32) { refs = append(refs, ref) })
	return rapid.SampledFrom(refs).Draw(t, "ref")
}

func (m *heapModel) fill(b []byte) []byte {
	m.next++
	for i := range b {
		b[i] = m.next + byte(i)
	}
	return bytes.Clone(b)
}

func (m *heapModel) alloc(t *rapid.T) {
	for range rapid.IntRange(1, 40).Draw(t, "n") {
		ref, ok := m.heap.Alloc(m.size(t))
		if !ok {
			if m.mem.Limit == 0 {
				t.Fatal("Alloc failed without a limit")
			}
			return
		}
		if _, dup := m.want[ref]; dup {
			t.Fatalf("reference %#x given twice", ref)
		}
		if m.heap.Marked(ref) {
			t.Fatal("a new record is marked")
		}
		m.want[ref] = record{data: m.fill(m.heap.Edit(ref))}
	}
}

func (m *heapModel) free(t *rapid.T) {
	for range rapid.IntRange(1, 40).Draw(t, "n") {
		if len(m.want) == 0 {
			return
		}
		ref := m.pick(t)
		m.heap.Free(ref)
		delete(m.want, ref)
	}
}

func (m *heapModel) resize(t *rapid.T) {
	ref, n := m.pick(t), m.size(t)
	old := m.want[ref]
	to, ok := m.heap.Resize(ref, n)
	if !ok {
		if m.mem.Limit == 0 {
			t.Fatal("Resize failed without a limit")
		}
		return
	}
	delete(m.want, ref)
	b := m.heap.Edit(to)
	if k := min(n, len(old.data)); len(b) != n || !bytes.Equal(b[:k], old.data[:k]) {
		t.Fatalf("Resize to %d kept %x, want %x", n, b, old.data)
	}
	m.want[to] = record{m.fill(b), old.mark}
}

func (m *heapModel) reserve(t *rapid.T) {
	n := rapid.IntRange(1, 500).Draw(t, "n")
	if !m.heap.Reserve(n) {
		return
	}
	limit := m.mem.Limit
	m.mem.Limit = 1
	for n >= 24 {
		ref, ok := m.heap.Alloc(22)
		if !ok {
			t.Fatalf("Alloc failed with %d bytes reserved", n)
		}
		m.want[ref] = record{data: m.fill(m.heap.Edit(ref))}
		n -= 24
	}
	m.mem.Limit = limit
}

func (m *heapModel) compact(t *rapid.T) {
	refuse := rapid.IntRange(0, 3).Draw(t, "refuse") == 0
	m.heap.Compact(rapid.IntRange(1, 300).Draw(t, "budget"), func(old, to uint32) bool {
		if refuse {
			return false
		}
		was, ok := m.want[old]
		if !ok || !bytes.Equal(m.heap.Bytes(old), was.data) || !bytes.Equal(m.heap.Bytes(to), was.data) {
			t.Fatalf("moved %#x to %#x: not the record", old, to)
		}
		delete(m.want, old)
		m.want[to] = was
		return true
	})
}

func (m *heapModel) check(t *rapid.T) {
	if err := m.heap.Check(); err != nil {
		t.Fatal(err)
	}
	if m.heap.Records() != len(m.want) {
		t.Fatalf("%d records, want %d", m.heap.Records(), len(m.want))
	}
	for ref, w := range m.want {
		if got := m.heap.Bytes(ref); !bytes.Equal(got, w.data) || m.heap.Marked(ref) != w.mark {
			t.Fatalf("record %#x is %x, want %x", ref, got, w.data)
		}
	}
}

func TestHeapKeepsRecords(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newHeapModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": m.alloc, "free": m.free, "resize": m.resize, "reserve": m.reserve, "compact": m.compact,
			"mark": func(t *rapid.T) {
				ref := m.pick(t)
				w := m.want[ref]
				w.mark = !w.mark
				m.want[ref] = w
				m.heap.SetMark(ref, w.mark)
			},
			"": m.check,
		})
		for m.heap.FreeAll(1) == 1 {
		}
		if m.mem.Held() != 0 || m.mem.Taken() != 0 {
			t.Fatalf("%d bytes of chunks and %d outside not given back", m.mem.Held(), m.mem.Taken())
		}
	})
}

func TestHeapFreesAsManyChunksAsTheBudgetSays(t *testing.T) {
	var mem chunktest.Memory
	var h chunk.Heap
	h.Init(&mem)
	for range 5000 {
		h.Alloc(100)
	}
	held := mem.Held()
	if h.FreeAll(2) != 2 || held-mem.Held() <= 0 || held-mem.Held() > 2*64<<10 {
		t.Fatalf("a slice of 2 chunks freed %d of %d bytes", held-mem.Held(), held)
	}
	for h.FreeAll(2) == 2 {
	}
	if mem.Held() != 0 {
		t.Fatalf("%d bytes left", mem.Held())
	}
}

func TestCompactionKeepsTheHeapWithinAQuarter(t *testing.T) {
	var mem chunktest.Memory
	var h chunk.Heap
	h.Init(&mem)
	var refs []uint32
	place := make(map[uint32]int)
	for i := range 100_000 {
		ref, _ := h.Alloc(14 + i%30)
		place[ref] = len(refs)
		refs = append(refs, ref)
	}
	for n := len(refs); n > 50; n-- {
		i := n * 7919 % len(refs)
		h.Free(refs[i])
		delete(place, refs[i])
		last := len(refs) - 1
		refs[i] = refs[last]
		refs = refs[:last]
		if i < last {
			place[refs[i]] = i
		}
		h.Compact(4, func(old, to uint32) bool {
			refs[place[old]] = to
			place[to] = place[old]
			delete(place, old)
			return true
		})
		if n%1000 == 0 && mem.Held()*4 > h.Used()*5+4*64<<10 {
			t.Fatalf("%d records of %d bytes hold %d", n, h.Used(), mem.Held())
		}
	}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	if mem.Held() > 8<<10 {
		t.Fatalf("50 records hold %d bytes", mem.Held())
	}
}

func TestChurnReusesHolesWithoutCompaction(t *testing.T) {
	var mem chunktest.Memory
	var h chunk.Heap
	h.Init(&mem)
	refs := make([]uint32, 20_000)
	for i := range refs {
		refs[i], _ = h.Alloc(13)
	}
	before := mem.Held()
	for i := range 200_000 {
		k := i * 7919 % len(refs)
		h.Free(refs[k])
		refs[k], _ = h.Alloc(13)
	}
	if mem.Held() > before+before/4 {
		t.Fatalf("churn grew %d bytes to %d", before, mem.Held())
	}
}

func TestArrayKeepsCells(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		mem := chunktest.Memory{Max: rapid.SampledFrom([]int{1 << 10, 4 << 10, 64 << 10}).Draw(t, "max")}
		shift := rapid.SampledFrom([]uint8{6, 9, 10}).Draw(t, "shift")
		var a chunk.Array
		a.Init(&mem, shift)
		n := 0
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			to := rapid.IntRange(0, 3000).Draw(t, "to")
			for ; n < to; n++ {
				i, ok := a.Push()
				if !ok || int(i) != n || *(*uint32)(a.At(i)) != 0 {
					t.Fatalf("pushed cell %d as %d: %v", n, i, ok)
				}
				*(*uint32)(a.At(i)) = i + 1
			}
			for ; n > to; n-- {
				*(*uint32)(a.At(uint32(n - 1))) = poisonCell
				a.Pop()
				a.Trim(0)
			}
			for i := range n {
				if got := *(*uint32)(a.At(uint32(i))); got != uint32(i)+1 {
					t.Fatalf("cell %d holds %d", i, got)
				}
			}
			if slack := mem.Held() - n<<shift; slack > n<<shift/2+4*mem.Max {
				t.Fatalf("%d cells of %d bytes hold %d", n, 1<<shift, mem.Held())
			}
			if a.Size() < mem.Held() || a.Used() != n<<shift {
				t.Fatalf("Size %d, held %d", a.Size(), mem.Held())
			}
		}
		for a.FreeAll(3) == 3 {
		}
		if mem.Held() != 0 {
			t.Fatalf("%d bytes not given back", mem.Held())
		}
	})
}

const poisonCell = 0xDBDBDBDB

func TestArrayReserveMakesPushesSucceed(t *testing.T) {
	mem := chunktest.Memory{}
	var a chunk.Array
	a.Init(&mem, 9)
	for range 100 {
		a.Push()
	}
	if !a.Reserve(200) {
		t.Fatal("Reserve failed without a limit")
	}
	mem.Limit = 1
	for range 200 {
		if _, ok := a.Push(); !ok {
			t.Fatal("Push failed after Reserve")
		}
	}
	for a.Reserve(1) {
		if _, ok := a.Push(); !ok {
			t.Fatal("Push failed after Reserve")
		}
	}
	if _, ok := a.Push(); ok {
		t.Fatal("Push found memory beyond the limit")
	}
}

func BenchmarkHeapAllocFree(b *testing.B) {
	var mem chunktest.Memory
	var h chunk.Heap
	h.Init(&mem)
	refs := make([]uint32, 1<<16)
	for i := range refs {
		refs[i], _ = h.Alloc(13)
	}
	for i := 0; b.Loop(); i++ {
		k := i * 7919 & (len(refs) - 1)
		h.Free(refs[k])
		ref, _ := h.Alloc(13)
		binary.LittleEndian.PutUint32(h.Edit(ref), uint32(i))
		refs[k] = ref
	}
}
