package luafuzz

import "strings"

// kind is the syntactic kind of a node: a node may replace another one of its kind.
type kind uint8

const (
	expression kind = iota
	list            // expressions with commas between them
	statement       // ends with a newline
	block           // statements
)

// node is a part of a program: text with other nodes in it.
type node struct {
	kind  kind
	parts []string // of an expression or a statement: the text around the kids
	kids  []*node
}

// leaf returns a node that is text alone.
func leaf(k kind, text string) *node { return &node{kind: k, parts: []string{text}} }

// tree returns a node whose text has its kids in the places of "$".
func tree(k kind, template string, kids ...*node) *node {
	parts := strings.Split(template, "$")
	if len(parts) != len(kids)+1 {
		panic("luafuzz: a template without a node for each $: " + template)
	}
	return &node{k, parts, kids}
}

// sequence returns a list or a block.
func sequence(k kind, kids ...*node) *node { return &node{kind: k, kids: kids} }

// String returns the text of the program.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	for i, k := range n.kids {
		switch {
		case n.parts != nil:
			b.WriteString(n.parts[i])
		case n.kind == list && i > 0:
			b.WriteString(", ")
		}
		k.write(b)
	}
	if n.parts != nil {
		b.WriteString(n.parts[len(n.kids)])
	}
}

// shrink makes a failing program smaller as long as it fails: it drops
// statements and expressions of lists, and puts parts in the place of what they
// are part of. It changes n, and calls fails at most budget times.
func (n *node) shrink(budget int, fails func(text string) bool) {
	s := shrinker{root: n, budget: budget, fails: fails}
	for s.pass(n) && s.budget > 0 {
		// Another pass removes parts that are no longer needed.
	}
}

type shrinker struct {
	root   *node
	budget int
	fails  func(string) bool
}

func (s *shrinker) still() bool {
	s.budget--
	return s.budget >= 0 && s.fails(s.root.String())
}

// pass goes over n's parts once and reports whether anything became smaller.
func (s *shrinker) pass(n *node) (changed bool) {
	if n.kind == list || n.kind == block {
		changed = s.drop(n)
	}
	for i := range n.kids {
		changed = s.replace(n, i) || changed
	}
	for _, k := range n.kids {
		changed = s.pass(k) || changed
	}
	return changed
}

// drop removes kids, in ever smaller runs.
func (s *shrinker) drop(n *node) (changed bool) {
	for size := len(n.kids); size > 0; size /= 2 {
		for at := 0; at+size <= len(n.kids); {
			whole := n.kids
			n.kids = append(append([]*node(nil), whole[:at]...), whole[at+size:]...)
			if s.still() {
				changed = true
			} else {
				n.kids = whole
				at += size
			}
		}
	}
	return changed
}

// replace tries each possible replacement of kid i of n.
func (s *shrinker) replace(n *node, i int) (changed bool) {
	whole := n.kids[i]
	if whole.kind != expression && whole.kind != statement {
		return false
	}
	var simpler []*node
	if whole.kind == expression {
		if len(whole.kids) == 0 && len(whole.parts[0]) < 2 {
			return false
		}
		simpler = append(simpler, leaf(expression, "nil"), leaf(expression, "1"))
	}
	whole.each(func(k *node) {
		if k != whole && (k.kind == whole.kind || whole.kind == statement && k.kind == block) {
			simpler = append(simpler, k)
		}
	})
	for _, k := range simpler {
		if text := k.String(); len(text) >= len(whole.String()) {
			continue
		}
		if n.kids[i] = k; s.still() {
			return true
		}
	}
	n.kids[i] = whole
	return false
}

// each visits n and all nodes below it.
func (n *node) each(visit func(*node)) {
	visit(n)
	for _, k := range n.kids {
		k.each(visit)
	}
}
