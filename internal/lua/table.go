package lua

import (
	"math"
	"math/bits"
	"unsafe"
)

// Table is a table of Lua 5.1: an array part for the keys 1 to len(array), and a
// hash part for all others.
//
// The hash part is a power of two of nodes. A key has a main position. If that is taken,
// the key goes into a free node, which the table finds from the end and links into the
// chain. If the key in the main position belongs to another chain, the table moves that
// key away (Brent's variation). So a key is either in its main position, or its main
// position belongs to the same chain. When no node is free, rehash counts the keys and
// computes new sizes for both parts.
//
// Scripts see the order of pairs and the borders that # finds. So sizes, main positions
// and the choice of free nodes are those of Lua 5.1.5, step by step. Like Lua 5.1.5, a
// table inserts a key when a program assigns nil to a key that the table does not have. An
// entry whose value is nil keeps its node until the next rehash, so that a traversal can
// remove the entries that it has reached.
type Table struct {
	array []Value
	// nodes is the first of mask+1 nodes, &noNode if there are none.
	nodes *node
	mask  uint32
	// lastFree is the lowest index from which on all nodes are taken.
	lastFree uint32
	// filled is the number of items in the array part if they are its first ones without a
	// gap; it is then the only border. -1: unknown.
	filled int32
	meta   *Table
	heap   *heap
	// absent has a bit for each metamethod that is known to be missing in the table, if the
	// table is a metatable. Every write that could add a key clears it.
	absent   uint8
	readonly bool
	// room is the capacity of the memory at nodes, in nodes; 0: mask+1.
	room uint8
	mark uint32 // the last census that counted the table
}

// node is an entry of the hash part. A free one has a nil key.
type node struct {
	key, value Value
	next       *node // in the chain
}

const (
	nodeSize  = int(unsafe.Sizeof(node{}))
	valueSize = int(unsafe.Sizeof(Value{}))
	tableSize = int(unsafe.Sizeof(Table{}))

	// maxSizeBits limits each part to 2^26 keys, as in Lua 5.1.
	maxSizeBits = 26
	// maxPresize limits the space that newTable allocates in advance.
	maxPresize = 1 << 16
	// maxKept is the largest array part that Reset keeps although the new content is
	// smaller. Clearing it takes 2 us.
	maxKept = 1 << 10

	// firstRoom is the number of items, and of nodes, for which the first rehash allocates
	// memory, though it makes only one. Tables that grow seldom stop at one or two.
	firstRoom = 4

	// tagDead is the tag of a removed key: the entry's value is nil, and clearKey has
	// dropped the reference to the key. The other 48 bits of the word hold the key's
	// address, by which a traversal at this key finds the node.
	tagDead = 6
)

// noNode is the hash part of tables that have none. It is never written.
var noNode node

// These are the errors of a write to a table, besides "not enough memory". The messages
// have no position; the code that runs a program's instruction puts the position before
// them.
var (
	ErrReadonly error = &Error{Value: String("Attempt to modify a readonly table")}
	errNilIndex error = &Error{Value: String("table index is nil")}
	errNaNIndex error = &Error{Value: String("table index is NaN")}
	errOverflow error = &Error{Value: String("table overflow")}
	// errInvalidKey is the error of a Next whose key is not in the table.
	errInvalidKey error = &Error{Value: String("invalid key to 'next'")}
)

// newTable returns a table with space for the given numbers of items in the array part and
// fields in the hash part, each at most maxPresize. It counts the memory, but does not
// check the limit.
func newTable(h *heap, items, fields int) *Table {
	count := 0
	if fields > 0 {
		count = nodeCount(min(fields, maxPresize))
	}
	t := tableOf(h, count)
	if items > 0 {
		t.array = make([]Value, min(items, maxPresize))
	}
	_ = h.charge(t.size())
	return t
}

