package rdb

import (
	"encoding/binary"
	"slices"
	"sort"
	"strconv"
)

// A stream is
//
//	nodes │ node ... │ entries │ last id │ [first id │ max deleted │ added] │ groups │ group ...
//	node:     id 16, big endian │ listpack
//	listpack: living │ deleted │ fields │ field ... │ 0 │ entry ...
//	entry:    flags │ ms, seq beyond the node's │ [fields] │ [field] value ... │ elements of the entry
//	group:    name │ last id │ [entries read] │ pending ... │ consumers │ consumer ...
//	pending:  id 16 │ time 8 │ deliveries
//	consumer: name │ seen 8 │ [active 8] │ id 16 ...
//
// Types 19 and 21 have added the parts in brackets. Ids that are not 16 bytes are two lengths.
const (
	entryDeleted = 1 << iota // flags of an entry
	entrySame                // the entry has the fields of the node
)

const idSize = 16

func readID(b []byte) StreamID {
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func appendID(b []byte, id StreamID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, id.Ms), id.Seq)
}

// plainID reads an id of two lengths.
func (d *Decoder) plainID() (id StreamID, err error) {
	if id.Ms, err = d.number(); err == nil {
		id.Seq, err = d.number()
	}
	return id, err
}

func (d *Decoder) stream(t Type, b StreamBuilder) error {
	nodes, err := d.count(1 + idSize + 1)
	if err != nil {
		return err
	}
	if err := b.BeginStream(nodes); err != nil {
		return err
	}
	s := streamReader{d: d, b: b}
	for range nodes {
		if err := s.node(); err != nil {
			return err
		}
	}
	if s.info, err = s.metadata(t); err != nil {
		return err
	}
	if err := b.EndEntries(s.info); err != nil {
		return err
	}
	groups, err := d.count(1)
	if err != nil {
		return err
	}
	for range groups {
		if err := s.group(t); err != nil {
			return err
		}
	}
	return nil
}

// streamReader is the state of the Decoder while it reads one stream.
type streamReader struct {
	d    *Decoder
	b    StreamBuilder
	n    uint64   // living entries so far
	from StreamID // the id of the first living entry
	last StreamID // the id of the last living entry
	info StreamInfo
	pel  []pending
}

// node reads one node of entries.
func (s *streamReader) node() error {
	key, err := s.d.string(first)
	if err != nil {
		return err
	}
	if len(key) != idSize {
		return bad("a stream's node has no id")
	}
	base := readID(key)
	b, n, err := s.d.layout(checkListpack)
	if err != nil {
		return err
	}
	p := &nodeReader{l: newListpack(b), left: n}
	living, deleted, fields := p.int(), p.int(), p.int()
	if p.err != nil || fields < 0 || fields > int64(p.left) {
		return bad("a stream's node has no head")
	}
	master := *p.l
	for range fields {
		p.take()
	}
	if p.int() != 0 || p.err != nil {
		return bad("a stream's node has no head")
	}
	for p.left > 0 {
		dead, err := s.entry(p, base, &master, int(fields))
		if err != nil {
			return err
		}
		if dead {
			deleted--
		} else {
			living--
		}
	}
	if living != 0 || deleted != 0 {
		return bad("a stream's node has other entries than it says")
	}
	return nil
}

// nodeReader walks a node's listpack, up to its end.
type nodeReader struct {
	l    *listpack
	left int
	err  error
}

func (p *nodeReader) take() item {
	if p.left == 0 {
		p.err = bad("a stream's entry is cut off")
		return item{}
	}
	p.left--
	return p.l.next()
}

func (p *nodeReader) int() int64 {
	it := p.take()
	if it.b != nil {
		p.err = bad("a stream's entry has text where a number should be")
	}
	return it.n
}

// entry reads one entry and passes it to the Builder, unless it was deleted.
func (s *streamReader) entry(p *nodeReader, base StreamID, master *listpack, fields int) (dead bool, err error) {
	flags := p.int()
	id := StreamID{base.Ms + uint64(p.int()), base.Seq + uint64(p.int())}
	same := flags&entrySame != 0
	n, size := int64(fields), int64(3+fields)
	if !same {
		n = p.int()
		size = 4 + 2*n
	}
	if p.err != nil {
		return false, p.err
	}
	if flags&^(entryDeleted|entrySame) != 0 || n < 0 || n > int64(p.left) {
		return false, bad("a stream's entry is not what it can be")
	}
	s.fill(p, master, int(n), same)
	if p.int() != size || p.err != nil {
		return false, bad("the length of a stream's entry is not the one it states")
	}
	if flags&entryDeleted != 0 {
		return true, nil
	}
	if s.n > 0 && !s.last.Less(id) {
		return false, bad("a stream's entries are not in order")
	}
	if s.n++; s.n == 1 {
		s.from = id
	}
	s.last = id
	return false, s.b.Entry(id, s.d.pairs)
}

