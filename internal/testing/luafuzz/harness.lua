-- The part of a run that is written in Lua, and the same on every machine. Its
-- value is a function that runs a program's text and returns what it emitted, as
-- text that is the same wherever the values are.
--
-- The first byte of a request says what to do with the rest: "R" runs it, "S"
-- runs it as a script of redis-server, "C" compiles it only. The program gets emit,
-- tostr (tostring with addresses replaced), round (to ten digits: libraries of
-- mathematics differ after that) and pcall as its "...".
--
-- redis-server's own pcall adds a nil to an error that is a table, or takes its
-- field err, and its globals are strict: scripts get a pcall, and on other machines
-- globals, that make up for it.
local loadstring, pcall, xpcall, error, type, tostring, tonumber, next, rawget, getmetatable, setmetatable, status =
	loadstring, pcall, xpcall, error, type, tostring, tonumber, next, rawget, getmetatable, setmetatable, coroutine.status
local select, format, gsub, sub, byte, find, concat, sort =
	select, string.format, string.gsub, string.sub, string.byte, string.find, table.concat, table.sort

local longest, most, deepest = 3000, 30000, 5

local function escape(c)
	return format("\\%03d", byte(c))
end

local function tostr(...)
	local s = tostring(...)
	if find(s, "^%l+: ") then
		s = gsub(s, "^(%l+): .*$", "%1: address")
	end
	return s
end

local function quote(s)
	if find(s, "^user_script:") then -- another line on each machine
		s = gsub(s, "^user_script:%d+", "user_script:0")
	end
	if #s > longest then
		s = sub(s, 1, longest / 2) .. " ... " .. #s .. " ... " .. sub(s, -longest / 2)
	end
	if find(s, '[%c"\\\128-\255]') then
		s = gsub(s, '[%c"\\\128-\255]', escape)
	end
	return '"' .. s .. '"'
end

local redis = rawget(_G, "redis")

local function index(t)
	local v = t.err
	return v
end

local function field(t)
	local ok, v = pcall(index, t)
	if not ok then -- in C, which has no position
		error(type(v) == "string" and gsub(v, "^user_script:%d+: ", "") or v, 0)
	end
	return v
end

local function alone(ok, ...)
	if not ok and type((...)) == "table" then
		local err = not redis and field(...)
		if type(err) == "string" or type(err) == "number" then
			return ok, err
		end
		return ok, (...)
	end
	return ok, ...
end

local function same(e)
	return e
end

local function scriptPcall(f, ...)
	return alone(pcall(f, ...))
end

local strict = {
	__index = function(_, k)
		error("Script attempted to access nonexistent global variable '" .. tostring(k) .. "'", 2)
	end,
	__newindex = function()
		error("Attempt to modify a readonly table", 2)
	end,
}

local function run(request, prepare)
	local out, n, size = {}, 0, 0
	local function put(s)
		size = size + #s
		if size < most then
			n = n + 1
			out[n] = s
		end
	end
	local function show(v, seen, depth)
		local t = type(v)
		if t == "number" then
			return format("%.17g", v)
		elseif t == "string" then
			return quote(v)
		elseif t == "thread" then
			return "thread " .. status(v)
		elseif t ~= "table" then
			return t == "function" and t or tostring(v)
		end
		if seen[v] then
			return "<" .. seen[v] .. ">"
		end
		seen.n = seen.n + 1
		seen[v] = seen.n
		if depth > deepest then
			return "{...}"
		end
		local parts, p, ordered = {}, 0, true
		for k, x in next, v do
			local kt = type(k)
			ordered = ordered and (kt == "number" or kt == "string" or kt == "boolean")
			p = p + 1
			if kt == "number" and k == p then
				parts[p] = show(x, seen, depth + 1)
			elseif kt == "string" and find(k, "^%a%w*$") then
				parts[p] = k .. "=" .. show(x, seen, depth + 1)
			else
				parts[p] = "[" .. show(k, seen, depth + 1) .. "]=" .. show(x, seen, depth + 1)
			end
			if p > 200 then
				break
			end
		end
		if not ordered then
			return "{" .. p .. " in an order of addresses}"
		end
		local mark = getmetatable(v) and "^" or ""
		if #v ~= p then
			mark = mark .. "#" .. #v .. ":"
		end
		return mark .. "{" .. concat(parts, ",") .. "}"
	end
	local function emit(...)
		local line = {}
		for i = 1, select("#", ...) do
			line[i] = show((select(i, ...)), {n = 0}, 0)
		end
		put(concat(line, " "))
	end
	local function round(x)
		if type(x) ~= "number" then
			return x
		end
		return tonumber(format("%.10g", x)) or x
	end
	local function finish(ok, ...)
		put(ok and "returned" or "failed")
		if select("#", ...) > 0 then
			emit(...)
		end
	end
	local f, err = loadstring(sub(request, 2), "=p")
	local env, mode = prepare and prepare(f) or _G, sub(request, 1, 1)
	if mode == "S" and not redis then
		setmetatable(env, strict)
	end
	if not f then
		put("refused: " .. quote(err))
	elseif mode == "C" then
		put("compiled")
	else
		local catch = mode == "S" and scriptPcall or pcall
		finish(xpcall(function() return f(emit, tostr, round, catch) end, same))
	end
	return concat(out, "\n")
end
