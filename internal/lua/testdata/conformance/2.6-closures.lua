-- # closures share a variable
local function counter()
	local n = 0
	return function() n = n + 1 return n end, function() return n end
end
local inc, get = counter()
local inc2 = counter()
emit(inc(), inc(), get(), inc2(), get())
--> 1 2 2 1 2
--> returned

-- # a variable lives on after its block
local f
do
	local x = "kept"
	f = function() return x end
end
local y = "other"
emit(f())
--> "kept"
--> returned

-- # upvalues of upvalues
local function a() local x = 1 return function() return function() x = x + 1 return x end end end
local b = a()
emit(b()(), b()(), a()()())
--> 2 3 2
--> returned

-- # a break closes variables
local f
for i = 1, 3 do local j = i * 2 f = function() return i, j end if i == 2 then break end end
emit(f())
--> 2 4
--> returned

-- # a recursive closure sees its later value
local fact
fact = function(n) if n < 2 then return 1 end return n * fact(n - 1) end
emit(fact(10), fact(20))
--> 3628800 2.43290200817664e+18
--> returned

-- # functions are equal to themselves alone
local function make() return function() end end
local f = make()
emit(f == f, f == make())
--> true false
--> returned
