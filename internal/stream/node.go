package stream

import (
	"math"

	"github.com/ebbdb/ebb/internal/packed"
)

// This file counts what Redis's last node would hold, which decides where the next node begins.

// nodeCount describes the last node that Redis would have.
type nodeCount struct {
	first          ID
	names          []byte // the names of its first entry's fields
	entries, bytes int
}

// inNode reports whether Redis would add a further entry to its last node.
func (s *Stream) inNode(pairs [][]byte, node Node) bool {
	const redisMax = 1 << 30
	limit := node.Bytes
	if limit <= 0 || limit > redisMax {
		limit = redisMax
	}
	n := 0
	for _, b := range pairs {
		n += len(b)
	}
	return s.node.bytes < limit-n && (node.Entries <= 0 || s.node.entries < node.Entries)
}

// beginNode begins to count a new node, whose first entry has these names, and keeps the count of
// the node before it.
func (s *Stream) beginNode(id ID, m names) {
	s.node, s.former = s.former, s.node
	n := m.size()
	if cap(s.node.names) < n || cap(s.node.names) > 2*n+64 {
		s.node.names = make([]byte, n)
	}
	s.node = nodeCount{first: id, names: s.node.names[:n], bytes: listpackMaster(m)}
	copy(s.node.names, m)
}

// countInNode counts an entry as Redis would store it.
func (s *Stream) countInNode(id ID, pairs [][]byte) {
	same := names(s.node.names).same(pairs)
	n := 0
	for i, v := range pairs {
		if i%2 == 1 || !same {
			n += listpackString(v)
		}
	}
	s.countBytes(id, len(pairs)/2, same, n)
}

// countBytes counts an entry of k fields whose strings take n bytes in Redis.
func (s *Stream) countBytes(id ID, k int, same bool, n int) {
	if s.node.entries == 127 { // the node's own count takes another byte
		s.node.bytes++
	}
	s.node.entries++
	n += 2 + packed.ListpackInt(int64(id.Ms-s.node.first.Ms)) + packed.ListpackInt(int64(id.Seq-s.node.first.Seq)) // 2: flags
	if same {
		n += packed.ListpackInt(int64(k + 3))
	} else {
		n += packed.ListpackInt(int64(k)) + packed.ListpackInt(int64(2*k+4))
	}
	s.node.bytes += n
}

// recount counts the last node again after the one behind it was removed. The node may have space
// for an entry that is smaller than the one that did not fit. If several nodes were removed, a node
// that has lost a piece counts as full. O(node).
func (s *Stream) recount() {
	if s.pieces == 0 {
		return
	}
	if f := &s.former; f.entries > 0 && !s.lastPiece().first.Less(f.first) {
		s.node, s.former = s.former, s.node
		s.former.entries = 0
		return
	}
	at := place{len(s.groups) - 1, len(s.groups[len(s.groups)-1].ents) - 1}
	for s.at(at).flags&pieceNode == 0 {
		at, _ = s.before(at)
	}
	p := s.at(at)
	s.beginNode(p.first, s.bytes(p))
	for ok := true; ok; at, ok = s.after(at) {
		p := s.at(at)
		if p.flags&pieceCut != 0 {
			s.node.entries, s.node.bytes = math.MaxInt, math.MaxInt
			return
		}
		data := s.bytes(p)
		var c cursor
		for c.start(p, data); c.n < int(p.stored); {
			flags, body := c.next(data)
			s.recountEntry(&Entry{id: c.prev, data: data, body: data[body:c.pos], other: flags&flagOther != 0})
		}
	}
}

func (s *Stream) recountEntry(e *Entry) {
	k := e.Fields()
	m := names(s.node.names)
	own, values := 0, 0
	n, p := uvarint(m, 0)
	same := int(n) == k
	for range k {
		name, value := e.Field()
		own += listpackString(name)
		values += packed.ListpackStr(value)
		if same {
			l, q := uvarint(m, p)
			p = q + int(l)
			same = string(m[q:p]) == string(name)
		}
	}
	if !same {
		values += own
	}
	s.countBytes(e.id, k, same, values)
}

// listpackMaster returns the bytes of an empty node: header, counts, names and end.
func listpackMaster(m names) int {
	k, p := uvarint(m, 0)
	n := 7 + 2 + 2 + packed.ListpackInt(int64(k)) + 2
	for range k {
		l, q := uvarint(m, p)
		p = q + int(l)
		n += listpackString(m[q:p])
	}
	return n
}

func listpackString(s []byte) int {
	if v, ok := packed.ParseInt(s); ok {
		return packed.ListpackInt(v)
	}
	return packed.ListpackStr(packed.Str{B: s})
}
