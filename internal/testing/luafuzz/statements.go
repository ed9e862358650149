package luafuzz

import (
	"fmt"
	"strings"
)

// block returns about n statements in a scope of their own.
func (g *generator) block(n int) *node {
	return g.within(func() *node { return g.statements(n) })
}

func (g *generator) statements(n int) *node {
	b := sequence(block)
	for range n {
		if g.left <= 0 {
			break
		}
		s := g.statement()
		b.kids = append(b.kids, s)
	}
	switch {
	case g.loops > 0 && g.one(8):
		b.kids = append(b.kids, tree(statement, "if $ then break end\n", g.expr(boolean, 2)))
	case g.loops > 0 && g.one(15):
		b.kids = append(b.kids, leaf(statement, "break\n"))
	case g.calls > 0 && g.loops == 0 && g.one(3):
		b.kids = append(b.kids, g.results())
	case g.one(40):
		b.kids = append(b.kids, g.results())
	}
	return b
}

// results returns a return statement.
func (g *generator) results() *node {
	if g.one(6) {
		return leaf(statement, "return\n")
	}
	return tree(statement, "return $\n", g.list(anything, 2))
}

// statement returns one statement; those that may well fail stand in a pcall.
func (g *generator) statement() *node {
	g.left--
	if g.one(3) {
		return g.declaration()
	}
	if g.nested < 5 && (g.nested == 1 && !g.one(8) || g.one(4)) {
		return tree(statement, "emit(pcall(function() $end))\n", g.body(func() *node { return sequence(block, g.plain()) }))
	}
	return g.plain()
}

// body generates the body of a function without parameters.
func (g *generator) body(generate func() *node) *node {
	vararg, loops := g.vararg, g.loops
	g.vararg, g.loops = false, 0
	g.calls++
	n := g.within(generate)
	g.calls--
	g.vararg, g.loops = vararg, loops
	return n
}

func (g *generator) plain() *node {
	if g.nested < 5 && g.one(2) {
		switch g.IntN(16) {
		case 13, 14, 15:
			return g.stress()
		case 0, 1:
			return g.conditional()
		case 2:
			return g.numericFor()
		case 3:
			return g.while()
		case 4:
			return g.repeat()
		case 5:
			return g.genericFor()
		case 6, 7:
			return g.coroutine()
		case 8:
			return g.failure()
		case 9:
			return tree(statement, "do\n$end\n", g.block(1+g.IntN(3)))
		case 10:
			return g.counters()
		case 11:
			return g.methods()
		case 12:
			return g.special()
		}
	}
	switch g.IntN(9) {
	case 0, 1:
		return g.assignment()
	case 2:
		if t := g.variable(tab, false); t != "" {
			return tree(statement, t+"[ $ ] = $\n", g.key(), g.expr(anything, 3))
		}
	case 3:
		if t := g.variable(items, false); t != "" {
			return g.change(t)
		}
	case 4:
		if f := g.variable(function, false); f != "" {
			return tree(statement, "emit("+f+"($))\n", g.list(anything, 2))
		}
	case 5:
		return tree(statement, "emit($)\n", g.operation(3))
	}
	return tree(statement, "emit($)\n", g.list(what(g.IntN(kinds)), 4))
}

