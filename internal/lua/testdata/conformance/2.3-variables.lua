-- # globals are fields of the environment [lua5.1]
x = 1
_G.y = 2
emit(x, y, _G.x, rawget(_G, "y"), z)
x = nil
emit(x)
--> 1 2 1 2 nil
--> nil
--> returned

-- # indexing what has no fields
emit(pcall(function() local a = nil; return a.b end))
emit(pcall(function() local a = 1; a.b = 2 end))
emit(pcall(function() local a = {}; return a.b.c end))
emit(pcall(function() local a = {b = {}}; a.b.c.d = 1 end))
emit(pcall(function() local a = {}; return a.b.c.d end))
emit(pcall(function() local a = {{}}; return a[1][2][3] end))
--> false "p:1: attempt to index local 'a' (a nil value)"
--> false "p:2: attempt to index local 'a' (a number value)"
--> false "p:3: attempt to index field 'b' (a nil value)"
--> false "p:4: attempt to index field 'c' (a nil value)"
--> false "p:5: attempt to index field 'b' (a nil value)"
--> false "p:6: attempt to index field '?' (a nil value)"
--> returned

-- # strings are indexed through their metatable
emit(("x").len, ("x").y, pcall(function() local s = "x"; s.y = 1 end))
--> function nil false "p:1: attempt to index local 's' (a string value)"
--> returned

-- # a local is in scope after its statement
local x = 1
local x = x + 1
do
	local x = x + 1
	emit(x)
end
emit(x)
--> 3
--> 2
--> returned

-- # a local function is in scope in its own body
local function f(n) if n == 0 then return "end" end return f(n - 1) end
emit(f(5))
--> "end"
--> returned

-- # upvalues in messages [lua5.1]
local up
emit(pcall(function() return up.x end))
emit(pcall(function() up() end))
emit(pcall(function() glob.x = 1 end))
emit(pcall(function() glob() end))
emit(pcall(function() return up + 1 end))
emit(pcall(function() return glob .. "x" end))
--> false "p:2: attempt to index upvalue 'up' (a nil value)"
--> false "p:3: attempt to call upvalue 'up' (a nil value)"
--> false "p:4: attempt to index global 'glob' (a nil value)"
--> false "p:5: attempt to call global 'glob' (a nil value)"
--> false "p:6: attempt to perform arithmetic on upvalue 'up' (a nil value)"
--> false "p:7: attempt to concatenate global 'glob' (a nil value)"
--> returned
