package lua

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// machine returns a State with the libraries and print, which writes to out.
func machine(out *strings.Builder) *State {
	s := New()
	s.OpenLibs()
	_ = s.Globals().SetString("print", BuiltinValue(&Builtin{Name: "print", Run: func(c Call) error {
		for i := 1; i <= c.N(); i++ {
			text, err := c.Thread().ToString(c.Arg(i))
			if err != nil {
				return err
			}
			out.WriteString(text + "\n")
		}
		return c.Return()
	}}))
	return s
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// describeRun runs a program as pcall does and shows what pcall would return.
func describeRun(s *State, program string) string {
	f, err := s.Load(program, "=p")
	if err != nil {
		return "false\t" + err.Error()
	}
	rs, err := s.Main().Call(s.Globals().GetString("pcall"), ClosureValue(f))
	if err != nil {
		return "error " + err.Error()
	}
	words := make([]string, len(rs))
	for i, v := range append([]Value(nil), rs...) {
		words[i], _ = s.Main().ToString(v)
	}
	return address.ReplaceAllString(strings.Join(words, " "), "ADDR")
}

// TestProgramsDoAsInLua runs the programs of testdata/machine.txt, all in one
// State, whose results are those of Lua 5.1.5.
func TestProgramsDoAsInLua(t *testing.T) {
	data, err := os.ReadFile("testdata/machine.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := machine(new(strings.Builder))
	for _, block := range strings.Split("\n"+string(data), "\n> ")[1:] {
		program, want, _ := strings.Cut(strings.TrimSuffix(block, "\n"), "\n")
		if got := describeRun(s, program); got != want {
			t.Errorf("%s\n got %s\nwant %s", program, got, want)
		}
		if s.main.ci != &s.main.root || s.main.top != 0 || s.calls != 0 || s.current != s.main || s.main.open != nil {
			t.Fatalf("%s: the State is not at rest: top %d, calls %d", program, s.main.top, s.calls)
		}
	}
}

// load is Load for programs that must compile.
func load(t testing.TB, s *State, program string) Value {
	t.Helper()
	f, err := s.Load(program, "=p")
	if err != nil {
		t.Fatal(err)
	}
	return ClosureValue(f)
}

func TestCallsDoNotAllocate(t *testing.T) {
	for name, program := range map[string]string{
		"lua":       "local function f(a, b) return a, b end return function() for i = 1, 100 do local x, y = f(i, i) end end",
		"vararg":    "local function f(...) return select('#', ...) end return function() for i = 1, 100 do f(i, i) end end",
		"tail":      "local function f(n) if n == 0 then return 0 end return f(n - 1) end return function() f(100) end",
		"recursion": "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return function() f(100) end",
		"builtin":   "local floor, max = math.floor, math.max return function() for i = 1, 100 do floor(i / 3) max(i, 5) type(i) end end",
		"method":    "local o = {n = 0} function o:inc(d) self.n = self.n + d end return function() for i = 1, 100 do o:inc(1) end end",
		"class": "local C = {} C.__index = C function C:inc() self.n = self.n + 1 end local o = setmetatable({n = 0}, C) return function() " +
			"for i = 1, 100 do o:inc() end end",
		"metamethod": "local o = setmetatable({}, {__add = function(a, b) return b end, __index = function(t, k) return k end}) " +
			"return function() for i = 1, 100 do local x = o + i local y = o[i] end end",
		"pcall": "local function f(a) return a end return function() for i = 1, 100 do pcall(f, i) end end",
		"loops": "local t = {1, 2, 3, a = 1, b = 2} return function() for k, v in pairs(t) do end for i, v in ipairs(t) do end " +
			"for k, v in next, t do end end",
		"iterator": "local function it(s, c) if c < s then return c + 1 end end return function() for i in it, 100, 0 do end end",
		"coroutine": "local w = coroutine.wrap(function() while true do coroutine.yield(1) end end) return function() " +
			"for i = 1, 100 do w() end end",
		"compare": "return function() local n = 0 for i = 1, 100 do if 'a' < 'b' and 'x' ~= 'y' and i == 5 then n = n + 1 end end end",
	} {
		t.Run(name, func(t *testing.T) {
			s := machine(new(strings.Builder))
			f, err := s.Main().Call1(load(t, s, program))
			if err != nil {
				t.Fatal(err)
			}
			run := func() {
				if _, err := s.Main().Call(f); err != nil {
					t.Fatal(err)
				}
			}
			run()
			if n := testing.AllocsPerRun(20, run); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

var errStop = errors.New("stop")

// endless are programs that only an interrupt ends.
var endless = []string{
	"while true do end",
	"repeat until false",
	"for i = 1, math.huge do end",
	"local function f() return f() end f()",
	"while true do pcall(function() while true do end end) end",
	"while true do pcall(error) end",
	"local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
	"coroutine.wrap(function() while true do end end)()",
	"while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
	"while true do xpcall(function() error() end, function() while true do end end) end",
	"local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
	"for x in function() return 1 end do end",
	"while true do table.sort({3, 2, 1}, function() while true do end end) end",
	"load(function() return ' ' end)",
	"while true do local s = ('x'):rep(1000) .. 'y' end",
	"repeat until 'a' > 'b'",
	"local a = 'a' repeat until a == 'b'",
}

func TestInterruptEndsEveryProgram(t *testing.T) {
	for _, program := range endless {
		s := machine(new(strings.Builder))
		ticks := 0
		s.SetInterrupt(1000, func() error {
			if ticks++; ticks == 5 {
				return errStop
			}
			return nil
		})
		if _, err := s.Main().Call(load(t, s, program)); err != errStop {
			t.Errorf("%s: %v", program, err)
		}
		if got := describeRun(s, "return 1 + 1"); got != "true 2" {
			t.Errorf("%s: the State is unusable: %s", program, got)
		}
	}
}

// A program whose end comes while its values are counted, which a new table is the
// reason for, ends at the next jump; or with that error, if it has none left.
func TestInterruptEndsAProgramThatOnlyMakesTables(t *testing.T) {
	for _, program := range []string{"while true do local x = {} end", strings.Repeat("local x = {} x = nil ", 100) + "return 1"} {
		s := machine(new(strings.Builder))
		s.SetMemoryLimit(64 << 20)
		if _, err := s.Main().Call(load(t, s, "t = {} for i = 1, 100000 do t[i] = {} end")); err != nil {
			t.Fatal(err)
		}
		f := load(t, s, program)
		s.heap.threshold = s.heap.since + 10 // the next table but a few is one too many
		asked := 0
		s.SetInterrupt(1<<20, func() error {
			if asked++; asked > 1 || s.ticking {
				t.Fatalf("%.30s: asked %d times, in the end between instructions: %v", program, asked, s.ticking)
			}
			return errStop
		})
		if _, err := s.Main().Call(f); err != errStop {
			t.Errorf("%.30s: %v", program, err)
		}
		s.SetInterrupt(0, nil)
		if got := describeRun(s, "return 1 + 1"); got != "true 2" {
			t.Errorf("%.30s: the State is unusable: %s", program, got)
		}
	}
}

// TestInterruptErrorIsNotCaught holds even for an *Error.
func TestInterruptErrorIsNotCaught(t *testing.T) {
	s := machine(new(strings.Builder))
	stop := &Error{Value: String("killed")}
	s.SetInterrupt(100, func() error { return stop })
	if _, err := s.Main().Call(load(t, s, "while true do pcall(function() while true do end end) end")); err != stop {
		t.Fatal(err)
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, program := range []string{
		"local s = 'x' while true do s = s .. s end",
		"local s = '' while true do s = s .. 'xxxxxxxxxxxxxxxxxxxxxxxx' end",
		"local t = {} for i = 1, math.huge do t[i] = i end",
		"local t = {} for i = 1, math.huge do t[i] = {} end",
		"local t = {} while true do t = {t} end",
		"local t = {} while true do t = {x = t} end",
		"local t = {} for i = 1, math.huge do t['k' .. i] = 'v' .. i end",
		"local t = {} for i = 1, math.huge do t[i] = function() return i end end",
		"local t = {} for i = 1, math.huge do t[i] = coroutine.create(function() end) end",
		"local f = print while true do local g = f f = function() return g end end",
		"local s = ('x'):rep(1e6) local t = {} for i = 1, math.huge do t[i] = s .. i end",
		"local t = {} for i = 1, math.huge do t[i] = coroutine.wrap(function() end) end",
		"for i = 1, math.huge do _G['g' .. i] = i end",
		"return ('x'):rep(1e9)",
	} {
		s := machine(new(strings.Builder))
		s.SetMemoryLimit(16 << 20)
		got := describeRun(s, program)
		if got != "false not enough memory" {
			t.Errorf("%s: %s", program, got)
		}
		if s.heap.live > 20<<20 {
			t.Errorf("%s: %d bytes alive", program, s.heap.live)
		}
	}
}

// TestGarbageIsNotCounted runs programs that allocate much and keep little.
func TestGarbageIsNotCounted(t *testing.T) {
	for _, program := range []string{
		"for i = 1, 300000 do local t = {i, {}, x = 'k' .. i} end return 1",
		"local s = '' for i = 1, 20000 do s = ('x'):rep(4000) .. i end return 1",
		"local s = ('x'):rep(100000) local t = {} for i = 1, 10000 do t[i] = s end return 1",
		"local co for i = 1, 20000 do co = coroutine.create(function() end) coroutine.resume(co) end return 1",
	} {
		s := machine(new(strings.Builder))
		s.SetMemoryLimit(8 << 20)
		if got := describeRun(s, program); got != "true 1" {
			t.Errorf("%s: %s", program, got)
		}
	}
}

func TestBuiltinsThatGoOnAfterErrors(t *testing.T) {
	s := machine(new(strings.Builder))
	_ = s.Globals().SetString("try", BuiltinValue(&Builtin{Run: func(c Call) error {
		for range 3 {
			if _, err := c.Thread().PCall(c.Arg(1)); err == nil {
				return c.Errorf("no error")
			}
		}
		rs, err := c.Thread().CallHandled(func(th *Thread, e *Error) *Error {
			source, line, ok := th.Position(0)
			above, at, _ := th.Position(1)
			if source != "=p" || line != 2 || !ok || above != "=[C]" || at != -1 {
				t.Errorf("the error is at %s:%d, called from %s:%d", source, line, above, at)
			}
			return &Error{Value: String("handled " + e.Error())}
		}, c.Arg(1))
		if rs != nil {
			t.Error("results beside an error")
		}
		return c.Return(String(err.Error()))
	}}))
	got := describeRun(s, "local function f()\n local x = nil + 1\nend\nlocal r = try(f) return r, #r")
	if want := "true handled p:2: attempt to perform arithmetic on a nil value 57"; got != want {
		t.Errorf("got %s", got)
	}
}

// TestPositionDuringInterrupt compares the position that the message of a killed script names.
func TestPositionDuringInterrupt(t *testing.T) {
	s := machine(new(strings.Builder))
	var source string
	var line int
	s.SetInterrupt(100, func() error {
		source, line, _ = s.Position(0)
		return errStop
	})
	if _, err := s.Main().Call(load(t, s, "local x\n\nwhile true do\n\nend")); err != errStop || source != "=p" || line < 3 {
		t.Errorf("%v at %s:%d", err, source, line)
	}
}

// FuzzExecute interrupts a program after any number of steps, more than once, and
// sees whether the State is as good as new.
func FuzzExecute(f *testing.F) {
	programs := append([]string{
		`local t = {} for i = 1, 50 do t[i] = i % 7 end table.sort(t, function(a, b) return a > b end)
		local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end)
		local n = 0 for i = 1, 10 do n = n + co() end
		local ok, e = pcall(function() local ok, e = xpcall(function() error("in") end, function(m) return m .. n end) error(e) end)
		local s = "" for w in ("a b c"):gmatch("%a") do s = s .. w:gsub(".", function(c) return c .. c end) end
		local o = setmetatable({}, {__index = function(t, k) return k end, __lt = function() return true end})
		local function rec(n) if n > 0 then local x = n local f = function() return x end return rec(n - 1) + f() end return 0 end
		return n + rec(100), s, e, o.x, o < setmetatable({}, getmetatable(o))`,
	}, endless...)
	for i := range programs {
		f.Add(uint8(i), uint16(1), uint16(3))
		f.Add(uint8(i), uint16(37), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, which uint8, every, ticks uint16) {
		s := machine(new(strings.Builder))
		function := load(t, s, programs[int(which)%len(programs)])
		left := int(ticks) % 512
		for range 3 {
			left += 7
			n := left
			s.SetInterrupt(int(every%2000)+1, func() error {
				if n--; n <= 0 {
					return errStop
				}
				return nil
			})
			if _, err := s.Main().Call(function); err != nil && err != errStop {
				t.Fatal(err)
			}
			if s.main.ci != &s.main.root || s.main.top != 0 || s.calls != 0 || s.main.open != nil || s.stopped != nil || s.current != s.main {
				t.Fatal("the State is not at rest")
			}
		}
		s.SetInterrupt(0, nil)
		if got, want := describeRun(s, "local r = {} for i = 1, 3 do r[i] = coroutine.wrap(function() return i end)() end return unpack(r)"),
			"true 1 2 3"; got != want {
			t.Fatalf("got %s", got)
		}
	})
}

func TestInterruptAtEveryPointOfAProgram(t *testing.T) {
	for every := 1; every < 400; every += 3 {
		s := machine(new(strings.Builder))
		f := load(t, s, `local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end)
			local n = 0 for i = 1, 10 do n = n + co() end
			pcall(function() table.sort({3, 2, 1}, function(a, b) local ok, e = pcall(error, "x") return a < b end) end)
			local function rec(n) if n > 0 then local x = n local f = function() return x end return rec(n - 1) + f() end return 0 end
			return rec(30)`)
		s.SetInterrupt(every, func() error { return errStop })
		if _, err := s.Main().Call(f); err != nil && err != errStop {
			t.Fatal(err)
		}
		s.SetInterrupt(0, nil)
		if v, err := s.Main().Call1(f); err != nil || !Equal(v, Int(465)) {
			t.Fatalf("after an interrupt at step %d: %v %v", every, v, err)
		}
	}
}
