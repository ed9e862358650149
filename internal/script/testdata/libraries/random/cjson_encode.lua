local c = cjson.new()
for i = 1, CASES do
  if i % 10 == 0 then
    c = cjson.new()
    c.encode_invalid_numbers(pick{"on", "off", "null"})
    c.encode_number_precision(random(14))
    c.encode_sparse_array(random(2) == 1, random(4), random(12) - 1)
    c.encode_max_depth(random(6))
  end
  case(c.encode, value(3, 10))
  case(cjson.encode, value(2, 0))
end