// declaration returns a local statement, or a local function.
func (g *generator) declaration() *node {
	w := what(g.IntN(kinds))
	if w == function && g.nested < 5 && !g.one(3) {
		f := g.name("f")
		if g.one(2) {
			n := tree(statement, "local "+f+" = $\n", g.closure(3))
			g.declare(f, function, true)
			return n
		}
		return g.recursive(f)
	}
	if g.one(4) {
		names, values := []string{}, g.list(w, 3)
		for range 1 + g.IntN(4) {
			names = append(names, g.name("v"))
		}
		for _, n := range names {
			defer g.declare(n, w, false)
		}
		if g.one(8) {
			return leaf(statement, "local "+strings.Join(names, ", ")+"\n")
		}
		return tree(statement, "local "+strings.Join(names, ", ")+" = $\n", values)
	}
	name := g.name(string("nsbtifoa"[w]))
	n := tree(statement, "local "+name+" = $\n", g.expr(w, 2))
	if w != function && g.one(2) {
		n = tree(statement, "local _, "+name+" = pcall(function() return $ end)\n", g.body(func() *node { return g.expr(w, 4) }))
	}
	if len(g.vars) > 0 && g.one(8) {
		name = g.vars[g.IntN(len(g.vars))].name // hides the older one
		n = tree(statement, "local "+name+" = $\n", g.expr(w, 4))
		for i := range g.vars {
			if g.vars[i].name == name {
				return tree(statement, "emit($)\n", g.list(w, 2)) // its scope would have to be remembered
			}
		}
	}
	g.declare(name, w, w == function)
	return n
}

// closure returns a function with statements.
func (g *generator) closure(statements int) *node {
	if g.nested >= 5 {
		return g.atom(function)
	}
	vararg, loops, known := g.vararg, g.loops, len(g.vars)
	g.loops, g.vararg = 0, g.one(2)
	g.calls++
	var params []string
	for range g.IntN(4) {
		p := g.name("p")
		params = append(params, p)
		g.declare(p, what(g.IntN(kinds)), false)
	}
	if g.vararg {
		params = append(params, "...")
	}
	body := g.block(1 + g.IntN(statements))
	if g.vararg && g.one(4) {
		body = sequence(block, leaf(statement, pick(g, "local arg = {...}\n", "emit(select('#', ...), ...)\n", "emit(arg)\n",
			"emit((...), {...})\n")), body)
	}
	g.calls--
	g.vararg, g.loops, g.vars = vararg, loops, g.vars[:known]
	return tree(expression, "function("+strings.Join(params, ", ")+")\n$end", body)
}

// recursive returns a function that calls itself a few times.
func (g *generator) recursive(f string) *node {
	vararg, loops, known := g.vararg, g.loops, len(g.vars)
	g.vararg, g.loops = false, 0
	g.calls++
	n, x := g.name("n"), g.name("x")
	g.declare(n, num, true)
	g.declare(x, anything, false)
	again := pick(g, "return "+f+"("+n+" - 1, $)\n", "return $, "+f+"("+n+" - 1)\n", "return ("+f+"("+n+" - 1, $))\n",
		"emit("+f+"("+n+" - 1, $))\n")
	body := sequence(block, tree(statement, again, g.expr(anything, 2)))
	if !strings.HasPrefix(again, "return") {
		body.kids = append(body.kids, g.results())
	}
	first := g.block(1)
	g.calls--
	g.vararg, g.loops, g.vars = vararg, loops, g.vars[:known]
	depth := g.IntN(8)
	s := tree(statement, "local function "+f+"("+n+", "+x+")\nif "+n+" < 1 then return "+x+" end\ndo\n$end\n$end\nemit(pcall("+f+", "+
		fmt.Sprint(depth)+", $))\n", first, body, g.expr(anything, 2))
	return s
}

func (g *generator) assignment() *node {
	var targets []string
	for range 1 + g.IntN(3) {
		if t := g.variable(what(g.IntN(kinds)), true); t != "" {
			targets = append(targets, t)
		}
		if t := g.variable(tab, false); t != "" && g.one(3) {
			targets = append(targets, t+pick(g, ".x", ".y", "[1]", "[2]", "[3]", `["a b"]`, "[#"+t+" + 1]", "[#"+t+"]"))
		}
	}
	if len(targets) == 0 {
		return tree(statement, "emit($)\n", g.list(anything, 3))
	}
	values := g.list(anything, 3)
	if len(targets) == 1 {
		for _, v := range g.vars {
			if v.name == targets[0] {
				values = sequence(list, g.expr(v.what, 3))
			}
		}
	}
	return tree(statement, strings.Join(targets, ", ")+" = $\n", values)
}

