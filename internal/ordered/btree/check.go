package btree

import "fmt"

// Check verifies the tree's invariants and returns the first one broken. It
// visits every node and asks for the probe of every entry.
func (t *Tree) Check() error {
	if t.n == 0 {
		if t.root != none || t.levels != 0 || t.nodes.Len() != 0 {
			return fmt.Errorf("btree: empty, with root %d, %d levels, %d nodes", t.root, t.levels, t.nodes.Len())
		}
		return nil
	}
	c := checker{t: t}
	n, err := c.node(t.root, t.levels-1, true)
	switch {
	case err != nil:
		return err
	case n != t.n:
		return fmt.Errorf("btree: %d entries, %d counted", n, t.n)
	case c.nodes != t.nodes.Len():
		return fmt.Errorf("btree: %d nodes reachable of %d", c.nodes, t.nodes.Len())
	}
	return nil
}

type checker struct {
	t     *Tree
	nodes int
	seen  bool
	prev  Probe // of the entry before
}

// node checks a subtree and returns its number of entries. last: it is the last
// of its level.
func (c *checker) node(at uint32, level int, last bool) (int, error) {
	c.nodes++
	h := c.t.head(at)
	room := c.t.capacity(uint8(level))
	switch {
	case int(h.level) != level:
		return 0, fmt.Errorf("btree: node %d is of level %d, not %d", at, h.level, level)
	case h.n == 0, int(h.n) > room, int(h.n) < room/3 && !last:
		return 0, fmt.Errorf("btree: node %d of level %d holds %d of %d, last %v", at, level, h.n, room, last)
	case level == 0:
		return int(h.n), c.leaf(at)
	case at == c.t.root && h.n < 2:
		return 0, fmt.Errorf("btree: the root has one child")
	}
	in := c.t.inner(at)
	total := 0
	for i := range int(in.n) {
		n, err := c.node(in.child[i], level-1, last && i == int(in.n)-1)
		if err != nil {
			return 0, err
		}
		key, ref, count := c.t.summary(in.child[i])
		if key != in.key[i] || ref != in.ref[i] || count != in.count[i] || n != int(count) {
			return 0, fmt.Errorf("btree: node %d entry %d says (%d, %d, %d), its child (%d, %d, %d), %d below",
				at, i, in.key[i], in.ref[i], in.count[i], key, ref, count, n)
		}
		total += n
	}
	return total, nil
}

// leaf checks that a leaf's entries have their records' keys and ascend.
func (c *checker) leaf(at uint32) error {
	for i, ref := range c.t.refs(at) {
		key := c.t.keyAt(at, i)
		p := c.t.order.Probe(ref)
		if p.Key != key {
			return fmt.Errorf("btree: record %d has key %d, its entry %d", ref, p.Key, key)
		}
		if c.seen && c.t.compare(key, ref, &c.prev) <= 0 {
			return fmt.Errorf("btree: record %d is not after the one before it", ref)
		}
		c.prev, c.seen = p, true
	}
	return nil
}
