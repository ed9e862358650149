-- # sub
for _, r in ipairs({{1, 3}, {2}, {-3}, {-3, -2}, {0}, {0, 0}, {10}, {3, 2}, {-100, 100}, {2, -2}}) do emit(("hello"):sub(unpack(r))) end
emit(pcall(string.sub, "x"))
emit(pcall(string.sub))
emit(pcall(string.sub, "x", {}))
emit(("hello"):sub("2", 3.7))
--> "hel"
--> "ello"
--> "llo"
--> "ll"
--> "hello"
--> ""
--> ""
--> ""
--> "hello"
--> "ell"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #1 to '?' (string expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got table)"
--> "el"
--> returned

-- # byte and char
emit(("abc"):byte(), ("abc"):byte(2), ("abc"):byte(1, -1), ("abc"):byte(10), ("\255\0"):byte(1, 2))
emit(string.char(), string.char(72, 105), string.char(0, 255))
emit(pcall(string.char, 256))
emit(pcall(string.char, -1))
emit(pcall(string.char, "x"))
--> 97 98 97 nil 255 0
--> "" "Hi" "\000\255"
--> false "bad argument #1 to '?' (invalid value)"
--> false "bad argument #1 to '?' (invalid value)"
--> false "bad argument #1 to '?' (number expected, got string)"
--> returned

-- # rep, reverse, len, lower, upper
emit(("ab"):rep(3), ("ab"):rep(0), ("ab"):rep(-1), (""):rep(10), ("x"):rep(2.9))
emit(("abc"):reverse(), (""):reverse(), ("a\0b"):reverse(), ("abc"):len(), ("\0"):len())
emit(("HeLLo 1"):lower(), ("HeLLo 1"):upper(), ("\196\228"):upper())
emit(pcall(string.rep, "x"))
emit(pcall(string.upper))
emit(string.len(12.5), string.upper(1e100))
--> "ababab" "" "" "" "xx"
--> "cba" "" "b\000a" 3 1
--> "hello 1" "HELLO 1" "\196\228"
--> false "bad argument #2 to '?' (number expected, got no value)"
--> false "bad argument #1 to '?' (string expected, got no value)"
--> 4 "1E+100"
--> returned

-- # find: plain
emit(("hello world"):find("o w"), ("hello"):find("l"), ("hello"):find("xyz"), ("hello"):find(""), ("hello"):find("", 10), ("hello"):find("", 6), ("a.b"):find(".", 1, true), ("a.b"):find("%.", 1, true))
emit(("hello"):find("l", -2), ("hello"):find("h", -100), ("hello"):find("l", 4), ("a+b"):find("+", 1, true), (""):find(""))
--> 5 3 nil 1 6 6 2 nil
--> 4 1 4 2 1 0
--> returned

-- # find: patterns and captures
emit(("hello world"):find("(o)(.)"), ("key = value"):find("(%w+)%s*=%s*(%w+)"), ("abc"):find("()b()"), ("abc"):find("^b"), ("abc"):find("^a"), ("abc"):find("c$"), ("abc"):find("b$"))
--> 5 1 2 nil 1 3 nil
--> returned

-- # match
emit(("2024-05-06"):match("(%d+)-(%d+)-(%d+)"), ("abc"):match("%d"), ("abc"):match(".", 2), ("  x "):match("^%s*(.-)%s*$"), ("abc"):match("()"), ("x"):match("(x)()"))
--> "2024" nil "b" "x" 1 "x" 2
--> returned