// tableOf returns a table with the given number of nodes, a power of two or 0. It
// allocates a few nodes together with the table.
func tableOf(h *heap, nodes int) *Table {
	var t *Table
	switch nodes {
	case 0:
		return &Table{nodes: &noNode, heap: h}
	case 1, 2:
		m := new(struct {
			Table
			nodes [2]node
		})
		t, m.Table.nodes = &m.Table, &m.nodes[0]
	case 4:
		m := new(struct {
			Table
			nodes [4]node
		})
		t, m.Table.nodes = &m.Table, &m.nodes[0]
	case 8:
		m := new(struct {
			Table
			nodes [8]node
		})
		t, m.Table.nodes = &m.Table, &m.nodes[0]
	default:
		t = new(Table)
		t.makeNodes(nodes)
	}
	t.heap, t.mask, t.lastFree = h, uint32(nodes-1), uint32(nodes)
	return t
}

// constructorSize returns the size that a table constructor allocates for n items or n
// fields: n rounded up to four significant bits, as Lua 5.1's "floating point byte" does.
func constructorSize(n int) int {
	e := 0
	for n >= 16 {
		n = (n + 1) >> 1
		e++
	}
	return n << e
}

// nodeCount returns the number of nodes of a hash part for n > 0 keys.
func nodeCount(n int) int { return 1 << bits.Len(uint(n-1)) }

// makeNodes replaces the hash part by n free nodes, n a power of two or 0.
func (t *Table) makeNodes(n int) {
	t.lastFree, t.room = uint32(n), 0
	if n == 0 {
		t.nodes, t.mask = &noNode, 0
		return
	}
	t.nodes, t.mask = unsafe.SliceData(make([]node, n)), uint32(n-1)
}

// makeRoom does the work of makeNodes for 1 to firstRoom nodes. It allocates memory for
// firstRoom nodes, or reuses the table's own.
func (t *Table) makeRoom(n int) {
	if t.room == 0 {
		t.makeNodes(firstRoom)
		t.room = firstRoom
	} else {
		clear(unsafe.Slice(t.nodes, firstRoom))
	}
	t.lastFree, t.mask = uint32(n), uint32(n-1)
}

// node returns node i, i <= mask.
func (t *Table) node(i uint32) *node {
	return (*node)(unsafe.Add(unsafe.Pointer(t.nodes), uintptr(i)*unsafe.Sizeof(node{})))
}

// hash returns the hash part.
func (t *Table) hash() []node {
	if t.nodes == &noNode {
		return nil
	}
	return unsafe.Slice(t.nodes, int(t.mask)+1)
}

// mainPosition returns the node that is the main position of the key k, which is not nil.
func (t *Table) mainPosition(k Value) *node {
	switch {
	case k.w >= minNumber:
		return t.numberPosition(k.number())
	case k.IsString():
		return t.node(k.hashOf(t.mask) & t.mask)
	case k.w == wFalse || k.w == wTrue:
		return t.node(uint32(k.w-wFalse) & t.mask)
	}
	// Null is the pointer 0; an object hashes by its address.
	return t.node(uint32(uintptr(k.p)) % (t.mask | 1))
}

// numberPosition returns the main position of the number f: the sum of its two words,
// modulo an odd number.
func (t *Table) numberPosition(f float64) *node {
	if f == 0 { // -0 too
		return t.nodes
	}
	b := math.Float64bits(f)
	return t.node((uint32(b) + uint32(b>>32)) % (t.mask | 1))
}

// keyed returns the key k. It adds the hash to a string, so that equal strings have equal
// words.
func keyed(k Value) Value {
	if k.IsString() && k.w&hashMask == 0 {
		return k.hashed()
	}
	return k
}

// keyed does the same as the function keyed, and charges the cost of a long string.
func (t *Table) keyed(k Value) Value {
	if k.IsString() && k.length() > longString {
		t.heap.state.read(4 * k.length())
	}
	return keyed(k)
}

// Get returns the value of a key without metamethods, as rawget does. GetInt and GetString
// do the same for a number and for a string.
func (t *Table) Get(k Value) Value {
	if p := t.place(t.keyed(k)); p != nil {
		return *p
	}
	return Nil
}

// GetString returns the value of the string k, as Get does.
func (t *Table) GetString(k string) Value { return t.getStr(String(k).hashed()) }

// GetInt returns the value of the key i, as Get does for a number. Hot callers inline the case of the array part.
func (t *Table) GetInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if p := t.numberPlace(float64(i)); p != nil {
		return *p
	}
	return Nil
}

