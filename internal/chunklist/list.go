// Package chunklist keeps a large list outside the Go heap.
//
//	directory   group 0              group 1             group 2
//	            [b b b ... b]        [b b ... b]         [b b b]      256 blocks at most
//	             |                                            |
//	blocks      [..cell cell cell]  [cell cell cell]  ...    [cell cell....]
//
// A block is a packed.Run of one-cell items in a chunk of 1 to 64 KiB, with free bytes on either
// side of the run: the first block grows to the left, the last one to the right, and a push or pop
// there moves no byte. An element that does not fit a block lives alone in a "big" block, a Go
// []byte.
//
// The directory has 32 bytes per block, without pointers: the position of the run, its number of
// elements, how many of them have a deadline, and a lower bound of their deadlines. Groups and the
// list have the sums. So finding element i costs O(groups + 256 + elements of a block), which is
// O(sqrt n) and in practice a microsecond, and the list never looks at blocks that are not due.
//
// Chunks are powers of two, so blocks are filled to fit them: a block at an end begins small (a
// sixteenth of the list, 1 KiB at least) and doubles until it is as large as the configuration
// says; when an element does not fit then, the list closes the block and moves it to the smallest
// power of two that holds it. If large elements would leave more than a twentieth of the block
// empty, the chunk doubles further, up to 64 KiB. So pushed elements waste under 5 % per closed
// block (more only where a positive list-max-listpack-size closes blocks by count, or where
// elements are over 5 % of 64 KiB), and an 11-byte element costs 12.1 bytes. Inserts in the middle
// split blocks in halves, removals merge neighbours that together fill less than three quarters of
// one.
//
// An element is dead when it has a deadline and now > deadline. Reads return the living elements;
// with now = 0 they return all stored elements. Dead elements stay until Reap.
//
// Invariants (Check): no block or group is empty; counts and the numbers of deadlines are exact at
// each level; each earliest is at most the true one. The caller holds the shard's lock. A frozen
// copy shares the chunks (Freeze); code that writes to a block calls own first. Start reading at
// List.push, then List.apply.
package chunklist

import (
	"math"
	"math/bits"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/packed"
)

// Memory allocates chunks. Sizes are powers of two from MinChunk to Config.MaxChunk. A reference is
// never 0 and a chunk never moves.
type Memory interface {
	AllocChunk(size int) uint32 // 0: the limit is reached
	FreeChunk(ref uint32, size int)
	Bytes(ref uint32, size int) []byte
}

const (
	// MinChunk is the smallest chunk of a Memory, in bytes.
	MinChunk = 1 << 10
	// MaxChunk is the largest chunk of a Memory, in bytes.
	MaxChunk = 1 << 16
)

// Config sets the sizes of new blocks. The zero value is list-max-listpack-size -2.
type Config struct {
	// Size is list-max-listpack-size: -1 to -5 are blocks of 4, 8, 16, 32 or
	// 64 KiB; n > 0 is n elements, in at most 8 KiB. Default -2.
	Size int
	// MaxChunk is the largest chunk to request, in bytes. Default 64 KiB.
	MaxChunk int
}

// List is a large list. It has one owner and is not safe for concurrent use.
type List struct {
	mem      Memory
	groups   []group
	bigs     [][]byte
	freeBigs []uint32
	totals
	blocks     int
	chunkBytes int
	bigBytes   int
	limit      int // the greatest number of bytes of a block
	items      int // the greatest number of elements of a block
	maxChunk   int

	loan   *chunk.Loan // nil: no chunk is lent to a frozen copy
	lent   int         // the number of lent blocks
	frozen *chunk.Loan // in a frozen copy: the loan that Free settles
}

// none is the earliest deadline of a block without deadlines.
const none = math.MaxInt64

