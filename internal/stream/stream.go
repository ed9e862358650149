// Package stream keeps a stream, its consumer groups and their pending lists outside the Go heap.
//
//	directory   group 0            group 1           256 pieces at most
//	            [p p p ... p]      [p p p]           32 bytes each: first id, place, counts
//	             |                      |
//	segments    [piece│piece│piece... ][piece│piece│ open ....]      1 to 16 KiB
//
//	piece       field names of its first entry │ entry entry entry ...
//	entry       [length and flags][id, against the entry before][values]
//
// A piece holds up to 128 entries or about 4 KiB. An entry whose field names are the piece's costs
// a byte for length and flags, one for the id when it follows the one before as ids do, and one for
// each value above the value itself; integers are stored as such. Segments are filled to the last
// byte: a piece that reaches the end of one is continued in the next. An entry too large for a
// segment is a piece of its own on the Go heap.
//
// Redis trims with `~` by whole nodes, whose sizes stream-node-max-entries and
// stream-node-max-bytes limit. A piece that begins such a node has a mark, and Append counts what
// Redis would have added to the node (node.go). So trimming removes the same number of entries as
// Redis. The number is approximate only in a stream of which several of the last nodes, or parts of
// long ones, were deleted entry by entry.
//
// The stream marks deleted entries. It removes a piece with its last living entry, and moves a
// segment that is mostly dead to a smaller chunk.
//
// Invariants (Check): first ids ascend through the directory; no piece or group is empty; counts
// are exact at each level; the first piece begins a node.
//
// A frozen copy shares the chunks (Freeze); code that writes to a segment calls own first.
//
// The package has no locks: the owner holds the shard's lock. Start reading at Stream.Append, then
// Iter.Next.
package stream

import (
	"errors"
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
)

// ErrNoMemory: the Memory has no chunk left. The operation that returns it has changed nothing.
var ErrNoMemory = chunk.ErrNoMemory

// ErrOrder: the entry's id is not greater than all ids before it.
var ErrOrder = errors.New("stream: id is not above the last one")

// ID is an entry's id: milliseconds, and a sequence number within them.
type ID struct{ Ms, Seq uint64 }

// MaxID is the largest id.
var MaxID = ID{^uint64(0), ^uint64(0)}

// Less reports whether a comes before b.
func (a ID) Less(b ID) bool { return a.Ms < b.Ms || a.Ms == b.Ms && a.Seq < b.Seq }

// Compare orders two ids: -1, 0 or 1.
func (a ID) Compare(b ID) int {
	switch {
	case a.Less(b):
		return -1
	case a == b:
		return 0
	}
	return 1
}

// IsZero reports whether the id is 0-0, which no entry has.
func (a ID) IsZero() bool { return a == ID{} }

// Next returns the id after a; false if there is none.
func (a ID) Next() (ID, bool) {
	if a.Seq++; a.Seq == 0 {
		a.Ms++
	}
	return a, !a.IsZero()
}

// Prev returns the id before a; false if there is none.
func (a ID) Prev() (ID, bool) {
	if a.IsZero() {
		return a, false
	}
	if a.Seq--; a.Seq == ^uint64(0) {
		a.Ms--
	}
	return a, true
}

// Node has the limits of Redis's nodes. Zero means no limit but Redis's own of 1 GiB.
type Node struct {
	Bytes   int // stream-node-max-bytes
	Entries int // stream-node-max-entries
}

// Stream is a stream. It has one owner and is not safe for concurrent use.
type Stream struct {
	// XSETID changes the following fields.
	Last       ID     // the last id ever added
	MaxDeleted ID     // the largest id that was deleted
	Added      uint64 // entries ever added

	mem    chunk.Memory
	groups []dirGroup
	segs   []segment // segs[0] has the number segBase
	bigs   [][]byte
	noBigs []uint32 // free indexes in bigs

	length   int
	pieces   int
	nodes    int // pieces that begin a node
	segBase  uint32
	segUsed  uint32 // bytes of the last segment that are in use
	segBytes int
	bigBytes int

	tail         ID        // the last id stored in the last piece, deleted or not
	open         bool      // the last piece can take entries
	node, former nodeCount // the counts of the last node, and of the one before it
	head         cursor    // all entries before it in the first piece are deleted

	cons     []*Group // consumer groups, by name
	conBytes int      // the bytes that they hold

	loan   *chunk.Loan // nil: no segment is lent to a frozen copy
	lent   int         // the number of lent segments
	frozen *chunk.Loan // in a frozen copy: the loan that FreeAll settles
}

// New returns an empty stream on m. It allocates no chunk.
func New(m chunk.Memory) *Stream { return &Stream{mem: m} }

// Len returns the number of entries. O(1).
func (s *Stream) Len() int { return s.length }

// Nodes returns the number of nodes that Redis would have. O(1).
func (s *Stream) Nodes() int { return s.nodes }

// Size returns the bytes that the stream holds: chunks, large entries, directory and groups. O(1).
func (s *Stream) Size() int {
	return int(unsafe.Sizeof(*s)) + s.segBytes + s.bigBytes + 24*cap(s.bigs) + 4*cap(s.noBigs) + s.conBytes +
		cap(s.node.names) + cap(s.former.names) +
		cap(s.segs)*int(unsafe.Sizeof(segment{})) + cap(s.groups)*int(unsafe.Sizeof(dirGroup{})) +
		(s.pieces+s.pieces/8)*int(unsafe.Sizeof(piece{}))
}

// First returns the first entry's id, 0-0 if there is none. O(1), but for the
// deleted entries that it passes once.
func (s *Stream) First() ID {
	it := s.Iter(ID{})
	if !it.Next() {
		return ID{}
	}
	return it.ID()
}

// LastEntry returns the last entry's id, 0-0 if there is none. O(entries of a
// piece).
func (s *Stream) LastEntry() ID {
	if s.length == 0 {
		return ID{}
	}
	if it := s.Iter(s.tail); it.Next() {
		return it.ID()
	}
	var b Back
	s.Back(&b, MaxID)
	if !b.Next() {
		return ID{}
	}
	return b.ID()
}

// Has reports whether there is an entry with this id. O(log n + entries of a piece).
func (s *Stream) Has(id ID) bool {
	it := s.Iter(id)
	return it.Next() && it.ID() == id
}

// FreeAll frees up to budget chunks and large entries and returns their number. A result below
// budget means that none is left. After the first call, the stream must only be used to call
// FreeAll again. O(budget).
func (s *Stream) FreeAll(budget int) (freed int) {
	if s.frozen != nil {
		return s.frozen.Settle(s.mem, budget)
	}
	for len(s.segs) > 0 && freed < budget {
		s.freeSegment(len(s.segs) - 1)
		s.segs = s.segs[:len(s.segs)-1]
		freed++
	}
	for len(s.bigs) > 0 && freed < budget {
		k := len(s.bigs) - 1
		s.countBig(-cap(s.bigs[k]))
		s.bigs[k] = nil
		s.bigs = s.bigs[:k]
		freed++
	}
	for len(s.cons) > 0 && freed < budget {
		g := s.cons[len(s.cons)-1]
		n := g.freeAll(budget - freed)
		if freed += n; freed < budget {
			s.cons = s.cons[:len(s.cons)-1]
			freed++
		}
	}
	if freed < budget {
		*s = Stream{mem: s.mem}
	}
	return freed
}
