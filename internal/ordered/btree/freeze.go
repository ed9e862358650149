package btree

import "github.com/ebbdb/ebb/internal/chunk"

// Freeze returns a copy for reading only, under the rules of chunk.Array.Freeze;
// its owner asks order for records. O(chunks).
func (t *Tree) Freeze(l *chunk.Loan, order Order) *Tree {
	return &Tree{order: order, nodes: t.nodes.Freeze(l), root: t.root, levels: t.levels, n: t.n, keyed: t.keyed}
}

// own makes sure that the nodes of a path can be written to. Pointers to nodes
// from before are void then.
func (t *Tree) own(way *path) {
	if t.nodes.Lent() {
		for l := range t.levels {
			t.nodes.Own(way[l].node)
		}
	}
}

// Frozen reports whether there is a frozen copy that shares chunks with the tree.
func (t *Tree) Frozen() bool { return t.nodes.Frozen() }