// New returns an empty list. It allocates chunks as it grows.
func New(mem Memory, cfg Config) *List {
	l := &List{mem: mem, limit: 8 << 10, items: math.MaxUint32, maxChunk: cfg.MaxChunk, totals: totals{earliest: none}}
	if l.maxChunk == 0 {
		l.maxChunk = MaxChunk
	}
	switch {
	case cfg.Size > 0:
		l.items = cfg.Size
	case cfg.Size < 0:
		l.limit = 4 << 10 << (min(-cfg.Size, 5) - 1)
	}
	l.limit = min(l.limit, l.maxChunk)
	return l
}

// Stored returns the number of elements, including dead ones. O(1).
func (l *List) Stored() int { return l.count }

// Timed returns the number of stored elements that have a deadline. O(1).
func (l *List) Timed() int { return l.timed }

// Earliest returns a lower bound of the deadlines of the stored elements; 0 if no element has a
// deadline. It is exact unless an element with the earliest deadline of its block was removed or
// changed; a Reap at that time then fires nothing and corrects the bound. O(1).
func (l *List) Earliest() int64 {
	if l.timed == 0 {
		return 0
	}
	return l.earliest
}

// OneBlock returns the bytes that the elements take up in their block, if they
// are all in one and none is big; ok is false otherwise. O(1).
func (l *List) OneBlock() (bytes int, ok bool) {
	if l.blocks == 0 {
		return 0, true
	}
	ent := l.at(0, 0)
	return int(ent.end - ent.off), l.blocks == 1 && !ent.big()
}

// Len returns the number of living elements. O(1) if none is due, else O(due blocks).
func (l *List) Len(now int64) int {
	n := l.count
	if l.earliest < now {
		for g := range l.groups {
			n -= l.deadInGroup(&l.groups[g], now)
		}
	}
	return n
}

// Bytes returns the memory of the list in bytes: chunks, big elements and directory. O(groups).
func (l *List) Bytes() int {
	n := l.chunkBytes + l.bigBytes + 24*cap(l.bigs) + 4*cap(l.freeBigs) + cap(l.groups)*groupSize + 192
	for g := range l.groups {
		n += cap(l.groups[g].ents) * entrySize
	}
	return n
}

// PushFront adds an element, with a deadline or 0, at the head. It returns false, and changes
// nothing, if there is no memory. O(1) amortised.
func (l *List) PushFront(elem []byte, deadline int64) bool { return l.push(true, elem, deadline) }

// PushBack adds an element at the tail, as PushFront does.
func (l *List) PushBack(elem []byte, deadline int64) bool { return l.push(false, elem, deadline) }

// PushRun adds the n elements of a run, which have no deadlines, at the tail, as a block of their own. It returns false, and
// changes nothing, if the run fills less than three quarters of its chunk, if a block may not be as large, or if there is no
// memory. O(bytes).
func (l *List) PushRun(r packed.Run, n int) bool {
	size := fitting(len(r))
	if size > l.limit || n > l.items || len(r)*4 < size*3 {
		return false
	}
	ref := l.mem.AllocChunk(size)
	if ref == 0 {
		return false
	}
	if l.blocks > 0 {
		l.shrink(l.at(l.end(false)))
	}
	copy(l.mem.Bytes(ref, size), r)
	l.chunkBytes += size
	ent := single(ref, 0, len(r), size, 0)
	ent.count = uint32(n)
	g, e := l.edge(false)
	l.insertEntry(g, e, ent)
	return true
}

func (l *List) push(front bool, elem []byte, deadline int64) bool {
	var ch packed.Change
	ch.Put(elem, deadline)
	size := 1 + ch.Grow()
	if size > l.limit {
		g, e := l.edge(front)
		return l.insertBig(g, e, elem, deadline)
	}
	if l.blocks > 0 {
		g, e := l.end(front)
		if ent := l.at(g, e); !ent.big() && int(ent.count) < l.items {
			ch.PlaceAt(l.run(ent), front)
			if l.apply(ent, &ch, l.endSlack(ent, front)) {
				l.add(g, e, 1, deadline)
				return true
			}
		}
		l.shrink(l.at(g, e))
	}
	g, e := l.edge(front)
	return l.insertBlock(g, e, l.firstSize(size-1), front, packed.Encode(elem), deadline)
}

