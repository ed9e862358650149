package lua

import "unsafe"

// The order of pairs: the array part from its beginning, then the nodes of the
// hash part. A traversal knows where it is by the key that it was given last, or,
// in Go, by a position, which counts the items and nodes passed.

// Next returns the entry after key k in the order of pairs, the first for nil;
// k nil again at the end. ok is false if k is not in the table.
func (t *Table) Next(k Value) (key, value Value, ok bool) {
	i, ok := t.position(k)
	if !ok {
		return Nil, Nil, false
	}
	key, value, _ = t.nextFrom(i)
	return key, value, true
}

// nextFrom returns the first entry at or after position i of the order of pairs,
// which begins with 0, and the position after it.
func (t *Table) nextFrom(i int) (key, value Value, after int) {
	from := i
	for ; i < len(t.array); i++ {
		if v := t.array[i]; !v.IsNil() {
			t.skipped(i - from)
			return Int(i + 1), v, i + 1
		}
	}
	for nodes := t.hash(); i-len(t.array) < len(nodes); i++ {
		if n := &nodes[i-len(t.array)]; !n.value.IsNil() {
			t.skipped(i - from)
			return n.key, n.value, i + 1
		}
	}
	t.skipped(i - from)
	return Nil, Nil, i
}

// scanCost is how many places of a table are looked at in the time of a step.
const scanCost = 4

// skipped accounts for n places without an entry.
func (t *Table) skipped(n int) {
	if n > 16*scanCost {
		t.heap.state.work(n / scanCost)
	}
}

// position returns the position after the key k in the order of pairs, 0 for nil; ok is
// false if k is not in the table.
func (t *Table) position(k Value) (i int, ok bool) {
	if k.IsNil() {
		return 0, true
	}
	if i := arrayIndex(k); uint(i-1) < uint(len(t.array)) {
		return i, true
	}
	k = t.keyed(k)
	n := t.find(k)
	if n == nil {
		if n = t.findDead(k); n == nil {
			return 0, false
		}
	}
	at := (uintptr(unsafe.Pointer(n)) - uintptr(unsafe.Pointer(t.nodes))) / unsafe.Sizeof(node{})
	return len(t.array) + int(at) + 1, true
}

// findDead returns the node of which k was the key before bury.
func (t *Table) findDead(k Value) *node {
	if k.p == nil {
		return nil
	}
	for n := t.mainPosition(k); n != nil; n = n.next {
		if n.key == deadKey(k) {
			return n
		}
	}
	return nil
}

// deadKey returns what remains of the key k, a string or an object.
func deadKey(k Value) Value {
	return Value{w: tagDead<<tagShift | uint64(uintptr(k.p))&(1<<tagShift-1)}
}

// Entry returns the first entry at or after position i of the order of pairs, in
// which positions count from 0, and the position behind the entry; -1 at the end.
// It is Next without a search, for a table that is not written meanwhile.
func (t *Table) Entry(i int) (key, value Value, next int) {
	key, value, next = t.nextFrom(i)
	if key.IsNil() {
		next = -1
	}
	return key, value, next
}

// Items returns the array part, the values of the keys from 1 on, nil where there is none.
// It may only be read, until the table is written.
func (t *Table) Items() []Value { return t.array }

// references calls visit for every value that refers to something, in keys and
// values; the metatable is the caller's. Keys without a value are buried.
func (t *Table) references(visit func(Value)) {
	for _, v := range t.array {
		if v.p != nil {
			visit(v)
		}
	}
	nodes := t.hash()
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.value.IsNil():
			t.bury(n)
			continue
		case n.key.p != nil:
			visit(n.key)
		}
		if n.value.p != nil {
			visit(n.value)
		}
	}
}

// bury lets go of what the key of a node without value refers to. The node is
// not free: it stays in its chain until the next rehash.
func (t *Table) bury(n *node) {
	if n.key.p != nil {
		n.key = deadKey(n.key)
	}
}
