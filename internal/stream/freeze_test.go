package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
)

// ice is a frozen copy of a stream, if there is one, which a goroutine reads while
// the live one continues.
type ice struct {
	s     *Stream
	watch *chunktest.Frozen
}

func (i *ice) freeze(s *Stream, mem *chunktest.Memory) {
	if i.s != nil {
		return
	}
	want, f := s.text(), s.Freeze()
	i.s = f
	i.watch = chunktest.Watch(mem, func() error {
		if got := f.text(); got != want {
			return errors.New("the frozen copy has changed")
		}
		return f.Check()
	})
}

func (i *ice) check() error {
	if i.s == nil {
		return nil
	}
	return i.watch.Check()
}

func (i *ice) thaw(t interface{ Fatal(...any) }) {
	if i.s == nil {
		return
	}
	if err := i.watch.End(); err != nil {
		t.Fatal(err)
	}
	for i.s.FreeAll(2) == 2 {
	}
	i.s = nil
}

// text writes out all that a stream holds.
func (s *Stream) text() string {
	b := fmt.Appendln(nil, s.Last, s.MaxDeleted, s.Added, s.Len(), s.Nodes(), s.First(), s.LastEntry())
	for it := s.Iter(ID{}); it.Next(); {
		b = fmt.Appendln(b, it.ID())
		for range it.Fields() {
			name, value := it.Field()
			b = append(append(b, name...), value.String()...)
		}
	}
	for _, g := range s.Groups() {
		b = fmt.Appendln(b, g.Name(), g.Last, g.Read, g.Pending())
		for _, c := range g.Consumers() {
			b = fmt.Appendln(b, c.Name(), c.Seen, c.Active, c.Pending())
		}
		for it := g.PendingFrom(ID{}); it.Next(); {
			p := it.Pending()
			b = fmt.Appendln(b, p.ID, p.Time, p.Count, p.Consumer.Name())
		}
	}
	return string(b)
}

// TestTheFirstChangesAfterAFreeze freezes a stream with a group again and again,
// even while there is no memory for copies.
func TestTheFirstChangesAfterAFreeze(t *testing.T) {
	mem := &chunktest.Memory{Max: 4 << 10}
	s := New(mem)
	g := s.AddGroup([]byte("g"), ID{}, 0)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := g.AddConsumer([]byte(name), 1); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		change(s, g, rng)
	}
	var i ice
	for turn := range 100 {
		i.freeze(s, mem)
		if turn%3 == 0 {
			mem.Limit = 1
		}
		for range 4 {
			change(s, g, rng)
		}
		mem.Limit = 0
		if err := errors.Join(i.check(), s.Check()); err != nil {
			t.Fatal(err)
		}
		i.thaw(t)
	}
	for s.FreeAll(10) == 10 {
	}
	if mem.Held()+mem.Taken() != 0 {
		t.Fatalf("%d bytes left, %d outside", mem.Held(), mem.Taken())
	}
}

// change makes one change of some kind.
func change(s *Stream, g *Group, rng *rand.Rand) {
	some := ID{rng.Uint64N(s.Last.Ms + 1), 0}
	c := g.Consumers()[rng.IntN(3)]
	switch rng.IntN(12) {
	case 0:
		s.Delete(some)
	case 1:
		s.Trim(Trim{Len: uint64(s.Len()) - 1})
	case 2:
		s.Trim(Trim{ByID: true, MinID: ID{some.Ms / 8, 0}, Approx: true})
	case 3:
		g.Remove(some)
	case 4:
		if it := g.PendingFrom(some); it.Next() {
			it.Update(rng.Int64(), 7)
		}
	case 5, 6, 7:
		_ = g.Put(Pending{ID: some, Time: 3, Count: 1, Consumer: c}) // may find no memory
	case 8:
		c.Seen++
		g.Last = some
	default:
		// May find no memory.
		_ = s.Append(ID{s.Last.Ms + 1, 0}, [][]byte{[]byte("field"), fmt.Append(nil, rng.Uint64()), []byte("large"),
			make([]byte, rng.IntN(400))}, Node{Entries: 30})
	}
}
