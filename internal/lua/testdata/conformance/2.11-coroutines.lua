-- # values go in and out
local co = coroutine.create(function(a, b)
	emit("start", a, b)
	local c = coroutine.yield(a + b)
	emit("again", c)
	local d, e = coroutine.yield(c * 2)
	return d, e, "end"
end)
emit(coroutine.resume(co, 1, 10))
emit(coroutine.resume(co, 5))
emit(coroutine.resume(co, "x", "y"))
emit(coroutine.resume(co))
emit(coroutine.status(co))
--> "start" 1 10
--> true 11
--> "again" 5
--> true 10
--> true "x" "y" "end"
--> false "cannot resume dead coroutine"
--> "dead"
--> returned

-- # wrap
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
emit(gen(), gen(), gen(), gen())
emit(pcall(gen))
--> 1 2 3
--> false "cannot resume dead coroutine"
--> returned

-- # status from inside and outside
local co
co = coroutine.create(function()
	emit(coroutine.status(co))
	local other = coroutine.create(function() emit(coroutine.status(co)) end)
	coroutine.resume(other)
	emit(coroutine.status(other))
	coroutine.yield()
end)
emit(coroutine.status(co))
coroutine.resume(co)
emit(coroutine.status(co))
coroutine.resume(co)
emit(coroutine.status(co))
--> "suspended"
--> "running"
--> "normal"
--> "dead"
--> "suspended"
--> "dead"
--> returned

-- # running
emit(coroutine.running())
emit(coroutine.wrap(function() return type(coroutine.running()) end)())
--> nil
--> "thread"
--> returned

-- # errors end a coroutine
local co = coroutine.create(function() error("oops") end)
emit(coroutine.resume(co))
emit(coroutine.status(co), coroutine.resume(co))
emit(coroutine.resume(coroutine.create(function() error({1}) end)))
emit(pcall(coroutine.wrap(function() error("in wrap") end)))
--> false "p:1: oops"
--> "dead" false "cannot resume dead coroutine"
--> false {1}
--> false "p:5: in wrap"
--> returned

-- # yield across a call of C
emit(coroutine.resume(coroutine.create(function() return pcall(coroutine.yield, 1) end)))
emit(coroutine.resume(coroutine.create(function() return pcall(function() coroutine.yield(1) end) end)))
emit(coroutine.resume(coroutine.create(function() table.sort({3, 2, 1}, coroutine.yield) end)))
emit(coroutine.resume(coroutine.create(function() return ("x"):gsub("x", coroutine.yield) end)))
emit(coroutine.resume(coroutine.create(function() return setmetatable({}, {__index = function() return coroutine.yield(1) end}).x end)))
emit(coroutine.resume(coroutine.create(function() for x in coroutine.yield do end end)))
emit(pcall(coroutine.yield, 1))
--> true false "attempt to yield across metamethod/C-call boundary"
--> true false "attempt to yield across metamethod/C-call boundary"
--> false "attempt to yield across metamethod/C-call boundary"
--> false "attempt to yield across metamethod/C-call boundary"
--> false "attempt to yield across metamethod/C-call boundary"
--> false "attempt to yield across metamethod/C-call boundary"
--> false "attempt to yield across metamethod/C-call boundary"
--> returned

-- # resuming oneself and those who wait
local co
co = coroutine.create(function() return coroutine.resume(co) end)
emit(coroutine.resume(co))
local outer
outer = coroutine.create(function() return coroutine.resume(coroutine.create(function() return coroutine.resume(outer) end)) end)
emit(coroutine.resume(outer))
--> true false "cannot resume running coroutine"
--> true true false "cannot resume normal coroutine"
--> returned

-- # producer, filter, consumer
local function producer() return coroutine.create(function() for _, l in ipairs({"a", "b", "c"}) do coroutine.yield(l) end end) end
local function filter(p)
	return coroutine.create(function()
		local n = 1
		while true do
			local _, x = coroutine.resume(p)
			if not x then return end
			coroutine.yield(n .. ":" .. x)
			n = n + 1
		end
	end)
end
local f = filter(producer())
for i = 1, 4 do emit(coroutine.resume(f)) end
--> true "1:a"
--> true "2:b"
--> true "3:c"
--> true
--> returned

-- # permutations
local function permgen(a, n)
	if n == 0 then coroutine.yield(table.concat(a)) else
		for i = 1, n do
			a[n], a[i] = a[i], a[n]
			permgen(a, n - 1)
			a[n], a[i] = a[i], a[n]
		end
	end
end
local all = {}
for p in coroutine.wrap(function() permgen({"x", "y", "z"}, 3) end) do all[#all + 1] = p end
emit(all)
--> {"yzx","zyx","zxy","xzy","yxz","xyz"}
--> returned

-- # many values
local co = coroutine.wrap(function(...) while true do coroutine.yield(select("#", ...), ...) end end)
emit(co(nil, 1, nil))
--> 3 nil 1 nil
--> returned

-- # upvalues of a suspended coroutine
local set, get
local co = coroutine.wrap(function() local x = 1 set, get = function(v) x = v end, function() return x end coroutine.yield() emit("inside", x) end)
co()
set(7)
emit(get())
co()
--> 7
--> "inside" 7
--> returned

-- # arguments that are wrong
emit(pcall(coroutine.create, 1))
emit(pcall(coroutine.resume, 1))
emit(pcall(coroutine.status, nil))
emit(pcall(coroutine.wrap))
--> false "bad argument #1 to '?' (Lua function expected)"
--> false "bad argument #1 to '?' (coroutine expected)"
--> false "bad argument #1 to '?' (coroutine expected)"
--> false "bad argument #1 to '?' (Lua function expected)"
--> returned
