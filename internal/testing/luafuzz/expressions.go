package luafuzz

import (
	"fmt"
	"strconv"
	"strings"
)

// numerals are numbers as programs may write them, most of them at some edge.
var numerals = []string{
	"0", "1", "2", "3", "4", "5", "7", "10", "12", "-1", "-2", "-3", "0.5", "1.5", "-0.1", "0.1", "100", "127", "128", "255", "256", "1000",
	"1e3", "1E2", "1e+2", "3e-2", ".5", "3.", "1e15", "1e16", "123456789012", "1e100", "1e308", "-1e308", "1e-310", "4.9e-324", "1e14+0.5",
	"2^31", "2^32", "2^53", "-2^31", "2^63", "-2^63", "2^31-1", "0x10", "0xff", "0XA", "0xFFFFFFFF", "0x7fffffff",
	"(0/0)", "-(0/0)", "(1/0)", "(-1/0)", "-0", "math.huge", "-math.huge", "math.pi", "3.14159265358979", "2.5", "3.5", "-7",
	"99999999999999", "999999999999999",
	"0.1+0.2", "1/3", "100/3", "1e21", "12345.678",
}

// numberStrings are strings that are, or nearly are, numbers.
var numberStrings = []string{
	"10", "0x10", " 7 ", "1e2", "nan", "inf", "-3", "0.5", "", " ", "0x", "1e", "1e+", "5.", ".5", ".", "-", "+4", "- 1", "--1", "0x1p4",
	"0xg", "1 2", "1_0", "0b1", "1e400", "-1e400",
	"infinity", "0x1.8", "007", "1e5x", "\\t12\\n", "12\\0", "9007199254740993", "0xffffffffffffffffff", "-0x10", "-0",
	"1,5", "z", "ff", "Zz", "1e-400",
}

// stringLiterals are strings as programs may write them.
var stringLiterals = []string{
	`""`, `"a"`, `"abc"`, `"hello world"`, `'it"s'`, `"a\nb"`, `"\0x"`, `"\255\1"`, `'\'"'`, `"\\"`, `"tab\t"`, `"\065\10\9z"`,
	`"THE quick Brown fox"`, `"x1y22z333"`, `"(a(b)c)"`,
	`"a,b,,c"`, `"key = value"`, "[[long\nstring]]", "[==[a]]b]==]", "[[\nfirst newline]]", `"héé"`, `"%d"`, `"aaaaaaaab"`,
	`"a.b-c"`, `"  trim me  "`, `"a\
b"`, `"\a\b\f\v\r"`, `"0123456789012345678901234567890123456789"`, `"x\0y\0z"`, `"[test]"`, `"THE (quick) fox"`,
}

// expr generates an expression, at most depth deep, that is meant to be w; once
// in a while it is something else.
func (g *generator) expr(w what, depth int) *node {
	g.left--
	if g.one(50) {
		w = what(g.IntN(kinds))
	}
	if depth <= 0 || g.left <= 0 || g.one(5) {
		return g.atom(w)
	}
	if g.one(14) {
		return g.choice(w, depth)
	}
	if g.one(25) {
		return tree(expression, "($)", g.expr(w, depth-1))
	}
	switch w {
	case num:
		return g.number(depth)
	case str:
		return g.text(depth)
	case boolean:
		return g.condition(depth)
	case tab, items:
		return g.table(w, depth)
	case function:
		return g.function(depth)
	case object:
		return g.object(depth)
	}
	return g.any(depth)
}

// choice returns an expression with "and" and "or".
func (g *generator) choice(w what, depth int) *node {
	switch g.IntN(4) {
	case 0:
		return tree(expression, "($ or $)", g.expr(anything, depth-1), g.expr(w, depth-1))
	case 1:
		return tree(expression, "($ and $)", g.expr(anything, depth-1), g.expr(w, depth-1))
	case 2:
		return tree(expression, "($ and $ or $)", g.expr(boolean, depth-1), g.expr(w, depth-1), g.expr(w, depth-1))
	}
	return tree(expression, "(not $ or $)", g.expr(boolean, depth-1), g.expr(w, depth-1))
}

