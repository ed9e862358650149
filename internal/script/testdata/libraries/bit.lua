for _, a in ipairs{0, 1, -1, 2^31, 2^31-1, 2^32, 2^32+1, -2^31, -2^31-1, 0.5, 1.5, 2.5, -0.5, -1.5, 2^51, 2^52, 2^53, 2^52+1, -2^52, -2^51,
    1e15+0.5, 1e300, 1/0, -1/0, 0/0, "12", "0x10", " 7 ", "x", "", true, {}, pcall} do
  for _, name in ipairs{"tobit", "bnot", "band", "bor", "bxor", "bswap", "tohex"} do case(bit[name], a) end
end
for _, name in ipairs{"tobit", "bnot", "band", "bor", "bxor", "bswap", "tohex", "lshift", "rshift", "arshift", "rol", "ror"} do
  case(bit[name])
  case(bit[name], nil)
  case(bit[name], 1, nil)
  case(bit[name], 0x12345678, 5)
  case(bit[name], 0x12345678, 5, 2)
  case(bit[name], 1, 2, "x", {})
  case(bit[name], "x", {})
end
case(bit.band, 7, 6, 12, 4)
case(bit.bor, 1, 2, 4)
case(bit.bxor, 1, 3, 8)
for _, n in ipairs{0, 1, 4, 31, 32, 33, -1, -31, 1.5, 2.5, 2^32+1} do
  for _, name in ipairs{"lshift", "rshift", "arshift", "rol", "ror"} do case(bit[name], 0x87654321, n) end
end
for _, n in ipairs{0, 1, 4, 8, 9, -1, -4, -8, -9, 2^31, -2^31, -2^31+1, 1.5, "3", "x", 2^32, 2^32-1} do case(bit.tohex, 0xabcdef12, n) end
