package lua

// Tables that are made at once: from a list of items, or from keys and values.

// Reset makes of the table what NewArray(vs) would make, in the memory that it
// has if that suffices and is not far too much. It takes away the metatable, and
// readonly.
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

// NewArray returns a table whose items are vs, which it copies: with the array
// part that setting one after the other would give it.
func (s *State) NewArray(vs []Value) (*Table, error) {
	t := newTable(&s.heap, 0, 0)
	return t, t.Reset(vs)
}

// NewRecord returns a table with the keys and values kvs, in turns: the one that
// setting one after the other would make. It may change kvs.
func (s *State) NewRecord(kvs []Value) (*Table, error) {
	if len(kvs) > 2*maxSketch {
		return s.setRecord(kvs)
	}
	return s.sketchRecord(kvs)
}

// setRecord is NewRecord as its comment says it.
func (s *State) setRecord(kvs []Value) (*Table, error) {
	t := newTable(&s.heap, 0, 0)
	for ; len(kvs) >= 2; kvs = kvs[2:] {
		if err := t.Set(kvs[0], kvs[1]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// maxSketch is how many keys a sketch takes, so that a byte counts its nodes.
const maxSketch = 64

// sketch finds where the keys of a hash part come to stand, before there is one: a
// table that grows by a key at a time makes hash parts of 1, 2, 4 ... nodes, and
// the last depends on how each of them was filled. It does what Table.insert and
// Table.resize do, with numbers of keys for nodes.
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

// sketchRecord does the work of NewRecord of at most maxSketch pairs: with one hash part, the
// last. Keys that are no strings, and nil, are not its business.
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

// find returns the number of a key that is there, 0 if it is not.
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

// grow doubles the nodes, all of which are taken, and enters their keys again,
// from the last node on.
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
