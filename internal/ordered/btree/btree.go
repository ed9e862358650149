// Package btree is a counted B+tree of record references: it answers "what is
// the r-th" and "how many are before" in O(log n).
//
//	inner   (count, smallest key, smallest ref, child) x 25
//	                  /            |             \
//	keyed   (key, ref) x 42      bare    ref x 126, keys read from the records
//
// A key is a uint64: a score or a deadline, encoded so that it sorts as a
// number. Entries with equal keys are ordered by the Order, which may look
// into the records. A keyed tree costs 12 bytes an entry, a bare one 4, plus
// the empty places of the nodes: a third after random inserts, next to nothing
// after ascending ones.
//
// Nodes are 512-byte cells of a chunk.Array and named by 4-byte numbers; there
// is not a pointer in them. The array stays dense: the last node moves into
// the place of one that is freed. 512 bytes because a small tree should not
// cost more than its entries, and searching one touches few cache lines.
//
// Invariants: all leaves have the same depth; an inner entry holds the exact
// count and smallest entry of its child; every node holds at least one entry,
// and at least a third of what fits unless it is the last of its level.
//
// Nothing here locks. Start reading at Tree.Insert.
package btree

import (
	"math"
	"sort"
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
)

const (
	nodeShift = 9 // 512-byte nodes
	innerCap  = 25
	keyedCap  = 42
	bareCap   = 126
	none      = ^uint32(0)

	// maxDepth is enough for 2^32 entries in nodes a third full.
	maxDepth = 14
)

// Order gives a tree the keys and the order of its owner's records.
type Order interface {
	// Key returns the key of a record. Bare trees only: keyed ones remember it.
	Key(ref uint32) uint64
	// Tie compares a record with the probe it shares the key with: negative
	// when the record comes first, 0 when the probe means this record.
	Tie(ref uint32, p Probe) int
	// Probe returns the probe that means the record.
	Probe(ref uint32) Probe
}

// Probe is a place in the order: before all entries of a key (Side < 0), after
// all of them (Side > 0), or at one entry, which Order.Tie finds by whichever of
// Bytes and Ref it orders by.
type Probe struct {
	Key   uint64
	Bytes []byte
	Ref   uint32
	Side  int8
}

// Tree is a counted B+tree. See New.
type Tree struct {
	order  Order
	nodes  chunk.Array
	root   uint32
	levels int // 0: empty; 1: the root is a leaf
	n      int
	keyed  bool

	ascends bool // the last Insert put its entry at the end: the next one looks there first
}

type inner struct {
	head
	key   [innerCap]uint64
	ref   [innerCap]uint32
	child [innerCap]uint32
	count [innerCap]uint32
}

type keyedLeaf struct {
	head
	key [keyedCap]uint64
	ref [keyedCap]uint32
}

type bareLeaf struct {
	head
	ref [bareCap]uint32
}

type head struct {
	n     uint16
	level uint8 // 0: leaf
	_     [5]uint8
}

// A node that outgrows its cell must not compile.
var (
	_ [1<<nodeShift - unsafe.Sizeof(inner{})]struct{}
	_ [1<<nodeShift - unsafe.Sizeof(keyedLeaf{})]struct{}
	_ [1<<nodeShift - unsafe.Sizeof(bareLeaf{})]struct{}
)

// New returns an empty tree whose nodes come from m. A keyed tree remembers
// keys; a bare one asks order for them. It allocates no chunk.
func New(m chunk.Memory, order Order, keyed bool) *Tree {
	t := &Tree{order: order, root: none, keyed: keyed}
	t.nodes.Init(m, nodeShift)
	return t
}

// Len returns the number of entries.
func (t *Tree) Len() int { return t.n }

// Size returns the bytes held, bookkeeping included.
func (t *Tree) Size() int { return t.nodes.Size() + int(unsafe.Sizeof(*t)) }

// Used returns the bytes of the nodes.
func (t *Tree) Used() int { return t.nodes.Used() }

// Rank returns the number of entries before p. O(log n).
func (t *Tree) Rank(p Probe) int {
	if t.n == 0 {
		return 0
	}
	rank, at := 0, t.root
	for range t.levels - 1 {
		in := t.inner(at)
		i := t.childFor(in, p)
		for _, c := range in.count[:i] {
			rank += int(c)
		}
		at = in.child[i]
	}
	return rank + t.leafPos(at, p)
}

// At returns the entry of a rank from 0 to Len-1. O(log n).
func (t *Tree) At(rank int) (key uint64, ref uint32) {
	at := t.root
	for range t.levels - 1 {
		in := t.inner(at)
		i := 0
		for rank >= int(in.count[i]) {
			rank -= int(in.count[i])
			i++
		}
		at = in.child[i]
	}
	return t.keyAt(at, rank), t.refs(at)[rank]
}

