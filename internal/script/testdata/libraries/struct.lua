for _, f in ipairs{"","b","B","h","H","l","L","T","f","d","x","c","c0","c5","s","i","I","i0","i1","i3","i7","i8","i9","i16","i17","i32",
    "i33","i2147483647","i2147483648","i99999999999","c2147483647","c2147483648","!","!0","!1","!2","!3","!4","!8","!16","!32","!64","!4i8",
    "!8bi8","!bd","!2bd","bd","!bi3","!bi","!bT","!16bi16","!bi16","!bi5","!16bi9","<",">","=","z","a","j","Q","%","\0b","b b","!4 b h i",
    "!x","c2147483647c2147483647","c2147483647c2147483647c2147483647","c10x","i8c3!4i","1","5b","b5","!1073741824i","!2147483648","!i6b",
    "bi12","!bi12","!bc4i","sc0","c0s","\255","!!","!b!","b!8d","!4bd!8d"} do
  case(struct.size, f)
end
case(struct.size)
case(struct.size, {})
case(struct.size, 12)
local numbers = {0, 1, -1, 127, 128, 255, 256, 65535, -32769, 2^31, 2^32, 2^53, 2^63, 2^63+2048, 2^64, -2^63, -2^64, 1e300, -1e300, 1/0, -1/0,
  0/0, 1.5, -1.5, 0.1, "12", "x", "0x10"}
for _, f in ipairs{"b","B","h","H","l","L","T","i","I","i0","i1","i3","i7","i8","i9","i16","i32",">b",">h",">l",">i3",">i9",">i16",">i32",
    "<>i","f","d",">f",">d","<d"} do
  line(f)
  for _, n in ipairs(numbers) do case(struct.pack, f, n) end
end
case(struct.pack)
case(struct.pack, {})
case(struct.pack, "b")
case(struct.pack, "bb", 1)
case(struct.pack, "s")
case(struct.pack, "s", {})
case(struct.pack, "s", nil)
case(struct.pack, "s", "abc")
case(struct.pack, "s", "a\0bc")
case(struct.pack, "s", "")
case(struct.pack, "s", 12)
case(struct.pack, "c", "abc")
case(struct.pack, "c0", "abc")
case(struct.pack, "c2", "abc")
case(struct.pack, "c4", "abc")
case(struct.pack, "bc4", 1, "abc")
case(struct.pack, "c4", "")
case(struct.pack, "c", "")
case(struct.pack, "c0", "")
case(struct.pack, "x")
case(struct.pack, "xxbx", 1)
case(struct.pack, "!bi", 1, 2)
case(struct.pack, "!4bd", 1, 2)
case(struct.pack, "!b!1i", 1, 2)
case(struct.pack, "!bsh", 1, "a", 2)
case(struct.pack, "!bc2h", 1, "aa", 2)
case(struct.pack, "b", 1, 2, 3)
case(struct.pack, "z", 1)
case(struct.pack, "bz", 1)
case(struct.pack, "%")
case(struct.pack, "b5", 1)
case(struct.pack, "c2147483647", "x")
case(struct.pack, "i33", 1)
case(struct.pack, "b", nil)
case(struct.pack, "b", true)
case(struct.pack, "b\0b", 1, 2)
case(struct.pack, "c2", 123)
case(struct.pack, "!3b", 1)
case(struct.pack, "!bi3b", 1, 2, 3)
case(struct.pack, "!bi5b", 1, 2, 3)
case(struct.pack, "!8bi6b", 1, 2, 3)
case(struct.pack, "!8bi9b", 1, 2, 3)
case(struct.pack, "!16bi16", 1, 2)
local data = unhex("0182030405060708090a0b0c0d0e0f10fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0")
for _, f in ipairs{"","b","B","h","H","l","L","T","f","d","x","c","c0","bc0","Bc0","fc0","c5","s","i","I","i0","I0","i1","i3","i7","i8","i9",
    "i16","i17","i32","i33","I9","I32",">h",">i3",">i8",">i9",">I16",">i32",">d",">f","!bi","!bd","!4bd","!bc3i","z","%","!3","bbc0","sc0",
    "bxc0","b c0","c1c0","xc0","x>c0","c99","i2147483648","c2147483647","bc2147483647",("x"):rep(32),("x"):rep(33),"!bbbxxxi","b5","b\0b",
    "x16b","xxxxxxxxxxxxxxxxi", ">xxxxxxxxxxxxxxxxi", ">xxxxxxxxxxxxxxxxi3", "xxxxxxxxxxxxxxxxL", "bbbbb", "!bxh", "!xxxi9"} do
  case(struct.unpack, f, data)
end
for _, offset in ipairs{1, 2, 3, 31, 32, 33, 34, 0, -1, -2^31, 2^31, 2^32, 2^53, 2^63, -2^63, 1.9, 0.5, "2", "x", true} do
  for _, f in ipairs{"b", "", "!i", "s", "<", "x", "!"} do case(struct.unpack, f, data, offset) end
end
case(struct.unpack)
case(struct.unpack, "b")
case(struct.unpack, "b", {})
case(struct.unpack, "b", "")
case(struct.unpack, "b", 12)
case(struct.unpack, "b", "a", {})
case(struct.unpack, "b", "a", nil)
case(struct.unpack, "s", "abc")
case(struct.unpack, "ss", "abc\0d\0")
case(struct.unpack, "ss", "abc\0d")
case(struct.unpack, "s", "")
case(struct.unpack, "s", "\0")
case(struct.unpack, "bc0", "\3abcd")
case(struct.unpack, "bc0", "\3ab")
case(struct.unpack, "bc0", "\255abcd")
case(struct.unpack, "Bc0", "\255abcd")
case(struct.unpack, "bc0", "\0abcd")
for _, n in ipairs{2.7, -2.7, 0/0, 1/0, -1/0, 2^64, 2^63, 0.5, -0.5, 2} do
  case(struct.unpack, "dc0", struct.pack("d", n) .. "abcd")
end
case(struct.unpack, "c1c0", "3abcd")
case(struct.unpack, "c1c0", "xabcd")
case(struct.unpack, "sc0", "2\0abcd")
case(struct.unpack, "bbc0", "\1\2abcd")
case(struct.unpack, "bbc0c0", "\1\2abcd")
case(struct.unpack, "c0", "abc")
case(struct.unpack, "c3c0", " 2 abcd")
case(struct.unpack, "c3c0", "0x2abcd")
case(struct.unpack, "c4c0", "-0.5abcd")
