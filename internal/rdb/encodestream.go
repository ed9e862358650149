package rdb

// The caller writes a stream with BeginStream, Entry for each entry, and EndEntries; then for each
// group Group, Pending for each of its pending entries, and Consumers; then for each consumer
// Consumer, and Owned for each of its pending entries. The stream has type 19, which redis-server
// 7.0 reads. This type lacks the time at which a consumer was last active.

// streamNode collects the entries of a node. The first entry defines the node's fields.
type streamNode struct {
	base   StreamID
	n      int
	fields [][]byte // the fields of the first entry; they lie in names
	names  []byte
	first  StreamID
	all    uint64
}

// BeginStream begins a stream.
func (e *Encoder) BeginStream() {
	e.begin(TypeStream2)
	e.counted()
	e.node.n, e.node.all, e.node.first = 0, 0, StreamID{}
}

// Entry appends a stream's next entry; pairs holds fields and values in turn.
func (e *Encoder) Entry(id StreamID, pairs [][]byte) {
	s := &e.node
	if s.all++; s.all == 1 {
		s.first = id
	}
	size := 0
	for _, p := range pairs {
		size += len(p)
	}
	if s.n > 0 && (s.n == streamItems || len(e.pack.b)+size > streamBytes) {
		e.endNode()
	}
	if s.n == 0 {
		e.beginNode(id, pairs)
	}
	s.n++
	same := e.sameFields(pairs)
	flags, elements := int64(0), 4+int64(len(pairs))
	if same {
		flags, elements = entrySame, 3+int64(len(pairs)/2)
	}
	e.pack.addInt(flags)
	e.pack.addInt(int64(id.Ms - s.base.Ms))
	e.pack.addInt(int64(id.Seq - s.base.Seq))
	if !same {
		e.pack.addInt(int64(len(pairs) / 2))
	}
	for i, p := range pairs {
		if i%2 == 1 || !same {
			e.pack.add(p)
		}
	}
	e.pack.addInt(elements)
}

func (e *Encoder) sameFields(pairs [][]byte) bool {
	if len(pairs) != 2*len(e.node.fields) {
		return false
	}
	for i, f := range e.node.fields {
		if string(f) != string(pairs[2*i]) {
			return false
		}
	}
	return true
}

// beginNode begins a node with an entry's id and fields. The number of entries is not known yet, so
// beginNode reserves one byte for it.
func (e *Encoder) beginNode(id StreamID, pairs [][]byte) {
	s := &e.node
	s.base, s.fields, s.names = id, s.fields[:0], s.names[:0]
	size := 0
	for i := 0; i < len(pairs); i += 2 {
		size += len(pairs[i])
	}
	if cap(s.names) < size {
		s.names = make([]byte, 0, size)
	}
	e.pack.reset()
	e.pack.addInt(0)
	e.pack.addInt(0)
	e.pack.addInt(int64(len(pairs) / 2))
	for i := 0; i < len(pairs); i += 2 {
		start := len(s.names)
		s.names = append(s.names, pairs[i]...)
		s.fields = append(s.fields, s.names[start:])
		e.pack.add(pairs[i])
	}
	e.pack.addInt(0)
}

// This line does not compile unless streamItems fits the one byte that beginNode reserves.
var _ = [1]struct{}{}[streamItems>>7]

func (e *Encoder) endNode() {
	e.nodes++
	b := e.pack.finish()
	b[packHead] = byte(e.node.n)
	var id [idSize]byte
	e.length(idSize)
	e.Buf = append(e.Buf, appendID(id[:0], e.node.base)...)
	e.string(b)
	e.node.n = 0
	e.drain()
}

func (e *Encoder) id(id StreamID) {
	e.length(id.Ms)
	e.length(id.Seq)
}

// EndEntries ends a stream's entries; groups is the number of groups to follow.
func (e *Encoder) EndEntries(s StreamInfo, groups int) {
	if e.node.n > 0 {
		e.endNode()
	}
	e.endCounted()
	e.length(e.node.all)
	e.id(s.Last)
	e.id(e.node.first)
	e.id(s.MaxDeleted)
	e.length(s.Added)
	e.length(uint64(groups))
}

// Group appends a consumer group. Owned later assigns its pending entries to consumers.
func (e *Encoder) Group(g Group) {
	e.string(g.Name)
	e.id(g.Last)
	e.length(uint64(g.Read))
	e.length(uint64(g.Pending))
}

// Pending appends one of a group's pending entries, in ascending order.
func (e *Encoder) Pending(p Pending) {
	e.Buf = appendID(e.Buf, p.ID)
	e.uint64(uint64(p.Delivered))
	e.length(p.Count)
	e.drain()
}

// Consumers appends the number of consumers of a group.
func (e *Encoder) Consumers(n int) { e.length(uint64(n)) }

// Consumer appends a consumer of the group.
func (e *Encoder) Consumer(c Consumer) {
	e.string(c.Name)
	e.uint64(uint64(c.Seen))
	e.length(uint64(c.Pending))
	e.drain()
}

// Owned appends the id of an entry that is pending for the consumer, in
// ascending order.
func (e *Encoder) Owned(id StreamID) {
	e.Buf = appendID(e.Buf, id)
	e.drain()
}
