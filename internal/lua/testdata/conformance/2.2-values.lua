-- # type names each kind
emit(type(nil), type(true), type(1), type("s"), type({}), type(type), type(coroutine.create(type)))
--> failed
--> "p:1: bad argument #1 to 'create' (Lua function expected)"

-- # nil and false alone are false
for _, v in ipairs({0, "", "false", {}}) do emit(v and true) end
emit(not nil, not false, not 0)
--> true
--> true
--> true
--> true
--> true true false
--> returned

-- # strings hold any bytes
local s = "a\0b\255"
emit(#s, s, s == "a\0b", s < "a\0c")
--> 4 "a\000b\255" false true
--> returned

-- # strings become numbers in arithmetic
emit("10" + 5, "0x10" * 2, " 3 " - 1, "1e1" / 2, -"2", "3" ^ 2, "7" % "4")
--> 15 32 2 5 -2 9 3
--> returned

-- # numbers become strings in concatenations
emit(1 .. "", 1.5 .. "|" .. -0.25, 1e15 .. "", 1e14 .. "", 2 ^ 53 .. "", 0.1 .. "")
--> "1" "1.5|-0.25" "1e+15" "1e+14" "9.007199254741e+15" "0.1"
--> returned

-- # numbers as text have fourteen digits
emit(tostring(1/3), tostring(123456789012345), tostring(1e100), tostring(-1e-5), tostring(3.0), tostring(1e14), tostring(1e15))
--> "0.33333333333333" "1.2345678901234e+14" "1e+100" "-1e-05" "3" "1e+14" "1e+15"
--> returned

-- # infinities
emit(tostring(1/0), tostring(-1/0), 1/0 == math.huge, -1/0 < 1/0)
--> "inf" "-inf" true true
--> returned

-- # minus zero
emit(0 == -0, 1/(0 * -1), tostring(0 * -1))
--> true inf "0"
--> returned

-- # a string that looks like a number is another key than the number
local t = {}
t[1], t["1"], t[1.0] = "number", "string", "again"
emit(t[1], t["1"], #t)
--> "number" "string" 1
--> returned

-- # strings that are numbers, and strings that are not
for _, s in ipairs({"1", " 1 ", "1 2", "", " ", "0x", "0xA", "1e", "1e1", ".5", "5.", ".", "1_0", "--1", "- 1", "-1", "+1", "inf", "nan", "0x1p4", "1\0"}) do
	emit(s, tonumber(s) == tonumber(s) and tonumber(s))
end
--> "1" 1
--> " 1 " 1
--> "1 2" nil
--> "" nil
--> " " nil
--> "0x" nil
--> "0xA" 10
--> "1e" nil
--> "1e1" 10
--> ".5" 0.5
--> "5." 5
--> "." nil
--> "1_0" nil
--> "--1" nil
--> "- 1" nil
--> "-1" -1
--> "+1" 1
--> "inf" inf
--> "nan" false
--> "0x1p4" 16
--> "1\000" 1
--> returned
