package btree

import "github.com/ebbdb/ebb/internal/chunk"

// path is the way from the root to a leaf: node and entry at each level, the
// root at levels-1 and the leaf at 0.
type path [maxDepth]step

type step struct {
	node uint32
	i    int
}

// Insert adds the record of ref at p, where no entry may be yet. It costs
// O(log n) and returns chunk.ErrNoMemory, having changed nothing, when a node
// is needed and there is none.
func (t *Tree) Insert(p Probe, ref uint32) error {
	if t.n == 0 {
		return t.insertFirst(p, ref)
	}
	var way path
	last := t.ascends && t.descendToEnd(&way, &p)
	if !last {
		last = t.descend(&way, p)
		way[0].i = t.leafPos(way[0].node, p)
	}
	t.ascends = last && way[0].i == int(t.head(way[0].node).n)
	if !t.nodes.Reserve(t.splits(&way)) {
		return chunk.ErrNoMemory
	}
	t.own(&way)
	leaf := way[0].node
	right := t.insertLeaf(leaf, way[0].i, p.Key, ref, last)
	for l := 1; l < t.levels; l++ {
		in, i := t.inner(way[l].node), way[l].i
		if right == none {
			in.count[i]++
			if way[0].i == 0 {
				in.key[i], in.ref[i], _ = t.summary(in.child[i])
			}
			continue
		}
		t.refresh(way[l].node, i)
		right = t.insertChild(way[l].node, i+1, right, last)
	}
	if right != none {
		t.grow(right)
	}
	t.n++
	return nil
}

// Reserve makes sure that the next Insert succeeds, even with one Delete
// before it.
func (t *Tree) Reserve() bool { return t.nodes.Reserve(t.levels + 1) }

// Replace changes the reference of the entry at p, when its record has moved.
// The keys and the record's place in the order stay what they are. O(log n).
func (t *Tree) Replace(p Probe, ref uint32) {
	var way path
	t.descend(&way, p)
	t.own(&way)
	leaf := t.refs(way[0].node)
	i := t.leafPos(way[0].node, p)
	old := leaf[i]
	leaf[i] = ref
	for l := 1; l < t.levels; l++ {
		if in := t.inner(way[l].node); in.ref[way[l].i] == old {
			in.ref[way[l].i] = ref
		}
	}
}

// descend fills way with the path to the leaf for p, but for the place in the
// leaf, and reports whether that is the tree's last leaf.
func (t *Tree) descend(way *path, p Probe) (last bool) {
	last = true
	at := t.root
	for l := t.levels - 1; l > 0; l-- {
		in := t.inner(at)
		i := t.childFor(in, p)
		way[l] = step{at, i}
		last = last && i == int(in.n)-1
		at = in.child[i]
	}
	way[0].node = at
	return last
}

// descendToEnd fills way with the path to the place behind the last entry, and reports whether p belongs there. It reads one record
// at most, where a search among equal keys reads some at each level.
func (t *Tree) descendToEnd(way *path, p *Probe) bool {
	at := t.root
	for l := t.levels - 1; l > 0; l-- {
		in := t.inner(at)
		i := int(in.n) - 1
		way[l] = step{at, i}
		at = in.child[i]
	}
	n := int(t.head(at).n)
	way[0] = step{at, n}
	return t.compare(t.keyAt(at, n-1), t.refs(at)[n-1], p) < 0
}

// splits returns the number of nodes an insert along way has to add.
func (t *Tree) splits(way *path) int {
	for l := range t.levels {
		if h := t.head(way[l].node); int(h.n) < t.capacity(h.level) {
			return l
		}
	}
	return t.levels + 1
}

func (t *Tree) insertFirst(p Probe, ref uint32) error {
	at, ok := t.nodes.Push()
	if !ok {
		return chunk.ErrNoMemory
	}
	t.putLeaf(at, 0, p.Key, ref)
	t.root, t.levels, t.n = at, 1, 1
	return nil
}

// insertLeaf puts an entry at i and returns the new right sibling if the leaf
// had to split. A leaf that fills at the tree's end stays full: entries that
// arrive in order leave no gaps.
func (t *Tree) insertLeaf(at uint32, i int, key uint64, ref uint32, last bool) (right uint32) {
	n := int(t.head(at).n)
	if n < t.capacity(0) {
		t.putLeaf(at, i, key, ref)
		return none
	}
	right, _ = t.nodes.Push()
	keep := n / 2
	if last && i == n {
		keep = n
	}
	t.moveEntries(at, right, keep)
	if i <= keep && keep < n {
		t.putLeaf(at, i, key, ref)
	} else {
		t.putLeaf(right, i-keep, key, ref)
	}
	return right
}