// getStr returns the value of the string k, which must be hashed.
func (t *Table) getStr(k Value) Value {
	for n := t.node(k.hashOf(t.mask) & t.mask); n != nil; n = n.next {
		if n.key.w == k.w && (n.key.p == k.p || n.key.str() == k.str()) {
			return n.value
		}
	}
	return Nil
}

// setStr changes the value of the hashed string k if the table has a value for it that is
// not nil, and reports whether it did. If it did not, the caller uses slot.
func (t *Table) setStr(k, v Value) bool {
	if t.readonly {
		return false
	}
	for n := t.node(k.hashOf(t.mask) & t.mask); n != nil; n = n.next {
		if n.key.w == k.w && (n.key.p == k.p || n.key.str() == k.str()) {
			if n.value.IsNil() {
				return false
			}
			n.value = v
			return true
		}
	}
	return false
}

// place returns a pointer to the value of the key k, nil if the table has no entry for it.
// A string must be hashed.
func (t *Table) place(k Value) *Value {
	if k.w >= minNumber {
		f := k.number()
		if i := int(f); uint(i-1) < uint(len(t.array)) && float64(i) == f {
			return &t.array[i-1]
		}
		return t.numberPlace(f)
	}
	if k.IsNil() {
		return nil
	}
	if n := t.find(k); n != nil {
		return &n.value
	}
	return nil
}

// numberPlace does the work of place for the number f, which is not in the array part.
func (t *Table) numberPlace(f float64) *Value {
	for n := t.numberPosition(f); n != nil; n = n.next {
		if n.key.w >= minNumber && n.key.number() == f {
			return &n.value
		}
	}
	return nil
}

// find returns the node of the key k, nil if there is none. Equal keys have equal words,
// except for the two zeros.
func (t *Table) find(k Value) *node {
	for n := t.mainPosition(k); n != nil; n = n.next {
		if n.key.w == k.w {
			if n.key.p == k.p || k.IsString() && n.key.str() == k.str() {
				return n
			}
		} else if k.w >= minNumber && Equal(n.key, k) {
			return n
		}
	}
	return nil
}

// Set sets the value of a key as rawset does; a nil value removes the key. It fails with
// ErrReadonly, errNilIndex, errNaNIndex, or when memory is not enough.
func (t *Table) Set(k, v Value) error {
	if t.readonly {
		return ErrReadonly
	}
	return t.assign(&k, &v)
}

// setItem sets item i of the array part.
func (t *Table) setItem(i int, v Value) {
	at := &t.array[i-1]
	switch there := !v.IsNil(); {
	case there != at.IsNil():
	case there && i == int(t.filled)+1:
		t.filled++
	case !there && i == int(t.filled):
		t.filled--
	default:
		t.filled = -1
	}
	*at = v
}

// survey computes filled.
func (t *Table) survey() {
	n := 0
	for n < len(t.array) && !t.array[n].IsNil() {
		n++
	}
	t.filled = int32(n)
	for ; n < len(t.array); n++ {
		if !t.array[n].IsNil() {
			t.filled = -1
			return
		}
	}
}

// SetInt sets the value of the number i, as Set does.
func (t *Table) SetInt(i int, v Value) error {
	if uint(i-1) < uint(len(t.array)) && !t.readonly {
		t.setItem(i, v)
		return nil
	}
	return t.Set(Int(i), v)
}

// SetString sets the value of the string k, as Set does.
func (t *Table) SetString(k string, v Value) error { return t.Set(String(k), v) }

// assign does the work of Set for a table that is not readonly. It stores the hash of a
// string key in *k, as get does.
func (t *Table) assign(k, v *Value) error {
	if k.w >= minNumber {
		i := arrayIndex(*k)
		if uint(i-1) >= uint(len(t.array)) {
			p, err := t.entry(*k)
			if err != nil {
				return err
			}
			if uint(i-1) >= uint(len(t.array)) {
				*p = *v
				return nil
			}
		}
		t.setItem(i, *v)
		return nil
	}
	if k.w>>tagShift == tagString {
		if k.w&hashMask == 0 {
			*k = t.keyed(*k)
		}
		// A node that was never used is in no chain, so the table does not have the key.
		n := t.node(k.hashOf(t.mask) & t.mask)
		if n.key.w == wNil && n != &noNode {
			t.absent = 0
			n.key, n.value = *k, *v
			return nil
		}
	}
	p, err := t.entry(*k)
	if err == nil {
		*p = *v
	}
	return err
}

