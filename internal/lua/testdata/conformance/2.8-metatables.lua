-- # arithmetic events
local mt = {}
for _, e in ipairs({"add", "sub", "mul", "div", "mod", "pow"}) do
	mt["__" .. e] = function(a, b) return e .. ":" .. type(a) .. "," .. type(b) end
end
mt.__unm = function(a, b) return "unm:" .. type(a) .. "," .. tostring(rawequal(a, b)) end
local o = setmetatable({}, mt)
emit(o + 1, 1 + o, o - o, "x" * o, o / nil, o % true, o ^ 2, -o)
--> "add:table,number" "add:number,table" "sub:table,table" "mul:string,table" "div:table,nil" "mod:table,boolean" "pow:table,number" "unm:table,true"
--> returned

-- # the left operand's event comes first
local a = setmetatable({}, {__add = function() return "left" end})
local b = setmetatable({}, {__add = function() return "right" end})
emit(a + b, b + a, a + 1, 1 + b)
--> "left" "right" "left" "right"
--> returned

-- # an event gives one value
local o = setmetatable({}, {__add = function() return 1, 2, 3 end, __index = function() return 4, 5 end, __call = function() return 6, 7 end})
emit(o + 1, o.x, o())
--> 1 4 6 7
--> returned

-- # concatenation
local mt = {}
mt.__concat = function(a, b) return (type(a) == "table" and "T" or a) .. "|" .. (type(b) == "table" and "T" or b) end
local o = setmetatable({}, mt)
emit(o .. "x", "x" .. o, 1 .. o, "a" .. "b" .. o, o .. "a" .. "b", "a" .. o .. "b", o .. o)
--> "T|x" "x|T" "1|T" "ab|T" "T|ab" "aT|b" "T|T"
--> returned