// atom returns a literal or a variable.
func (g *generator) atom(w what) *node {
	if name := g.variable(w, false); name != "" && !g.one(3) {
		return leaf(expression, name)
	}
	switch w {
	case num:
		return leaf(expression, pick(g, numerals...))
	case str:
		if g.one(3) {
			return leaf(expression, `"`+pick(g, numberStrings...)+`"`)
		}
		return leaf(expression, pick(g, stringLiterals...))
	case boolean:
		return leaf(expression, pick(g, "true", "false", "nil"))
	case tab:
		return leaf(expression, pick(g, "{}", "{1, 2, 3}", "{x = 1, y = 'two'}", "{nil, 2}", "{1, nil, 3}", "{n = 3}",
			"{'a', 'b', x = {}}", "{x = {y = {1}}}"))
	case items:
		return leaf(expression, pick(g, "{}", "{1, 2, 3}", "{3, 1, 2, 5, 4}", `{"b", "a", "c"}`, "{1, 2, nil, 4}", `{"x", 1, "y", 2}`,
			"{10, 9.5, 1e3, -4, 0}", `{"10", "9", 8}`))
	case function:
		return leaf(expression, pick(g, "tostr", "type", "tonumber", "math.floor", "string.upper", "function() end",
			"function(...) return ... end", "function(x) return x end", "select", "math.max"))
	case object:
		return leaf(expression, pick(g, "setmetatable({}, {})", "setmetatable({5}, {__index = {x = 1}})",
			`setmetatable({}, {__tostring = function() return "obj" end})`,
			`setmetatable({}, {__call = function(self, ...) return select("#", ...), ... end})`))
	}
	if g.vararg && g.one(6) {
		return leaf(expression, "...")
	}
	return g.atom(what(g.IntN(kinds - 1)))
}

func (g *generator) number(depth int) *node {
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		op := pick(g, "+", "-", "*", "/", "%", "%", "^", "+", "-")
		if op == "^" {
			return tree(expression, "round($ ^ $)", g.expr(num, depth-1), g.expr(num, depth-1))
		}
		a, b := g.expr(num, depth-1), g.expr(num, depth-1)
		if g.one(8) {
			a = leaf(expression, `"`+pick(g, numberStrings...)+`"`)
		}
		return tree(expression, "($ "+op+" $)", a, b)
	case 4:
		return tree(expression, pick(g, "- $", "- - $", "(- $)"), g.expr(num, depth-1))
	case 5:
		return tree(expression, "#$", g.expr(pick(g, str, items, tab), depth-1))
	case 6:
		return tree(expression, "tonumber($)", g.arguments("s", depth))
	case 7:
		if g.one(4) {
			return tree(expression, "select($)", sequence(list, leaf(expression, "'#'"), g.expr(anything, depth-1), g.atom(anything)))
		}
	}
	return g.call(num, depth)
}

func (g *generator) text(depth int) *node {
	switch g.IntN(8) {
	case 0, 1:
		n := tree(expression, "($ .. $)", g.expr(pick(g, str, num), depth-1), g.expr(pick(g, str, str, num), depth-1))
		if g.one(3) {
			n = tree(expression, "($ .. $ .. $)", g.expr(str, depth-1), g.expr(num, depth-1), g.expr(str, depth-1))
		}
		return n
	case 2:
		return leaf(expression, "tostring("+pick(g, pick(g, numerals...), pick(g, stringLiterals...), "nil", "true", "false")+")")
	case 3:
		return tree(expression, "tostr($)", g.expr(anything, depth-1))
	case 4, 5:
		return g.format(depth)
	}
	return g.call(str, depth)
}

func (g *generator) condition(depth int) *node {
	op := pick(g, "==", "~=", "<", "<=", ">", ">=")
	switch g.IntN(6) {
	case 0, 1:
		return tree(expression, "($ "+op+" $)", g.expr(num, depth-1), g.expr(num, depth-1))
	case 2:
		return tree(expression, "($ "+op+" $)", g.expr(str, depth-1), g.expr(str, depth-1))
	case 3:
		return tree(expression, "($ "+pick(g, "==", "~=")+" $)", g.expr(anything, depth-1), g.expr(anything, depth-1))
	case 4:
		return tree(expression, "not $", g.expr(anything, depth-1))
	}
	return g.call(boolean, depth)
}

