package luafuzz

import "strings"

// builtin is a function of Lua's libraries, with what it takes: n number, i small
// integer, s string, p pattern, l array, t table, f function, a anything, b
// boolean, r a count that stays small, c a byte, x what gsub may replace by, e the
// level of an error; what follows "?" may be left out.
type builtin struct {
	name, takes string
	yields      what
}

var builtins = []builtin{
	{"string.sub", "si?i", str}, {"string.len", "s", num}, {"string.byte", "s?ii", num}, {"string.char", "?cccc", str},
	{"string.rep", "sr", str}, {"string.reverse", "s", str}, {"string.lower", "s", str}, {"string.upper", "s", str},
	{"string.find", "sp?ib", num}, {"string.match", "sp?i", str},
	{"string.gsub", "spx?i", str}, {"string.gmatch", "sp", function},
	{"table.concat", "l?sii", str}, {"table.maxn", "t", num}, {"table.getn", "t", num}, {"table.remove", "l?i", anything},
	{"table.insert", "li?a", anything}, {"table.sort", "l?f", anything}, {"table.foreach", "tf", anything},
	{"table.foreachi", "tf", anything}, {"table.setn", "tn", anything},
	{"unpack", "l?ii", anything},
	{"math.floor", "n", num}, {"math.ceil", "n", num}, {"math.abs", "n", num}, {"math.fmod", "nn", num}, {"math.mod", "nn", num},
	{"math.modf", "n", num}, {"math.frexp", "n", num}, {"math.ldexp", "ni", num}, {"math.max", "n?nn", num}, {"math.min", "n?nn", num},
	{"math.sqrt", "n", num},
	{"math.deg", "n", num}, {"math.rad", "n", num},
	{"round(math.sin($))", "n", num}, {"round(math.cos($))", "n", num}, {"round(math.tan($))", "n", num}, {"round(math.exp($))", "n", num},
	{"round(math.log($))", "n", num},
	{"round(math.log10($))", "n", num}, {"round(math.atan($))", "n", num}, {"round(math.atan2($))", "nn", num},
	{"round(math.asin($))", "n", num}, {"round(math.acos($))", "n", num},
	{"round(math.sinh($))", "n", num}, {"round(math.cosh($))", "n", num}, {"round(math.tanh($))", "n", num}, {"round(math.pow($))", "nn", num},
	{"type", "a", str}, {"tonumber", "a?i", num}, {"tonumber", "si", num}, {"select", "i?aaa", anything}, {"rawget", "ta", anything},
	{"rawequal", "aa", boolean}, {"rawset", "tka", tab}, {"next", "t", anything}, {"getmetatable", "a", anything}, {"setmetatable", "tt", tab},
	{"setmetatable", "aa", anything}, {"assert", "a?a", anything},
	{"pcall", "f?aa", boolean}, {"xpcall", "ff", boolean}, {"ipairs", "t", function}, {"pairs", "t", function}, {"error", "a?e", anything},
	{"coroutine.running", "", anything}, {"coroutine.wrap", "f", function}, {"coroutine.create", "f", anything},
	{"coroutine.status", "a", str}, {"coroutine.resume", "a?a", anything},
	{"coroutine.yield", "?aa", anything}, {"loadstring", "s?s", function},
}

// call returns a call of one of the libraries' functions that yields w. Arguments are
// wrong once in a while, but for those that decide how long the call takes.
func (g *generator) call(w what, depth int) *node {
	var fit []builtin
	all := builtins
	if g.libraries && g.one(2) {
		all = redisBuiltins
	}
	for _, b := range all {
		if b.yields == w || w == anything {
			fit = append(fit, b)
		}
	}
	if len(fit) == 0 {
		return g.atom(w)
	}
	b := pick(g, fit...)
	args := g.arguments(b.takes, depth)
	if strings.Contains(b.name, "$") {
		return tree(expression, b.name, args)
	}
	if b.takes[:min(1, len(b.takes))] == "s" && strings.HasPrefix(b.name, "string.") && g.one(4) && len(args.kids) > 0 {
		return tree(expression, "($):"+b.name[len("string."):]+"($)", args.kids[0], sequence(list, args.kids[1:]...))
	}
	n := tree(expression, b.name+"($)", args)
	if g.one(8) {
		n = tree(expression, "($)", n) // one result
	}
	return n
}

