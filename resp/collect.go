package resp

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
func (w *Writer) Collect() {
	w.collecting = true
	w.dropNodes()
}

// Collecting reports whether w builds a Value.
func (w *Writer) Collecting() bool { return w.collecting }

// Value returns the collected reply and resets w for the next one. The Value shares no
// memory with w. A reply that lacks announced elements has nulls in their place; with no
// reply at all it is the zero Value. If several replies were written, Value returns the
// first of them (see Values).
func (w *Writer) Value() Value {
	var v Value
	if len(w.nodes) > 0 {
		v, _ = fold(w.nodes)
	}
	w.dropNodes()
	return v
}

// Values returns all collected replies, for a pipeline or SUBSCRIBE, and resets w as Value
// does.
func (w *Writer) Values() []Value {
	var all []Value
	for rest := w.nodes; len(rest) > 0; {
		var v Value
		v, rest = fold(rest)
		all = append(all, v)
	}
	w.dropNodes()
	return all
}

// keepNodes is the number of nodes that stay allocated between replies: about 48 KiB.
const keepNodes = 512

func (w *Writer) dropNodes() {
	if cap(w.nodes) > keepNodes {
		w.nodes = nil
		return
	}
	clear(w.nodes)
	w.nodes = w.nodes[:0]
}

func (w *Writer) add(v Value) { w.nodes = append(w.nodes, v) }

// addTree appends the nodes of a finished Value.
func (w *Writer) addTree(v Value) {
	if len(v.Attrs) > 0 {
		w.add(Value{Kind: kindAttribute, Int: int64(len(v.Attrs) / 2)})
		for _, a := range v.Attrs {
			w.addTree(a)
		}
		v.Attrs = nil
	}
	elems := v.Elems
	if v.Kind.aggregate() {
		v.Int, v.Elems = int64(len(elems)/v.Kind.width()), nil
	}
	w.add(v)
	for _, e := range elems {
		w.addTree(e)
	}
}

// fold builds the first reply of nodes and returns the nodes after it.
func fold(nodes []Value) (v Value, rest []Value) {
	if len(nodes) == 0 {
		return Value{Kind: KindNull}, nil
	}
	v, rest = nodes[0], nodes[1:]
	if !v.Kind.aggregate() {
		return v, rest
	}
	n := int(v.Int) * v.Kind.width()
	v.Int = 0
	if n > 0 {
		v.Elems = make([]Value, n)
	}
	for i := range v.Elems {
		v.Elems[i], rest = fold(rest)
	}
	if v.Kind == kindAttribute {
		attrs := v.Elems
		v, rest = fold(rest)
		v.Attrs = append(attrs, v.Attrs...)
	}
	return v, rest
}
