package lua

import (
	"strings"
	"testing"
)

// BenchmarkPrograms runs small programs of one kind each. What lua5.1 takes for
// the same is measured by giving it the texts.
func BenchmarkPrograms(b *testing.B) {
	for _, p := range []struct{ name, text string }{
		{"fib", "local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end return function() fib(20) end"},
		{"loops", "return function() local s = 0 for i = 1, 100 do for j = 1, 100 do s = s + i * j - (i % 7) / 3 end end end"},
		{"fill", "return function() local t = {} for i = 1, 10000 do t[i] = i end end"},
		{"read", "local t = {} for i = 1, 1000 do t[i] = i end return function() local s = 0 for i = 1, 1000 do s = s + t[i] end end"},
		{"append", "return function() local s = '' for i = 1, 1000 do s = s .. 'x' .. i end end"},
		{"tconcat", "return function() local t = {} for i = 1, 1000 do t[i] = 'item' .. i end return table.concat(t, ',') end"},
		{"method", "local C = {} C.__index = C function C:add(n) self.x = self.x + n end local o = setmetatable({x = " +
			"1}, C) return function() for i = 1, 1000 do o:add(i) end end"},
		{"closure", "local function mk(i) return function() i = i + 1 return i end end return function() for i = 1, 1000 do " +
			"local f = mk(i) f() f() end end"},
		{"field", "local p = {x = 1, y = 2, z = 3} return function() for i = 1, 1000 do p.x = p.y + p.z p.z = p.x - p.y end end"},
		{"builtin", "local floor, max = math.floor, math.max return function() local s = 0 for i = 1, 1000 do s = s + " +
			"floor(i / 3) + max(i, 5) end end"},
		{"pairs", "local t = {} for i = 1, 1000 do t['k' .. i] = i end return function() local s = 0 for k, v in pairs(t) do s = s + v end end"},
		{"pcall", "local function f(a) return a end return function() for i = 1, 1000 do pcall(f, i) end end"},
	} {
		b.Run(p.name, func(b *testing.B) {
			s := machine(new(strings.Builder))
			f, err := s.Main().Call1(load(b, s, p.text))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Main().Call(f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
