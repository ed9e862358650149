package stream

import (
	"errors"
	"sort"
	"unsafe"
)

// ErrConsumers: the group has the greatest number of consumers.
var ErrConsumers = errors.New("stream: a group holds at most 16 million consumers")

// Unknown is the value of Group.Read if the number is unknown.
const Unknown = -1

// Group is a consumer group. It is valid until it is removed from its stream.
type Group struct {
	Last ID    // the last id delivered
	Read int64 // entries read, or Unknown

	s      *Stream
	held   int // bytes, as the stream has counted them
	named  int // bytes of the consumers' names
	name   string
	pel    pel
	cons   []*Consumer // by name
	number []*Consumer // by number; nil: free
	spare  []uint32    // free numbers
}

// Consumer is a member of a group.
type Consumer struct {
	Seen   int64 // ms: the instant of its last read or claim
	Active int64 // ms: the instant at which it last received an entry; -1: never

	name    string
	number  uint32
	pending int
}

// Name returns the consumer's name.
func (c *Consumer) Name() string { return c.name }

// Pending returns the number of the consumer's pending entries.
func (c *Consumer) Pending() int { return c.pending }

// Groups returns the groups by name. The slice is the stream's own.
func (s *Stream) Groups() []*Group { return s.cons }

// Group returns the group of a name, or nil. O(log groups).
func (s *Stream) Group(name []byte) *Group {
	if i, ok := s.groupAt(name); ok {
		return s.cons[i]
	}
	return nil
}

func (s *Stream) groupAt(name []byte) (int, bool) {
	i := sort.Search(len(s.cons), func(i int) bool { return s.cons[i].name >= string(name) })
	return i, i < len(s.cons) && s.cons[i].name == string(name)
}

// AddGroup adds a group and returns it; nil if there is one with this name.
func (s *Stream) AddGroup(name []byte, last ID, read int64) *Group {
	i, ok := s.groupAt(name)
	if ok {
		return nil
	}
	g := &Group{s: s, name: string(name), Last: last, Read: read}
	g.pel.init(s.mem)
	g.count()
	s.cons = append(s.cons, nil)
	copy(s.cons[i+1:], s.cons[i:])
	s.cons[i] = g
	return g
}

// RemoveGroup removes a group with its pending entries and reports whether there was one. O(pending
// / 500).
func (s *Stream) RemoveGroup(name []byte) bool {
	i, ok := s.groupAt(name)
	if !ok {
		return false
	}
	s.conBytes -= s.cons[i].held
	s.cons[i].freeAll(1 << 30)
	s.cons = append(s.cons[:i], s.cons[i+1:]...)
	if len(s.cons) == 0 {
		s.cons = nil
	}
	return true
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// count updates the stream's count of the group's bytes. O(1).
func (g *Group) count() {
	n := int(unsafe.Sizeof(*g)) + len(g.name) + 8*(1+cap(g.cons)+cap(g.number)) + 4*cap(g.spare) +
		len(g.cons)*int(unsafe.Sizeof(Consumer{})) + g.named + g.pel.size()
	g.s.conBytes += n - g.held
	g.held = n
}

func (g *Group) freeAll(budget int) int { return g.pel.freeAll(budget) }

// Consumers returns the consumers by name. The slice is the group's own.
func (g *Group) Consumers() []*Consumer { return g.cons }

// Consumer returns the consumer of a name, or nil. O(log consumers).
func (g *Group) Consumer(name []byte) *Consumer {
	if i, ok := g.consumerAt(name); ok {
		return g.cons[i]
	}
	return nil
}

func (g *Group) consumerAt(name []byte) (int, bool) {
	i := sort.Search(len(g.cons), func(i int) bool { return g.cons[i].name >= string(name) })
	return i, i < len(g.cons) && g.cons[i].name == string(name)
}

// AddConsumer adds a consumer that has never been active; it returns nil if there is one with this
// name. Errors: ErrConsumers. O(consumers), at memory speed.
func (g *Group) AddConsumer(name []byte, now int64) (*Consumer, error) {
	i, ok := g.consumerAt(name)
	if ok {
		return nil, nil
	}
	c := &Consumer{name: string(name), Seen: now, Active: -1}
	switch k := len(g.spare); {
	case k > 0:
		c.number = g.spare[k-1]
		g.spare = g.spare[:k-1]
		g.number[c.number] = c
	case len(g.number) == maxConsumers:
		return nil, ErrConsumers
	default:
		c.number = uint32(len(g.number))
		g.number = append(g.number, c)
	}
	g.cons = append(g.cons, nil)
	copy(g.cons[i+1:], g.cons[i:])
	g.cons[i] = c
	g.named += len(name)
	g.count()
	return c, nil
}

// RemoveConsumer removes a consumer with its pending entries. O(pending log n), and O(pending /
// 500) if no other consumer has pending entries.
func (g *Group) RemoveConsumer(c *Consumer) {
	if c.pending == g.Pending() {
		g.freeAll(1 << 30)
		g.pel.free, g.pel.unused = 0, none
		c.pending = 0
	}
	for c.pending > 0 {
		it := g.PendingOf(c, ID{})
		it.Next()
		g.drop(it.ref)
	}
	g.number[c.number] = nil
	g.spare = append(g.spare, c.number)
	i, _ := g.consumerAt([]byte(c.name))
	g.cons = append(g.cons[:i], g.cons[i+1:]...)
	g.named -= len(c.name)
	g.count()
}

// Pending returns the number of pending entries. O(1).
func (g *Group) Pending() int { return g.pel.byID.Len() }

// Find returns a pending entry. O(log n).
func (g *Group) Find(id ID) (p Pending, ok bool) {
	ref := g.pel.find(id)
	if ref == none {
		return p, false
	}
	return g.pending(ref), true
}

func (g *Group) pending(ref uint32) Pending {
	n := g.pel.cell(ref)
	return Pending{ID: n.id, Time: n.time, Count: n.count, Consumer: g.number[n.owner]}
}

// Put makes an entry pending as p says, whether or not it was pending before.
// Errors: ErrNoMemory. O(log n).
func (g *Group) Put(p Pending) error {
	ref := g.pel.find(p.ID)
	if ref == none {
		err := g.pel.add(nack{id: p.ID, time: p.Time, count: p.Count, owner: p.Consumer.number})
		if err == nil {
			p.Consumer.pending++
		}
		g.count()
		return err
	}
	n := g.pel.edit(ref)
	if old := n.owner; old != p.Consumer.number {
		if err := g.pel.give(ref, p.Consumer.number); err != nil {
			return err
		}
		g.number[old].pending--
		p.Consumer.pending++
	}
	n.time, n.count = p.Time, p.Count
	return nil
}

// Remove removes a pending entry and reports whether there was one. O(log n).
func (g *Group) Remove(id ID) bool {
	ref := g.pel.find(id)
	if ref == none {
		return false
	}
	g.drop(ref)
	return true
}

func (g *Group) drop(ref uint32) {
	g.number[g.pel.cell(ref).owner].pending--
	g.pel.remove(ref)
	g.count()
}

// PendingEdges returns the first and the last pending id. The group has a pending entry. O(log n).
func (g *Group) PendingEdges() (first, last ID) {
	t := g.pel.byID
	_, a := t.At(0)
	_, z := t.At(t.Len() - 1)
	return g.pel.cell(a).id, g.pel.cell(z).id
}
