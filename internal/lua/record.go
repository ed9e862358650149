package lua

// This file makes tables in one step: from a list of items, or from keys and values.

// Reset gives the table the content of NewArray(vs). It reuses the table's memory if that
// is large enough and not far too large. It removes the metatable and the mark readonly.
func (t *Table) Reset(vs []Value) error {
	n := 0
	if len(vs) > 0 {
		n = nodeCount(len(vs))
	}
	if n > cap(t.array) || cap(t.array) > max(4*n, maxKept) {
		if err := t.heap.charge(n * valueSize); err != nil {
			return err
		}
		t.array = make([]Value, n)
	}
	clear(t.array[:cap(t.array)])
	t.array = t.array[:n]
	copy(t.array, vs)
	t.survey()
	t.makeNodes(0)
	t.meta, t.readonly, t.absent = nil, false, 0
	return nil
}

// NewArray returns a table with the items vs, which it copies. The table has the same
// array part as if the caller had set one item after the other.
func (s *State) NewArray(vs []Value) (*Table, error) {
	t := newTable(&s.heap, 0, 0)
	return t, t.Reset(vs)
}

// NewRecord returns a table with the entries kvs, in which keys and values alternate. The
// table is the same as if the caller had set one entry after the other. NewRecord may
// change kvs.
func (s *State) NewRecord(kvs []Value) (*Table, error) {
	if len(kvs) > 2*maxSketch {
		return s.setRecord(kvs)
	}
	return s.sketchRecord(kvs)
}

// setRecord sets one entry after the other, as the comment of NewRecord says.
func (s *State) setRecord(kvs []Value) (*Table, error) {
	t := newTable(&s.heap, 0, 0)
	for ; len(kvs) >= 2; kvs = kvs[2:] {
		if err := t.Set(kvs[0], kvs[1]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// maxSketch is the most keys of a sketch, so that one byte can number its nodes.
const maxSketch = 64

// sketch computes the order of the nodes of a hash part before that exists. A table that
// grows by one key at a time makes hash parts of 1, 2, 4 ... nodes, and the order in the
// last one depends on all earlier ones. sketch repeats the steps of Table.insert and
// Table.resize with the numbers of keys in the place of nodes.
type sketch struct {
	nodes    [maxSketch]sketchNode
	size     int // nodes in use, 0 or a power of two
	lastFree int
	hashes   [maxSketch]uint16
}

type sketchNode struct {
	key  uint8 // number of the key, from 1; 0: the node is free
	next uint8 // number of the next node in the chain, from 1; 0: none
}

// sketchRecord does the work of NewRecord for at most maxSketch pairs, and allocates only
// the last hash part. It does not handle keys that are not strings, and nil values.
func (s *State) sketchRecord(kvs []Value) (*Table, error) {
	var k sketch
	for i := 0; i+1 < len(kvs); i += 2 {
		key := keyed(kvs[i])
		if !key.IsString() || kvs[i+1].IsNil() {
			return s.setRecord(kvs)
		}
		kvs[i] = key
		number := uint8(i/2 + 1)
		k.hashes[i/2] = uint16(key.hashOf(maxSketch - 1))
		if same := k.find(kvs, key, int(k.hashes[i/2])); same != 0 {
			kvs[2*same-1] = kvs[i+1]
			continue
		}
		if !k.insert(number) {
			k.grow()
			k.insert(number)
		}
	}
	if err := s.heap.charge(tableSize + k.size*nodeSize); err != nil {
		return nil, err
	}
	t := tableOf(&s.heap, k.size)
	if k.size == 0 {
		return t, nil
	}
	t.lastFree = uint32(k.lastFree)
	nodes := t.hash()
	for i, from := range k.nodes[:len(nodes)] {
		if from.key == 0 {
			continue
		}
		n := &nodes[i]
		n.key, n.value = kvs[2*from.key-2], kvs[2*from.key-1]
		if from.next != 0 {
			n.next = &nodes[from.next-1]
		}
	}
	return t, nil
}

// home returns the main position of a key.
func (k *sketch) home(number uint8) int { return int(k.hashes[number-1]) & (k.size - 1) }

// find returns the number of a key, 0 if the sketch does not have it.
func (k *sketch) find(kvs []Value, key Value, hash int) uint8 {
	if k.size == 0 {
		return 0
	}
	for at := uint8(hash&(k.size-1)) + 1; at != 0; at = k.nodes[at-1].next {
		number := k.nodes[at-1].key
		if number == 0 {
			return 0
		}
		if other := kvs[2*number-2]; other.w == key.w && (other.p == key.p || other.str() == key.str()) {
			return number
		}
	}
	return 0
}

// insert enters a key; it reports false if no node is free.
func (k *sketch) insert(number uint8) bool {
	if k.size == 0 {
		return false
	}
	home := k.home(number)
	n := &k.nodes[home]
	if n.key == 0 {
		n.key = number
		return true
	}
	free := k.freeNode()
	if free < 0 {
		return false
	}
	if other := k.home(n.key); other != home {
		for int(k.nodes[other].next) != home+1 {
			other = int(k.nodes[other].next) - 1
		}
		k.nodes[other].next = uint8(free + 1)
		k.nodes[free] = *n
		*n = sketchNode{key: number}
		return true
	}
	k.nodes[free] = sketchNode{key: number, next: n.next}
	n.next = uint8(free + 1)
	return true
}

func (k *sketch) freeNode() int {
	for k.lastFree > 0 {
		k.lastFree--
		if k.nodes[k.lastFree].key == 0 {
			return k.lastFree
		}
	}
	return -1
}

// grow doubles the number of nodes, when all are taken, and inserts their keys again,
// beginning at the last node.
func (k *sketch) grow() {
	if k.size == 0 {
		k.size, k.lastFree = 1, 1
		return
	}
	var old [maxSketch / 2]uint8
	for i := range k.size {
		old[i] = k.nodes[i].key
	}
	n := k.size
	clear(k.nodes[:n])
	k.size, k.lastFree = 2*n, 2*n
	for i := n - 1; i >= 0; i-- {
		k.insert(old[i])
	}
}