// firstSize returns the size of a new block at an end. It is small while the list is small, so that
// the open block is a small part of the list.
func (l *List) firstSize(cell int) int {
	size := 1 << max(bits.Len(uint(l.chunkBytes/16))-1, 10)
	return max(min(size, l.limit), fitting(cell+1))
}

// endSlack returns how to make space at an end of the list that has none.
func (l *List) endSlack(ent *entry, front bool) slack {
	s := slack{spare: ent.size() / 16, share: 4}
	if l.blocks == 1 { // this block is both ends: leave some space to the other end
		s.spare, s.share = ent.size()/8, 3
	}
	if front {
		s.share = 4 - s.share
		s.front = true
	}
	return s
}

// InsertBefore inserts an element before the one that it passed last. It returns false, and changes
// nothing, if there is no memory. All iterators are invalid afterwards. O(block).
func (l *List) InsertBefore(it *Iter, elem []byte, deadline int64) bool {
	return l.insertBeside(it, 0, elem, deadline)
}

// InsertAfter inserts an element after the one that it passed last. Its result, its effect on iterators and its cost are those of
// InsertBefore.
func (l *List) InsertAfter(it *Iter, elem []byte, deadline int64) bool {
	return l.insertBeside(it, 1, elem, deadline)
}

func (l *List) insertBeside(it *Iter, after int, elem []byte, deadline int64) bool {
	if ent := l.at(it.g, it.e); !ent.big() && int(ent.count) < l.items {
		in := l.run(ent).Beside(it.in.At(), after == 1)
		c := packed.Encode(elem)
		ch := in.Insert(c, deadline)
		if 1+c.Size(deadline) <= l.limit && l.apply(ent, &ch, slack{share: 2}) {
			l.add(it.g, it.e, 1, deadline)
			return true
		}
	}
	return l.insert(it.g, it.e, it.index()+after, elem, deadline)
}

// Remove removes the element that it passed last. All iterators are invalid afterwards. O(block).
func (l *List) Remove(it *Iter) { l.remove(it, true) }

// Replace replaces the element that it passed last with elem, with a deadline or 0. The rules are
// those of InsertBefore.
func (l *List) Replace(it *Iter, elem []byte, deadline int64) bool {
	c, old := packed.Encode(elem), it.Deadline()
	if ent := l.at(it.g, it.e); !ent.big() && 1+c.Size(deadline) <= l.limit {
		ch := l.run(ent).Replace(it.in.At(), c, deadline)
		if l.apply(ent, &ch, slack{share: 2}) {
			l.restamp(it.g, it.e, old, deadline)
			return true
		}
	}
	return l.exchange(it, elem, deadline)
}

// SetDeadline sets the deadline, or 0 for none, of the element that it passed last. The rules are
// those of InsertBefore.
func (l *List) SetDeadline(it *Iter, deadline int64) bool {
	ent, old := l.at(it.g, it.e), it.Deadline()
	if ent.big() {
		ent.earliest = none
		l.restamp(it.g, it.e, old, deadline)
		return true
	}
	ch := l.run(ent).Stamp(it.in.At(), deadline)
	if l.apply(ent, &ch, slack{share: 2}) {
		l.restamp(it.g, it.e, old, deadline)
		return true
	}
	return l.exchange(it, it.Value().Append(nil), deadline)
}

// exchange is Replace for a block without space: it inserts, and then removes.
func (l *List) exchange(it *Iter, elem []byte, deadline int64) bool {
	i := l.before(it.g, it.e) + it.index()
	if !l.insertStored(i, elem, deadline) {
		return false
	}
	old, _ := l.Seek(i+1, 0)
	old.Next()
	l.remove(&old, true)
	return true
}