// key returns an expression that is never a table, function or thread: pairs would meet
// those in the order of addresses.
func (g *generator) key() *node {
	for _, i := range g.Perm(len(g.vars)) {
		if v := g.vars[i]; v.fixed && (v.what == num || v.what == str) && g.one(2) {
			return leaf(expression, v.name)
		}
	}
	switch g.IntN(8) {
	case 0:
		return leaf(expression, `"k`+strconv.Itoa(g.IntN(20))+`"`)
	case 1:
		return leaf(expression, pick(g, "true", "false", "1.5", "-1", "0", "2^53", "1e300", "-0", "1/0"))
	case 2:
		return leaf(expression, pick(g, stringLiterals...))
	case 3:
		return leaf(expression, `"`+pick(g, numberStrings...)+`"`)
	case 4:
		if g.one(20) {
			return leaf(expression, pick(g, "nil", "0/0"))
		}
	}
	return leaf(expression, strconv.Itoa(g.IntN(12)))
}

func (g *generator) table(w what, depth int) *node {
	if g.one(6) {
		return g.call(w, depth)
	}
	if w == items {
		fields := sequence(list)
		for range g.IntN(7) {
			fields.kids = append(fields.kids, g.expr(pick(g, num, str), min(depth-1, 1)))
		}
		return tree(expression, "{$}", fields)
	}
	fields := sequence(list)
	for range g.IntN(8) {
		value := g.expr(what(g.IntN(kinds)), depth-1)
		switch g.IntN(5) {
		case 0:
			value = tree(expression, "[ $ ] = $", g.key(), value)
		case 1:
			value = tree(expression, pick(g, "x", "y", "n", "name", "self_")+" = $", value)
		}
		fields.kids = append(fields.kids, value)
	}
	if g.vararg && g.one(4) {
		fields.kids = append(fields.kids, leaf(expression, "..."))
	}
	return tree(expression, "{$}", fields)
}

// function returns a function that does not do much; statements define larger ones.
func (g *generator) function(depth int) *node {
	if g.one(5) {
		return g.closure(depth)
	}
	vararg, known, loops := g.vararg, len(g.vars), g.loops
	g.vararg, g.loops = false, 0
	defer func() { g.vararg, g.vars, g.loops = vararg, g.vars[:known], loops }()
	switch g.IntN(4) {
	case 0:
		p := g.name("p")
		g.declare(p, anything, false)
		return tree(expression, "function("+p+") return $ end", g.expr(anything, depth-1))
	case 1:
		g.vararg = true
		return tree(expression, "function(...) return $ end", g.list(anything, depth-1))
	case 2:
		p, q := g.name("p"), g.name("q")
		g.declare(p, num, false)
		g.declare(q, num, false)
		return tree(expression, "function("+p+", "+q+") return $ end", g.expr(pick(g, num, boolean), depth-1))
	}
	p := g.name("s")
	g.declare(p, str, false)
	return tree(expression, "function("+p+") return $ end", g.expr(str, depth-1))
}

// list returns one to three expressions.
func (g *generator) list(w what, depth int) *node {
	l := sequence(list, g.expr(w, depth))
	for range g.IntN(3) {
		l.kids = append(l.kids, g.expr(w, depth))
	}
	return l
}

func (g *generator) any(depth int) *node {
	switch g.IntN(9) {
	case 0:
		return tree(expression, "$[ $ ]", g.base(tab, depth-1), g.key())
	case 1:
		return tree(expression, "$."+pick(g, "x", "y", "n", "name", "len", "floor"), g.base(tab, depth-1))
	case 2:
		return tree(expression, "$($)", g.base(function, depth-1), g.list(anything, depth-1))
	case 3:
		return tree(expression, "$:"+pick(g, "upper", "len", "rep", "lower", "reverse", "x", "sub", "byte", "format")+"($)", g.base(str, depth-1),
			sequence(list, leaf(expression, pick(g, "2", "1", "3", "-1", "'x'", "nil"))))
	case 4:
		return tree(expression, "pcall($, $)", g.expr(function, depth-1), g.list(anything, depth-1))
	case 5:
		return g.operation(depth)
	case 6:
		return g.call(anything, depth)
	}
	return g.expr(what(g.IntN(kinds-1)), depth-1)
}

// base returns an expression that may be indexed and called.
func (g *generator) base(w what, depth int) *node {
	if name := g.variable(w, false); name != "" && !g.one(3) {
		return leaf(expression, name)
	}
	return tree(expression, "($)", g.expr(w, depth))
}