// insertChild puts a child at entry i of an inner node and returns the node's
// new right sibling if it had to split.
func (t *Tree) insertChild(at uint32, i int, child uint32, last bool) (right uint32) {
	n := int(t.head(at).n)
	if n < innerCap {
		t.putChild(at, i, child)
		return none
	}
	level := t.head(at).level
	right, _ = t.nodes.Push()
	t.head(right).level = level
	keep := n / 2
	if last && i == n {
		keep = n
	}
	t.moveEntries(at, right, keep)
	if i <= keep && keep < n {
		t.putChild(at, i, child)
	} else {
		t.putChild(right, i-keep, child)
	}
	return right
}

// grow puts a new root above the old one and its new sibling.
func (t *Tree) grow(right uint32) {
	root, _ := t.nodes.Push()
	t.head(root).level = uint8(t.levels)
	t.putChild(root, 0, t.root)
	t.putChild(root, 1, right)
	t.root = root
	t.levels++
}

// putLeaf inserts an entry at i of a leaf with room.
func (t *Tree) putLeaf(at uint32, i int, key uint64, ref uint32) {
	if t.keyed {
		l := (*keyedLeaf)(t.nodes.At(at))
		copy(l.key[i+1:], l.key[i:l.n])
		copy(l.ref[i+1:], l.ref[i:l.n])
		l.key[i], l.ref[i] = key, ref
		l.n++
		return
	}
	l := (*bareLeaf)(t.nodes.At(at))
	copy(l.ref[i+1:], l.ref[i:l.n])
	l.ref[i] = ref
	l.n++
}

// putChild inserts a child at i of an inner node with room.
func (t *Tree) putChild(at uint32, i int, child uint32) {
	in := t.inner(at)
	copy(in.key[i+1:], in.key[i:in.n])
	copy(in.ref[i+1:], in.ref[i:in.n])
	copy(in.child[i+1:], in.child[i:in.n])
	copy(in.count[i+1:], in.count[i:in.n])
	in.child[i] = child
	in.n++
	t.refresh(at, i)
}

// refresh computes entry i of an inner node from its child.
func (t *Tree) refresh(at uint32, i int) {
	in := t.inner(at)
	in.key[i], in.ref[i], in.count[i] = t.summary(in.child[i])
}

// moveEntries moves the entries of a node from keep on to the end of the node
// right of it, which holds none after them.
func (t *Tree) moveEntries(from, to uint32, keep int) {
	src, dst := t.head(from), t.head(to)
	a, b, n := int(dst.n), keep, int(src.n)
	switch {
	case src.level > 0:
		s, d := t.inner(from), t.inner(to)
		copy(d.key[a:], s.key[b:n])
		copy(d.ref[a:], s.ref[b:n])
		copy(d.child[a:], s.child[b:n])
		copy(d.count[a:], s.count[b:n])
	case t.keyed:
		s, d := (*keyedLeaf)(t.nodes.At(from)), (*keyedLeaf)(t.nodes.At(to))
		copy(d.key[a:], s.key[b:n])
		copy(d.ref[a:], s.ref[b:n])
	default:
		s, d := (*bareLeaf)(t.nodes.At(from)), (*bareLeaf)(t.nodes.At(to))
		copy(d.ref[a:], s.ref[b:n])
	}
	dst.n += uint16(n - b)
	src.n = uint16(b)
}

// cut removes k entries from i on of a node.
func (t *Tree) cut(at uint32, i, k int) {
	h := t.head(at)
	n := int(h.n)
	switch {
	case h.level > 0:
		in := t.inner(at)
		copy(in.key[i:], in.key[i+k:n])
		copy(in.ref[i:], in.ref[i+k:n])
		copy(in.child[i:], in.child[i+k:n])
		copy(in.count[i:], in.count[i+k:n])
	case t.keyed:
		l := (*keyedLeaf)(t.nodes.At(at))
		copy(l.key[i:], l.key[i+k:n])
		copy(l.ref[i:], l.ref[i+k:n])
	default:
		l := (*bareLeaf)(t.nodes.At(at))
		copy(l.ref[i:], l.ref[i+k:n])
	}
	h.n -= uint16(k)
}
