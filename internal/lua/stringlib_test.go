package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// newStrings returns a State that has the library string alone.
func newStrings() *State {
	s := New()
	openString(s)
	return s
}

// callString calls a function of the library.
func callString(s *State, name string, args ...Value) ([]Value, error) {
	library, _ := s.Globals().GetString("string").AsTable()
	return s.Main().Call(library.GetString(name), args...)
}

// show returns the text of evaluator for a call inside of pcall.
func show(vs []Value, err error) string {
	var b strings.Builder
	if e, ok := errors.AsType[*Error](err); ok {
		return "boo true|boo false|str " + e.Error()
	}
	if err != nil {
		return err.Error()
	}
	b.WriteString("boo true|boo true")
	for _, v := range vs {
		b.WriteByte('|')
		b.WriteString(v.Kind().String()[:3])
		b.WriteByte(' ')
		switch v.Kind() {
		case KindString:
			b.WriteString(v.str())
		case KindNumber:
			b.WriteString(FormatNumber(v.number()))
		default:
			b.WriteString(v.Kind().String())
		}
	}
	return b.String()
}

// argument is a value, and an expression that makes it.
type argument struct {
	text  string
	value Value
}

func stringArgument(s string) argument { return argument{quote(s), String(s)} }
func numberArgument(f float64) argument {
	return argument{quoteNumber(f), Number(f)}
}

var nilArgument = argument{"nil", Nil}

// callMaker makes calls of the library's functions.
type callMaker struct {
	*rand.Rand
	state   *State
	numbers []float64
}

func (m *callMaker) index() argument {
	if m.IntN(10) == 0 {
		return numberArgument(m.numbers[m.IntN(len(m.numbers))])
	}
	if m.IntN(10) == 0 {
		return nilArgument
	}
	return numberArgument(float64(m.IntN(40)-20) + float64(m.IntN(2))/2)
}

func (m *callMaker) subject() argument {
	switch m.IntN(20) {
	case 0:
		return numberArgument(m.numbers[m.IntN(len(m.numbers))])
	case 1:
		return stringArgument(strings.Repeat(someSubject(m.Rand), m.IntN(80)))
	case 2:
		return []argument{nilArgument, {"true", True}}[m.IntN(2)]
	}
	return stringArgument(someSubject(m.Rand))
}

func (m *callMaker) pattern() argument { return stringArgument(somePattern(m.Rand)) }

func (m *callMaker) replacement() argument {
	switch m.IntN(9) {
	case 0:
		t := m.state.NewTable(0, 0)
		_ = t.SetString("a", String("<A>"))
		_ = t.SetString("b", Number(1.5))
		_ = t.SetString("c", False)
		_ = t.SetInt(1, String("one"))
		_ = t.SetString("x", TableValue(t))
		return argument{`(function() local t = {a="<A>", b=1.5, c=false, "one"} t.x = t return t end)()`, TableValue(t)}
	case 1, 2:
		library, _ := m.state.Globals().GetString("string").AsTable()
		name := []string{"upper", "len", "byte", "rep", "sub", "find", "char"}[m.IntN(7)]
		return argument{"string." + name, library.GetString(name)}
	case 3:
		return []argument{nilArgument, {"true", True}, numberArgument(-12.5)}[m.IntN(3)]
	}
	pieces := []string{"", "x", "[", "%0", "%1", "%1", "%2", "%%", "%a", "%\x00", "]", "\x00", "%"}
	var b strings.Builder
	for range m.IntN(5) {
		b.WriteString(pieces[m.IntN(len(pieces))])
	}
	return stringArgument(b.String())
}

// make returns a function's name and arguments for it.
func (m *callMaker) make() (string, []argument) {
	name := []string{"byte", "char", "find", "format", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper",
		"find", "format", "gsub", "match"}[m.IntN(16)]
	var args []argument
	switch name {
	case "byte", "sub":
		args = []argument{m.subject(), m.index(), m.index()}
	case "char":
		for range m.IntN(6) {
			args = append(args, numberArgument(float64(m.IntN(258))))
		}
		return name, append(args, numberArgument(m.numbers[m.IntN(len(m.numbers))]))[m.IntN(2):]
	case "find":
		args = []argument{m.subject(), m.pattern(), m.index(), {"true", True}}
	case "match":
		args = []argument{m.subject(), m.pattern(), m.index()}
	case "gsub":
		args = []argument{m.subject(), m.pattern(), m.replacement(), m.index()}
	case "rep":
		args = []argument{m.subject(), numberArgument(float64(m.IntN(40) - 5))}
	case "format":
		return name, m.format()
	default:
		args = []argument{m.subject()}
	}
	// The later arguments are optional, mostly.
	if name == "gsub" && m.IntN(3) > 0 {
		args = args[:3]
	} else if name != "rep" {
		args = args[:1+m.IntN(len(args))]
		if name != "byte" && len(args) == 1 && m.IntN(4) > 0 && cap(args) > 1 {
			args = args[:2]
		}
	}
	return name, args
}

