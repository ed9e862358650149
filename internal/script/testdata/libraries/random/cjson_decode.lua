local strict = cjson.new()
strict.decode_invalid_numbers(false)
strict.decode_max_depth(4)
local function space() return pick{"", "", "", "", " ", "\n", "\t ", "\r"} end
local function number_text()
  local s = pick{"", "", "-", "+"} .. pick{"0", "1", "12", "123456789", "0x1f", "00", "inf", "nan", "99999999999999999999", tostring(random(2^31 - 2))}
  if random(2) == 1 then s = s .. "." .. pick{"", "0", "5", "25", "123456789012345678", tostring(random(2^31 - 2))} end
  if random(4) == 1 then s = s .. pick{"e", "E", "e+", "e-", "p"} .. pick{"", "0", "1", "5", "20", "300", "400"} end
  return s
end
local function string_text()
  local parts = {'"'}
  for i = 1, random(5) - 1 do
    parts[#parts + 1] = pick{"a", "abc", "é", "\127", "\1", "\\n", "\\\"", "\\/", "\\\\", "\\b", "\\u0041", "\\u00e9", "\\u20AC", "\\ud83d\\ude00",
      "\\ud800", "\\udc00", "\\uD8", "\\x", "/", "some longer text without escapes"}
    if random(3) > 1 and parts[#parts]:find("^\\[uxd]") then parts[#parts] = "plain" end
  end
  parts[#parts + 1] = '"'
  return table.concat(parts)
end
local function document(depth)
  local kind = random(9)
  if depth > 0 and kind <= 2 then
    local items = {}
    for i = 1, random(6) - 1 do items[i] = space() .. document(depth - 1) .. space() end
    return "[" .. table.concat(items, ",") .. "]"
  elseif depth > 0 and kind <= 4 then
    local fields = {}
    for i = 1, random(9) - 1 do
      fields[i] = space() .. (random(3) == 1 and string_text() or '"' .. pick{"a", "b", "c", "id", "name", "v" .. random(30)} .. '"') .. space() .. ":" .. space() .. document(depth - 1)
    end
    return "{" .. table.concat(fields, ",") .. "}"
  elseif kind <= 6 then
    return number_text()
  elseif kind <= 8 then
    return string_text()
  end
  return pick{"true", "false", "null"}
end
for i = 1, CASES do
  local s = space() .. document(4) .. space()
  if random(3) == 1 then s = damage(s) end
  case(cjson.decode, s)
  case(strict.decode, s)
  local ok, s = pcall(cjson.encode, value(3, 0))
  if ok then
    case(cjson.decode, s)
    case(cjson.decode, damage(s))
  end
end
