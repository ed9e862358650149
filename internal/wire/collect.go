package wire

import (
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// A collecting Writer keeps its replies in w.nodes, in the order they were
// written, with the announced length of an aggregate in Int:
//
//	*2  $1 a  *1  :7     nodes: {Array 2} {Bulk a} {Array 1} {Int 7}
//
// Patch and Rollback then work as they do on a byte buffer. Value folds the nodes into a
// tree at the end.

// Collect makes w build a Value from now on, and drops an unfinished one. The kinds
// follow Proto as the bytes would: in RESP2 w collects a Map as a flat Array, and a
// Double as a Bulk.
func (w *Writer) Collect() { w.CollectSome(Bound{}) }

// Bound limits the memory of a collected reply. The zero value means no limit.
type Bound struct {
	// Most is the number of bytes that the whole reply may take up: that of its texts, and about 100 for each Value. What
	// follows is left out: aggregates then have fewer elements than they were announced with. 0: no limit.
	Most int
	// Part is the number of bytes of one text. A longer one is cut, and the Value of a bulk string has the length of the whole
	// as its Int. 0: no limit.
	Part int
}

// CollectSome is Collect for a reply of which a beginning is enough: it copies no more of a long string than the bound allows.
// Cut reports whether something was left out.
func (w *Writer) CollectSome(b Bound) {
	w.collecting, w.bound = true, b
	w.dropNodes()
}

// Bound returns the bound of CollectSome.
func (w *Writer) Bound() Bound { return w.bound }

// Cut reports whether the bound of CollectSome has left out a part of the replies that were written since.
func (w *Writer) Cut() bool { return w.cut }

// Collecting reports whether w builds a Value.
func (w *Writer) Collecting() bool { return w.collecting }

// Value returns the collected reply and resets w for the next one. The Value shares no
// memory with w. A reply that lacks announced elements has nulls in their place; with no
// reply at all it is the zero Value. If several replies were written, Value returns the
// first of them (see Values).
func (w *Writer) Value() resp.Value {
	var v resp.Value
	if len(w.nodes) > 0 {
		v, _ = w.fold(w.nodes)
	}
	cut := w.cut
	w.dropNodes()
	w.cut = cut // until the next reply
	return v
}

// Values returns all collected replies, for a pipeline or SUBSCRIBE, and resets w as Value
// does.
func (w *Writer) Values() []resp.Value {
	var all []resp.Value
	for rest := w.nodes; len(rest) > 0; {
		var v resp.Value
		v, rest = w.fold(rest)
		all = append(all, v)
	}
	w.dropNodes()
	return all
}

// keepNodes is the number of nodes that stay allocated between replies: about 48 KiB.
const keepNodes = 512

func (w *Writer) dropNodes() {
	w.used, w.cut = 0, false
	if cap(w.nodes) > keepNodes {
		w.nodes = nil
		return
	}
	clear(w.nodes)
	w.nodes = w.nodes[:0]
}

// nodeBytes is about the size of a Value.
const nodeBytes = 100

func (w *Writer) add(v resp.Value) {
	if w.bound != (Bound{}) && !w.fits(&v) {
		return
	}
	w.nodes = append(w.nodes, v)
}

// fits cuts the text of a node, and reports whether there is room for the node. After the first one for which there is none, no
// other node is added either: the nodes would not fold into a tree.
func (w *Writer) fits(v *resp.Value) bool {
	if limit := w.bound.Part; limit > 0 && len(v.Str) > limit {
		if v.Kind == resp.KindBulk {
			v.Int = int64(len(v.Str))
		}
		v.Str, w.cut = strings.Clone(v.Str[:limit]), true
	}
	if w.bound.Most == 0 {
		return true
	}
	w.used += nodeBytes + len(v.Str)
	if w.used > w.bound.Most {
		w.used, w.cut = w.bound.Most, true // full
		return false
	}
	return true
}

// recount sets the bytes of the nodes, after some were taken back.
func (w *Writer) recount() {
	w.used = 0
	for i := range w.nodes {
		w.used += nodeBytes + len(w.nodes[i].Str)
	}
}

// addTree appends the nodes of a finished Value.
func (w *Writer) addTree(v resp.Value) {
	if len(v.Attrs) > 0 {
		w.add(resp.Value{Kind: kindAttribute, Int: int64(len(v.Attrs) / 2)})
		for _, a := range v.Attrs {
			w.addTree(a)
		}
		v.Attrs = nil
	}
	elems := v.Elems
	if isAggregate(v.Kind) {
		v.Int, v.Elems = int64(len(elems)/widthOf(v.Kind)), nil
	}
	w.add(v)
	for _, e := range elems {
		w.addTree(e)
	}
}

// fold builds the first reply of nodes and returns the nodes after it. If something was left out, an aggregate has those of its
// elements that there are.
func (w *Writer) fold(nodes []resp.Value) (v resp.Value, rest []resp.Value) {
	if len(nodes) == 0 {
		return resp.Value{Kind: resp.KindNull}, nil
	}
	v, rest = nodes[0], nodes[1:]
	if !isAggregate(v.Kind) {
		return v, rest
	}
	n := int(v.Int) * widthOf(v.Kind)
	v.Int = 0
	if w.cut {
		n = min(n, len(rest)) // each element has a node at least
	}
	if n > 0 {
		v.Elems = make([]resp.Value, n)
	}
	for i := range v.Elems {
		if w.cut && len(rest) == 0 {
			v.Elems = v.Elems[:i]
			break
		}
		v.Elems[i], rest = w.fold(rest)
	}
	if w.cut {
		v.Elems = v.Elems[:len(v.Elems)-len(v.Elems)%widthOf(v.Kind)] // no key without its value
	}
	if v.Kind == kindAttribute {
		attrs := v.Elems
		v, rest = w.fold(rest)
		v.Attrs = append(attrs, v.Attrs...)
	}
	return v, rest
}
