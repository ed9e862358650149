local c = cjson.new()
local none, all = {}, {}
for _, name in ipairs{"encode_max_depth", "decode_max_depth", "encode_number_precision",
    "encode_keep_buffer", "encode_invalid_numbers", "decode_invalid_numbers", "encode_sparse_array"} do
  line(name)
  case(c[name])
  for _, v in ipairs{0, 1, 2, 3, 14, 15, 17, -1, 1000, 2^31-1, 2^31, 2^32+5, 2^40, 0.5, 1.9, 1e300, "5", "5.7", "x", "",
      "on", "off", "null", "off\0x", "ON", true, false, {}, pcall, cjson.null} do
    case(c[name], v)
    case(c[name])
  end
  case(c[name], nil)
  case(c[name], 1, 2)
  case(c[name], 1, 2, 3, 4)
  case(c[name], nil, nil, nil, nil)
end
for _, second in ipairs{0, 1, -1, "x", 2^31} do
  case(c.encode_sparse_array, true, second)
  case(c.encode_sparse_array, nil, 2, second)
  case(c.encode_sparse_array, "off", 2, second)
end
line(cjson.encode_max_depth(), cjson.encode_sparse_array())
local c2 = cjson.new(1, 2, 3)
line(c2.encode_max_depth(3), cjson.encode_max_depth())
case(c2.encode, {{{}}})
case(c2.encode, {{{{}}}})
case(cjson.encode, {{{{}}}})
c2.x = 1
line(c2.x, cjson.x)
for _, name in ipairs{"cjson", "cmsgpack", "struct", "bit"} do
  local names = {}
  for k, v in pairs(_G[name]) do names[#names + 1] = k .. ":" .. type(v) end
  line(table.concat(names, " "))
end
line(cjson._NAME, cjson._VERSION, cjson.null, cmsgpack._NAME, cmsgpack._VERSION, cmsgpack._COPYRIGHT, cmsgpack._DESCRIPTION)
-- where errors say they are
line(pcall(function() local x = cjson.decode("{") end))
line(pcall(function() local x = cjson.decode() end))
line(pcall(function() local x = cjson.encode({pcall}) end))
line(pcall(function() local x = cmsgpack.pack() end))
line(pcall(function() local x = cmsgpack.unpack("\146\1") end))
line(pcall(function() local x = cmsgpack.unpack("\129\192\1") end))
line(pcall(function() local x = struct.pack("i33", 1) end))
line(pcall(function() local x = struct.unpack("b", "") end))
line(pcall(function() return (bit.band("x")) end))
line(pcall(function() return (bit.band(nil)) end))
