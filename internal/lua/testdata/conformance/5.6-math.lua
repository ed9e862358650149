-- # rounding
emit(math.floor(3.7), math.floor(-3.7), math.ceil(3.2), math.ceil(-3.2), math.floor(2^40 + 0.5), math.floor("3.5"), math.abs(-5), math.abs(5), math.floor(1/0))
--> 3 -4 4 -3 1099511627776 3 5 5 inf
--> returned

-- # fmod and modf
emit(math.fmod(7, 3), math.fmod(-7, 3), math.fmod(7, -3), math.modf(3.7), math.modf(-3.7), math.modf(5), math.modf(1/0), math.mod(7, 3))
--> 1 -1 1 3 -3 5 inf 1
--> returned

-- # frexp and ldexp
emit(math.frexp(8), math.frexp(0.3), math.frexp(0), math.frexp(-5), math.ldexp(0.5, 4), math.ldexp(1, -2), math.ldexp(1, 2000))
--> 0.5 0.59999999999999998 0 -0.625 8 0.25 inf
--> returned

-- # max and min
emit(math.max(1, 5, 3), math.min(1, 5, 3), math.max(-1), math.max("10", 9), math.max(1, 0/0) , math.min(1, 0/0))
emit(pcall(math.max))
emit(pcall(math.min, 1, {}))
--> 5 1 -1 10 1 1
--> false "bad argument #1 to '?' (number expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got table)"
--> returned

-- # roots and constants
emit(math.sqrt(16), math.sqrt(2), math.pi, math.huge, math.pow(2, 8), math.deg(math.pi), math.rad(180))
--> 4 1.4142135623730951 3.1415926535897931 inf 256 180 3.1415926535897931
--> returned

-- # functions to ten digits
local function r(x) return tonumber(("%.10g"):format(x)) end
emit(r(math.sin(1)), r(math.cos(1)), r(math.tan(1)), r(math.asin(0.5)), r(math.acos(0.5)), r(math.atan(1)), r(math.atan2(1, -1)), r(math.exp(1)), r(math.log(10)), r(math.log10(1000)), r(math.sinh(1)), r(math.cosh(1)), r(math.tanh(1)))
--> 0.84147098480000004 0.54030230589999995 1.557407725 0.52359877560000001 1.047197551 0.78539816340000002 2.35619449 2.7182818279999998 2.3025850929999998 3 1.175201194 1.5430806349999999 0.76159415600000002
--> returned

-- # wrong arguments
emit(pcall(math.sin))
emit(pcall(math.sin, "x"))
emit(pcall(math.floor, {}))
emit(pcall(math.pow, 2))
emit(pcall(math.ldexp, 1))
emit(pcall(math.random, 0))
emit(pcall(math.random, 2, 1))
emit(pcall(math.random, 1, 2, 3))
--> false "bad argument #1 to '?' (number expected, got no value)"
--> false "bad argument #1 to '?' (number expected, got string)"
--> false "bad argument #1 to '?' (number expected, got table)"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #1 to '?' (interval is empty)"
--> false "bad argument #2 to '?' (interval is empty)"
--> false "wrong number of arguments"
--> returned

-- # random numbers are within bounds
for i = 1, 50 do
	local a, b, c = math.random(), math.random(6), math.random(-2, 2)
	if a < 0 or a >= 1 or b < 1 or b > 6 or b % 1 ~= 0 or c < -2 or c > 2 then emit("out of bounds", a, b, c) end
end
emit("done")
--> "done"
--> returned

-- # random numbers of a seed [redis-server]
math.randomseed(42)
emit(math.random(), math.random(100), math.random(-10, 10))
math.randomseed(0)
emit(math.random(), math.random(100))
math.randomseed(42)
emit(math.random())
--> 0.74452500033403046 35 -8
--> 0.1708280361121651 75
--> 0.74452500033403046
--> returned

-- # which of two missing arguments is missed
emit(pcall(math.atan2))
emit(pcall(math.fmod))
emit(pcall(math.pow))
emit(pcall(math.ldexp))
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> returned