// First returns the first entry, if there is one. O(1) but for bare leaves,
// which ask for the key.
func (t *Tree) First() (key uint64, ref uint32, ok bool) {
	if t.n == 0 {
		return 0, 0, false
	}
	if t.levels > 1 {
		in := t.inner(t.root)
		return in.key[0], in.ref[0], true
	}
	return t.keyAt(t.root, 0), t.refs(t.root)[0], true
}

// FreeAll gives back up to budget chunks and returns how many; fewer than budget
// means that none is left, and that the tree is empty and usable again. The
// entries are gone once it has been called. O(budget).
func (t *Tree) FreeAll(budget int) (freed int) {
	t.root, t.levels, t.n = none, 0, 0
	return t.nodes.FreeAll(budget)
}

// compare orders an entry against a probe.
func (t *Tree) compare(key uint64, ref uint32, p *Probe) int {
	switch {
	case key < p.Key:
		return -1
	case key > p.Key:
		return 1
	case p.Side != 0:
		return -int(p.Side)
	}
	return t.order.Tie(ref, *p)
}

// childFor returns the last child whose smallest entry is not after p, or the
// first child.
func (t *Tree) childFor(in *inner, p Probe) int {
	keys, refs := in.key[:in.n], in.ref[:in.n]
	i := t.before(keys, refs, &p)
	if i < len(keys) && keys[i] == p.Key && p.Side == 0 && t.order.Tie(refs[i], p) == 0 {
		return i
	}
	return max(i-1, 0)
}

// leafPos returns the number of entries of a leaf before p.
func (t *Tree) leafPos(at uint32, p Probe) int {
	if t.keyed {
		l := (*keyedLeaf)(t.nodes.At(at))
		return t.before(l.key[:l.n], l.ref[:l.n], &p)
	}
	refs := t.refs(at)
	if last := len(refs) - 1; p.Side == 0 && t.order.Key(refs[last]) == p.Key && t.order.Key(refs[0]) == p.Key {
		return sort.Search(last+1, func(i int) bool { return t.order.Tie(refs[i], p) >= 0 })
	}
	return sort.Search(len(refs), func(i int) bool {
		return t.compare(t.order.Key(refs[i]), refs[i], &p) >= 0
	})
}

// before returns the number of entries before p. It looks at the keys alone
// first, and into records only among those that share p's.
func (t *Tree) before(keys []uint64, refs []uint32, p *Probe) int {
	lo := firstFrom(keys, p.Key)
	if lo == len(keys) || keys[lo] != p.Key || p.Side < 0 {
		return lo
	}
	hi := len(keys)
	if p.Key != math.MaxUint64 {
		hi = lo + firstFrom(keys[lo:], p.Key+1)
	}
	if p.Side > 0 {
		return hi
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return t.order.Tie(refs[lo+i], *p) >= 0 })
}

// firstFrom returns the number of keys below k.
func firstFrom(keys []uint64, k uint64) int {
	lo, hi := 0, len(keys)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if keys[mid] < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (t *Tree) head(at uint32) *head   { return (*head)(t.nodes.At(at)) }
func (t *Tree) inner(at uint32) *inner { return (*inner)(t.nodes.At(at)) }

// refs returns the references of a leaf.
func (t *Tree) refs(at uint32) []uint32 {
	if t.keyed {
		l := (*keyedLeaf)(t.nodes.At(at))
		return l.ref[:l.n]
	}
	l := (*bareLeaf)(t.nodes.At(at))
	return l.ref[:l.n]
}

// keyAt returns the key of entry i of a leaf.
func (t *Tree) keyAt(at uint32, i int) uint64 {
	if t.keyed {
		return (*keyedLeaf)(t.nodes.At(at)).key[i]
	}
	return t.order.Key((*bareLeaf)(t.nodes.At(at)).ref[i])
}

// capacity returns the number of entries that fit a node.
func (t *Tree) capacity(level uint8) int {
	switch {
	case level > 0:
		return innerCap
	case t.keyed:
		return keyedCap
	}
	return bareCap
}

// summary returns a node's smallest entry and how many entries are below it.
func (t *Tree) summary(at uint32) (key uint64, ref uint32, count uint32) {
	if h := t.head(at); h.level == 0 {
		return t.keyAt(at, 0), t.refs(at)[0], uint32(h.n)
	}
	in := t.inner(at)
	for _, c := range in.count[:in.n] {
		count += c
	}
	return in.key[0], in.ref[0], count
}
