-- What the random programs share: values, and damage to bytes.
local words = {"a", "b", "id", "name", "value", "x/y", "\"", "\\", "\n", "\0", "\127", "\200", "é", "", "1", "2", "key with spaces",
  ("long"):rep(20), "tag", "type", "items", "created_at"}
local function number()
  local kind = random(12)
  if kind <= 4 then return random(200) - 100 end
  if kind == 5 then return random(2^31 - 2) - 2^30 end
  if kind == 6 then return (random(2^31 - 2) * 2^random(40)) * pick{1, -1} end
  if kind == 7 then return random(1000000) / 100 * pick{1, -1} end
  if kind == 8 then return random(2^31 - 2) / random(2^31 - 2) * pick{1, -1} end
  if kind == 9 then return (1 + random(2^31 - 2) / 2^31 + random(2^31 - 2) / 2^52) * 2^(random(2000) - 1000) * pick{1, -1} end
  if kind == 10 then return 2^random(64) + pick{0, 1, -1, 0.5, -0.5} end
  if kind == 11 then return -2^random(64) + pick{0, 1, -1, 0.5, -0.5} end
  return pick{0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1e14, 1e15, 0.1, 1e300, 5e-324, 99999999999999, 100000000000000}
end
local function text()
  local kind = random(6)
  if kind <= 3 then return pick(words) end
  local bytes = {}
  for i = 1, random(kind == 6 and 300 or 20) do bytes[i] = string.char(kind == 4 and random(94) + 31 or random(256) - 1) end
  return table.concat(bytes)
end
-- value returns a random value; strange ones too if rare is above 0.
local function value(depth, rare)
  local kind = random(20)
  if depth > 0 and kind <= 4 then
    local t = {}
    for i = 1, random(12) - 1 do t[i] = value(depth - 1, rare) end
    if random(4) == 1 then t[random(24)] = value(depth - 1, rare) end
    return t
  elseif depth > 0 and kind <= 9 then
    local t = {}
    for i = 1, random(20) - 1 do
      local k = random(10)
      if k == 1 then t[number()] = value(depth - 1, rare)
      elseif k == 2 then t[random(12)] = value(depth - 1, rare)
      else t[text()] = value(depth - 1, rare) end
    end
    if random(3) == 1 then t[pick(words)] = nil end
    return t
  elseif kind <= 13 then
    return number()
  elseif kind <= 16 then
    return text()
  elseif kind <= 17 then
    return random(2) == 1
  elseif kind <= 18 then
    return cjson.null
  elseif rare > 0 and random(rare) == 1 then
    return pick{pcall, 0/0, 1/0, -1/0, {[true] = 1}, {[{}] = 1}, {[1e9] = 1}, {[2^31] = 2, 1}}
  end
  return {}
end
local function damage(s)
  for _ = 1, random(3) do
    local at = random(#s + 1)
    local kind = random(4)
    if kind == 1 then s = s:sub(1, at - 1)
    elseif kind == 2 then s = s:sub(1, at - 1) .. string.char(random(256) - 1) .. s:sub(at + 1)
    elseif kind == 3 then s = s:sub(1, at - 1) .. s:sub(at + random(3))
    else s = s:sub(1, at - 1) .. pick{",", ":", "\"", "[", "]", "{", "}", "\\", "\\u", "1", "-", "e", ".", "nan", "null", "\0", " ", "\192", "\129", "\145", "\202", "\255"} .. s:sub(at) end
  end
  return s
end
