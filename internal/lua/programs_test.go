package lua

import (
	"math/rand/v2"
	"strings"
)

// generator writes random programs.
type generator struct {
	*rand.Rand
	b      strings.Builder
	budget int // statements and expressions left, so that programs end
	loops  int // around what is being written, in the same function
	dots   bool
}

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) put(parts ...string) {
	for _, s := range parts {
		g.b.WriteString(s)
		if g.IntN(12) == 0 {
			g.b.WriteString(g.pick("\n", "\r\n", "\t", " --x\n", " --[[ y\n ]] "))
		} else {
			g.b.WriteString(" ")
		}
	}
}

func (g *generator) name() string { return g.pick("a", "b", "c", "d", "x", "y", "t", "arg", "self") }

func (g *generator) spent() bool {
	g.budget--
	return g.budget < 0
}

func (g *generator) block() {
	for range g.IntN(4) {
		g.statement()
		if g.IntN(4) == 0 {
			g.put(";")
		}
	}
	if g.IntN(8) == 0 {
		if g.loops > 0 && g.IntN(3) > 0 {
			g.put("break")
		} else {
			g.put("return")
			if g.IntN(3) > 0 {
				g.list()
			}
		}
	}
}

func (g *generator) statement() {
	if g.spent() {
		g.put("a", "=", "1")
		return
	}
	switch g.IntN(14) {
	case 0:
		g.put("do")
		g.block()
		g.put("end")
	case 1:
		g.put("while")
		g.expression()
		g.put("do")
		g.loop()
		g.put("end")
	case 2:
		g.put("repeat")
		g.loop()
		g.put("until")
		g.expression()
	case 3, 4:
		g.put("if")
		g.expression()
		g.put("then")
		g.block()
		for g.IntN(3) == 0 {
			g.put("elseif")
			g.expression()
			g.put("then")
			g.block()
		}
		if g.IntN(2) == 0 {
			g.put("else")
			g.block()
		}
		g.put("end")
	case 5:
		g.put("for", g.name(), "=")
		g.expression()
		g.put(",")
		g.expression()
		if g.IntN(2) == 0 {
			g.put(",")
			g.expression()
		}
		g.put("do")
		g.loop()
		g.put("end")
	case 6:
		g.put("for", g.name())
		for g.IntN(2) == 0 {
			g.put(",", g.name())
		}
		g.put("in")
		g.list()
		g.put("do")
		g.loop()
		g.put("end")
	case 7:
		g.put("function", g.name())
		for g.IntN(3) == 0 {
			g.put(".", g.name())
		}
		if g.IntN(3) == 0 {
			g.put(":", g.name())
		}
		g.body()
	case 8:
		g.put("local", "function", g.name())
		g.body()
	case 9, 10:
		g.put("local", g.name())
		for g.IntN(3) == 0 {
			g.put(",", g.name())
		}
		if g.IntN(4) > 0 {
			g.put("=")
			g.list()
		}
	case 11:
		g.b.WriteString("f")
		g.call()
	default:
		g.target()
		for g.IntN(3) == 0 {
			g.put(",")
			g.target()
		}
		g.put("=")
		g.list()
	}
}

func (g *generator) loop() {
	g.loops++
	g.block()
	g.loops--
}

func (g *generator) body() {
	loops, dots := g.loops, g.dots
	g.loops, g.dots = 0, false
	g.put("(")
	n := g.IntN(4)
	for i := range n {
		if i > 0 {
			g.put(",")
		}
		if i == n-1 && g.IntN(2) == 0 {
			g.put("...")
			g.dots = true
		} else {
			g.put(g.name())
		}
	}
	g.put(")")
	g.block()
	g.put("end")
	g.loops, g.dots = loops, dots
}

func (g *generator) target() {
	g.put(g.name())
	for g.IntN(3) == 0 {
		g.suffix()
	}
}

func (g *generator) suffix() {
	if g.IntN(2) == 0 {
		g.put(".", g.name())
		return
	}
	g.put("[")
	g.expression()
	g.put("]")
}

func (g *generator) call() {
	if g.IntN(4) == 0 {
		g.put(":")
		g.b.WriteString(g.name())
	}
	switch g.IntN(5) {
	case 0:
		g.put(`"s"`)
	case 1:
		g.table()
	default:
		// On the line of the function, or it would be ambiguous.
		g.b.WriteString("(")
		if g.IntN(3) > 0 {
			g.list()
		}
		g.put(")")
	}
}

func (g *generator) table() {
	g.put("{")
	n := g.IntN(4)
	if g.IntN(10) == 0 {
		n = g.IntN(120)
	}
	for range n {
		switch g.IntN(4) {
		case 0:
			g.put(g.name(), "=")
		case 1:
			g.put("[")
			g.expression()
			g.put("]", "=")
		}
		g.expression()
		g.put(g.pick(",", ";"))
	}
	if g.IntN(2) == 0 {
		g.expression()
	}
	g.put("}")
}

func (g *generator) list() {
	g.expression()
	for g.IntN(3) == 0 {
		g.put(",")
		g.expression()
	}
}

func (g *generator) expression() {
	if g.spent() {
		g.put(g.pick("1", "x"))
		return
	}
	switch g.IntN(16) {
	case 0, 1, 2, 3, 4:
		g.expression()
		g.put(g.pick("+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or", "and", "or"))
		g.expression()
	case 5:
		g.put(g.pick("not", "- ", "#"))
		g.expression()
	case 6:
		g.put("(")
		g.expression()
		g.put(")")
	case 7:
		g.b.WriteString(g.name())
		g.call()
		for g.IntN(3) == 0 {
			g.suffix()
		}
	case 8:
		g.put("function")
		g.body()
	case 9:
		g.table()
	case 10:
		g.target()
	case 11:
		if !g.dots {
			g.put("nil")
			return
		}
		g.put("...")
	case 12:
		g.put(g.pick("nil", "true", "false"))
	case 13:
		g.put(g.pick(`"a\n\065\"b"`, "'x'", "[[long\r\nstring]]", "[==[\n]] ]=]]==]", `"\
"`, "''"))
	case 14:
		g.put(g.pick("0", "1", "2", "-0", "3.5", "1e3", "0x10", ".5", "1e400", "1e-3", "100"))
	default:
		g.put(g.name())
	}
}

// generate returns a program.
func generate(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 51)), budget: 60, dots: true}
	for g.b.Len() < 40 {
		g.block()
	}
	return g.b.String()
}

// damage changes something in a program.
func damage(program string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 52))
	words := strings.SplitAfter(program, " ")
	pick := func() int { return r.IntN(len(words)) }
	for range 1 + r.IntN(2) {
		switch i := pick(); r.IntN(5) {
		case 0:
			words[i] = ""
		case 1:
			words[i] += words[pick()]
		case 2:
			words[i] = words[pick()]
		case 3:
			words = words[:i+1]
		default:
			s := []string{"end ", "=", "{", "(", ")", "]]", "[[", "[=", "'", "\"", "\\", "\n", "1e", "0x", "..", "...", "~", "$", "\x80", "\x7f",
				"\x00", "--[[", "break ", "return ", "local ", "function ", "until ", "'\\300'", "then ", "do ", ":"}
			words[i] = s[r.IntN(len(s))] + words[i]
		}
	}
	return strings.Join(words, "")
}
