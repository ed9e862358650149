for i = 1, CASES do
  case(cmsgpack.pack, value(3, 10))
  local s = cmsgpack.pack(value(2, 10), value(1, 0), number())
  line(s)
  case(cmsgpack.unpack, s)
  case(cmsgpack.unpack_one, s, random(#s + 2) - 2)
  case(cmsgpack.unpack_limit, s, random(5) - 2, random(#s + 2) - 2)
  s = damage(s)
  case(cmsgpack.unpack, s)
  case(cmsgpack.unpack_limit, s, random(3), random(#s + 2) - 2)
  s = text()
  case(cmsgpack.unpack, s)
end
