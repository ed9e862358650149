-- # arithmetic
emit(7 + 2, 7 - 2, 7 * 2, 7 / 2, 7 % 2, 7 ^ 2, -7)
--> 9 5 14 3.5 1 49 -7
--> returned

-- # the remainder has the sign of the divisor
emit(5 % 3, -5 % 3, 5 % -3, -5 % -3, 5.5 % 2, -0.5 % 1, 5 % math.huge)
--> 2 1 -1 -2 1.5 0.5 -nan
--> returned

-- # division by zero
emit(1 / 0, -1 / 0, tostring(0 / 0):gsub("-", ""), 0 / 0 ~= 0 / 0, tostring(1 % 0):gsub("-", ""))
--> inf -inf "nan" true "nan" 1
--> returned

-- # powers
emit(2 ^ 10, 2 ^ 0.5 == math.sqrt(2), 2 ^ -1, (-8) ^ 3, 0 ^ 0, 10 ^ 2)
--> 1024 true 0.5 -512 1 100
--> returned

-- # precedence and associativity
emit(2 + 3 * 4, (2 + 3) * 4, 2 ^ 3 ^ 2, -2 ^ 2, not 1 == 2, 2 * 3 % 4, 1 .. 2 .. 3, 2 .. 3 + 4, 1 + 2 < 4, "a" .. "b" == "ab", -3 ^ 2, 2 ^ -2, #"abc" + 1, - - 2, not not nil)
--> 14 20 512 -4 false 2 "123" "27" true true -9 0.25 4 2 false
--> returned

-- # and, or: precedence and values
emit(nil and 1, false and 1, 1 and 2, nil or 1, false or nil, 1 or error("never"), nil and error("never"), 1 and nil or 3, false == nil, 1 or 2 and 3, nil and 1 or 2)
--> nil false 2 1 nil 1 nil 3 false 1 2
--> returned

-- # comparisons of numbers
emit(1 < 2, 1 <= 1, 2 > 3, 2 >= 2, 1 == 1.0, 0/0 < 1, 0/0 > 1, 0/0 == 0/0, -1/0 < 1/0)
--> true true false true true false false false true
--> returned

-- # comparisons of strings go by bytes
emit("a" < "b", "a" < "B", "" < "a", "a" < "aa", "a\0b" < "a\0c", "Z" < "a", "10" < "9", "\200" > "a", "a" <= "a")
--> true false true true true true true true true
--> returned

-- # different types are different
emit(1 == "1", "true" == true, nil == false, {} == {}, 0 == false)
--> false false false false false
--> returned

-- # comparisons that make no sense
emit(pcall(function() return 1 < "2" end))
emit(pcall(function() return {} < {} end))
emit(pcall(function() return nil > 1 end))
emit(pcall(function() return true <= false end))
emit(pcall(function() return "a" < 1 end))
emit(pcall(function() return {} >= 1 end))
emit(pcall(function() return type < type end))
--> false "p:1: attempt to compare number with string"
--> false "p:2: attempt to compare two table values"
--> false "p:3: attempt to compare number with nil"
--> false "p:4: attempt to compare two boolean values"
--> false "p:5: attempt to compare string with number"
--> false "p:6: attempt to compare number with table"
--> false "p:7: attempt to compare two function values"
--> returned

-- # arithmetic that makes no sense
emit(pcall(function() local a = {}; return a + 1 end))
emit(pcall(function() local a = "x"; return a + 1 end))
emit(pcall(function() local a = {x = true}; return 2 * a.x end))
emit(pcall(function() return -{} end))
emit(pcall(function() return "abc" % 2 end))
emit(pcall(function() local a; return a ^ 2 end))
emit(pcall(function() return 1 - nil end))
--> false "p:1: attempt to perform arithmetic on local 'a' (a table value)"
--> false "p:2: attempt to perform arithmetic on local 'a' (a string value)"
--> false "p:3: attempt to perform arithmetic on field 'x' (a boolean value)"
--> false "p:4: attempt to perform arithmetic on a table value"
--> false "p:5: attempt to perform arithmetic on a string value"
--> false "p:6: attempt to perform arithmetic on local 'a' (a nil value)"
--> false "p:7: attempt to perform arithmetic on a nil value"
--> returned

-- # concatenations that make no sense
emit(pcall(function() local a; return "x" .. a end))
emit(pcall(function() local a; return a .. "x" end))
emit(pcall(function() return "x" .. {} .. "y" end))
emit(pcall(function() local t = {}; return "x" .. t.name end))
emit(pcall(function() return 1 .. true end))
--> false "p:1: attempt to concatenate local 'a' (a nil value)"
--> false "p:2: attempt to concatenate local 'a' (a nil value)"
--> false "p:3: attempt to concatenate a table value"
--> false "p:4: attempt to concatenate field 'name' (a nil value)"
--> false "p:5: attempt to concatenate a boolean value"
--> returned

-- # lengths
emit(#"", #"abc", #"a\0b", #{}, #{1, 2, 3}, #{n = 1}, #{1, 2, nil})
emit(pcall(function() local a = 5; return #a end))
emit(pcall(function() return #nil end))
--> 0 3 3 0 3 0 2
--> false "p:2: attempt to get length of local 'a' (a number value)"
--> false "p:3: attempt to get length of a nil value"
--> returned

-- # table constructors
emit({1, 2, 3; 4}, {x = 1, ["y z"] = 2, [10] = 3}, {[1] = "a", "b"}, {1, x = 2, 3, [4] = 5, 6}, {{}, {{}}}, {nil, nil, 3})
--> {1,2,3,4} #0:{x=1,[10]=3,["y z"]=2} {"b"} #4:{1,3,6,5,x=2} {{},{{}}} #3:{[3]=3}
--> returned

-- # the last call of a constructor gives all its values
local function f() return 1, 2, 3 end
emit({f(), f()}, {f(), (f())}, {f(), nil}, {x = f()}, {(f())}, {f(), x = 1})
--> {1,1,2,3} {1,1} {1} #0:{x=1} {1} #1:{1,x=1}
--> returned

-- # constructors with many items
local s = {}
for i = 1, 120 do s[i] = tostring(i) end
local t = loadstring("return {" .. table.concat(s, ",") .. "}")()
emit(#t, t[1], t[50], t[51], t[100], t[101], t[120])
--> 120 1 50 51 100 101 120
--> returned

-- # calls without parentheses
local function f(...) return ... end
emit(f"a", f'b', f[[c]], f{1}[1], #f{1, 2}, (f"x"):upper())
--> "a" "b" "c" 1 2 "X"
--> returned

-- # method calls give the object
local o = {n = 5}
function o:get(x) return self.n + (x or 0) end
function o.make(n) return {n = n, get = o.get} end
emit(o:get(), o:get(1), o.get({n = 7}), o.make(9):get(1), ("abc"):upper():lower():len())
--> 5 6 7 10 3
--> returned

-- # functions with dots in their names
local a = {b = {c = {}}}
function a.b.c.f(x) return x end
function a.b.c:g(x) return self == a.b.c, x end
emit(a.b.c.f(1), a.b.c:g(2))
--> 1 true 2
--> returned

-- # parameters: extra arguments are dropped, missing ones are nil
local function f(a, b) return a, b end
emit(f(), f(1))
emit(f(1, 2, 3))
--> nil 1 nil
--> 1 2
--> returned

-- # varargs
local function f(...) return select("#", ...), ... end
emit(f())
emit(f(nil))
emit(f(1, nil, nil))
emit((f(1, 2)))
local function g(a, ...) local b, c = ... return a, b, c, {...} end
emit(g(1, 2, 3, 4))
emit((g()))
emit(loadstring("function f() return ... end"))
--> 0
--> 1 nil
--> 3 1 nil nil
--> 2
--> 1 2 3 {2,3,4}
--> nil
--> nil "[string \034function f() return ... end\034]:1: cannot use '...' outside a vararg function near '...'"
--> returned

-- # the table arg of a vararg function
local function f(...) return arg end
emit(f(1, nil, 3), f().n)
local function g(...) local x = ... return arg end
emit(pcall(g, 1))
--> {1,[3]=3,n=3} 0
--> true nil
--> returned

-- # results are adjusted but at the end of a list
local function f() return 1, 2 end
emit(f(), f())
emit((f()), (f()))
emit(f(), 10)
emit({f(), f()})
--> 1 1 2
--> 1 1
--> 1 10
--> {1,1,2}
--> returned

-- # tail calls do not fill the stack
local function f(n) if n == 0 then return "done" end return f(n - 1) end
emit(f(100000))
--> "done"
--> returned

-- # calling what cannot be called
emit(pcall(function() local a; a() end))
emit(pcall(function() local t = {}; t.x() end))
emit(pcall(function() local t = {}; t:x() end))
emit(pcall(function() ("x")() end))
emit(pcall(function() local t = {x = {}}; t.x.y() end))
emit(pcall(function() (1)() end))
emit(pcall(function() ("x"):y() end))
--> false "p:1: attempt to call local 'a' (a nil value)"
--> false "p:2: attempt to call field 'x' (a nil value)"
--> false "p:3: attempt to call method 'x' (a nil value)"
--> false "p:4: attempt to call a string value"
--> false "p:5: attempt to call field 'y' (a nil value)"
--> false "p:6: attempt to call a number value"
--> false "p:7: attempt to call method 'y' (a nil value)"
--> returned

-- # constants are folded as they would be computed
emit(1 / 0, -(0), 2 ^ 3 * 4, 5 % -3, -(-(2)), 1 - -1, "a" .. 1 + 2)
--> inf 0 32 -1 2 2 "a3"
--> returned

-- # limits: locals
local s = {}
for i = 1, 201 do s[i] = "local a" .. i end
emit(loadstring(table.concat(s, "\n")))
s[201] = nil
emit(loadstring(table.concat(s, "\n")) ~= nil)
--> nil "[string \034local a1...\034]:201: main function has more than 200 local variables"
--> true
--> returned

-- # limits: upvalues
local s, u = {}, {}
for i = 1, 61 do s[i] = "local a" .. i; u[i] = "a" .. i end
emit(loadstring(table.concat(s, "\n") .. "\nreturn function() return " .. table.concat(u, ",") .. " end"))
--> nil "[string \034local a1...\034]:62: function at line 62 has more than 60 upvalues"
--> returned

-- # limits: nesting
emit(loadstring("return " .. ("("):rep(250) .. "1" .. (")"):rep(250)))
emit(loadstring(("do "):rep(250) .. ("end "):rep(250)))
emit(loadstring("return " .. ("{"):rep(150) .. ("}"):rep(150)) ~= nil)
--> nil "[string \034return ((((((((((((((((((((((((((((((((((((((((((((((((((((((((...\034]:1: chunk has too many syntax levels"
--> nil "[string \034do do do do do do do do do do do do do do do do do do do do do ...\034]:1: chunk has too many syntax levels"
--> true
--> returned

-- # a long chain of concatenations
local s = {}
for i = 1, 150 do s[i] = tostring(i % 10) end
emit(loadstring("return " .. table.concat(s, "..")) ())
--> failed
--> "p:3: attempt to call a nil value"

-- # names in messages end at a NUL byte
emit(pcall(function() return ({})["a\0b"] + 1 end))
emit(pcall(function() return ({})["\0"].x end))
emit(pcall(assert, nil, "a\0b"))
--> false "p:1: attempt to perform arithmetic on field 'a' (a nil value)"
--> false "p:2: attempt to index field '' (a nil value)"
--> false "a"
--> returned

-- # a string and a thread are told apart by one letter
emit(pcall(function() return "x" < coroutine.create(type) end))
emit(pcall(function() return coroutine.create(type) <= "x" end))
emit(pcall(function() return type < "x" end))
--> false "p:1: bad argument #1 to 'create' (Lua function expected)"
--> false "p:2: bad argument #1 to 'create' (Lua function expected)"
--> false "p:3: attempt to compare function with string"
--> returned

-- # what cannot be called in a generic for has the name of its last copy
local f = 5
emit(pcall(function() for k in {1, 1, f} do end end))
emit(pcall(function() for k in f do end end))
emit(pcall(function() for k in ("x").y do end end))
--> false "p:2: attempt to call upvalue 'f' (a table value)"
--> false "p:3: attempt to call a number value"
--> false "p:4: attempt to call a nil value"
--> returned
