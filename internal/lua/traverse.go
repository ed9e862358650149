package lua

import "unsafe"

// This file implements the order of pairs: the array part from its beginning, then the
// nodes of the hash part. A traversal finds its place by the last key or, in Go, by a
// position, which counts the items and nodes before it.

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

// scanCost is the number of positions of a table that count as one step.
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

// findDead returns the node whose key was k before clearKey.
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

// Entry returns the first entry at or after position i of the order of pairs, which begins
// with 0, and the position after the entry; next is -1 at the end. Entry does not search,
// as Next does. The caller must not write to the table between calls.
func (t *Table) Entry(i int) (key, value Value, next int) {
	key, value, next = t.nextFrom(i)
	if key.IsNil() {
		next = -1
	}
	return key, value, next
}

// Items returns the array part: the values of the keys from 1 on, nil for a missing key.
// The caller may only read it, and only until the next write to the table.
func (t *Table) Items() []Value { return t.array }

// references calls visit for each key and each value that is a reference; the caller
// visits the metatable. It clears keys without a value.
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
			t.clearKey(n)
			continue
		case n.key.p != nil:
			visit(n.key)
		}
		if n.value.p != nil {
			visit(n.value)
		}
	}
}

// clearKey releases the object to which the key of a node without a value refers. The node
// is not free: it stays in its chain until the next rehash.
func (t *Table) clearKey(n *node) {
	if n.key.p != nil {
		n.key = deadKey(n.key)
	}
}
