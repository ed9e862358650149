-- # assignment evaluates everything first
local i, a = 3, {}
i, a[i] = i + 1, 20
emit(i, a)
local x, y = 1, 2
x, y = y, x
emit(x, y)
--> 4 #0:{[3]=20}
--> 2 1
--> returned

-- # too many and too few values
local a, b, c = 1
emit(a, b, c)
local d = (function() return 1, 2 end)()
emit(d)
local e, f, g = 0, (function() return 1, 2, 3 end)()
emit(e, f, g)
local h, j = ((function() return 1, 2 end)())
emit(h, j)
--> 1 nil nil
--> 1
--> 0 1 2
--> 1 nil
--> returned

-- # the last of several assignments to one variable is the leftmost
local a
a, a, a = 1, 2, 3
emit(a)
--> 1
--> returned

-- # calls as statements need a call
emit(loadstring("x"))
emit(loadstring("x.y"))
emit(loadstring("f() = 1"))
emit(loadstring("(f()) "))
emit(loadstring("a, f() = 1, 2"))
emit(loadstring("'a'()"))
--> nil "[string \034x\034]:1: '=' expected near '<eof>'"
--> nil "[string \034x.y\034]:1: '=' expected near '<eof>'"
--> nil "[string \034f() = 1\034]:1: unexpected symbol near '='"
--> nil "[string \034(f()) \034]:1: syntax error near '<eof>'"
--> nil "[string \034a, f() = 1, 2\034]:1: syntax error near '='"
--> nil "[string \034'a'()\034]:1: unexpected symbol near ''a''"
--> returned

-- # a call on the next line is ambiguous
emit(loadstring("f\n(1)"))
emit(loadstring("local a = f\n(g or h)()"))
--> nil "[string \034f...\034]:2: ambiguous syntax (function call x new statement) near '('"
--> nil "[string \034local a = f...\034]:2: ambiguous syntax (function call x new statement) near '('"
--> returned

-- # if, elseif, else
for i = 1, 4 do
	if i == 1 then emit("one") elseif i == 2 then emit("two") elseif i == 3 then emit("three") else emit("more") end
end
--> "one"
--> "two"
--> "three"
--> "more"
--> returned

-- # while and break
local i = 0
while true do
	i = i + 1
	if i == 3 then break end
	emit(i)
end
while false do emit("never") end
--> 1
--> 2
--> returned

-- # the condition of repeat sees the body's locals
local n = 0
repeat local done = n >= 2; n = n + 1 until done
emit(n)
--> 3
--> returned

