-- # assert
emit(assert(1, 2, 3))
emit(pcall(assert, false))
emit(pcall(assert, nil, "message"))
emit(pcall(assert, false, {1}))
emit(pcall(assert))
--> 1 2 3
--> false "assertion failed!"
--> false "message"
--> false "bad argument #2 to '?' (string expected, got table)"
--> false "bad argument #1 to '?' (value expected)"
--> returned

-- # error with levels
local function f(level) error("msg", level) end
local function g(level) f(level) end
for level = 0, 3 do emit(pcall(g, level)) end
emit(pcall(error))
emit(pcall(error, nil))
emit(pcall(error, {1}))
emit(pcall(error, "no position", 0))
emit(pcall(error, 12))
emit(pcall(error, true, 2))
--> false "msg"
--> false "p:1: msg"
--> false "p:2: msg"
--> false "msg"
--> false nil
--> false nil
--> false {1}
--> false "no position"
--> false "12"
--> false true
--> returned

-- # pcall gives everything
emit(pcall(function() return end))
emit(pcall(function() return 1, nil, 3 end))
emit(pcall(pcall, error, "x"))
emit(select("#", pcall(function() end)))
--> true
--> true 1 nil 3
--> true false "x"
--> 1
--> returned

-- # xpcall
emit(xpcall(function() return 1, 2 end, function(e) return "handled " .. e end))
emit(xpcall(function() error("x", 0) end, function(e) return "handled " .. e, "second" end))
emit(xpcall(function() local a; a.b = 1 end, function(e) return e:upper() end))
emit(xpcall(function(...) return select("#", ...) end, type))
emit(pcall(xpcall, function() end))
--> true 1 2
--> false "handled x"
--> false "P:3: ATTEMPT TO INDEX LOCAL 'A' (A NIL VALUE)"
--> true 0
--> false "bad argument #2 to '?' (value expected)"
--> returned

-- # an error in the handler
emit(xpcall(function() error("x") end, function(e) error("y") end))
emit(xpcall(function() error("x") end, nil))
--> false "error in error handling"
--> false "error in error handling"
--> returned

-- # getmetatable and raw access
emit(getmetatable({}), getmetatable(1), rawget({5}, 1), rawequal("a", "a"), rawset({}, "k", 1))
emit(pcall(rawset, {}, nil, 1))
emit(pcall(rawset, {}, 0/0, 1))
emit(pcall(rawget, 1, 1))
emit(pcall(rawequal, 1))
emit(pcall(function() local t = {} t[nil] = 1 end))
emit(pcall(function() local t = {} t[0/0] = 1 end))
emit(({})[nil])
--> nil nil 5 true #0:{k=1}
--> false "table index is nil"
--> false "table index is NaN"
--> false "bad argument #1 to '?' (table expected, got number)"
--> false "bad argument #2 to '?' (value expected)"
--> false "p:6: table index is nil"
--> false "p:7: table index is NaN"
--> nil
--> returned

-- # ipairs stops at nil
for i, v in ipairs({1, 2, nil, 4}) do emit(i, v) end
emit(pcall(ipairs))
emit(pcall(ipairs, 1))
--> 1 1
--> 2 2
--> false "bad argument #1 to '?' (table expected, got no value)"
--> false "bad argument #1 to '?' (table expected, got number)"
--> returned

-- # pairs goes over the array first
for k, v in pairs({10, 20, x = 30}) do emit(k, v) end
emit(pcall(pairs, nil))
--> 1 10
--> 2 20
--> "x" 30
--> false "bad argument #1 to '?' (table expected, got nil)"
--> returned

-- # next
emit(next({}), next({5}), next({5}, 1))
emit(pcall(next, {}, "missing"))
emit(pcall(next, 1))
local t = {a = 1}
t.a = nil
emit(next(t))
--> nil 1 nil
--> false "invalid key to 'next'"
--> false "bad argument #1 to '?' (table expected, got number)"
--> nil
--> returned

-- # fields may be cleared during a traversal
local t = {}
for i = 1, 10 do t[i] = i t["k" .. i] = i end
local n = 0
for k in pairs(t) do t[k] = nil n = n + 1 end
emit(n, next(t))
--> 20 nil
--> returned

-- # select
emit(select("#"), select("#", nil, nil), select(2, "a", "b", "c"))
emit(select(-1, "a", "b", "c"))
emit(select(-2, "a", "b", "c"))
emit(select(5, 1))
emit(pcall(select, 0))
emit(pcall(select, -3, 1))
emit(pcall(select, "x"))
--> 0 2 "b" "c"
--> "c"
--> "b" "c"
-->
--> false "bad argument #1 to '?' (index out of range)"
--> false "bad argument #1 to '?' (index out of range)"
--> false "bad argument #1 to '?' (number expected, got string)"
--> returned

-- # tonumber with bases
emit(tonumber("10", 2), tonumber("ff", 16), tonumber("FF", 16), tonumber("zz", 36), tonumber("8", 8), tonumber("-7", 8), tonumber(" 11 ", 2), tonumber("1.5", 10), tonumber("", 16), tonumber("7fffffff", 16))
emit(pcall(tonumber, "1", 1))
emit(pcall(tonumber, "1", 37))
emit(pcall(tonumber))
emit(tonumber(nil), tonumber({}), tonumber(true), tonumber(10, 10), tonumber(10, 16))
emit(tonumber("0x10", 16), tonumber("1e1", 10), tonumber("99999999999999999999", 10))
--> 2 255 255 1295 nil 1.8446744073709552e+19 3 1.5 nil 2147483647
--> false "bad argument #2 to '?' (base out of range)"
--> false "bad argument #2 to '?' (base out of range)"
--> false "bad argument #1 to '?' (value expected)"
--> nil nil nil 10 16
--> 16 10 1e+20
--> returned