// slot returns a pointer to the value of the key k, which is valid until the next write of
// a new key. If the table has no entry for k, slot makes one with the value nil. It does
// not check readonly. Lua 5.1 makes the entry before it looks for __newindex, and the
// caller of slot must do the same, because the order of pairs depends on it.
func (t *Table) slot(k Value) (*Value, error) {
	p, err := t.entry(k)
	if uint(arrayIndex(k)-1) < uint(len(t.array)) {
		t.filled = -1 // the next write may change it
	}
	return p, err
}

// entry does the work of slot; the caller still sets an item of the array part by setItem.
func (t *Table) entry(k Value) (*Value, error) {
	t.absent = 0
	k = t.keyed(k)
	if p := t.place(k); p != nil {
		return p, nil
	}
	if k.IsNil() {
		return nil, errNilIndex
	}
	if k.IsNumber() && k.number() != k.number() {
		return nil, errNaNIndex
	}
	if p := t.insert(k); p != nil {
		return p, nil
	}
	if err := t.rehash(k); err != nil {
		return nil, err
	}
	return t.put(k), nil
}

// insert makes an entry in the hash part for the key k, which the table does not
// have; it returns nil if no node is free.
func (t *Table) insert(k Value) *Value {
	n := t.mainPosition(k)
	if n.value.IsNil() && n != &noNode {
		n.key = k // the node stays in its chain, if it was in one
		return &n.value
	}
	free := t.freeNode()
	if free == nil {
		return nil
	}
	if other := t.mainPosition(n.key); other != n {
		// The key in this node is not in its main position: it moves to the free node.
		for other.next != n {
			other = other.next
		}
		other.next = free
		*free = *n
		*n = node{key: k}
		return &n.value
	}
	free.key, free.next = k, n.next
	n.next = free
	return &free.value
}

// freeNode returns the last free node, nil if there is none.
func (t *Table) freeNode() *node {
	for t.lastFree > 0 {
		t.lastFree--
		if n := t.node(t.lastFree); n.key.IsNil() {
			return n
		}
	}
	return nil
}

// put returns the place of the key k in a table that has a free node for it.
func (t *Table) put(k Value) *Value {
	if i := arrayIndex(k); uint(i-1) < uint(len(t.array)) {
		return &t.array[i-1]
	}
	return t.insert(k)
}

// arrayIndex returns the key k as an index of the array part; 0 if it cannot be one.
func arrayIndex(k Value) int {
	if k.w < minNumber {
		return 0
	}
	f := k.number()
	if i := int(f); float64(i) == f && i > 0 && i <= 1<<maxSizeBits {
		return i
	}
	return 0
}

// rehash resizes both parts for the keys of the table and the key extra. The size of the
// array part becomes the largest power of two of which more than half is in use.
func (t *Table) rehash(extra Value) error {
	t.heap.state.work(len(t.array)/scanCost + len(t.hash()))
	// counts[i] is the number of integer keys above 2^(i-1) and up to 2^i.
	var counts [maxSizeBits + 1]int
	total, integers := 1, 0
	for lg, i := 0, 0; i < len(t.array); lg++ {
		end := min(1<<lg, len(t.array))
		if end <= int(t.filled) {
			counts[lg] = end - i
			integers += end - i
			i = end
		}
		for ; i < end; i++ {
			if !t.array[i].IsNil() {
				counts[lg]++
				integers++
			}
		}
	}
	total += integers
	count := func(k Value) {
		if i := arrayIndex(k); i > 0 {
			counts[bits.Len(uint(i-1))]++
			integers++
		}
	}
	for i := range t.hash() {
		if n := t.node(uint32(i)); !n.value.IsNil() {
			count(n.key)
			total++
		}
	}
	count(extra)

	size, inArray := 0, 0
	for lg, sum := 0, 0; lg <= maxSizeBits && 1<<lg/2 < integers; lg++ {
		sum += counts[lg]
		if counts[lg] > 0 && sum > 1<<lg/2 {
			size, inArray = 1<<lg, sum
		}
	}
	return t.resize(size, total-inArray)
}

