package luafuzz

import (
	"fmt"
	"strings"
)

// stress returns a statement that leans on one part of a compiler or a machine.
func (g *generator) stress() *node {
	switch g.IntN(12) {
	case 0, 1, 2:
		return g.decisions()
	case 3, 4:
		return g.conflicts()
	case 5:
		return g.appends()
	case 6:
		return g.constants()
	case 7:
		return g.crowd()
	case 8:
		return g.sizes()
	case 9:
		return g.sorting()
	case 10:
		return g.nestedCoroutines()
	}
	return g.iteration()
}

// logic returns a tree of and, or, not and comparisons, which compile to jumps.
func (g *generator) logic(depth int) *node {
	if depth == 0 || g.one(7) {
		return leaf(expression, pick(g, "A", "B", "C", "D", "nil", "false", "true", "1", "'s'", "A", "B", "N()", "F(A, B)", "T.x", "T[A]"))
	}
	switch g.IntN(8) {
	case 0, 1:
		return tree(expression, "($ and $)", g.logic(depth-1), g.logic(depth-1))
	case 2, 3:
		return tree(expression, "($ or $)", g.logic(depth-1), g.logic(depth-1))
	case 4:
		return tree(expression, "$ and $ or $", g.logic(depth-1), g.logic(depth-1), g.logic(depth-1))
	case 5:
		return tree(expression, "not $", g.logic(depth-1))
	case 6:
		return tree(expression, "($ "+pick(g, "==", "~=")+" $)", g.logic(depth-1), g.logic(depth-1))
	}
	return tree(expression, "("+pick(g, "1", "2", "#T", "M")+" "+pick(g, "<", "<=", ">", ">=")+" "+pick(g, "1", "2", "#T", "M", "(M + 1)")+")")
}

// decisions uses such trees wherever a value or a condition may stand, for all
// values of some variables.
func (g *generator) decisions() *node {
	uses := []string{"emit(1, $)\n", "if $ then emit('then') else emit('else') end\n", "local v, w = $, 2\nemit(v, w)\n",
		"local t = {$, x = $}\nemit(t)\n", "while $ do emit('turn') break end\n",
		"local n = 0\nrepeat n = n + 1 local stop = n > 2 until stop or $\nemit(n)\n",
		"emit((function() return $ end)())\n", "B = $\nemit(B)\n", "T.x = $\nemit(T.x)\n", "A, B = $, $\nemit(A, B)\n", "emit(T[$ or 1])\n",
		"emit(N($, $))\n", "emit(not $, -(tonumber($) or 1))\n", "if $ then emit(1) elseif $ then emit(2) elseif $ then emit(3) end\n",
		"if not $ then B = A end\n", "emit(($) == ($))\n", "for i = 1, ($) and 2 or 1 do emit(i, $) end\n"}
	body := sequence(block)
	for range 1 + g.IntN(4) {
		use := pick(g, uses...)
		kids := make([]*node, strings.Count(use, "$"))
		for i := range kids {
			kids[i] = g.logic(1 + g.IntN(4))
		}
		body.kids = append(body.kids, tree(statement, use, kids...))
	}
	return tree(statement, "do\nlocal M, T = 2, {1, 2, x = false}\nlocal function N(...) return ... end\nlocal function F(a, b) return b, a "+
		"end\nlocal C, D = "+pick(g, "nil, 1", "false, 'd'", "true, nil")+
		"\nlocal values = {n = 4, 1, false, 's'}\nfor i = 1, 4 do for j = 1, 4 do\nlocal A, B = values[i], "+
		"values[j]\nemit(pcall(function()\n$end))\nend end\nend\n", body)
}