// fill collects the fields and values of an entry in the Decoder's pairs.
func (s *streamReader) fill(p *nodeReader, master *listpack, n int, same bool) {
	d, m := s.d, *master
	d.pairs, d.digits = d.pairs[:0], d.digits[:0]
	for i := range 2 * n {
		var it item
		if same && i%2 == 0 {
			it = m.next()
		} else {
			it = p.take()
		}
		if it.b == nil {
			d.digits = strconv.AppendInt(d.digits, it.n, 10)
			d.ends = append(d.ends, len(d.digits))
		}
		d.pairs = append(d.pairs, it.b)
	}
	// The digits no longer move, because the entry is complete: slice them now.
	start, next := 0, 0
	for i, b := range d.pairs {
		if b == nil {
			d.pairs[i] = d.digits[start:d.ends[next]]
			start = d.ends[next]
			next++
		}
	}
	d.ends = d.ends[:0]
}

// metadata reads what follows the entries of a stream.
func (s *streamReader) metadata(t Type) (info StreamInfo, err error) {
	n, err := s.d.number()
	if err == nil && n != s.n {
		err = bad("a stream has %d entries, not %d", s.n, n)
	}
	if err == nil {
		info.Last, err = s.d.plainID()
	}
	if err == nil && s.n > 0 && info.Last.Less(s.last) {
		err = bad("a stream's last id is not its last")
	}
	info.Added = n
	if t == TypeStream || err != nil {
		return info, err
	}
	if _, err = s.d.plainID(); err == nil { // the first id, which is already known
		info.MaxDeleted, err = s.d.plainID()
	}
	if err == nil {
		info.Added, err = s.d.number()
	}
	if err == nil && info.Added < n {
		err = bad("a stream has more entries than were ever added")
	}
	return info, err
}

// pending is an entry of a group's list; owned is true after a consumer has listed it.
type pending struct {
	Pending
	owned bool
}

// readBefore returns how many entries a group has read, if its last id alone says so; -1: unknown. The format of Redis 6.2 and
// before does not have the number.
func (s *streamReader) readBefore(last StreamID) int64 {
	switch {
	case s.n == 0 || last.Less(s.from):
		return 0
	case last == s.from:
		return 1
	case last == s.info.Last:
		return int64(s.n)
	}
	return -1
}

// group reads a consumer group. The pending entries come first for the whole group, and then, only
// by id, for each consumer. So group keeps them until then.
func (s *streamReader) group(t Type) error {
	d := s.d
	name, err := d.string(first)
	if err != nil {
		return err
	}
	g := Group{Name: name, Read: -1}
	if g.Last, err = d.plainID(); err != nil {
		return err
	}
	if t != TypeStream {
		n, err := d.number()
		if err != nil {
			return err
		}
		g.Read = int64(n)
		if g.Read < -1 {
			return bad("a group has read a negative number of entries")
		}
	} else {
		g.Read = s.readBefore(g.Last)
	}
	if err := s.pending(); err != nil {
		return err
	}
	g.Pending = len(s.pel)
	if g.Consumers, err = d.count(1 + 8 + 1); err != nil {
		return err
	}
	if err := s.b.Group(g); err != nil {
		return err
	}
	for range g.Consumers {
		n, err := s.consumer(t)
		if err != nil {
			return err
		}
		g.Pending -= n
	}
	if g.Pending != 0 {
		return bad("a pending entry belongs to no consumer")
	}
	return nil
}

// pending reads a group's list of pending entries.
func (s *streamReader) pending() error {
	n, err := s.d.count(idSize + 8 + 1)
	if err != nil {
		return err
	}
	s.pel = slices.Grow(s.pel[:0], n)
	for i := range n {
		b, err := s.d.take(idSize + 8)
		if err != nil {
			return err
		}
		p := pending{Pending: Pending{ID: readID(b), Delivered: int64(binary.LittleEndian.Uint64(b[idSize:]))}}
		if p.Count, err = s.d.number(); err != nil {
			return err
		}
		if i > 0 && !s.pel[i-1].ID.Less(p.ID) {
			return bad("pending entries are not in order")
		}
		s.pel = append(s.pel, p)
	}
	return nil
}

// consumer reads a consumer and passes its pending entries to the Builder.
func (s *streamReader) consumer(t Type) (n int, err error) {
	d := s.d
	c := Consumer{}
	if c.Name, err = d.string(first); err != nil {
		return 0, err
	}
	seen, err := d.uint64()
	if err != nil {
		return 0, err
	}
	c.Seen, c.Active = int64(seen), int64(seen)
	if t == TypeStream3 {
		active, err := d.uint64()
		if err != nil {
			return 0, err
		}
		c.Active = int64(active)
	}
	if c.Pending, err = d.count(idSize); err != nil {
		return 0, err
	}
	if err := s.b.Consumer(c); err != nil {
		return 0, err
	}
	var last StreamID
	for i := range c.Pending {
		b, err := d.take(idSize)
		if err != nil {
			return 0, err
		}
		p := s.find(readID(b))
		if p == nil || p.owned || i > 0 && !last.Less(p.ID) {
			return 0, bad("a consumer's pending entry is not the group's, or is another's")
		}
		p.owned, last = true, p.ID
		if err := s.b.Pending(p.Pending); err != nil {
			return 0, err
		}
	}
	return c.Pending, nil
}

// find returns the group's pending entry with this id, or nil.
func (s *streamReader) find(id StreamID) *pending {
	i := sort.Search(len(s.pel), func(i int) bool { return !s.pel[i].ID.Less(id) })
	if i == len(s.pel) || s.pel[i].ID != id {
		return nil
	}
	return &s.pel[i]
}
