package lua

import (
	"fmt"
	"slices"
	"testing"
)

// trace runs a chunk in its traced form, and returns the lines at which it would stop.
func trace(t *testing.T, chunk string, at func(s *State, line int) error) (lines []int, results []Value, err error) {
	t.Helper()
	s := New()
	s.OpenLibs()
	p, err := Compile(chunk, "@traced")
	if err != nil {
		t.Fatal(err)
	}
	s.SetLine(func(line int) error {
		lines = append(lines, line)
		if at != nil {
			return at(s, line)
		}
		return nil
	})
	results, err = s.Main().CallHandled(nil, ClosureValue(s.Bind(p.Traced(), s.Globals())))
	return lines, slices.Clone(results), err
}

// The same programs give the same results traced: see programs_test.go for what they are.
func TestTracedProgramsReturnWhatOthersDo(t *testing.T) {
	for _, chunk := range []string{
		"return 1 == 1, 1 ~= 1, not (2 < 1), 1 < 2 and 3 or 4, nil == false",
		"local t = {} for i = 1, 10 do t[#t+1] = i end return #t, unpack(t)",
		"local function f(...) return select('#', ...), ... end return f(f(1, 2), f())",
		"local s = 0 for k, v in pairs({1, 2, x = 3}) do s = s + v end return s",
		"local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return co(1), co(5)",
		"return pcall(error, 'x'), (pcall(function() local x = nil; return x.y end))",
		"local a, b = 1 repeat local c = a a = a + 1 b = function() return c end until c > 3 return a, b()",
		"local function g(...) return arg.n end return g(1, 2, 3)",
		"while true do break end goto_ = 1 return goto_",
	} {
		_, got, err := trace(t, chunk, nil)
		if err != nil {
			t.Errorf("%s: %v", chunk, err)
			continue
		}
		s := New()
		s.OpenLibs()
		f, err := s.Load(chunk, "@plain")
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Main().Call(ClosureValue(f))
		if err != nil {
			t.Fatal(err)
		}
		if g, w := shown(s, got), shown(s, want); g != w {
			t.Errorf("%s returns %s traced, and %s", chunk, g, w)
		}
	}
}

func shown(s *State, vs []Value) (text string) {
	for _, v := range vs {
		one, _ := s.Main().ToString(v)
		text += fmt.Sprintf("%s ", one)
	}
	return text
}

func TestALineIsTracedOnceForEachTurn(t *testing.T) {
	lines, _, err := trace(t, "local n = 0\nfor i = 1, 20000 do n = n + i end\nreturn n", nil)
	if err != nil || len(lines) != 20003 {
		t.Errorf("there are %d stops before, at and behind a loop of 20,000 turns on one line, %v", len(lines), err)
	}
}

func TestWhatALineFunctionReturnsEndsTheProgram(t *testing.T) {
	stop := fmt.Errorf("stop")
	lines, _, err := trace(t, "pcall(function()\nlocal a = 1\nend)\nreturn 2", func(_ *State, line int) error {
		if line == 2 {
			return stop
		}
		return nil
	})
	if err != stop || slices.Contains(lines, 4) {
		t.Errorf("it ends with %v behind lines %v", err, lines)
	}
	_, got, err := trace(t, "return (pcall(function()\nlocal a = 1\nend))", func(_ *State, line int) error {
		if line == 2 {
			return &Error{Value: String("no")}
		}
		return nil
	})
	if err != nil || len(got) != 1 || got[0].Truth() {
		t.Errorf("pcall does not catch an *Error: %v %v", got, err)
	}
}

// Values that wait for a call stay where they are while code runs aside.
func TestCodeAsideDisturbsNothing(t *testing.T) {
	ran := 0
	_, got, err := trace(t, "local function f(...) return select('#', ...), ... end\nreturn f(\nf(1, 2, 3))", func(s *State, _ int) error {
		code, err := s.Load("local t = {} for i = 1, 300 do t[i] = i end return select('#', unpack(t))", "@aside")
		if err != nil {
			return err
		}
		v, err := s.Aside(code)
		if n, _ := v.AsNumber(); n != 300 {
			t.Errorf("the code returns %v, %v", v, err)
		}
		ran++
		return nil
	})
	if want := "4 3 1 2 3 "; err != nil || ran == 0 || shown(New(), got) != want {
		t.Errorf("%q, %v, want %q", shown(New(), got), err, want)
	}
}