// change changes an array.
func (g *generator) change(t string) *node {
	switch g.IntN(8) {
	case 0:
		return tree(statement, "table.insert("+t+", $)\nemit("+t+")\n", g.expr(pick(g, num, str), 2))
	case 1:
		return tree(statement, "table.insert("+t+", "+pick(g, "1", "2", "0", "-1", "#"+t+" + 2", "3", "'2'", "1.7")+", $)\nemit("+t+")\n",
			g.expr(pick(g, num, str), 2))
	case 2:
		return leaf(statement, "emit(table.remove("+t+pick(g, "", ", 1", ", 2", ", #"+t, ", 99", ", 0", ", '1'")+"), "+t+", #"+t+")\n")
	case 3:
		return tree(statement, "emit(pcall(table.sort, "+t+", $), "+t+")\n",
			leaf(expression, pick(g, "nil", "function(a, b) return a > b end", "function(a, b) return tostr(a) < tostr(b) end",
				"function(a, b) return true end", "function(a, b) return #tostr(a) < #tostr(b) end", "function() end",
				"function(a, b) error('cmp') end", "3")))
	case 4:
		return leaf(statement, "for i = "+pick(g, "1, 10", "10, 1, -1", "1, 20, 3", "#"+t+", 1, -2")+" do "+t+"[i] = "+pick(g, "nil", "i",
			"i * i", "tostring(i)", "i % 3 == 0 and i or nil")+" end\nemit("+t+", #"+t+")\n")
	case 5:
		return leaf(statement, t+"["+pick(g, "#"+t, "#"+t+" - 1", "1", "2", "#"+t+" + 1", "#"+t+" + 2", "16", "0", "-1")+"] = "+pick(g, "nil",
			"1", "'s'")+"\nemit("+t+", #"+t+")\n")
	case 6:
		return leaf(statement, "emit(pcall(table.concat, "+t+pick(g, "", ", ', '", ", 1", ", '', 2", ", '-', 1, 2",
			", '', 3, 2", ", ',', -1, 1")+"))\n")
	}
	return leaf(statement, "emit(unpack("+t+pick(g, "", ", 2", ", 1, 2", ", -1, 3", ", 3, 1", ", 2, 40", ", 0")+"))\n")
}

func (g *generator) conditional() *node {
	c := g.expr(pick(g, boolean, boolean, anything), 3)
	switch g.IntN(3) {
	case 0:
		return tree(statement, "if $ then\n$end\n", c, g.block(2))
	case 1:
		return tree(statement, "if $ then\n$else\n$end\n", c, g.block(2), g.block(2))
	}
	return tree(statement, "if $ then\n$elseif $ then\n$else\n$end\n", c, g.block(2), g.expr(boolean, 3), g.block(1), g.block(1))
}

// loop generates the body of a loop, which ends after a few turns: w counts.
func (g *generator) loop(n int) *node {
	g.loops++
	b := g.block(n)
	g.loops--
	return b
}

func (g *generator) numericFor() *node {
	i, w := g.name("i"), g.name("w")
	var from, to, step string
	switch g.IntN(5) {
	case 0:
		from, to = pick(g, "1", "0", "-2", "3", "2.5", "'1'", "nil"), pick(g, "3", "5", "2", "'4'", "3.7", "math.huge", "-1", "nil", "0/0")
	case 1:
		from, to, step = pick(g, "5", "1", "0", "-1e300", "2^53"), pick(g, "1", "-3", "10", "2^53+5", "-math.huge"),
			pick(g, "-1", "-2", "0.5", "-0.25", "3", "0", "'-1'", "0/0", "math.huge", "-math.huge", "{}")
	default:
		from, to = "1", fmt.Sprint(1+g.IntN(4))
	}
	head := from + ", " + to
	if step != "" {
		head += ", " + step
	}
	body := g.within(func() *node {
		g.declare(i, num, true)
		return g.loop(2)
	})
	return tree(statement, "local "+w+" = 0\nfor "+i+" = "+head+" do\n"+w+" = "+w+" + 1\nif "+w+" > 6 then break end\n"+
		"$end\nemit("+w+")\n", body)
}

