package engine

import (
	"math"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/stream"
)

// dumpStream writes a stream as DUMP does: its entries, its metadata, and its groups with their
// pending entries. Package rdb defines the order.

func (tx *Tx) dumpStream(e *rdb.Encoder, s *stream.Stream) {
	e.BeginStream()
	var pairs [][]byte
	var text []byte
	for it := s.Iter(stream.ID{}); it.Next(); {
		pairs, text = pairs[:0], text[:0]
		for range it.Fields() {
			name, value := it.Field()
			if value.IsInt() {
				start := len(text)
				text = value.Append(text)
				value.B = text[start:len(text):len(text)]
			}
			pairs = append(pairs, name, value.B)
		}
		e.Entry(rdb.StreamID(it.ID()), pairs)
	}
	e.EndEntries(rdb.StreamInfo{Last: rdb.StreamID(s.Last), MaxDeleted: rdb.StreamID(s.MaxDeleted), Added: s.Added}, len(s.Groups()))
	for _, g := range s.Groups() {
		dumpGroup(e, g)
	}
}

func dumpGroup(e *rdb.Encoder, g *stream.Group) {
	e.Group(rdb.Group{Name: []byte(g.Name()), Last: rdb.StreamID(g.Last), Read: g.Read, Pending: g.Pending()})
	for it := g.PendingFrom(stream.ID{}); it.Next(); {
		p := it.Pending()
		e.Pending(rdb.Pending{ID: rdb.StreamID(p.ID), Delivered: p.Time, Count: uint64(p.Count)})
	}
	e.Consumers(len(g.Consumers()))
	for _, c := range g.Consumers() {
		e.Consumer(rdb.Consumer{Name: []byte(c.Name()), Seen: c.Seen, Pending: c.Pending()})
		for it := g.PendingOf(c, stream.ID{}); it.Next(); {
			e.Owned(rdb.StreamID(it.ID()))
		}
	}
}

// BeginStream implements rdb.Builder.
func (r *restorer) BeginStream(int) error {
	r.kind = Stream
	r.box = r.tx.newStream()
	return nil
}

func (r *restorer) stream() *stream.Stream { return r.box.(streamBox).Stream }

// Entry implements rdb.Builder.
func (r *restorer) Entry(id rdb.StreamID, pairs [][]byte) error {
	if len(pairs) == 0 {
		return rdb.ErrFormat
	}
	l := r.tx.db.layout.Load()
	switch err := r.stream().Append(stream.ID(id), pairs, stream.Node{Bytes: l.StreamBytes, Entries: l.StreamEntries}); err {
	case nil:
		return nil
	case stream.ErrOrder:
		return rdb.ErrFormat
	}
	return ErrFull
}

// EndEntries implements rdb.Builder.
func (r *restorer) EndEntries(i rdb.StreamInfo) error {
	s := r.stream()
	s.Last, s.MaxDeleted, s.Added = stream.ID(i.Last), stream.ID(i.MaxDeleted), i.Added
	return nil
}

// Group implements rdb.Builder.
func (r *restorer) Group(g rdb.Group) error {
	r.group = r.stream().AddGroup(g.Name, stream.ID(g.Last), g.Read)
	if r.group == nil {
		return errTwice
	}
	return nil
}

// Consumer implements rdb.Builder.
func (r *restorer) Consumer(c rdb.Consumer) error {
	consumer, err := r.group.AddConsumer(c.Name, c.Seen)
	if err != nil || consumer == nil {
		return errTwice
	}
	consumer.Active = c.Active
	r.consumer = consumer
	return nil
}

// Pending implements rdb.Builder.
func (r *restorer) Pending(p rdb.Pending) error {
	err := r.group.Put(stream.Pending{ID: stream.ID(p.ID), Time: p.Delivered, Count: uint32(min(p.Count, math.MaxUint32)), Consumer: r.consumer})
	if err != nil {
		return ErrFull
	}
	return nil
}