func (m *callMaker) format() []argument {
	var b strings.Builder
	args := make([]argument, 1)
	for range 1 + m.IntN(4) {
		switch m.IntN(12) {
		case 0:
			b.WriteString([]string{"%%", "\x00", "text", "%", "%y", "%123d", "%.123d", "%-+ #0-d", "%5", "%.", "%F", "%\x00",
				"%5.3q", "%-q", "% c"}[m.IntN(15)])
			args = append(args, numberArgument(1))
		case 1, 2, 3, 4:
			b.WriteString([]string{"%s", "%q", "%d", "%5.1f", "%x", "%g"}[m.IntN(6)])
			args = append(args, m.subject())
		case 5, 6:
			b.WriteString(someSpec(m.Rand, "sq"))
			args = append(args, m.subject())
		default:
			spec := someSpec(m.Rand, "cdiouxXeEfgGs")
			b.WriteString(spec)
			args = append(args, numberArgument(m.numbers[m.IntN(len(m.numbers))]))
		}
	}
	args[0] = stringArgument(b.String())
	if m.IntN(20) == 0 {
		args = args[:len(args)-1]
	}
	return args
}

func TestStringsWorkAsInLua51(t *testing.T) {
	s := newStrings()
	r := rand.New(rand.NewPCG(11, 12))
	m := &callMaker{Rand: r, state: s, numbers: someNumbers(r, 50)}
	var expressions, got []string
	for range 20000 {
		name, args := m.make()
		texts, values := make([]string, len(args)), make([]Value, len(args))
		for i, a := range args {
			texts[i], values[i] = a.text, a.value
		}
		expressions = append(expressions, fmt.Sprintf("pcall(string.%s%s)", name, strings.Join(append([]string{""}, texts...), ", ")))
		got = append(got, show(callString(s, name, values...)))
	}
	errs := 0
	for i, want := range lua51(t, expressions) {
		if strings.HasPrefix(want, "boo true|boo false") {
			errs++
		}
		if got[i] != want {
			t.Errorf("%s = %q, in lua5.1 %q", expressions[i], got[i], want)
		}
	}
	if errs > len(expressions)/3 {
		t.Errorf("%d of %d calls were errors", errs, len(expressions))
	}
}

func TestStringLibraryIsInTheOrderOfRedis(t *testing.T) {
	library, _ := newStrings().Globals().GetString("string").AsTable()
	var names []string
	for k, _, ok := library.Next(Nil); ok && !k.IsNil(); k, _, ok = library.Next(k) {
		names = append(names, k.str())
	}
	// pairs(string) in redis-server 7.0.15.
	want := "sub upper len gfind rep find match char dump gmatch reverse byte format gsub lower"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("string has %s, want %s", got, want)
	}
}

