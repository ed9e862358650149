-- What lua5.1 does with requests on its standard input: a count, then each with
-- its length before it; answers go back in the same way. Each program has an
-- environment of its own, with the names that scripts have on redis-server, and a
-- bound on its steps.
local names = {
	"assert", "collectgarbage", "coroutine", "error", "gcinfo", "getmetatable", "ipairs", "load", "loadstring",
	"math", "next", "pairs", "pcall", "rawequal", "rawget", "rawset", "select", "setmetatable", "string", "table",
	"tonumber", "tostring", "type", "unpack", "xpcall", "_VERSION",
}
local own, steps, exceeded = getfenv(0), 3000000, false
local io, setfenv, sethook, type, pairs, ipairs = io, setfenv, debug.sethook, type, pairs, ipairs

local function environment()
	local env = {}
	for _, name in ipairs(names) do
		local v = own[name]
		if type(v) == "table" then
			v = {}
			for k, x in pairs(own[name]) do
				v[k] = x
			end
		end
		env[name] = v
	end
	env._G = env
	return env
end

local function prepare(f)
	local env = environment()
	if f then
		setfenv(f, env)
	end
	setfenv(0, env)
	exceeded = false
	sethook(function()
		exceeded = true
		error("too many steps")
	end, "", steps)
	return env
end

for count in io.lines() do
	for _ = 1, tonumber(count) do
		local text = io.read(tonumber(io.read()))
		local answer = run(text, prepare)
		sethook()
		setfenv(0, own)
		if exceeded then
			answer = "too many steps"
		end
		io.write(#answer, "\n", answer)
	end
	io.flush()
end