// conflicts returns assignments to variables that other targets of the same statement use.
func (g *generator) conflicts() *node {
	targets := []string{"t", "i", "t[i]", "t.x", "t[i + 1]", "t[t[1]]", "u", "u[i]", "u.t", "t.x", "i", "x"}
	values := []string{"{i, 2}", "i + 1", "t", "u", "t[i]", "u[1]", "5", "'s'", "f()", "nil", "x", "{x = i}", "t.x"}
	body := sequence(block)
	for range 1 + g.IntN(4) {
		var left []string
		right := sequence(list)
		for range 1 + g.IntN(4) {
			left = append(left, pick(g, targets...))
		}
		for range 1 + g.IntN(4) {
			right.kids = append(right.kids, leaf(expression, pick(g, values...)))
		}
		body.kids = append(body.kids, tree(statement, "emit(pcall(function() "+strings.Join(left, ", ")+" = $ end))\nemit(t, i, u, x)\n", right))
		if g.one(2) {
			body.kids = append(body.kids, tree(statement, strings.Join(left, ", ")+" = $\nemit(t, i, u, x)\n", right))
		}
	}
	return tree(statement, "emit(pcall(function()\nlocal t, i, u, x = {1, 2, x = 0}, 1, {3, 4}, 'x'\nlocal function f() return "+
		"7, 8, 9 end\n$end))\n", body)
}

// appends makes strings out of earlier ones, which a machine may keep in one
// place.
func (g *generator) appends() *node {
	steps := sequence(block)
	if g.only != "lua5.1" && g.one(4) { // lua5.1 does not look at each byte of a long key
		g.only = "redis-server"
		steps.kids = append(steps.kids, leaf(statement, "keep[s] = i\n"))
	}
	for range 2 + g.IntN(6) {
		steps.kids = append(steps.kids, leaf(statement, pick(g,
			"s = s .. i\n", "s = s .. 'ab'\n", "keep[#keep + 1] = s\n", "keep[#keep + 1] = s\n", "s = keep[1 + i % #keep] .. 'x'\n",
			"keep[i] = keep[1] .. s\n", "s = s .. s\n if #s > 500 then s = s:sub(3, 40) end\n", "s = 'pre' .. s\n if #s > 500 then s = '' end\n",
			"keep[#keep + 1] = s:sub(2, -2)\n", "s = s:sub(1, #s / 2) .. 'h'\n",
			"local a, b = s .. '1', s .. '2'\nkeep[#keep + 1] = a keep[#keep + 1] = b\n", "s = s .. i .. 'm' .. i\n",
			"s = s .. keep[#keep]\n if #s > 500 then s = 'r' end\n", "s = s:rep(2)\n if #s > 400 then s = s:sub(-9) end\n",
			"s = s:gsub('a', 'bb')\n if #s > 400 then s = s:upper() s = s:sub(1, 7) end\n",
			"s = table.concat({s, 'c', s:sub(-3)})\n if #s > 500 then s = 'q' end\n")))
	}
	return tree(statement, "do\nlocal s, keep = '', {'k'}\nfor i = 1, "+fmt.Sprint(3+g.IntN(30))+
		" do\n$end\nlocal total = 0\nfor k, v in pairs(keep) do total = total + #tostr(v) + #tostr(k) end\nfor i = 1, #keep do keep[i] = "+
		"tostr(keep[i]):sub(1, 90) end\nemit(#s, s:sub(1, 60), s:sub(-60), total, keep)\nend\n", steps)
}

// constants returns more of them than fit into the short forms of instructions.
func (g *generator) constants() *node {
	var b strings.Builder
	n := 240 + g.IntN(40)
	for i := range n {
		fmt.Fprintf(&b, "%d.25,", i)
	}
	uses := sequence(list)
	for range 3 + g.IntN(8) {
		k := n + g.IntN(40)
		uses.kids = append(uses.kids, leaf(expression, strings.ReplaceAll(pick(g, "a + #.75", "#.75 - a", "#.5 < a", "a <= #.5", "a == #.5",
			"t.key#", "t['key#']", "-#.75", "a .. 'str#'", "'str#' == a", "t[#.5]", "#.5 * #.25", "(a > #.5 and 'x#' or 'y#')",
			"({k# = #.5, ['l#'] = a})",
			"tostr('m#')", "not 'n#'"), "#", fmt.Sprint(k))))
	}
	return tree(statement, "emit(pcall(function()\nlocal a, t = 250.5, {key"+fmt.Sprint(n)+" = 1}\n"+
		"local c = {"+b.String()+"}\nt.key"+fmt.Sprint(n+1)+
		" = c[#c]\nemit($)\nt.key"+fmt.Sprint(n+2)+", t["+fmt.Sprint(n)+".5] = 'new"+fmt.Sprint(n)+"', "+fmt.Sprint(n+3)+".5\n"+
		"emit(#c, t)\nreturn t:nokey"+
		fmt.Sprint(n)+"()\nend))\n", uses)
}