-- # tostring
emit(tostring(nil), tostring(true), tostring(12), tostring("x"), pcall(tostring))
--> "nil" "true" "12" "x" false "bad argument #1 to '?' (value expected)"
--> returned

-- # type
emit(pcall(type))
--> false "bad argument #1 to '?' (value expected)"
--> returned

-- # unpack
emit(unpack({1, 2, 3}))
emit(unpack({1, 2, 3}, 2))
emit(unpack({1, 2, 3}, 2, 5))
emit(unpack({}, 1, 0))
emit(unpack({1, nil, 3}, 1, 3))
emit(pcall(unpack))
emit(pcall(unpack, {}, 1, 1e7))
--> 1 2 3
--> 2 3
--> 2 3 nil nil
-->
--> 1 nil 3
--> false "bad argument #1 to '?' (table expected, got no value)"
--> false "too many results to unpack"
--> returned

-- # loadstring
emit(loadstring("return 1 + 1")())
emit(loadstring("return ...")(7, 8))
emit(loadstring("x ="))
emit(loadstring("error('e')", "=chunk"))
emit(pcall(loadstring("error('e')", "=chunk")))
emit(pcall(loadstring("local a\na.b = 1", "@dir/file.lua")))
emit(pcall(loadstring))
--> 2
--> 7 8
--> nil "[string \034x =\034]:1: unexpected symbol near '<eof>'"
--> function
--> false "chunk:1: e"
--> false "dir/file.lua:2: attempt to index local 'a' (a nil value)"
--> false "bad argument #1 to '?' (string expected, got no value)"
--> returned

-- # load
local parts = {"return ", "1", " + 2"}
local i = 0
emit(load(function() i = i + 1 return parts[i] end)())
emit(load(function() return {} end))
emit(load(function() return nil end) ~= nil)
emit(load(function() error("reader") end))
emit(pcall(load, "text"))
--> 3
--> nil "p:4: reader function must return a string"
--> true
--> nil "p:6: reader"
--> false "bad argument #1 to '?' (function expected, got string)"
--> returned

-- # bytecode is not loaded [redis-server]
emit(loadstring("\27Lua"))
--> nil "[string \034\027Lua\034]:1: unexpected symbol near 'char(27)'"
--> returned

-- # a long string may hold [[ [redis-server]
emit([[a [[b]])
--> "a [[b"
--> returned

-- # _VERSION
emit(_VERSION)
--> "Lua 5.1"
--> returned

-- # stack overflow
local function f() return 1 + f() end
emit((select(2, pcall(f)):gsub("\n.*", "")))
local function g() return pcall(g) end
emit((g()))
--> "p:1: stack overflow"
--> true
--> returned

-- # positions of errors in several lines
emit(pcall(function()
	local t = {}
	local x = t.a
		.b
end))
emit(pcall(function()
	return 1 +
		{}
end))
emit(pcall(function() local s = "x" .. 
	nil end))
--> false "p:4: attempt to index field 'a' (a nil value)"
--> false "p:8: attempt to perform arithmetic on a table value"
--> false "p:11: attempt to concatenate a nil value"
--> returned

-- # levels of errors through xpcall and tail calls
local function e(level) error("msg", level) end
local function same(m) return m end
for level = 0, 4 do emit(xpcall(function() e(level) end, same)) end
for level = 0, 4 do emit(xpcall(function() return e(level) end, same)) end
--> false "msg"
--> false "p:1: msg"
--> false "p:3: msg"
--> false "msg"
--> false "p:3: msg"
--> false "msg"
--> false "p:1: msg"
--> false "msg"
--> false "msg"
--> false "p:4: msg"
--> returned

-- # integers are C's, of 32 bits
emit(pcall(select, 2^32 + 1, "a", "b"))
emit(pcall(select, 999999999999999))
emit(pcall(select, -2^31, 1))
emit(("x"):rep(2^32 + 2), ("abc"):byte(2^32 + 1))
--> true "a" "b"
--> false "bad argument #1 to '?' (index out of range)"
--> false "bad argument #1 to '?' (index out of range)"
--> "xx"
--> returned

-- # a handler is called from the builtin that raised the error
for _, raise in pairs({function() error() end, function() return error({}) end, function() local x = select(0) return x end}) do
	emit(xpcall(raise, string.upper))
end
emit(xpcall(function() return nil + 1 end, string.upper))
--> false "BAD ARGUMENT #1 TO '?' (STRING EXPECTED, GOT NIL)"
--> false "BAD ARGUMENT #1 TO '?' (STRING EXPECTED, GOT TABLE)"
--> false "P:1: BAD ARGUMENT #1 TO 'SELECT' (INDEX OUT OF RANGE)"
--> false "P:4: ATTEMPT TO PERFORM ARITHMETIC ON A NIL VALUE"
--> returned

-- # the levels that a handler sees
for _, raise in pairs({function() error("x", 0) end, function() local t = 1 t() end, function() string.gsub("abc", ".", function(c) error(c, 2) end) end}) do
	local n = 0
	emit(xpcall(raise, function(m) n = n + 1 if n < 6 then error(m .. n, n) end return m end))
end
--> false "p:3: p:3: p:3: x12345"
--> false "p:3: p:3: p:3: p:1: attempt to call local 't' (a number value)12345"
--> false "p:3: p:3: p:3: a12345"
--> returned
