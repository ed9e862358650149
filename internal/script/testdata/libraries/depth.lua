local function arrays(n) local t = {} for i = 1, n - 1 do t = {t} end return t end
local function objects(n) local t = {} for i = 1, n - 1 do t = {a = t} end return t end
local function mixed(n) local t = {} for i = 1, n - 1 do if i % 2 == 0 then t = {a = t} else t = {t} end end return t end
-- deepest returns the greatest n for which f(n) succeeds, and shows how n+1 fails.
local function deepest(f)
  local low, high = 1, 20000
  while high - low > 1 do
    local m = math.floor((low + high) / 2)
    if pcall(f, m) then low = m else high = m end
  end
  line(low)
  line(pcall(f, high))
end
local c = cjson.new()
for _, depth in ipairs{1000, 5, 2^31-1} do
  c.encode_max_depth(depth)
  c.decode_max_depth(depth)
  for _, make in ipairs{arrays, objects, mixed} do
    deepest(function(n) return #c.encode(make(n)) end)
  end
  deepest(function(n) return type(c.decode(("["):rep(n) .. ("]"):rep(n))) end)
  deepest(function(n) return type(c.decode(('{"a":'):rep(n) .. "1" .. ("}"):rep(n))) end)
  deepest(function(n) return type(c.decode(('[{"a":'):rep(n) .. "1" .. ("}]"):rep(n))) end)
end
deepest(function(n) return (select("#", cmsgpack.unpack(("\145"):rep(n) .. "\1"))) end)
deepest(function(n) return (select("#", cmsgpack.unpack(("\129\1"):rep(n) .. "\1"))) end)
deepest(function(n) return (select("#", cmsgpack.unpack(("\129\1\145"):rep(n) .. "\1"))) end)
deepest(function(n) return (select("#", cmsgpack.unpack(("\1"):rep(n)))) end)
deepest(function(n) return (select("#", cmsgpack.unpack(("\1"):rep(n), 1, 2, 3))) end)
deepest(function(n) return (select("#", cmsgpack.unpack_limit(("\1"):rep(n + 1), n))) end)
deepest(function(n) return (select("#", struct.unpack(("b"):rep(n), ("b"):rep(n)))) end)
deepest(function(n) return (select("#", struct.unpack(("b"):rep(n), ("b"):rep(n), 1))) end)
deepest(function(n) return (select("#", struct.unpack(("x"):rep(n), ("b"):rep(n)))) end)
local many = {}
for i = 1, 4001 do many[i] = 1 end
line(#cmsgpack.pack(unpack(many, 1, 4000)))
line(pcall(cmsgpack.pack, unpack(many)))
for _, make in ipairs{arrays, objects, mixed} do
  for n = 14, 19 do line(cmsgpack.pack(make(n))) end
end