// crowd returns a function whose number of locals is near the limit of 200, or above it.
func (g *generator) crowd() *node {
	n := pick(g, 50, 120, 190, 198, 199, 200, 201, 205)
	var names, sum []string
	for i := range n {
		names = append(names, fmt.Sprint("l", i))
		if i%(1+n/40) == 0 {
			sum = append(sum, fmt.Sprint("l", i))
		}
	}
	extra := pick(g, "return "+strings.Join(sum, " + "), "return {"+strings.Join(sum, ", ")+"}", "return "+strings.Join(sum, " .. "),
		"return (function() return "+strings.Join(sum[:min(len(sum), 20)], ", ")+" end)()",
		"return select('#', "+strings.Join(names, ", ")+")", "return "+
			strings.Repeat("{", 60)+strings.Repeat("}", 60), "return f(f(f(f(f(1, f(2, f(3)))))))")
	return leaf(statement, "do\nlocal f, e = loadstring([=[\nlocal f = function(...) return ... end\n"+
		"local "+strings.Join(names, ", ")+" = 1, 2, 3\n"+
		strings.ReplaceAll("for i = 1, @ do f(i) end\n", "@", fmt.Sprint(g.IntN(3)))+strings.Join(names[max(0, n-9):], ", ")+
		" = 9, 8, 7, 6, 5, 4, 3, 2, 1\nfor i = 1, 0 do end\n"+extra+"\n]=], '=crowd')\nemit(e)\nif f then emit(pcall(f)) end\nend\n")
}

// sizes fills and empties tables, and looks at their order and length.
func (g *generator) sizes() *node {
	steps := sequence(block)
	for range 3 + g.IntN(8) {
		n, m := 1+g.IntN(70), 1+g.IntN(9)
		steps.kids = append(steps.kids, leaf(statement, strings.NewReplacer("N", fmt.Sprint(n), "M", fmt.Sprint(m)).Replace(pick(g,
			"for i = 1, N do t[i] = i end\n", "for i = N, 1, -1 do t[i] = i end\n", "for i = 1, N, M do t[i] = nil end\n",
			"for i = 1, N do t['k' .. i] = i end\n", "for i = 1, N, M do t['k' .. i] = nil end\n", "for i = N, N + M do t[i] = i end\n",
			"t[N] = M\n", "t[-N] = M\n", "t[N + 0.5] = M\n", "for i = 1, M do t[#t + 1] = i end\n", "for i = 1, M do t[#t] = nil end\n",
			"for i = 1, M do table.remove(t, 1) end\n",
			"for i = 1, M do table.insert(t, 1, 'i' .. i) end\n", "for k in pairs(t) do t[k] = nil end\n",
			"for k, v in pairs(t) do if v == M or M > 6 then t[k] = nil else t[k] = M end end\n", "t = {unpack(t, 1, N)}\n", "t[2 ^ M] = 'p'\n",
			"t[true], t[false] = N, M\n", "for i = 0, N do t[i * 2 ^ 20] = i end\n", "t = {N, M, x = N, n = M, [N] = 1}\n",
			"for i = 1, N do t[i % M] = (t[i % M] or 0) + 1 end\n", "for i = 1, N do t[('x'):rep(i % 20)] = i end\n"))+"emit(#t)\n"))
		if g.one(3) {
			steps.kids = append(steps.kids, leaf(statement, "emit(t)\n"))
		}
	}
	return tree(statement, "emit(pcall(function()\nlocal t = {}\n$emit(t, #t, table.maxn(t), next(t))\nend))\n", steps)
}