-- # closures capture the locals of repeat, one for each turn
local fs, n = {}, 0
repeat
	local m = n
	fs[#fs + 1] = function() m = m + 10 return m end
	n = n + 1
until m == 2
emit(fs[1](), fs[1](), fs[2](), fs[3]())
--> 10 20 11 12
--> returned

-- # numeric for: bounds
for i = 1, 3 do emit(i) end
for i = 3, 1 do emit("never", i) end
for i = 3, 1, -1 do emit(i) end
for i = 1, 2, 0.5 do emit(i) end
for i = 1.5, 3 do emit(i) end
for i = 1, 0 do emit("never") end
--> 1
--> 2
--> 3
--> 3
--> 2
--> 1
--> 1
--> 1.5
--> 2
--> 1.5
--> 2.5
--> returned

-- # numeric for: strings are numbers
for i = "1", "3", "2" do emit(i, type(i)) end
--> 1 "number"
--> 3 "number"
--> returned

-- # numeric for: what is no number
emit(pcall(function() for i = {}, 1 do end end))
emit(pcall(function() for i = 1, {} do end end))
emit(pcall(function() for i = 1, 2, {} do end end))
emit(pcall(function() for i = "x", 2 do end end))
emit(pcall(function() for i = nil, 2 do end end))
--> false "p:1: 'for' initial value must be a number"
--> false "p:2: 'for' limit must be a number"
--> false "p:3: 'for' step must be a number"
--> false "p:4: 'for' initial value must be a number"
--> false "p:5: 'for' initial value must be a number"
--> returned

-- # numeric for: not a number and infinities
for i = 0/0, 5 do emit("never") end
for i = 1, 0/0 do emit("never") end
for i = math.huge, math.huge do emit("once", i) break end
local n = 0
for i = 1, math.huge do n = n + 1 if n > 4 then break end end
emit(n)
for i = 1, -math.huge, -math.huge do emit(i) if i < 0 then break end end
--> "once" inf
--> 5
--> returned

-- # numeric for: assigning to the variable changes nothing
for i = 1, 3 do emit(i) i = 10 end
--> 1
--> 2
--> 3
--> returned

-- # numeric for: steps that do not add up exactly
local n = 0
for i = 0, 1, 0.1 do n = n + 1 end
emit(n)
--> 11
--> returned

-- # a variable of each turn
local fs = {}
for i = 1, 3 do fs[i] = function() i = i + 1 return i end end
emit(fs[1](), fs[1](), fs[2](), fs[3]())
--> 2 3 3 4
--> returned

-- # generic for: state and control variable
local function iter(s, c) if c < s then return c + 1, c * 10 end end
for a, b in iter, 3, 0 do emit(a, b) end
for a, b, c in iter, 2, 0 do emit(a, b, c) end
--> 1 0
--> 2 10
--> 3 20
--> 1 0 nil
--> 2 10 nil
--> returned

-- # generic for: what cannot be called
emit(pcall(function() for a in 1 do end end))
emit(pcall(function() for a in nil do end end))
emit(pcall(function() local t = {} for a in t do end end))
--> false "p:1: attempt to call a number value"
--> false "p:2: attempt to call a nil value"
--> false "p:3: attempt to call a table value"
--> returned

-- # generic for: ends at nil only
local n = 0
for x in function() n = n + 1 if n < 3 then return false end end do emit(x) end
--> false
--> false
--> returned

-- # break leaves the innermost loop
for i = 1, 2 do
	for j = 1, 3 do
		if j == 2 then break end
		emit(i, j)
	end
end
--> 1 1
--> 2 1
--> returned

-- # break without a loop
emit(loadstring("break"))
emit(loadstring("while true do local function f() break end end"))
emit(loadstring("for i = 1, 2 do break end break"))
--> nil "[string \034break\034]:1: no loop to break near '<eof>'"
--> nil "[string \034while true do local function f() break end end\034]:1: no loop to break near 'end'"
--> nil "[string \034for i = 1, 2 do break end break\034]:1: no loop to break near '<eof>'"
--> returned

-- # return and break end a block
emit(loadstring("return 1 local x"))
emit(loadstring("while true do break local x end"))
emit(loadstring("do return end local x = 1 return x") ~= nil)
--> nil "[string \034return 1 local x\034]:1: '<eof>' expected near 'local'"
--> nil "[string \034while true do break local x end\034]:1: 'end' expected near 'local'"
--> true
--> returned

-- # blocks that do not end
emit(loadstring("if x then"))
emit(loadstring("if x\nthen y()"))
emit(loadstring("while x do\n\n"))
emit(loadstring("for i = 1 do end"))
emit(loadstring("for i 1, 2 do end"))
emit(loadstring("for 1 = 1, 2 do end"))
emit(loadstring("function f( end"))
emit(loadstring("function f(a, ..., b) end"))
emit(loadstring("local function f.x() end"))
emit(loadstring("local 1"))
emit(loadstring("end"))
emit(loadstring("repeat x()"))
emit(loadstring("x = }"))
emit(loadstring("x = {1, 2\n3}"))
emit(loadstring("f(1, 2"))
emit(loadstring("x = (1"))
emit(loadstring("goto done"))
--> nil "[string \034if x then\034]:1: 'end' expected near '<eof>'"
--> nil "[string \034if x...\034]:2: 'end' expected (to close 'if' at line 1) near '<eof>'"
--> nil "[string \034while x do...\034]:3: 'end' expected (to close 'while' at line 1) near '<eof>'"
--> nil "[string \034for i = 1 do end\034]:1: ',' expected near 'do'"
--> nil "[string \034for i 1, 2 do end\034]:1: '=' or 'in' expected near '1'"
--> nil "[string \034for 1 = 1, 2 do end\034]:1: '<name>' expected near '1'"
--> nil "[string \034function f( end\034]:1: <name> or '...' expected near 'end'"
--> nil "[string \034function f(a, ..., b) end\034]:1: ')' expected near ','"
--> nil "[string \034local function f.x() end\034]:1: '(' expected near '.'"
--> nil "[string \034local 1\034]:1: '<name>' expected near '1'"
--> nil "[string \034end\034]:1: '<eof>' expected near 'end'"
--> nil "[string \034repeat x()\034]:1: 'until' expected near '<eof>'"
--> nil "[string \034x = }\034]:1: unexpected symbol near '}'"
--> nil "[string \034x = {1, 2...\034]:2: '}' expected (to close '{' at line 1) near '3'"
--> nil "[string \034f(1, 2\034]:1: ')' expected near '<eof>'"
--> nil "[string \034x = (1\034]:1: ')' expected near '<eof>'"
--> nil "[string \034goto done\034]:1: '=' expected near 'done'"
--> returned
