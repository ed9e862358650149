local unary, binary = {"tobit", "bnot", "bswap", "tohex"}, {"band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex"}
for i = 1, CASES do
  for _, name in ipairs(unary) do case(bit[name], number()) end
  for _, name in ipairs(binary) do case(bit[name], number(), number()) end
  case(bit.band, number(), number(), number())
  case(bit.bxor, number(), tostring(number()), number(), number())
end
