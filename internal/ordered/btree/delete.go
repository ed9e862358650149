package btree

import "slices"

// Delete removes the entry of the record ref, which is at p, and reports whether there was one. It keeps
// the memory that an Insert right after it could need. It reads records only to order those with equal keys at the start of leaves.
// O(log n).
func (t *Tree) Delete(p Probe, ref uint32) bool {
	if t.n == 0 {
		return false
	}
	var way path
	t.descend(&way, p)
	leaf := way[0].node
	i := slices.Index(t.refs(leaf), ref)
	if i < 0 {
		return false
	}
	var gone freed
	t.own(&way)
	t.cut(leaf, i, 1)
	t.n--
	first := i == 0
	for l := 1; l < t.levels; l++ {
		at, k := way[l].node, way[l].i
		in := t.inner(at)
		in.count[k]--
		child := in.child[k]
		switch h := t.head(child); {
		case int(h.n) < t.capacity(h.level)/3:
			t.rebalance(at, k, &gone)
		case first:
			in.key[k], in.ref[k], _ = t.summary(child)
		}
		first = first && k == 0
	}
	t.collapse(&gone)
	t.release(&gone)
	t.nodes.Trim(t.levels + 1)
	return true
}

// freed collects the nodes a Delete empties: at most one a level, and the roots
// it takes off.
type freed struct {
	node [2 * maxDepth]uint32
	n    int
}

func (f *freed) add(at uint32) {
	f.node[f.n] = at
	f.n++
}

// rebalance refills child k of an inner node, which holds too little: it joins a sibling
// if both fit one node with some room left, and shares with it if not.
func (t *Tree) rebalance(at uint32, k int, gone *freed) {
	in := t.inner(at)
	if in.n == 1 { // the last node of its level may have no sibling here
		if t.head(in.child[0]).n == 0 {
			gone.add(in.child[0])
			in.n = 0
			return
		}
		t.refresh(at, 0)
		return
	}
	l := k
	if k > 0 {
		l = k - 1
	}
	left, right := in.child[l], in.child[l+1]
	t.nodes.Own(left)
	t.nodes.Own(right)
	a, b := t.head(left), t.head(right)
	room := t.capacity(a.level)
	if sum := int(a.n) + int(b.n); sum <= room-room/8 {
		t.moveEntries(right, left, 0)
		gone.add(right)
		t.cut(at, l+1, 1)
		t.refresh(at, l)
		return
	}
	t.share(left, right)
	t.refresh(at, l)
	t.refresh(at, l+1)
}

// share evens two siblings out.
func (t *Tree) share(left, right uint32) {
	a, b := t.head(left), t.head(right)
	half := (int(a.n) + int(b.n)) / 2
	if n := int(a.n); n > half {
		t.shiftRight(left, right, n-half)
		return
	}
	k := half - int(a.n)
	t.copyEntries(right, 0, left, int(a.n), k)
	a.n += uint16(k)
	t.cut(right, 0, k)
}

// shiftRight moves the last k entries of left to the front of right.
func (t *Tree) shiftRight(left, right uint32, k int) {
	a, b := t.head(left), t.head(right)
	t.copyEntries(right, 0, right, k, int(b.n))
	t.copyEntries(left, int(a.n)-k, right, 0, k)
	a.n -= uint16(k)
	b.n += uint16(k)
}

// copyEntries copies k entries from i of one node to j of another or the same.
func (t *Tree) copyEntries(from uint32, i int, to uint32, j, k int) {
	switch {
	case t.head(from).level > 0:
		s, d := t.inner(from), t.inner(to)
		copy(d.key[j:j+k], s.key[i:i+k])
		copy(d.ref[j:j+k], s.ref[i:i+k])
		copy(d.child[j:j+k], s.child[i:i+k])
		copy(d.count[j:j+k], s.count[i:i+k])
	case t.keyed:
		s, d := (*keyedLeaf)(t.nodes.At(from)), (*keyedLeaf)(t.nodes.At(to))
		copy(d.key[j:j+k], s.key[i:i+k])
		copy(d.ref[j:j+k], s.ref[i:i+k])
	default:
		s, d := (*bareLeaf)(t.nodes.At(from)), (*bareLeaf)(t.nodes.At(to))
		copy(d.ref[j:j+k], s.ref[i:i+k])
	}
}

// collapse takes roots off that have one child or none.
func (t *Tree) collapse(gone *freed) {
	for t.levels > 0 {
		h := t.head(t.root)
		if h.n > 1 || h.level == 0 && h.n > 0 {
			return
		}
		gone.add(t.root)
		t.levels--
		if h.n == 0 {
			t.root, t.levels = none, 0
			return
		}
		t.root = t.inner(t.root).child[0]
	}
}

// release gives the freed nodes back, the last one of the array first, so that
// the node that moves into a place is never one that goes itself.
func (t *Tree) release(gone *freed) {
	list := gone.node[:gone.n]
	for len(list) > 0 {
		k := 0
		for i, at := range list {
			if at > list[k] {
				k = i
			}
		}
		if last := uint32(t.nodes.Len() - 1); list[k] != last {
			t.relocate(last, list[k])
		}
		t.nodes.Pop()
		list[k] = list[len(list)-1]
		list = list[:len(list)-1]
	}
}

// relocate moves a node to another number and updates the one link to it.
func (t *Tree) relocate(from, to uint32) {
	*(*[1 << nodeShift]byte)(t.nodes.Edit(to)) = *(*[1 << nodeShift]byte)(t.nodes.At(from))
	if t.root == from {
		t.root = to
		return
	}
	_, ref, _ := t.summary(to)
	p := t.order.Probe(ref)
	for at := t.root; ; {
		in := t.inner(at)
		i := t.childFor(in, p)
		if in.child[i] == from {
			(*inner)(t.nodes.Edit(at)).child[i] = to
			return
		}
		at = in.child[i]
	}
}
