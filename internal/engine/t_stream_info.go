package engine

import "github.com/ebbdb/ebb/internal/stream"

// XPending is an entry that was delivered and not acknowledged.
type XPending struct {
	ID       StreamID
	Consumer string
	Time     int64 // the instant of the last delivery, ms since 1970
	Count    int64 // the number of deliveries
}

func pendingOf(p stream.Pending) XPending {
	return XPending{ID: p.ID, Consumer: p.Consumer.Name(), Time: p.Time, Count: int64(p.Count)}
}

// XConsumer is a consumer of a group.
type XConsumer struct {
	Name         string
	Pending      int
	Seen, Active int64 // ms since 1970; Active is -1 if the consumer never received an entry
}

// XPendingSum summarises the pending entries of a group.
type XPendingSum struct {
	Count       int
	First, Last StreamID
	Consumers   []XConsumer // the consumers with pending entries, by name
}

// XPendingSum summarises the pending entries of a group. Errors: ErrWrongType, ErrNoGroup. O(consumers).
func (tx *Tx) XPendingSum(key, group []byte) (sum XPendingSum, err error) {
	g, err := tx.readGroup(key, group)
	if err != nil {
		return sum, err
	}
	if sum.Count = g.Pending(); sum.Count == 0 {
		return sum, nil
	}
	sum.First, sum.Last = g.PendingEdges()
	for _, c := range g.Consumers() {
		if c.Pending() > 0 {
			sum.Consumers = append(sum.Consumers, consumerOf(c))
		}
	}
	return sum, nil
}

func consumerOf(c *stream.Consumer) XConsumer {
	return XConsumer{Name: c.Name(), Pending: c.Pending(), Seen: c.Seen, Active: c.Active}
}

// readGroup is group for a read.
func (tx *Tx) readGroup(key, name []byte) (*stream.Group, error) {
	s, err := tx.readStream(key)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if g := s.Group(name); g != nil {
			return g, nil
		}
	}
	return nil, ErrNoGroup
}

// XPendingRange selects pending entries.
type XPendingRange struct {
	First, Last StreamID
	Count       int   // the greatest number of entries
	MinIdle     int64 // ms since the last delivery at least
	Of          bool  // only the entries of Consumer
	Consumer    []byte
}

// XPending calls visit with the selected pending entries of a group. Errors: ErrWrongType, ErrNoGroup. O(log
// n + examined entries).
func (tx *Tx) XPending(key, group []byte, r *XPendingRange, visit func(XPending)) error {
	g, err := tx.readGroup(key, group)
	if err != nil {
		return err
	}
	var it stream.PendingIter
	if r.Of {
		c := g.Consumer(r.Consumer)
		if c == nil {
			return nil
		}
		it = g.PendingOf(c, r.First)
	} else {
		it = g.PendingFrom(r.First)
	}
	for n := 0; n < r.Count && it.Next() && !r.Last.Less(it.ID()); {
		p := it.Pending()
		if r.MinIdle > 0 && tx.ms-p.Time < r.MinIdle {
			continue
		}
		visit(pendingOf(p))
		n++
	}
	return nil
}

// StreamInfo describes a stream. It is valid until the next write.
type StreamInfo struct {
	Length             int
	Nodes, RadixNodes  int // the numbers that Redis would report
	Last, MaxDeleted   StreamID
	First, LastEntryID StreamID // 0-0 if there is no entry
	Added              uint64

	s *stream.Stream
}

// XInfo describes a stream. Errors: ErrWrongType, ErrNoKey. O(1).
func (tx *Tx) XInfo(key []byte) (x StreamInfo, err error) {
	if x, err = tx.XGroups(key); err != nil {
		return x, err
	}
	return infoOf(x.s), nil
}

// XGroups describes only the groups and their consumers: the other fields are 0.
func (tx *Tx) XGroups(key []byte) (x StreamInfo, err error) {
	if x.s, err = tx.readStream(key); err == nil && x.s == nil {
		err = ErrNoKey
	}
	return x, err
}

func infoOf(s *stream.Stream) StreamInfo {
	return StreamInfo{Length: s.Len(), Nodes: s.Nodes(), RadixNodes: s.RadixNodes(), Last: s.Last, MaxDeleted: s.MaxDeleted,
		First: s.First(), LastEntryID: s.LastEntry(), Added: s.Added, s: s}
}

// Entries visits the entries of a range.
func (x *StreamInfo) Entries(r XRange, visit func(*StreamEntry)) { showRange(x.s, r, visit) }

// GroupInfo describes a consumer group. It is valid until the next write.
type GroupInfo struct {
	Name      string
	Last      StreamID
	Read      int64 // the number of entries that the group has read; -1: unknown
	Lag       int64 // the number of entries that the group has not read
	Known     bool  // whether Lag is known
	Consumers int
	Pending   int

	g *stream.Group
}

// Groups returns the consumer groups by name. O(groups).
func (x *StreamInfo) Groups() []GroupInfo {
	out := make([]GroupInfo, 0, len(x.s.Groups()))
	for _, g := range x.s.Groups() {
		lag, ok := x.s.Lag(g)
		out = append(out, GroupInfo{Name: g.Name(), Last: g.Last, Read: g.Read, Lag: lag, Known: ok,
			Consumers: len(g.Consumers()), Pending: g.Pending(), g: g})
	}
	return out
}

// Group returns one consumer group; ok is false if there is none of that name.
func (x *StreamInfo) Group(name []byte) (info GroupInfo, ok bool) {
	g := x.s.Group(name)
	if g == nil {
		return info, false
	}
	return GroupInfo{Name: g.Name(), Last: g.Last, Read: g.Read, Consumers: len(g.Consumers()), Pending: g.Pending(), g: g}, true
}

// Members returns the group's consumers by name. O(consumers).
func (x *GroupInfo) Members() []XConsumer {
	out := make([]XConsumer, 0, len(x.g.Consumers()))
	for _, c := range x.g.Consumers() {
		out = append(out, consumerOf(c))
	}
	return out
}

// All visits the pending entries of the group, at most n if n is not 0.
func (x *GroupInfo) All(n int, visit func(XPending)) {
	showPending(x.g.PendingFrom(StreamID{}), n, visit)
}

// Of visits the pending entries of one consumer, at most n if n is not 0.
func (x *GroupInfo) Of(consumer string, n int, visit func(XPending)) {
	if c := x.g.Consumer([]byte(consumer)); c != nil {
		showPending(x.g.PendingOf(c, StreamID{}), n, visit)
	}
}

func showPending(it stream.PendingIter, n int, visit func(XPending)) {
	for k := 1; it.Next(); k++ {
		visit(pendingOf(it.Pending()))
		if k == n {
			return
		}
	}
}
