-- # names and keywords in every case but the exact one
local And, _1, _x, eNd = 1, 2, 3, 4
emit(And + _1 + _x + eNd)
--> 10
--> returned

-- # escapes in strings
emit("a\a\b\f\n\r\t\v\\\"\'", 'a"b', "a'b", "\065\10\0659", "\0a\00b\000c", "\q")
--> "a\007\008\012\010\013\009\011\092\034'" "a\034b" "a'b" "A\010A9" "\000a\000b\000c" "q"
--> returned

-- # a backslash before the end of a line is a newline
emit("a\
b", #"a\
b")
--> "a\010b" 3
--> returned

-- # a decimal escape takes three digits at most, up to 255
emit("\1234", "\255")
emit(loadstring('return "\\256"'))
--> "{4" "\255"
--> nil "[string \034return \034\092256\034\034]:1: escape sequence too large near '\034'"
--> returned

-- # long strings skip a first newline
emit([[
a
b]], [==[]]]=]]==], [[]], [=[
]=])
--> "a\010b" "]]]=]" "" ""
--> returned

-- # long strings have no escapes
emit([[\n]], #[[\]])
--> "\092n" 1
--> returned

-- # ends of lines count once whether they are CR, LF, CRLF or LFCR
emit(loadstring("\r\n\n\r\r\r\nx x"))
emit(#loadstring("return [[\r\n1\r2\n\r3]]")())
--> nil "[string \034...\034]:5: '=' expected near 'x'"
--> 5
--> returned

-- # comments, long and short
emit(1 --[[ in between ]] + 2, --[==[ ]] ]==] 3)
--[[ emit("not this")
]] emit(4) --[ emit(5)
---[[ emit(6)
--> 3 3
--> 4
--> returned

-- # numerals
emit(3, 3.0, 3.1416, 314.16e-2, 0.31416E1, 0xff, 0x56, .5, 5., 3e0, 0XaF)
--> 3 3 3.1415999999999999 3.1415999999999999 3.1415999999999999 255 86 0.5 5 3 175
--> returned

-- # a numeral goes on as long as it could
emit(loadstring("return 3x"))
emit(loadstring("return 0x"))
emit(loadstring("return 1e+"))
emit(loadstring("return 1..2"))
emit(loadstring("return 0xep1"))
emit(loadstring("return 08, 1e5")())
--> nil "[string \034return 3x\034]:1: malformed number near '3x'"
--> nil "[string \034return 0x\034]:1: malformed number near '0x'"
--> nil "[string \034return 1e+\034]:1: malformed number near '1e+'"
--> nil "[string \034return 1..2\034]:1: malformed number near '1..2'"
--> function
--> 8 100000
--> returned

-- # hexadecimal numerals may be long
emit(0xffffffffffffffff, 0x7fffffffffffffff, 0x100000000)
--> 1.8446744073709552e+19 9.2233720368547758e+18 4294967296
--> returned

-- # what no token begins with
emit(loadstring("x = @"))
emit(loadstring("x = a ~ b"))
emit(loadstring("x = \1"))
emit(loadstring("x = \200"))
emit(loadstring("x = 'a\nb'"))
emit(loadstring("x = 'a"))
emit(loadstring("x = [[a"))
emit(loadstring("x = [==a"))
emit(loadstring("--[[ a"))
--> nil "[string \034x = @\034]:1: unexpected symbol near '@'"
--> nil "[string \034x = a ~ b\034]:1: unexpected symbol near '~'"
--> nil "[string \034x = \001\034]:1: unexpected symbol near 'char(1)'"
--> nil "[string \034x = \200\034]:1: unexpected symbol near '\200'"
--> nil "[string \034x = 'a...\034]:1: unfinished string near ''a'"
--> nil "[string \034x = 'a\034]:1: unfinished string near '<eof>'"
--> nil "[string \034x = [[a\034]:1: unfinished long string near '<eof>'"
--> nil "[string \034x = [==a\034]:1: invalid long string delimiter near '[=='"
--> nil "[string \034--[[ a\034]:1: unfinished long comment near '<eof>'"
--> returned

-- # names in messages are shortened
emit(loadstring("x =", "=name"))
emit(loadstring("x =", "@file.lua"))
emit(loadstring("x =", "one line"))
emit(loadstring("x =", "one line\nanother"))
emit(loadstring("x =", ("long "):rep(30)))
emit(loadstring("x =", "=" .. ("long "):rep(30)))
emit(loadstring("x =", "@" .. ("long "):rep(30)))
emit(loadstring("x ="))
--> nil "name:1: unexpected symbol near '<eof>'"
--> nil "file.lua:1: unexpected symbol near '<eof>'"
--> nil "[string \034one line\034]:1: unexpected symbol near '<eof>'"
--> nil "[string \034one line...\034]:1: unexpected symbol near '<eof>'"
--> nil "[string \034long long long long long long long long long long long long lon...\034]:1: unexpected symbol near '<eof>'"
--> nil "long long long long long long long long long long long long long long long long:1: unexpected symbol near '<eof>'"
--> nil "...g long long long long long long long long long long long long long long :1: unexpected symbol near '<eof>'"
--> nil "[string \034x =\034]:1: unexpected symbol near '<eof>'"
--> returned

-- # a NUL byte counts as an exponent's letter, and as a dot after a dot
emit(loadstring("return 2\0")())
emit(loadstring("return 2\0005")())
emit(loadstring("return 'a' .\0 'b'"))
emit(loadstring("return \0"))
--> 2
--> 2
--> function
--> nil "[string \034return \034]:1: unexpected symbol"
--> returned