func (g *generator) while() *node {
	w := g.name("w")
	body := g.within(func() *node {
		g.declare(w, num, true)
		return g.loop(2)
	})
	return tree(statement, "local "+w+" = 0\nwhile "+w+" < "+fmt.Sprint(1+g.IntN(4))+" and $ do\n"+w+" = "+w+" + 1\n$end\n"+
		"emit("+w+")\n", g.expr(boolean, 2), body)
}

// repeat has a local of its body in its condition.
func (g *generator) repeat() *node {
	w, l := g.name("w"), g.name("l")
	var body, condition *node
	g.within(func() *node {
		g.declare(w, num, true)
		body = g.loop(2)
		g.declare(l, boolean, false)
		condition = g.expr(boolean, 2)
		return nil
	})
	closure := pick(g, "", "", "emit((function() return "+l+" end)())\n")
	return tree(statement, "local "+w+" = 0\nrepeat\n"+w+" = "+w+" + 1\ndo\n$end\nlocal "+l+" = $\n"+closure+"until "+w+" > 3 or $\nemit("+w+
		")\n", body, g.atom(anything), condition)
}

func (g *generator) genericFor() *node {
	k, v, w := g.name("k"), g.name("v"), g.name("w")
	iterators := []string{"pairs($)", "next, $", "ipairs($)",
		"(function(t) local i = 0 return function() i = i + 1 if t[i] then return i, t[i] end end end)($)", "string.gmatch(tostr($), '%w')",
		"coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, $) end end)", "function(s, c) if c < 3 then return c + 1, s end end, $, 0",
		"setmetatable({}, {__call = function(self, s, c) c = (c or 0) + 1 if c < 4 then return c, s end end}), $", "$"}
	which := g.IntN(len(iterators))
	if which == len(iterators)-1 && !g.one(10) {
		which = 0
	}
	subject := g.expr(pick(g, tab, items, items, object), 3)
	body := g.within(func() *node {
		g.declare(k, anything, false)
		g.declare(v, anything, false)
		return g.loop(2)
	})
	first := pick(g, "emit(tostr("+k+"), "+v+")\n", "emit("+k+", "+v+")\n", "emit(select('#', "+k+", "+v+"))\n")
	return tree(statement, "local "+w+" = 0\nfor "+k+", "+v+" in "+iterators[which]+" do\n"+w+" = "+w+" + 1\nif "+w+" > 12 then break end\n"+
		first+"$end\nemit("+w+")\n", subject, body)
}

// coroutine makes a coroutine and resumes it some times.
func (g *generator) coroutine() *node {
	co, a := g.name("co"), g.name("a")
	yield := func() *node {
		y := pick(g, "emit('got', coroutine.yield($))\n", "emit(pcall(coroutine.yield, $))\n", "local x = {coroutine.yield($)}\nemit(x)\n",
			"emit(coroutine.running() ~= nil, coroutine.yield($))\n",
			"coroutine.yield($)\n", "coroutine.yield($)\n", "(function(...) return coroutine.yield(...) end)($)\n",
			"emit(pcall(string.gsub, 'ab', '%w', function(...) coroutine.yield($) end))\n",
			"emit(pcall(table.sort, {2, 1, 3}, function(...) return coroutine.yield($) end))\n")
		if strings.HasPrefix(y, "(") {
			y = "local r = " + y
		}
		return tree(statement, y, g.list(anything, 2))
	}
	known := len(g.vars)
	g.declare(a, anything, false)
	body := g.body(func() *node {
		b := g.statements(1 + g.IntN(2))
		b = sequence(block, tree(statement, "do\n$end\n", b))
		b.kids = append(b.kids, yield())
		switch g.IntN(4) {
		case 0:
			b.kids = append(b.kids, tree(statement, "for i = 1, 2 do $end\n", sequence(block, yield())))
		case 1:
			b.kids = append(b.kids, tree(statement, "error($)\n", g.expr(anything, 2)))
		case 2:
			b.kids = append(b.kids, yield())
		}
		b.kids = append(b.kids, g.results())
		return b
	})
	g.vars = g.vars[:known]
	made := tree(expression, "function("+a+")\n$end", body)
	turns := fmt.Sprint(1 + g.IntN(5))
	if g.one(2) {
		return tree(statement, "local "+co+" = coroutine.wrap($)\nfor i = 1, "+turns+" do\nemit(i, pcall("+co+", $))\nend\n",
			made, g.list(anything, 2))
	}
	return tree(statement, "local "+co+" = coroutine.create($)\nfor i = 1, "+turns+" do\nemit(i, coroutine.resume("+co+", $))\n"+
		"emit(coroutine.status("+co+
		"))\nend\n", made, g.list(anything, 2))
}

