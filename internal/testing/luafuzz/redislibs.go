package luafuzz

import (
	"strconv"
	"strings"
)

// redisBuiltins are the functions that redis-server adds: J is a JSON text, M a
// format of struct.
var redisBuiltins = []builtin{
	{"cjson.encode", "a", str}, {"cjson.encode", "t", str}, {"cjson.encode", "l", str}, {"cjson.decode", "J", tab}, {"cjson.decode", "s", tab},
	{"cjson.encode(cjson.decode($))", "J", str},
	{"cmsgpack.pack", "a?aa", str}, {"cmsgpack.pack", "t", str}, {"cmsgpack.unpack(cmsgpack.pack($))", "t?a", tab},
	{"cmsgpack.unpack", "s", anything}, {"cmsgpack.unpack_one", "s?i", anything}, {"cmsgpack.unpack_limit", "si?i", anything},
	{"struct.pack", "M?nnn", str}, {"struct.pack", "Mnsn", str}, {"struct.unpack", "Ms?i", anything}, {"struct.size", "M", num},
	{"bit.tobit", "n", num}, {"bit.bnot", "n", num}, {"bit.band", "n?nn", num}, {"bit.bor", "n?nn", num}, {"bit.bxor", "n?nn", num},
	{"bit.lshift", "nn", num}, {"bit.rshift", "nn", num}, {"bit.arshift", "nn", num}, {"bit.rol", "nn", num}, {"bit.ror", "nn", num},
	{"bit.bswap", "n", num}, {"bit.tohex", "n?i", str},
	{"redis.sha1hex", "s", str}, {"redis.error_reply", "s", tab}, {"redis.status_reply", "s", tab},
}

// NewScript returns a random program, which calls functions of redis-server's libraries. A seed always gives the same one.
func NewScript(seed uint64) *Program {
	g := newGenerator(seed)
	g.left = 3 + g.IntN(25)
	g.libraries = true
	first := pick(g, redisBuiltins...)
	args := g.arguments(first.takes, 4)
	name := first.name
	if !strings.Contains(name, "$") {
		name += "($)"
	}
	e := tree(expression, name, args)
	l := sequence(list, e)
	if g.one(3) {
		l.kids = append(l.kids, g.expr(what(g.IntN(kinds)), 3))
	}
	return &Program{root: tree(block, "local emit, tostr, round, pcall = ... return $\n", l), Only: "redis-server"}
}

// json returns a JSON text, mostly a right one.
func (g *generator) json(depth int) string {
	text := g.jsonValue(depth)
	if g.one(6) {
		at := g.IntN(len(text) + 1)
		text = text[:at] + pick(g, ",", "}", "]", "x", "\"", "[", "1", " ", "\\u12", "\\", "nul", "-", "\t", "/") + text[at:]
	}
	if g.one(12) {
		text = text[:g.IntN(len(text)+1)]
	}
	return text
}

func (g *generator) jsonValue(depth int) string {
	if depth == 0 || g.one(3) {
		return pick(g, "1", "0", "-1.5", "1e3", "1E+2", "12345678901234567890", "0.1", "-0", "1e400", "true", "false", "null", `""`, `"a"`,
			`"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\\"\/\b\f\n\r\t"`, `"é"`, `"x y"`, `"\u0000"`, "[]", "{}", "0x10", "01",
			"1.", ".5", "nan", "inf", `"\q"`)
	}
	var parts []string
	for range g.IntN(5) {
		parts = append(parts, g.jsonValue(depth-1))
	}
	if g.one(2) {
		return "[" + strings.Join(parts, pick(g, ",", ", ")) + "]"
	}
	for i := range parts {
		parts[i] = `"` + pick(g, "a", "b", "k"+strconv.Itoa(g.IntN(30)), "1", "",
			"long key of some length, more than thirty-two bytes") + `":` + pick(g, "", " ") + parts[i]
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// layout returns a format of the library struct.
func (g *generator) layout() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString(pick(g, "b", "B", "h", "H", "i", "I", "l", "L", "i4", "I2", "i8", "I3", "f", "d", "s", "c3", "c0", "x", ">", "<", "=", "!4",
			"!", "T", "s", "i16", "i33", "z", " ", "c1"))
	}
	return b.String()
}