-- # character classes
local s = "aZ5 _-.\n\0\200"
for _, c in ipairs({"%a", "%d", "%s", "%w", "%p", "%u", "%l", "%c", "%x", "%z", "%A", "%S", "%W", "."}) do
	local r = {}
	for m in s:gmatch(c) do r[#r + 1] = m end
	emit(c, table.concat(r, ","))
end
--> "%a" "a,Z"
--> "%d" "5"
--> "%s" " ,\010"
--> "%w" "a,Z,5"
--> "%p" "_,-,."
--> "%u" "Z"
--> "%l" "a"
--> "%c" "\010,\000"
--> "%x" "a,5"
--> "%z" "\000"
--> "%A" "5, ,_,-,.,\010,\000,\200"
--> "%S" "a,Z,5,_,-,.,\000,\200"
--> "%W" " ,_,-,.,\010,\000,\200"
--> "." "a,Z,5, ,_,-,.,\010,\000,\200"
--> returned

-- # sets
emit(("a-b]c^"):gsub("[]]", "."), ("a-b"):gsub("[a-]", "."), ("a^b"):gsub("[b^]", "."), ("abc"):gsub("[^b]", "."), ("x1y2"):gsub("[%d]", "."), ("a]b"):gsub("[^]]", "."), ("a%b"):gsub("[%%]", "."), ("fgh"):gsub("[f-h]", "."), ("a-z"):gsub("[%a-z]", "."))
--> "a-b.c^" "..b" "a.." ".b." "x.y." ".]." "a.b" "..." "..." 3
--> returned

-- # repetitions
emit(("aaa"):match("a*"), ("aaa"):match("a-"), ("aaa"):match("a+"), ("aaa"):match("a?"), ("aaab"):match("a-b"), ("<<a>>"):match("<(.-)>"), (""):match("a*"), ("b"):match("a?b"))
--> "aaa" "" "aaa" "a" "aaab" "<a" "" "b"
--> returned

-- # balanced and frontier
emit(("f(a(b)c)d"):match("%b()"), ("((x)"):match("%b()"), ("THE (quick) fox"):find("%f[%a]%a+%f[%A]"), ("hello world"):gsub("%f[%w]%w+", string.upper), ("x"):find("%f[%z]"))
--> "(a(b)c)" "(x)" 1 "HELLO WORLD" 2 1
--> returned

-- # back references
emit(("abcabc"):match("(abc)%1"), ([["it's" 'x']]):match([[(["'])(.-)%1]]), pcall(string.match, "x", "%1"), pcall(string.match, "aa", "(a%1)"))
--> "abc" "\034" false false "invalid capture index"
--> returned

-- # gmatch
for w in ("one two  three"):gmatch("%a+") do emit(w) end
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do emit(k, v) end
for p in ("abc"):gmatch("()") do emit(p) end
for m in ("aXb"):gmatch("^a") do emit("anchored", m) end
--> "one"
--> "two"
--> "three"
--> "a" "1"
--> "b" "2"
--> 1
--> 2
--> 3
--> 4
--> returned

-- # gsub with strings
emit(("hello"):gsub("l", "L"), ("hello"):gsub("l", "L", 1), ("hello"):gsub("", "-"), ("abc"):gsub("%w", "%0%0"), ("abc def"):gsub("(%w+) (%w+)", "%2 %1"), ("abc"):gsub("b", "%%"), ("abc"):gsub("b", ""), ("abc"):gsub("b", "%1"), ("abc"):gsub("x*", "-"), ("abc"):gsub("^a", "x"), ("aaa"):gsub("^a", "x"))
emit(pcall(string.gsub, "abc", "b", "%2"))
emit(("abc"):gsub("b", "%x"))
--> "heLLo" "heLlo" "-h-e-l-l-o-" "aabbcc" "def abc" "a%c" "ac" "abc" "-a-b-c-" "xbc" "xaa" 1
--> false "invalid capture index"
--> "axc" 1
--> returned

-- # gsub with functions and tables
emit(("abc"):gsub("%w", function(c) if c == "b" then return "[" .. c .. "]" end end))
emit(("$name is $age"):gsub("%$(%w+)", {name = "Lua", age = 7}))
emit(("abc"):gsub("%w", {a = 1, b = false, c = true} and {a = 1, b = false}))
emit(("abc"):gsub("(a)(b)", function(a, b) return b .. a end))
emit(pcall(string.gsub, "abc", "b", function() return {} end))
emit(pcall(string.gsub, "abc", "b", {b = true}))
emit(pcall(string.gsub, "abc", "b"))
emit(pcall(string.gsub, "abc", "b", true))
emit(("hello"):gsub("l", "x", 0), ("hello"):gsub("l", "x", -1))
emit(("abc"):gsub("()", function(p) return p end))
--> "a[b]c" 3
--> "Lua is 7" 2
--> "1bc" 3
--> "bac" 1
--> false "invalid replacement value (a table)"
--> false "invalid replacement value (a boolean)"
--> false "bad argument #3 to '?' (string/function/table expected)"
--> false "bad argument #3 to '?' (string/function/table expected)"
--> "hello" "hello" 0
--> "1a2b3c4" 4
--> returned

-- # wrong patterns
for _, p in ipairs({"%", "[a", "[", "[^", "(", ")", "(()", "%b", "%bx", "%f", "[%", "[a-", "a)", "(a"}) do emit(p, pcall(string.find, "aaa", p)) end
emit(pcall(string.rep, "x", {}))
--> "%" false "malformed pattern (ends with '%')"
--> "[a" false "malformed pattern (missing ']')"
--> "[" false "malformed pattern (missing ']')"
--> "[^" false "malformed pattern (missing ']')"
--> "(" false "unfinished capture"
--> ")" true nil
--> "(()" false "unfinished capture"
--> "%b" false "unbalanced pattern"
--> "%bx" false "unbalanced pattern"
--> "%f" false "missing '[' after '%f' in pattern"
--> "[%" false "malformed pattern (missing ']')"
--> "[a-" false "malformed pattern (missing ']')"
--> "a)" true nil
--> "(a" false "unfinished capture"
--> false "bad argument #2 to '?' (number expected, got table)"
--> returned

-- # patterns that are too complex
emit(pcall(string.match, ("x"):rep(300), ("x?"):rep(300)) )
emit(pcall(string.match, "x", ("()"):rep(33)))
emit(select("#", string.match("x", ("()"):rep(32))))
--> true "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
--> false "too many captures"
--> 32
--> returned

-- # special characters are not special where they make no sense
emit(("a*b"):find("*"), ("*"):find("*"), ("a$b"):find("$b"), ("a^b"):find("a^"), ("-"):find("-"), ("+x"):find("+"))
--> 2 1 2 1 1 1 1
--> returned

-- # format: integers
emit(("%d|%5d|%-5d|%05d|%+d|% d|%.3d|%i"):format(42, 42, 42, 42, 42, 42, 42, -7))
emit(("%x|%X|%#x|%o|%#o|%u|%c%c"):format(255, 255, 255, 8, 8, 3, 65, 66))
emit(("%d"):format(3.7), ("%d"):format(-3.7), ("%d"):format("12"), ("%x"):format(2^32), ("%d"):format(2^53))
--> "42|   42|42   |00042|+42| 42|042|-7"
--> "ff|FF|0xff|10|010|3|AB"
--> "3" "-3" "12" "100000000" "9007199254740992"
--> returned

-- # format: floats
emit(("%f|%.2f|%10.3f|%-10.1f|%e|%.0f|%g|%g|%g|%G"):format(3.14159, 3.14159, 3.14159, 3.14159, 12345.678, 2.5, 1e20, 0.0001, 100000, 1e-10))
emit(("%5.1f|%+.1e|%#.0f|%g|%f"):format(-0.05, 12345, 1, 1/0, -1/0))
emit(("%.14g|%.17g|%.3g|%a"):format(0.1, 0.1, 1234567, 1) ~= nil)
--> "3.141590|3.14|     3.142|3.1       |1.234568e+04|2|1e+20|0.0001|100000|1E-10"
--> " -0.1|+1.2e+04|1.|inf|-inf"
--> failed
--> "p:3: invalid option '%a' to 'format'"

-- # format: strings
emit(("%s|%10s|%-10s|%.2s|%5.1s|%s"):format("abc", "abc", "abc", "abc", "abc", 12))
emit(("%q"):format('a "quoted"\n\\ string\0\r'), ("%q"):format(5))
emit(("%%"):format(), ("%5%"):format())
emit(#("%s"):format(("x"):rep(500)), #("%-600s|"):format("x") )
emit(("%s"):format("a\0b"), ("%5s"):format("a\0b"))
--> "abc|       abc|abc       |ab|    a|12"
--> "\034a \092\034quoted\092\034\092\010\092\092 string\092000\092r\034" "\0345\034"
--> failed
--> "p:3: bad argument #1 to 'format' (no value)"

-- # format: errors
emit(pcall(string.format, "%d"))
emit(pcall(string.format, "%d", "x"))
emit(pcall(string.format, "%s"))
emit(pcall(string.format, "%s", nil))
emit(pcall(string.format, "%s", {}))
emit(pcall(string.format, "%y", 1))
emit(pcall(string.format, "%", 1))
emit(pcall(string.format, "%123d", 1))
emit(pcall(string.format, "%.123d", 1))
emit(pcall(string.format, "%------d", 1))
emit(pcall(string.format))
emit(pcall(string.format, "%c", "x"))
--> false "bad argument #2 to '?' (no value)"
--> false "bad argument #2 to '?' (number expected, got string)"
--> false "bad argument #2 to '?' (no value)"
--> false "bad argument #2 to '?' (string expected, got nil)"
--> false "bad argument #2 to '?' (string expected, got table)"
--> false "invalid option '%y' to 'format'"
--> false "invalid option '%' to 'format'"
--> false "invalid format (width or precision too long)"
--> false "invalid format (width or precision too long)"
--> false "invalid format (repeated flags)"
--> false "bad argument #1 to '?' (string expected, got no value)"
--> false "bad argument #2 to '?' (number expected, got string)"
--> returned

-- # methods name their arguments from one
emit(pcall(function() return ("x"):rep() end))
emit(pcall(function() return ("x"):rep({}) end))
emit(pcall(function() return ("x").rep() end))
emit(pcall(function() local t = {rep = string.rep} return t:rep(1) end))
emit(pcall(function() return string.rep() end))
--> false "p:1: bad argument #1 to 'rep' (number expected, got no value)"
--> false "p:2: bad argument #1 to 'rep' (number expected, got table)"
--> false "p:3: bad argument #1 to 'rep' (string expected, got no value)"
--> false "p:4: calling 'rep' on bad self (string expected, got table)"
--> false "p:5: bad argument #1 to 'rep' (string expected, got no value)"
--> returned

-- # gfind is gmatch
emit(string.gfind == string.gmatch, pcall(string.gfind, "a", "a"))
--> true true function
--> returned

-- # dump needs a function of Lua
emit(type(string.dump(function() end)), pcall(string.dump, type))
--> "string" false "unable to dump given function"
--> returned