-- # length has no event for tables
local o = setmetatable({1, 2}, {__len = function() return 42 end})
emit(#o)
--> 2
--> returned

-- # equality: the same function in both
local function eq(a, b) return a.v == b.v end
local mt = {__eq = eq}
local a, b, c = setmetatable({v = 1}, mt), setmetatable({v = 1}, mt), setmetatable({v = 2}, mt)
local d = setmetatable({v = 1}, {__eq = eq})
local e = setmetatable({v = 1}, {__eq = function() return true end})
emit(a == b, a == c, a ~= c, a == d, a == e, a == 1, rawequal(a, b))
--> true false true true false false false
--> returned

-- # equality gives a boolean
local mt = {__eq = function() return 5 end}
emit(setmetatable({}, mt) == setmetatable({}, mt))
--> true
--> returned

-- # order
local mt = {__lt = function(a, b) return a.v < b.v end, __le = function(a, b) return a.v <= b.v end}
local a, b = setmetatable({v = 1}, mt), setmetatable({v = 2}, mt)
emit(a < b, a > b, a <= b, a >= b, a < a, a <= a)
--> true false true false false true
--> returned

-- # without __le there is not __lt the other way round
local mt = {__lt = function(a, b) return a.v < b.v end}
local a, b = setmetatable({v = 1}, mt), setmetatable({v = 2}, mt)
emit(a <= b, b <= a, a <= a, a >= b)
--> true false true false
--> returned

-- # order of different tables needs the same function
local a = setmetatable({}, {__lt = function() return true end})
local b = setmetatable({}, {__lt = function() return true end})
emit(pcall(function() return a < b end))
emit(pcall(function() return a < 1 end))
--> false "p:3: attempt to compare two table values"
--> false "p:4: attempt to compare table with number"
--> returned

-- # index: a function, a table, a chain
local base = {x = "base x", z = "base z"}
local mid = setmetatable({y = "mid y"}, {__index = base})
local o = setmetatable({}, {__index = mid})
emit(o.x, o.y, o.z, o.w)
local f = setmetatable({k = 1}, {__index = function(t, k) return type(t) .. ":" .. tostring(k) end})
emit(f.k, f.other, f[1], rawget(f, "other"))
--> "base x" "mid y" "base z" nil
--> 1 "table:other" "table:1" nil
--> returned

-- # newindex: a function, a table
local log = {}
local o = setmetatable({old = 1}, {__newindex = function(t, k, v) log[#log + 1] = k .. "=" .. tostring(v) end})
o.old = 2
o.new = 3
emit(o, log)
local store = {}
local p = setmetatable({}, {__newindex = store})
p.x = 1
emit(rawget(p, "x"), store)
--> ^#0:{old=2} {"new=3"}
--> nil #0:{x=1}
--> returned

-- # newindex of a field that is nil is called again
local n = 0
local o = setmetatable({}, {__newindex = function() n = n + 1 end})
o.a = 1
o.a = 2
rawset(o, "a", 3)
o.a = 4
o.a = nil
o.a = 5
emit(n, rawget(o, "a"))
--> 3 nil
--> returned

-- # loops of index
local t = {}
setmetatable(t, {__index = t, __newindex = t})
emit(pcall(function() return t.x end))
emit(pcall(function() t.x = 1 end))
--> false "p:3: loop in gettable"
--> false "p:4: loop in settable"
--> returned

-- # call
local o = setmetatable({}, {__call = function(self, ...) return type(self), ... end})
emit(o(), o(1, 2), pcall(o, 3))
emit(pcall(setmetatable({}, {__call = 1})))
emit(select("#", o()))
--> "table" "table" true "table" 3
--> false "attempt to call a table value"
--> 1
--> returned

-- # call of a call
local inner = setmetatable({}, {__call = function(self, ...) return "inner", ... end})
local outer = setmetatable({}, {__call = inner})
emit(pcall(outer, 1))
--> false "attempt to call a table value"
--> returned

-- # tostring
emit(tostring(setmetatable({}, {__tostring = function() return "me" end})))
emit(pcall(tostring, setmetatable({}, {__tostring = function() return {} end})))
emit(tostring(setmetatable({}, {__tostring = function() return 12 end})))
--> "me"
--> true {}
--> 12
--> returned

-- # the field __metatable
local o = setmetatable({}, {__metatable = "locked"})
emit(getmetatable(o), pcall(setmetatable, o, {}))
emit(pcall(setmetatable, "x", {}))
--> "locked" false "cannot change a protected metatable"
--> false "bad argument #1 to '?' (table expected, got string)"
--> returned

-- # strings have no metatable of their own to change
emit(pcall(setmetatable, 1, {}))
emit(pcall(setmetatable, {}, 1))
emit(pcall(setmetatable, {}))
emit(setmetatable({}, nil))
--> false "bad argument #1 to '?' (table expected, got number)"
--> false "bad argument #2 to '?' (nil or table expected)"
--> false "bad argument #2 to '?' (nil or table expected)"
--> {}
--> returned

-- # __mode and unknown events do nothing that shows
local t = setmetatable({x = {}}, {__mode = "k", __foo = 1})
emit(t.x)
--> {}
--> returned

-- # inheritance
local Account = {}
Account.__index = Account
function Account.new(b) return setmetatable({balance = b}, Account) end
function Account:deposit(v) self.balance = self.balance + v return self end
local Special = setmetatable({}, {__index = Account})
Special.__index = Special
function Special:limit() return self.balance * 2 end
local s = setmetatable({balance = 10}, Special)
emit(s:deposit(5):limit(), Account.new(1):deposit(2).balance, rawget(s, "deposit"))
--> 30 3 nil
--> returned

-- # errors in events
local o = setmetatable({}, {__index = function() error("in index") end, __add = function() error({code = 1}) end})
emit(pcall(function() return o.x end))
emit(pcall(function() return o + 1 end))
--> false "p:1: in index"
--> false #0:{code=1}
--> returned
