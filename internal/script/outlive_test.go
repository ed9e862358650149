package script

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
)

// keepers try to put what they are given where a later run could find it.
var keepers = []string{
	`loadstring(ARGV[1])() return 1`,
	`return loadstring('return "' .. ARGV[2] .. '"', ARGV[2])()`,
	`return loadstring('error(...)', ARGV[2])(ARGV[2])`,
	`KEYS[ARGV[2]] = ARGV[2] ARGV[KEYS[1]] = {ARGV} KEYS[100] = KEYS[1]`,
	`setmetatable(KEYS, {__index = function() return ARGV[2] end, __metatable = ARGV[2]})`,
	`local t = {} for i = 1, 300 do KEYS[ARGV[2] .. i] = ARGV[2] end`,
	`pcall(rawset, _G, ARGV[2], ARGV[2]) pcall(rawset, redis, ARGV[2], 1) pcall(rawset, getmetatable(''), ARGV[2], 1)`,
	`pcall(setmetatable, _G, {__index = ARGV}) pcall(setmetatable, redis, {__index = ARGV})`,
	`string[ARGV[2]] = ARGV[2]`,
	`error(ARGV[2])`,
	`error({err = ARGV[2]})`,
	`return {err = ARGV[2]}`,
	`return redis.error_reply(ARGV[2])`,
	`return xpcall(function() error(ARGV[2]) end, function(e) return {e, ARGV} end)`,
	`local c = coroutine.create(function(...) coroutine.yield(...) end) coroutine.resume(c, unpack(ARGV)) return 1`,
	`for w in ARGV[2]:gmatch('[a-z]+') do for x in KEYS[1]:gmatch('.') do return w .. x end end`,
	`local s = ARGV[2] for i = 1, 100 do s = s .. ARGV[2] end return #s`,
	`return ARGV[2] .. ''`,
	`return string.format('%s%q', ARGV[2], ARGV[2]) .. ARGV[2]:sub(2, 9) .. ARGV[2]:rep(2)`,
	`cjson.encode_keep_buffer(true) return cjson.encode({ARGV[2], [KEYS[1]] = ARGV[2]})`,
	`return cjson.decode('["' .. ARGV[2] .. '"]')`,
	`pcall(cjson.decode, ARGV[2]) pcall(cmsgpack.unpack, ARGV[2]) pcall(struct.unpack, ARGV[2], ARGV[2])`,
	`return cmsgpack.unpack(cmsgpack.pack({ARGV[2], [ARGV[2]] = 1}))`,
	`redis.log(3, ARGV[2]) redis.call(ARGV[2], ARGV[2]) redis.pcall(KEYS[1])`,
	`return undefined_variable`,
	`return _G[ARGV[2]]`,
	`string.rep(ARGV[2], ARGV[2])`,
	`return tonumber(ARGV[2], ARGV[2])`,
	`local function f(...) if select('#', ...) < 100 then return f(ARGV[2], ...) end return ... end return f()`,
}

// reachable returns every string that a script can reach.
const reachable = `
local seen, all = {}, {}
local function visit(v)
  if type(v) == 'string' then all[#all + 1] = v return end
  if type(v) ~= 'table' or seen[v] then return end
  seen[v] = true
  visit(getmetatable(v))
  for k, x in pairs(v) do visit(k) visit(x) end
end
visit(_G) visit(KEYS) visit(ARGV) visit(getmetatable('')) visit({cjson, cmsgpack, struct, bit, string, table, math, redis})
visit(cjson.encode({1, 'x', {y = 2.5}})) visit(select(2, pcall(error))) visit(select(2, pcall(error, 'e')))
return all`

// The memory of a run's arguments belongs to the next command as soon as the run
// has ended: no string in the machine may lie in it.
func TestNothingOfTheArgumentsOutlivesARun(t *testing.T) {
	const trace = "traceable"
	given := []string{"local a = '" + trace + "' return a", trace}
	e := New(testOptions)
	run := func(script string, collect bool, list ...string) (keep *wire.Writer, err error) {
		text := []byte(script)
		keys, args := bytesList(list), bytesList(list)
		out := &wire.Writer{Proto: 3}
		if collect {
			out.Collect()
		}
		s, err := e.Script(text)
		if err == nil {
			err = e.Run(s, quietHost{}, keys, args, out)
		}
		poison(keys)
		poison(args)
		poison([][]byte{text})
		return out, err
	}
	check := func(script, what, s string) {
		if strings.ContainsRune(s, 0xfffd) || strings.Contains(s, "\xdb") {
			t.Errorf("%s\nleft %s %.200q", script, what, s)
		}
	}
	for _, script := range keepers {
		out, err := run(script, false, given...)
		check(script, "the reply", string(out.Buf))
		if err != nil {
			check(script, "the error", err.Error())
		}
		if out, err = run(script, true, given...); err == nil {
			check(script, "the value", out.Value().String())
		}
		out, err = run(reachable, false)
		if err != nil {
			t.Fatal(err)
		}
		if all := string(out.Buf); strings.Contains(all, trace) {
			t.Errorf("%s\nleft its argument in the machine", script)
		} else {
			check(script, "in the machine", all)
		}
	}
}
