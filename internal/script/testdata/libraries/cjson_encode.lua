local c = cjson.new()
for _, settings in ipairs{"off", "on", "null"} do
  c.encode_invalid_numbers(settings)
  for _, v in ipairs{0/0, -(0/0), 1/0, -1/0} do
    case(c.encode, v)
    case(c.encode, {v})
    case(c.encode, {a=v})
  end
  case(c.encode, {[1/0]=1})
  case(c.encode, {[-1/0]=1})
end
local tables = {
  {[10]=1}, {[11]=1}, {[11]=1,1,2,3,4,5}, {[12]=1,1,2,3,4,5}, {[13]=1,1,2,3,4,5}, {[0]=1}, {[1.5]=1}, {[-1]=1},
  {[2^31]=1}, {[2^31]=1,[3]=1}, {[2^31]=1,[20]=1}, {[2^31-1]=1}, {[2^53]=1}, {[1e300]=1}, {[2^32+5]=1},
  {[true]=1}, {pcall}, {[{}]=1}, {}, {{},a={}}, {{},{}}, {1,cjson.null,3,nil,5}, {a=cjson.null}, {1,2,a=3},
  {[1]=1,[2]=2,[3]=3}, {a=1,[1]=2}, {[pcall]=1}, {["a/b\"c\\d"]=1}, {[""]=""}, {[1e15]=1}, {[0.1]=0.1},
}
for _, t in ipairs(tables) do case(cjson.encode, t) end
c.encode_sparse_array(true)
for _, t in ipairs(tables) do case(c.encode, t) end
c.encode_sparse_array(false, 0)
for _, t in ipairs{{[30]=1}, {[2^31]=1}} do case(c.encode, t) end
c.encode_sparse_array(false, 1, 0)
for _, t in ipairs{{[2]=1}, {1}, {1,nil,3}} do case(c.encode, t) end
c.encode_sparse_array(false, 2^31-1, 0)
for _, t in ipairs{{[2]=1}, {1}, {1,nil,3}, {1,2,[20]=3}} do case(c.encode, t) end
for _, v in ipairs{pcall, coroutine.create(function() end), cjson.null, true, false, "", "x"} do case(cjson.encode, v) end
case(cjson.encode, nil)
case(cjson.encode)
case(cjson.encode, 1, 2)
local bytes = {}
for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
case(cjson.encode, table.concat(bytes))
local numbers = {0, -0.0, 1, -1, 0.1, 0.1+0.2, 1/3, -1/3, 100, 99999999999999, 1e14, 1e14+0.5, 123456789012345, 1e15, 1e16, 1e20, 1e21,
  1e100, 1e-4, 1e-5, 1.5e-5, 123456.789, 12345678901234.5, 5e-324, 1.7976931348623157e308, 2^53, -2^53, 2^63, 1e13-0.5, 0.00001234567890123}
for precision = 1, 14 do
  c.encode_number_precision(precision)
  local texts = {}
  for i, n in ipairs(numbers) do texts[i] = c.encode(n) end
  line(table.concat(texts, " "))
end
