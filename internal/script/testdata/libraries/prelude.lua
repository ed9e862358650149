-- Runs before every program here, on redis-server and on our machine alike.
local lines, seed = {}, SEED
local function random(n) -- 1..n; the same numbers everywhere
  seed = seed * 16807 % 2147483647
  return seed % n + 1
end
local function pick(t) return t[random(#t)] end
local function hex(s)
  return (s:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end
local function unhex(s)
  return (s:gsub("%x%x", function(x) return string.char(tonumber(x, 16)) end))
end
local function show(v)
  local kind = type(v)
  if kind == "string" then
    if v:find("^[ -~]*$") then return "'" .. v .. "'" end
    return "x" .. hex(v)
  elseif kind == "number" then
    return string.format("%.17g", v)
  elseif kind == "table" then
    local entries, unordered = {}, false
    for k, x in pairs(v) do
      entries[#entries + 1] = show(k) .. "=" .. show(x)
      unordered = unordered or type(k) == "table" -- such keys are ordered by their addresses
    end
    if unordered then table.sort(entries) end
    return "{" .. table.concat(entries, ",") .. "}#" .. #v
  elseif kind == "function" or kind == "thread" then
    return kind
  end
  return tostring(v)
end
local function line(...)
  local shown = {}
  for i = 1, select("#", ...) do shown[i] = show((select(i, ...))) end
  lines[#lines + 1] = table.concat(shown, " ")
end
local function case(f, ...)
  line(pcall(f, ...))
end