// resize changes the sizes of the parts to items and fields, which must be enough for the
// present content.
func (t *Table) resize(items, fields int) error {
	count := 0
	if fields > 0 {
		count = nodeCount(fields)
	}
	if count > 1<<maxSizeBits {
		return errOverflow
	}
	small := 0 < count && count <= firstRoom && len(t.hash()) < count
	grown := 0
	switch {
	case !small:
		grown = count * nodeSize
	case t.room == 0:
		grown = firstRoom * nodeSize
	}
	room := items // of the array part, if it moves
	if room > 0 {
		room = max(room, firstRoom)
	}
	moves := items > cap(t.array) || items < len(t.array)
	if moves {
		grown += room * valueSize
	}
	if err := t.heap.charge(grown); err != nil {
		return err
	}

	old, nodes := t.array, t.hash()
	if small {
		var copied [firstRoom]node
		nodes = copied[:copy(copied[:], nodes)]
		t.makeRoom(count)
	} else {
		t.makeNodes(count)
	}
	if moves {
		t.array = make([]Value, items, room)
		copy(t.array, old)
	} else {
		t.array = old[:items]
	}
	for i := items; i < len(old); i++ {
		if !old[i].IsNil() {
			*t.insert(Int(i + 1)) = old[i]
		}
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		if n := &nodes[i]; !n.value.IsNil() {
			*t.put(n.key) = n.value
		}
	}
	if len(nodes) > 0 || items < len(old) || t.filled < 0 { // items were added or removed
		t.survey()
	}
	return nil
}

// setList sets the keys after last to the values vs, and makes the array part large
// enough, as a table constructor does with its items.
func (t *Table) setList(last int, vs []Value) error {
	if end := last + len(vs); end > len(t.array) {
		if err := t.resize(end, len(t.hash())); err != nil {
			return err
		}
	}
	copy(t.array[last:], vs)
	if int(t.filled) != last {
		t.filled = -1
		return nil
	}
	for _, v := range vs {
		if v.IsNil() {
			t.survey()
			return nil
		}
	}
	t.filled += int32(len(vs))
	return nil
}

// Len returns the border that Lua 5.1's # finds: n such that t[n] is not nil and t[n+1]
// is. It costs O(log n), or nothing if the array part has only one.
func (t *Table) Len() int {
	j := len(t.array)
	if n := int(t.filled); uint(n) < uint(j) {
		return n
	}
	if j > 0 && t.array[j-1].IsNil() {
		i := 0
		for j-i > 1 {
			m := (i + j) / 2
			if t.array[m-1].IsNil() {
				j = m
			} else {
				i = m
			}
		}
		return i
	}
	if t.nodes == &noNode {
		return j
	}
	return t.unboundLen(j)
}

// unboundLen does the work of Len if the border is not in the array part, whose last item
// is i.
func (t *Table) unboundLen(i int) int {
	j := i + 1
	for !t.GetInt(j).IsNil() {
		i = j
		j *= 2
		if j > math.MaxInt32 {
			// A program inserted powers of two on purpose: search one by one.
			for i = 1; !t.GetInt(i).IsNil(); i++ {
			}
			t.heap.state.work(i / scanCost)
			return i - 1
		}
	}
	for j-i > 1 {
		m := (i + j) / 2
		if t.GetInt(m).IsNil() {
			j = m
		} else {
			i = m
		}
	}
	return i
}

// Meta returns the metatable, nil if there is none.
func (t *Table) Meta() *Table { return t.meta }

// SetMeta sets the metatable; nil removes it. It fails with ErrReadonly.
func (t *Table) SetMeta(m *Table) error {
	if t.readonly {
		return ErrReadonly
	}
	t.meta = m
	return nil
}

// Readonly reports whether the table refuses writes with ErrReadonly.
func (t *Table) Readonly() bool { return t.readonly }

// SetReadonly makes writes fail with ErrReadonly, or succeed again.
func (t *Table) SetReadonly(on bool) { t.readonly = on }

// size returns the memory of the table in bytes, without the values to which it refers.
func (t *Table) size() int {
	return tableSize + cap(t.array)*valueSize + max(len(t.hash()), int(t.room))*nodeSize
}