// operation applies an operator to what may well not have it.
func (g *generator) operation(depth int) *node {
	op := pick(g, "+", "-", "*", "/", "%", "..", "==", "<", "<=", "~=", ">", ">=", "unary - ", "unary #", "unary not ",
		"index", "call", "setting")
	a := g.expr(pick(g, object, object, tab, anything, num, str), depth-1)
	if unary, ok := strings.CutPrefix(op, "unary "); ok {
		return tree(expression, "("+unary+"$)", a)
	}
	switch op {
	case "index":
		return tree(expression, "($).x", a)
	case "call":
		return tree(expression, "($)($)", a, g.list(anything, depth-1))
	case "setting":
		return tree(expression, "rawget(rawset($, $, $), $)", a, g.key(), g.atom(anything), g.key())
	}
	b := g.expr(pick(g, object, object, tab, anything, num, str), depth-1)
	if g.one(2) {
		a, b = b, a
	}
	return tree(expression, "($ "+op+" $)", a, b)
}

// metamethods are the events, and what their functions are meant to yield.
var metamethods = map[string]what{
	"__add": num, "__sub": num, "__mul": anything, "__div": num, "__mod": num, "__pow": num, "__unm": num, "__concat": str, "__len": num,
	"__eq": boolean, "__lt": boolean, "__le": boolean, "__index": anything, "__newindex": anything, "__call": anything,
	"__tostring": str, "__metatable": anything,
}

// events has the keys of metamethods, in an order.
var events = []string{"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__concat", "__len", "__eq", "__lt", "__le", "__index",
	"__newindex", "__call", "__tostring", "__metatable"}

func (g *generator) object(depth int) *node {
	meta := sequence(list)
	for range 1 + g.IntN(5) {
		event := pick(g, events...)
		if g.one(3) && metamethods[event] != str {
			meta.kids = append(meta.kids, tree(expression, event+" = $", g.expr(pick(g, function, tab, object, anything), depth-1)))
			continue
		}
		vararg, known, loops := g.vararg, len(g.vars), g.loops
		g.vararg, g.loops = false, 0
		a, b := g.name("a"), g.name("b")
		g.declare(a, anything, false)
		g.declare(b, anything, false)
		meta.kids = append(meta.kids, tree(expression, event+" = function("+a+", "+b+") return $ end", g.expr(metamethods[event], depth-1)))
		g.vararg, g.vars, g.loops = vararg, g.vars[:known], loops
	}
	return tree(expression, "setmetatable($, {$})", g.expr(tab, min(depth-1, 1)), meta)
}

// format returns a call of string.format with some conversions.
func (g *generator) format(depth int) *node {
	var spec strings.Builder
	args := sequence(list, nil)
	for range 1 + g.IntN(3) {
		spec.WriteString(pick(g, "", "<", "a ", "%%", ": "))
		if g.one(40) {
			spec.WriteString(pick(g, "%", "%y", "%-+ #05.3", "%123d", "%.123d", "%L", "%1$d", "%5"))
			continue
		}
		verb := pick(g, "d", "d", "i", "u", "c", "x", "X", "o", "e", "E", "f", "f", "g", "G", "g", "q", "s", "s", "s")
		flags := ""
		if g.one(2) && verb != "q" {
			for range g.IntN(3) {
				flags += pick(g, "-", "0", "+", " ", "#")
			}
			if g.one(2) {
				flags += strconv.Itoa(g.IntN(25))
			}
			if g.one(3) {
				flags += fmt.Sprint(".", g.IntN(20))
			}
		}
		spec.WriteString("%" + flags + verb)
		switch verb {
		case "s", "q":
			args.kids = append(args.kids, g.expr(pick(g, str, str, num), depth-1))
		case "c":
			args.kids = append(args.kids, leaf(expression, pick(g, "65", "97", "0", "10", "255", "300", "-1", "'66'")))
		default:
			args.kids = append(args.kids, g.expr(num, depth-1))
		}
	}
	args.kids[0] = leaf(expression, `"`+spec.String()+`"`)
	if g.one(20) {
		args.kids = args.kids[:g.IntN(len(args.kids))]
	}
	return tree(expression, "string.format($)", args)
}