// sorting sorts arrays of some size with and without a function.
func (g *generator) sorting() *node {
	less := pick(g, "nil", "function(a, b) return a > b end", "function(a, b) return a % 7 < b % 7 end",
		"function(a, b) n = n + 1 return a < b end",
		"function(a, b) return a <= b end", "function(a, b) return tostring(a) < tostring(b) end",
		"function(a, b) if n > 30 then error('enough') end n = n + 1 "+
			"return a < b end", "function(a, b) return b end", "function(a, b) return (a * 7919) % 101 < (b * 7919) % 101 end")
	return leaf(statement, fmt.Sprintf("do\nlocal t, n = {}, 0\nfor i = 1, %d do t[i] = (i * %d) %% %d end\nemit(pcall(table.sort, t, %s))\n"+
		"emit(n, table.concat(t, ' '))\nend\n", g.IntN(120), 1+g.IntN(500), 1+g.IntN(60), less))
}

// nestedCoroutines resume each other.
func (g *generator) nestedCoroutines() *node {
	step := func() *node {
		return leaf(statement, pick(g, "coroutine.yield(n, up)\n", "up = up + 1\n", "emit('in', n, up, coroutine.yield(up))\n",
			"emit(pcall(coroutine.yield))\n", "if n > 1 then emit(select(2, coroutine.resume(make(), n - 1))) end\n",
			"if n > 1 then local w = coroutine.wrap(body) emit(pcall(w, n - 1)) emit(pcall(w)) end\n",
			"for v in coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) do emit('it', v) up = up + v end\n",
			"if up > 40 then error('up ' .. up) end\n", "if up > 40 then error({up}) end\n", "emit(pcall(error, n))\n",
			"emit(coroutine.status(coroutine.running()))\n", "local x = 5 saved[#saved + 1] = function() x = x + up return x end\n"))
	}
	body := sequence(block)
	for range 2 + g.IntN(5) {
		body.kids = append(body.kids, step())
	}
	return tree(statement, "do\nlocal up, saved, make = 0, {}\nlocal function body(n)\n$return 'done', n\nend\n"+
		"make = function() return coroutine.create(body) end\nlocal a, b = make(), make()\nfor i = 1, 4 do\nemit(coroutine.resume(a, 3))\n"+
		"emit(coroutine.resume(b, 2))\nend\nemit(coroutine.status(a), coroutine.status(b), up)\nfor i = 1, math.min(#saved, 5) do "+
		"emit(saved[i](), saved[1]()) end\nend\n", body)
}

// iteration leaves loops in all ways, with closures that keep their variables.
func (g *generator) iteration() *node {
	leave := func() string {
		return pick(g, "if i == 2 then break end\n", "if j and j > 1 then break end\n", "if i == 3 then return i, fs end\n",
			"if i == 3 then return (function() return i end)() end\n", "", "if i > 1 then error('left') end\n",
			"do local i = i * 2 fs[#fs + 1] = function() i = i + 1 return i end end\n",
			"local k = i fs[#fs + 1] = function() k = k + i return k end\n")
	}
	head := func() string {
		return pick(g, "for i = 1, 4 do\n", "for i, j in ipairs({5, 6, 7}) do\n", "for i = 4, 1, -1 do\n",
			"local i = 0 while i < 4 do i = i + 1\n",
			"for i, j in pairs({3, 2, x = nil}) do\n", "for j in ('abc'):gmatch('.') do local i = #fs\n if i > 9 then break end\n")
	}
	text := "emit(pcall(function()\nlocal fs, i, j = {}, 1, 1\nlocal r = {pcall(function(...)\n" + head() + leave() + head() + leave() +
		"fs[#fs + 1] = function() i = i + 10 return i, j end\n" + leave() + "end\n" + leave() + "end\nreturn 'end', ...\nend, 'extra')}\n" +
		"for n = 1, math.min(#fs, 12) do r[#r + 1] = fs[n]() r[#r + 1] = fs[n]() end\nreturn r\nend))\n"
	return leaf(statement, text)
}