// failure raises an error and catches it.
func (g *generator) failure() *node {
	switch g.IntN(6) {
	case 0:
		return tree(statement, "emit(pcall(error, $))\n", g.arguments("a?e", 2))
	case 1:
		f := g.name("f")
		return tree(statement, "local function "+f+"(level) error($, level) end\nfor level = 0, 4 do "+
			"emit(pcall(function() "+f+"(level) end)) end\n",
			g.expr(pick(g, str, str, anything), 2))
	case 2:
		return tree(statement, "emit(xpcall(function()\n$end, $))\n", g.body(func() *node { return g.block(2) }), g.expr(function, 2))
	case 3:
		return tree(statement, "emit(xpcall(function() error($) end, function(m) return $, m end))\n", g.expr(anything, 2), g.atom(anything))
	case 4:
		return tree(statement, "emit(pcall(function()\ndo\n$end\nerror($)\nend))\n", g.body(func() *node { return sequence(block, g.plain()) }),
			g.arguments("a?e", 2))
	}
	return tree(statement, "emit(select('#', pcall(assert, $)))\n", g.list(anything, 2))
}

// counters makes closures in a loop, which share and do not share their upvalues.
func (g *generator) counters() *node {
	fs := g.name("fs")
	if g.one(2) {
		return tree(statement, "local "+fs+" = {}\nfor i = 1, 3 do\nlocal n, m = i, $\n"+fs+"[i] = function(...) n = "+
			"n + 1 if n > "+fmt.Sprint(2+g.IntN(4))+
			" then m, n = n, $ end return n, m, i, ... end\nend\nfor i = 1, 3 do emit(pcall("+fs+"[i], i), pcall("+fs+"[4 - i])) end\n",
			g.expr(num, 2), g.expr(num, 2))
	}
	return tree(statement, "local "+fs+" = {}\ndo\nlocal n = $\nlocal function get() return n end\nlocal function "+
		"set(x) n = x end\n"+fs+"[1], "+fs+
		"[2] = get, set\nemit(get())\nset($)\nn = $\nend\nemit("+fs+"[1](), "+fs+"[2]($), "+fs+"[1]())\n",
		g.expr(anything, 2), g.expr(anything, 2),
		g.expr(anything, 2), g.expr(anything, 2))
}

// methods defines functions in a table, in the ways there are.
func (g *generator) methods() *node {
	o := g.name("o")
	known := len(g.vars)
	g.declare("self", tab, false)
	body := g.body(func() *node {
		return sequence(block, tree(statement, "do\n$end\n", sequence(block, g.plain())), g.results())
	})
	g.vars = g.vars[:known]
	n := tree(statement, "local "+o+" = $\nfunction "+o+":m(a, ...)\n$end\nfunction "+o+".f(a) return a, self_, "+o+" end\n"+
		"emit(pcall("+o+".m, "+o+
		", $))\nemit(pcall(function() return "+o+":m($) end))\nemit("+o+".f(1), "+o+":f())\n",
		g.expr(pick(g, tab, object), 2), body, g.expr(anything, 2), g.list(anything, 2))
	n = tree(statement, "local self_\n$", n)
	g.declare(o, tab, false)
	return n
}

