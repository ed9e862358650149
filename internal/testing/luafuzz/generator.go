package luafuzz

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Program is a random program, or a single expression.
type Program struct {
	root *node
	// Compile: the program is damaged, so that it is only compiled.
	Compile bool
	// Only is the one oracle for the program; "": both. It is "lua5.1" for features that
	// redis-server forbids, and "redis-server" for features that it changed.
	Only string
	text string // of a damaged program, which has no parts
}

// Text returns the program.
func (p *Program) Text() string {
	if p.root == nil {
		return p.text
	}
	return p.root.String()
}

// Request returns the program in the form for a Machine, with mode m, or Compile for a
// damaged program.
func (p *Program) Request(m Mode) string { return p.request(m, p.Text()) }

func (p *Program) request(m Mode, text string) string {
	if p.Compile {
		m = Compile
	}
	return Request(m, text)
}

// Shrink makes the program smaller as long as fails reports that it fails. It calls fails
// at most budget times.
func (p *Program) Shrink(m Mode, budget int, fails func(request string) bool) {
	try := func(text string) bool { return fails(p.request(m, text)) }
	if p.root != nil {
		p.root.shrink(budget, try)
		return
	}
	for size := len(p.text) / 2; size > 0 && budget > 0; size /= 2 {
		for at := 0; at+size <= len(p.text) && budget > 0; budget-- {
			if without := p.text[:at] + p.text[at+size:]; try(without) {
				p.text = without
			} else {
				at += size
			}
		}
	}
}

// what is the kind of value that an expression should yield.
type what uint8

const (
	num what = iota
	str
	boolean
	tab      // with any keys
	items    // a table that is an array of strings and numbers
	function // takes anything
	object   // a table with metamethods
	anything
	kinds = int(anything) + 1
)

// variable is a local that the program may use at this point.
type variable struct {
	name  string
	what  what
	fixed bool // never assigned, because the end of the program or a key depends on it
}

// generator writes one program. Programs end because every loop counts and
// functions call only what was defined before them, almost always; they do not
// depend on addresses because keys are numbers, strings and booleans, and because
// tostring is applied to such alone.
type generator struct {
	*rand.Rand
	vars   []variable
	names  int  // used so far
	left   int  // nodes that may be added, about
	loops  int  // around this point, in this function
	nested int  // blocks around this point
	vararg bool // "..." may be used
	calls  int  // functions around this point
	only   string
	// libraries: redis-server's libraries are used as well.
	libraries bool
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0x6c7561))}
}

// NewProgram returns the program of a seed.
func NewProgram(seed uint64) *Program {
	g := newGenerator(seed)
	g.left = 40 + g.IntN(200)
	g.vararg = true
	body := g.block(3 + g.IntN(12))
	root := sequence(block, leaf(statement, "local emit, tostr, round, pcall = ...\n"), body)
	if g.one(12) {
		return &Program{text: g.damage(root.String()), Compile: true}
	}
	return &Program{root: root, Only: g.only}
}

// NewExpression returns the one-line program of a seed: expressions of constants.
func NewExpression(seed uint64) *Program {
	g := newGenerator(seed)
	g.left = 3 + g.IntN(20)
	g.vararg = g.one(10)
	e := sequence(list, g.expr(what(g.IntN(kinds)), 4))
	template := "return $\n"
	if g.vararg {
		template = "return (function(...) return $ end)(7, nil, 'x', nil)\n"
	} else if g.one(3) {
		template = "local a, b, s, t, n = 3, -2.5, 'str', {1, 2, nil, 4, x = 'y'}\nreturn $\n"
		g.vars = []variable{{"a", num, true}, {"b", num, true}, {"s", str, true}, {"t", tab, true}, {"n", anything, true}}
		e.kids[0] = g.expr(what(g.IntN(kinds)), 4)
	}
	p := &Program{root: tree(block, strings.Replace(template, "return", "local emit, tostr, round, pcall = ... return", 1), e), Only: g.only}
	if g.one(25) {
		return &Program{text: g.damage(p.Text()), Compile: true}
	}
	return p
}

// one returns true with the probability 1/n.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

// pick returns one of the choices.
func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// name makes a new name; few letters, so that upvalues and shadows happen by
// nothing but scope.
func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprint(prefix, g.names)
}

// declare adds a variable that is in scope from here to the end of the block.
func (g *generator) declare(name string, w what, fixed bool) {
	g.vars = append(g.vars, variable{name, w, fixed})
}

// within generates in a scope of its own.
func (g *generator) within(generate func() *node) *node {
	known := len(g.vars)
	g.nested++
	n := generate()
	g.nested--
	g.vars = g.vars[:known]
	return n
}

// variable returns the name of a variable meant to be w, "" if there is none.
func (g *generator) variable(w what, assigned bool) string {
	var fit []string
	for _, v := range g.vars {
		if (w == anything || v.what == w || w == tab && v.what >= items && v.what != function && v.what != anything) && !(assigned && v.fixed) {
			fit = append(fit, v.name)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	// The later, the likelier: what is near is used.
	return fit[max(g.IntN(len(fit)), g.IntN(len(fit)))]
}
