package chunklist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// freeze freezes the list of the model, unless there is a frozen copy: from then
// on the live one continues while a goroutine reads the copy.
func (m *model) freeze(t *rapid.T) {
	if m.frozen != nil {
		return
	}
	f, items := m.l.Freeze(), slices.Clone(m.items)
	m.frozen = f
	m.watch = chunktest.Watch(&m.h, func() error { return f.holds(items) })
}

func (l *List) holds(items []item) error {
	i := 0
	for it := l.Iter(0); it.Next(); i++ {
		if i >= len(items) || it.Value().String() != items[i].s || it.Deadline() != items[i].deadline {
			return fmt.Errorf("element %d of %d is %.20q until %d", i, len(items), it.Value().String(), it.Deadline())
		}
	}
	if i != len(items) {
		return fmt.Errorf("%d elements, want %d", i, len(items))
	}
	return l.Check()
}

// thaw ends what freeze has begun.
func (m *model) thaw(t *rapid.T) {
	if m.frozen == nil {
		return
	}
	chunktest.Thaw(t, m.watch, m.frozen)
	m.frozen = nil
}

// TestTheFirstChangesAfterAFreeze freezes a list of many blocks again and again,
// even while there is no memory for copies.
func TestTheFirstChangesAfterAFreeze(t *testing.T) {
	mem := &chunktest.Memory{}
	l := New(mem, Config{Size: 5})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		l.PushBack(fmt.Append(nil, i), int64(i%2*(i%100)))
	}
	for turn := range 200 {
		var items []item
		for it := l.Iter(0); it.Next(); {
			items = append(items, item{it.Value().String(), it.Deadline()})
		}
		f := l.Freeze()
		watch := chunktest.Watch(mem, func() error { return f.holds(items) })
		if turn%3 == 0 {
			mem.Limit = 1
		}
		for range 4 {
			change(l, rng)
		}
		mem.Limit = 0
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		chunktest.Thaw(t, watch, f)
	}
	for !l.Free(10) {
	}
	if mem.Held() != 0 || len(l.bigs) != 0 {
		t.Fatalf("%d bytes left, %d outside", mem.Held(), len(l.bigs))
	}
}

// change makes one change of some kind.
func change(l *List, rng *rand.Rand) {
	it, ok := l.Seek(rng.IntN(max(l.Stored(), 1)), 0)
	if !ok || !it.Next() {
		l.PushBack([]byte("x"), 0)
		return
	}
	switch elem := fmt.Append(nil, rng.IntN(1000)); rng.IntN(11) {
	case 0:
		l.Remove(&it)
	case 1:
		l.Replace(&it, elem, 0)
	case 2:
		l.SetDeadline(&it, rng.Int64N(100))
	case 3, 4:
		l.InsertAfter(&it, elem, 0)
	case 5:
		l.RemoveEqual(it.Value().Append(nil), 1, 0)
	case 6:
		l.Reap(rng.Int64N(20), 3, nil)
	case 7:
		l.Trim(1, l.Stored()-2, 0)
	case 8:
		l.PopFront(nil, 0)
	default:
		l.PushFront(elem, 5)
		l.PushBack(elem, rng.Int64N(100))
	}
}