// special returns one of the rarer things.
func (g *generator) special() *node {
	switch g.IntN(14) {
	case 0:
		return leaf(statement, pick(g, "local function deep() return 1 + deep() end\n",
			"local function deep(...) local t = {deep(...)} return t end\n",
			"local deep = setmetatable({}, {__index = function(t, k) return t[k + 1] end})\ndeep = (function(d) return function() "+
				"return d[1] end end)(deep)\n",
			"local function deep() return pcall(deep) end\n", "local function deep() return (string.gsub('a', 'a', deep)) end\n",
			"local s = '' local function deep() s = s .. 'x' return #s < 30 and deep() or #s end\n")+
			"local r = {pcall(deep)}\nemit(r[1], #r < 10 and (tostr(r[2]):gsub('\\n.*', '')))\n")
	case 1:
		return tree(statement, "emit(pcall(setmetatable, $, $))\n", g.expr(pick(g, str, num, tab, object), 1), g.expr(tab, 1))
	case 2:
		return tree(statement, "local f, e = loadstring($, $)\nemit(e)\nif f then emit(pcall(f, $)) end\n",
			leaf(expression, pick(g, "'return ...'", "'return 1 +'", "'local a = ... return a, a'", "'error(\"in\")'", "'x ='",
				"'return function() return nil + 1 end'", "'for'", "'return 1 2'")),
			leaf(expression, pick(g, "nil", "'=name'", "'@file.lua'", "'a line\\nanother'",
				"'a name that is much longer than what there is room for in a message of this kind'",
				"'@/a/path/that/is/much/longer/than/there/is/room/for/in/a/message/of/any/kind/file.lua'")), g.atom(anything))
	case 3:
		return tree(statement, "local parts, at = {'return ', '1, ', $}, 0\nlocal f, e = load(function() at = at + 1 return parts[at] end, $)\n"+
			"emit(e, f and pcall(f))\n", g.expr(str, 1), leaf(expression, pick(g, "nil", "'=loaded'", "'@x'")))
	case 4:
		t := g.name("t")
		s := fmt.Sprintf("local %[1]s = {}\nfor i = 1, %[2]d do %[1]s['k' .. i] = i %[1]s[i * %[3]d] = i end\nfor i = 1, %[2]d, "+
			"%[4]d do %[1]s['k' .. i] = nil end\nfor i = 1, %[5]d do %[1]s[i] = 'n' end\nemit(%[1]s, #%[1]s)\n", t, 1+g.IntN(40),
			1+g.IntN(3), 1+g.IntN(3), g.IntN(20))
		g.declare(t, tab, false)
		return leaf(statement, s)
	case 5:
		return tree(statement, "local t, c = $, 0\nfor k in pairs(t) do c = c + 1 if c > 50 then break end t[k] = nil end\n"+
			"emit(next(t), t)\n", g.expr(tab, 2))
	case 6:
		return leaf(statement, "local r = {}\nfor c in string.gmatch("+pick(g, stringLiterals...)+", \""+g.pattern()+
			"\") do r[#r + 1] = c if #r > 20 then break end end\nemit(r)\n")
	case 7:
		return tree(statement, "emit(string.gsub($, \"(.)(.?)\", function(a, b) return $ end))\n", g.expr(str, 2),
			leaf(expression, pick(g, "b .. a", "nil", "false", "#a", "{}", "a, b", "b == '' and error({}) or a", "coroutine.yield(a)")))
	case 8:
		g.only = "redis-server"
		return leaf(statement, fmt.Sprintf("math.randomseed(%s)\nemit(math.random(), math.random(%s), math.random(%s), pcall(math.random, %s))\n",
			pick(g, "1", "0", "42", "-7", "1e10", "3.7"), pick(g, "1", "6", "100", "2^31-1"), pick(g, "1, 6", "-5, 5", "7, 7", "0, 1"),
			pick(g, "0", "2, 1", "1, 2, 3", "'3'", "{}")))
	case 9:
		g.only = "redis-server"
		t := g.name("t")
		s := fmt.Sprintf("local %[1]s = {}\nfor i = 1, %[2]d do %[1]s[('%[3]s'):rep(%[4]d) .. i .. ('z'):rep(i)] = i end\n"+
			"emit(%[1]s)\n", t, 3+g.IntN(20),
			pick(g, "x", "key:", "0123456789"), 4+g.IntN(20))
		g.declare(t, tab, false)
		return leaf(statement, s)
	case 10:
		if g.only == "redis-server" {
			break
		}
		g.only = "lua5.1"
		x := g.name("G")
		return tree(statement, x+" = $\nemit("+x+", _G['"+x+"'], rawget(_G, 'missing'), undefined_)\n"+
			"function "+x+"_f(a) "+x+" = a return "+x+" end\nemit("+x+
			"_f($), "+x+")\nemit(pcall(function() return undefined_.x end))\nemit(pcall(function() undefined_() end))\n",
			g.expr(anything, 2), g.expr(anything, 2))
	case 11:
		return leaf(statement, "local mt = {__index = function(t, k) return k .. '!' end, __newindex = function(t, "+
			"k, v) rawset(t, k, {v}) end}\n"+
			"local p = setmetatable({}, mt)\np.a = 1\np.a = 2\nemit(p.a, p.b, rawget(p, 'b'), p)\n"+
			"mt.__index = {c = "+pick(g, numerals...)+"}\nemit(p.c, p.d)\n")
	case 12:
		return leaf(statement, "local function count(...) return select('#', ...) end\nemit(count(nil, nil), "+
			"count((count())), count(unpack({}, 1, "+
			pick(g, "3", "0", "100", "-1", "250")+")), pcall(select, "+pick(g, "0", "-1", "'#'", "3", "-5", "nil")+", 1, 2))\n"+
			"emit(pcall(unpack, {}, 1, "+
			pick(g, "1e6", "7990", "2^31", "1e8", "9000")+") == true)\n")
	}
	return leaf(statement, "local a = {}\nlocal i = 1\ni, a[i] = i + 1, 20\nemit(i, a)\nlocal x, y, z = (function() return 1, "+
		"2, 3 end)()\nx, y, z = z, x\n"+
		"emit(x, y, z)\n")
}