func TestResultsTooLongForTheMemoryAreRefused(t *testing.T) {
	kilo := String(strings.Repeat("x", 1000))
	for _, c := range []struct {
		name string
		args []Value
	}{
		{"rep", []Value{String("x"), Int(1<<31 - 1)}},
		{"rep", []Value{String("xy"), Int(1<<31 - 1)}}, // longer than any string
		{"rep", []Value{kilo, Int(2000)}},
		{"gsub", []Value{kilo, String("x"), kilo, Int(1000)}},
		{"gsub", []Value{kilo, String("(x)"), String(strings.Repeat("%1", 1000)), Int(1000)}},
		{"format", []Value{String("%s%s%s%s%s%s%s%s%s"), kilo, kilo, kilo, kilo, kilo, kilo, kilo, kilo, String(strings.Repeat("x", 700000))}},
	} {
		s := newStrings()
		s.SetMemoryLimit(600000)
		_, err := callString(s, c.name, c.args...)
		var e *Error
		if !errors.As(err, &e) || e.Error() != "not enough memory" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWorkOnLongStringsIsCounted(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		name string
		args []Value
	}{
		{"gsub", []Value{String(long), String("a"), String("b")}},
		{"gsub", []Value{String(long), String("b*"), String("")}},
		{"gsub", []Value{String(long), String("[^b]"), String("%0")}},
		{"find", []Value{String(long), String("b")}},
		{"find", []Value{String(long), String("[b-z]")}},
		{"match", []Value{String(long), String(".-b")}},
		{"match", []Value{String(long), String("a-b")}},
		{"upper", []Value{String(long)}},
		{"rep", []Value{String(long), Int(2)}},
		{"format", []Value{String("%q"), String(long)}},
	} {
		s := newStrings()
		s.SetInterrupt(10000, func() error { return errOver })
		if _, err := callString(s, c.name, c.args...); err != errOver {
			t.Errorf("%s(%v): %v", c.name, c.args[1:], err)
		}
	}
}

func TestShortStringsKeepNoLongOnesAlive(t *testing.T) {
	s := newStrings()
	for _, n := range []int{1, 2, 30, 200, 256, 257, 5000} {
		text := strings.Repeat("0123456789", n/10+1)[:n]
		for part := 1; part <= n; part += 1 + n/7 {
			vs, err := callString(s, "sub", String(text), Int(1), Int(part))
			if err != nil {
				t.Fatal(err)
			}
			shares := vs[0].p == String(text).p
			if vs[0].str() != text[:part] || shares && n > shareLimit && part != n {
				t.Errorf("a part of %d bytes of %d: %q, shared: %v", part, n, vs[0].str(), shares)
			}
		}
	}
}

func TestCallsAllocateNoMoreThanTheirResults(t *testing.T) {
	s := newStrings()
	long := String(strings.Repeat("key=value, ", 100))
	for _, c := range []struct {
		name   string
		allocs float64
		args   []Value
	}{
		{"format", 0, []Value{String("%d and %s"), Int(12345), String("x")}}, // a short result is cut of a chunk
		{"sub", 0, []Value{long, Int(2), Int(9)}},
		{"sub", 1, []Value{long, Int(2), Int(-2)}},
		{"byte", 0, []Value{long, Int(2), Int(9)}},
		{"char", 0, []Value{Int(65), Int(66)}},
		{"find", 0, []Value{long, String("(%w+)=(%w+)")}},
		{"match", 0, []Value{long, String("(%w+)=(%w+)")}},
		{"gsub", 0, []Value{long, String("z"), String("k")}},
		{"gsub", 1, []Value{long, String("(%w+)=(%w+)"), String("%2=%1")}},
		{"upper", 1, []Value{long}},
		{"lower", 0, []Value{long}},
		{"rep", 1, []Value{String("ab"), Int(100)}},
	} {
		got := testing.AllocsPerRun(100, func() {
			if _, err := callString(s, c.name, c.args...); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.allocs {
			t.Errorf("%s allocates %v times, want %v", c.name, got, c.allocs)
		}
	}
}

func toLower(c byte) byte {
	if c-'A' <= 25 {
		return c + 0x20
	}
	return c
}

func TestCasesChangeAsInC(t *testing.T) {
	s := newStrings()
	// Each byte at each place of a word and behind the last.
	for at := range 11 {
		for c := range 256 {
			text := []byte("abc{DEZ`@[xyz"[:11])
			text[at] = byte(c)
			lower, upper := make([]byte, len(text)), make([]byte, len(text))
			for i, c := range text {
				lower[i], upper[i] = toLower(c), toUpper(c)
			}
			for name, want := range map[string][]byte{"lower": lower, "upper": upper} {
				if vs, err := callString(s, name, Bytes(text)); err != nil || vs[0].str() != string(want) {
					t.Fatalf("%s(%q) = %q, %v", name, text, vs[0].str(), err)
				}
			}
		}
	}
}

func TestCallbacksMayUsePatterns(t *testing.T) {
	s := newStrings()
	// The callback's patterns take the slot of the one that is being used, and
	// a second matcher and scratch.
	callback := BuiltinValue(&Builtin{Name: "callback", Run: func(c Call) error {
		for i := range 300 {
			if _, err := callString(s, "gsub", String(fmt.Sprintf("x%dy", i)), String(fmt.Sprintf("%%d%d-", i)), String("n")); err != nil {
				return err
			}
		}
		vs, err := callString(s, "gsub", c.Arg(1), String("(.)"), String("<%1>"))
		if err != nil {
			return err
		}
		return c.Return(vs[0])
	}})
	vs, err := callString(s, "gsub", String("one two"), String("(%w+)"), callback)
	if got := show(vs, err); got != "boo true|boo true|str <o><n><e> <t><w><o>|num 2" {
		t.Error(got)
	}
}

func TestStringsAreObjects(t *testing.T) {
	s := New()
	s.OpenLibs()
	for program, want := range map[string]string{
		`return ("x"):upper(), ("%d"):format(3), #("x"):rep(3)`:                                                           "str X|str 3|num 3",
		`local t = {} for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do t[#t+1] = k .. v end return table.concat(t, " ")`: "str a1 b2",
		`local t = {} for at in ("abc"):gmatch("()") do t[#t+1] = at end return #t, t[4]`:                                 "num 4|num 4",
		`local t = {} for w in ("one  two"):gmatch("%a*") do t[#t+1] = "<" .. w .. ">" end return table.concat(t)`:        "str <one><><><two><>",
		`return (("hello world"):gsub("o", {o = 0}))`:                                                                     "str hell0 w0rld",
		`return ("abc"):gsub("%w", function(c) if c ~= "b" then return c .. c end end)`:                                   "str aabcc|num 3",
		`return ("abc"):gsub("%w", setmetatable({}, {__index = function(_, k) return k:upper() end}))`:                    "str ABC|num 3",
		`return select(2, pcall(function() getmetatable("").__index = 1 end))`: "str t:1: Attempt to " +
			"modify a readonly table",
		`return select(2, pcall(function() return ("x"):rep({}) end))`: "str t:1: bad argument #1 to 'rep' (number expected, got table)",
		`return select(2, pcall(function() return string.rep("x") end))`: "str t:1: bad argument #2 to 'rep' (number " +
			"expected, got no value)",
		`return select(2, pcall(function() return ("x"):find("[a") end))`:                           "str t:1: malformed pattern (missing ']')",
		`return select(2, pcall(function() for _ in ("x"):gmatch("%") do end end))`:                 "str t:1: malformed pattern (ends with '%')",
		`return select(2, pcall(function() return ("x"):gsub("x", function() error("e") end) end))`: "str t:1: e",
		`return select(2, pcall(string.dump, string.dump))`:                                         "str unable to dump given function",
		`return (string.dump(function() end):sub(1, 5))`:                                            "str \x1bLuaQ",
		`return string.gfind == string.gmatch`:                                                      "boo boolean",
	} {
		f, err := s.Load(program, "=t")
		if err != nil {
			t.Errorf("%s: %v", program, err)
			continue
		}
		if got := show(s.Main().Call(ClosureValue(f))); got != "boo true|boo true|"+want {
			t.Errorf("%s = %s, want %s", program, got, want)
		}
	}
}

func BenchmarkStrings(b *testing.B) {
	s := newStrings()
	long := String(strings.Repeat("key=value, ", 100))
	for _, c := range []struct {
		title, name string
		args        []Value
	}{
		{"format %d", "format", []Value{String("%d"), Int(12345)}},
		{"format %s", "format", []Value{String("user:%s:x"), String("hello")}},
		{"format %.2f", "format", []Value{String("%.2f"), Number(123.456)}},
		{"sub", "sub", []Value{long, Int(2), Int(12)}},
		{"byte", "byte", []Value{long, Int(2)}},
		{"find plain", "find", []Value{long, String("zzz"), Int(1), True}},
		{"match", "match", []Value{String("key=value"), String("^(%w+)=(%w*)$")}},
		{"match trim", "match", []Value{String("   some text here   "), String("^%s*(.-)%s*$")}},
		{"gsub plain", "gsub", []Value{long, String(","), String(";")}},
		{"gsub captures", "gsub", []Value{long, String("(%w+)=(%w+)"), String("%2=%1")}},
		{"upper", "upper", []Value{long}},
	} {
		b.Run(c.title, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := callString(s, c.name, c.args...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
