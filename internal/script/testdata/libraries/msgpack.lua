for _, v in ipairs{0, 1, 127, 128, 255, 256, 65535, 65536, 2^31, 2^32-1, 2^32, 2^53, 2^62, 2^63, 2^64, -1, -32, -33, -128, -129,
    -32768, -32769, -2^31, -2^31-1, -2^53, -2^63, -2^64, 0.5, 0.1, 1e300, 1e38, 1e39, 1/0, -1/0, 0/0, -0.5, 1e-40, 3.5,
    "", "a", ("x"):rep(31), ("x"):rep(32), true, false, cjson.null, pcall, {}, {1}, {1,2,3}, {[2]=1}, {a=1}, {1,a=2}, {[1.5]=1},
    {[0]=1}, {[-1]=5}, {1,2,nil,4}, {[1]=1,[2]=2,[4]=4}, {[true]=1}, {[1]=1,[3]=3}, {[2]=1,[3]=1,[1]=1}, {[1/0]=1}, {[2^63]=1}, {nil,1}} do
  case(cmsgpack.pack, v)
end
case(cmsgpack.pack)
case(cmsgpack.pack, nil, nil)
case(cmsgpack.pack, 1, "a", {})
for _, n in ipairs{255, 256, 65535, 65536} do line(cmsgpack.pack(("x"):rep(n)):sub(1, 8)) end
for _, n in ipairs{15, 16, 65535, 65536} do
  local items, fields = {}, {}
  for i = 1, n do
    items[i] = 1
    fields[i .. "x"] = 1
  end
  line(cmsgpack.pack(items):sub(1, 8))
  line(cmsgpack.pack(fields):sub(1, 50))
end
for _, h in ipairs{"","00","7f","80","90","a0","c0","c1","c2","c3","c4","c400","c40161","c5000161","c60000000161","c7","c8","c9","ca",
    "ca3f800000","cb","cb3ff0000000000000","ccff","cc","cdffff","ceffffffff","cfffffffffffffffff","cf7fffffffffffffff",
    "cf8000000000000000","d0ff","d1ffff","d2ffffffff","d3ffffffffffffffff","d38000000000000000","d37fffffffffffffff","d4","d5","d6",
    "d7","d8","d90161","d9","d90261","da000161","db0000000161","dc000101","dd0000000101","de00010102","df000000010102","e0","ff",
    "9101","92c001","93c0c003","81c001","81a161c0","8201020304","82c0","81cb7ff800000000000001","9201","9281","a261","dcffff",
    "ddffffffff","dfffffffff","dbffffffff","010203","01c1","0192","9492c0c0c0c0","94c001c0c0","8301c001020203","8101c0","dd7fffffff",
    "82a16101a16102","83a16101a162c0a16303","81c0c1","81c1c0","82c00182","8490019102920381a16101a16202"} do
  case(cmsgpack.unpack, unhex(h))
end
case(cmsgpack.unpack)
case(cmsgpack.unpack, {})
case(cmsgpack.unpack, 12)
case(cmsgpack.unpack, "\1\2", 5)
for _, offset in ipairs{0, 1, 2, 3, 4, -1, 1.9, "1", "x", true, {}} do
  case(cmsgpack.unpack_one, "\1\2\3", offset)
  case(cmsgpack.unpack_limit, "\1\2\3", offset)
  case(cmsgpack.unpack_limit, "\1\2\3", 2, offset)
end
case(cmsgpack.unpack_one)
case(cmsgpack.unpack_one, {})
case(cmsgpack.unpack_one, "\1\2\3", 0, "x")
case(cmsgpack.unpack_one, "\1\2\3", nil)
case(cmsgpack.unpack_one, "")
case(cmsgpack.unpack_one, "", 0)
case(cmsgpack.unpack_one, "", 1)
case(cmsgpack.unpack_one, "\1\193", 0)
case(cmsgpack.unpack_one, "\1\193", 1)
case(cmsgpack.unpack_limit)
case(cmsgpack.unpack_limit, {}, {})
case(cmsgpack.unpack_limit, nil, 1)
for _, limit in ipairs{0, 1, 2, 3, 4, -1, 2^31, 2^32, 2^32+1, -2^40, 1e300} do
  for _, offset in ipairs{0, 1, 3, 4, -1, 2^31, 2^32, 2^32+1} do
    case(cmsgpack.unpack_limit, "\1\2\3", limit, offset)
  end
end
case(cmsgpack.unpack_limit, "\1\2\3", 1, 2, 3)