// arguments returns random arguments for a function, one for each letter of takes (see
// argument). Letters after '?' are optional.
func (g *generator) arguments(takes string, depth int) *node {
	args, optional := sequence(list), false
	for _, c := range takes {
		if c == '?' {
			optional = true
			continue
		}
		if optional && g.one(2) {
			break
		}
		args.kids = append(args.kids, g.argument(c, depth-1))
	}
	if n := len(args.kids); n > 0 && g.one(60) && !strings.Contains(takes, "r") {
		args.kids = args.kids[:n-1]
	} else if g.one(60) {
		args.kids = append(args.kids, g.atom(anything))
	}
	return args
}

func (g *generator) argument(letter rune, depth int) *node {
	if g.one(40) && letter != 'r' && letter != 'i' && letter != 'e' && letter != 'k' {
		return g.atom(anything)
	}
	switch letter {
	case 'n':
		return g.expr(num, depth)
	case 'i':
		return leaf(expression, pick(g, "1", "2", "3", "0", "-1", "-2", "4", "5", "10", "-10", "2.5", "2.9", "'2'", "16", "36", "37", "nil",
			"100", "8", "'x'", "{}", "-0.5"))
	case 'e': // above that it shows how the harness was called
		return leaf(expression, pick(g, "1", "2", "3", "0", "-1", "4", "'2'", "nil", "1.5"))
	case 's':
		return g.expr(str, depth)
	case 'p':
		return leaf(expression, `"`+g.pattern()+`"`)
	case 'l':
		return g.expr(items, depth)
	case 't':
		return g.expr(pick(g, tab, tab, items, object), depth)
	case 'f':
		return g.expr(function, depth)
	case 'b':
		return leaf(expression, pick(g, "true", "false", "nil", "1"))
	case 'r':
		return leaf(expression, pick(g, "0", "1", "2", "3", "5", "-1", "2.7", "'4'", "10", "nil", "'x'", "-2^31", "0/0"))
	case 'c':
		return leaf(expression, pick(g, "65", "97", "0", "255", "256", "-1", "10", "'66'", "97.9", "48", "nil"))
	case 'x':
		switch g.IntN(4) {
		case 0:
			return g.expr(function, depth)
		case 1:
			return g.expr(tab, depth)
		case 2:
			return leaf(expression, pick(g, `"%1"`, `"%0%0"`, `"<%1>"`, `"%2"`, `"%%"`, `"%"`, `"x"`, `""`, `"%9"`, `"%a"`, `"[%0]"`))
		}
		return g.expr(str, depth)
	case 'k':
		return g.key()
	case 'J':
		return leaf(expression, "[==["+g.json(3)+"]==]")
	case 'M':
		return leaf(expression, `"`+g.layout()+`"`)
	}
	return g.expr(anything, depth)
}

// pattern returns a pattern, as it stands in quotes; sometimes a wrong one.
func (g *generator) pattern() string {
	var b strings.Builder
	if g.one(6) {
		b.WriteString("^")
	}
	open := 0
	for range 1 + g.IntN(4) {
		if g.one(4) {
			b.WriteString("(")
			open++
		}
		b.WriteString(pick(g, "a", "b", "x", "%a", "%d", "%s", "%w", "%p", "%u", "%l", "%c", "%x", "%A", "%D", "%S", "%W", ".", "[a-z]", "[^a-z]",
			"[%d_]", "[%w%-]", "[]]", "[^]]", "[a-]", "o", " ", ",", "=", "%.", "%(", "%%", "[0-9a-f]", "%z", "q", "%-"))
		b.WriteString(pick(g, "", "", "", "*", "+", "-", "?"))
		if open > 0 && g.one(2) {
			b.WriteString(")")
			open--
		}
		switch g.IntN(24) {
		case 0:
			b.WriteString("%b()")
		case 1:
			b.WriteString("%f[%w]")
		case 2:
			b.WriteString("%1")
		case 3:
			b.WriteString("()")
		}
	}
	if !g.one(30) {
		b.WriteString(strings.Repeat(")", open))
	}
	if g.one(8) {
		b.WriteString("$")
	}
	if g.one(40) {
		b.WriteString(pick(g, "%", "[a", "[", "%b", "%bx", "%f", ")", "(", "[%", "[^", "[a-%", "*", "%5"))
	}
	return b.String()
}