// damage changes a program's text at some places.
func (g *generator) damage(text string) string {
	b := []byte(text)
	tokens := []string{"end", "do", "=", "(", ")", "{", "}", "[", "]", ",", ";", "..", "...", "==", "~=", "~", "!", "@", "`",
		"$", "&", "local", "function", "return", "break", "if", "then", "else", "elseif", "for", "in", "while", "repeat", "until",
		"nil", "not", "and", "or", "0x", "1e", "3x", "1..2", "'",
		"\"", "[[", "[=[", "]]", "--[[", "--", "\\", "\"\\300\"", "'\\q'", "a.b.c", ":", "::", "goto", "%", "#", "^",
		"\r\n", "\n", "\r", "\x00", "\xff", "\x1a", "é", "\"\n", "0xg", "1e+", ".5.", "a b", "= 1", "local x", "f()", "f{}", "f''",
		"x,", "]==]", "[==", "1e5e", "08", "<", ">=", "break break"}
	for range 1 + g.IntN(3) {
		if len(b) == 0 {
			break
		}
		at := g.IntN(len(b))
		switch g.IntN(6) {
		case 0:
			b = b[:at]
		case 1:
			end := min(len(b), at+1+g.IntN(6))
			b = append(b[:at:at], b[end:]...)
		case 2:
			b[at] = byte(32 + g.IntN(95))
		default:
			b = append(b[:at:at], append([]byte(pick(g, "", " ")+pick(g, tokens...)+pick(g, "", " ")), b[at:]...)...)
		}
	}
	return string(b)
}
