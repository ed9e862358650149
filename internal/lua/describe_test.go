package lua

import "testing"

// What lua5.1 calls a value in its messages: the value is the operand of the last
// instruction of this kind in the program.
var namedValues = []struct {
	chunk      string
	op         Op
	what, name string
}{
	{"local a a()", OpCall, "local", "a"},
	{"a()", OpCall, "global", "a"},
	{"local t = {} t.x()", OpCall, "field", "x"},
	{"local t = {} t[1]()", OpCall, "field", "?"},
	{"local t = {} local i = 1 t[i]()", OpCall, "field", "?"},
	{"local t = {} t['a b']()", OpCall, "field", "a b"},
	{"local t = {} t:m()", OpCall, "method", "m"},
	{"('x')()", OpCall, "", ""},
	{"(nil)()", OpCall, "", ""},
	{"local t = {} return t.x.y", OpGetField, "field", "x"},
	{"local t = {} t.x.y = 1", OpSetField, "field", "x"},
	{"local t = {} t[t.x].y = 1", OpSetField, "field", "?"},
	{"x.y.z = 1", OpGetField, "global", "x"},
	{"return a.b", OpGetField, "global", "a"},
	{"local a return (a).b", OpGetField, "local", "a"},
	{"return -{}", OpUnm, "", ""},
	{"return a + 1", OpAdd, "global", "a"},
	{"local t = {} return t.y * 2", OpMul, "field", "y"},
	{"return a .. 'x'", OpConcat, "global", "a"},
	{"local t = {} return #t.n", OpLen, "field", "n"},
	// Jumps are taken, so that these have no names.
	{"(a and b.c)()", OpCall, "", ""},
	{"(a or b)()", OpCall, "", ""},
	{"local x = (a or 1)()", OpCall, "", ""},
	{"local x = a == b and c.d", OpGetField, "global", "c"},
	{"local a = true and nil; a()", OpCall, "local", "a"},
	{"local a, b = (function() end)() b()", OpCall, "local", "b"},
	{"local a local b = a return b.c", OpGetField, "local", "b"},
	{"repeat local x until x.y", OpGetField, "local", "x"},
	{"do local x = 1 end t.z()", OpCall, "field", "z"},
	{"for i = 1, 2 do local j = i end (i)()", OpCall, "global", "i"},
	{"local function f() end do local x = f x() end", OpCall, "local", "x"},
	{"local s = 'x' s:nope()", OpCall, "method", "nope"},
	{"local f f{g(x, y).z}", OpGetField, "", ""},
}

func TestValuesAreNamedAsByLua(t *testing.T) {
	for _, x := range namedValues {
		p := mustCompile(t, x.chunk)
		pc := len(p.code) - 1
		for p.code[pc].op() != x.op {
			pc--
		}
		r := p.code[pc].b()
		if x.op == OpCall || x.op == OpSetField {
			r = p.code[pc].a()
		}
		if what, name := p.variable(pc, r); what != x.what || name != x.name {
			t.Errorf("%s: %q %q, want %q %q", x.chunk, what, name, x.what, x.name)
		}
	}
}

func TestUpvaluesAreNamed(t *testing.T) {
	p := mustCompile(t, "local u function f() u() end").children[0]
	for pc, i := range p.code {
		if i.op() == OpCall {
			if what, name := p.variable(pc, i.a()); what != "upvalue" || name != "u" {
				t.Errorf("%q %q", what, name)
			}
			return
		}
	}
	t.Error("no call")
}

func TestStateOfLoopsIsNamed(t *testing.T) {
	p := mustCompile(t, "for k, v in pairs(t) do end")
	for pc, i := range p.code {
		if i.op() == OpTForLoop {
			if what, name := p.variable(pc, i.a()); what != "local" || name != "(for generator)" {
				t.Errorf("%q %q", what, name)
			}
			if what, name := p.variable(pc, i.a()+3); what != "" || name != "" {
				t.Errorf("the copy that is called is %q %q", what, name)
			}
		}
	}
}

// What lua5.1 says when it runs these: the names, and the lines that instructions
// are counted to.
func TestMessagesNameValuesAndLines(t *testing.T) {
	for _, x := range []struct{ chunk, message string }{
		{"local u local function f() u() end f()", "c:1: attempt to call upvalue 'u' (a nil value)"},
		{"local t = {} t[t.x].y = 1", "c:1: attempt to index field '?' (a nil value)"},
		{"local t = {}\nlocal x = t.a +\n1", "c:3: attempt to perform arithmetic on field 'a' (a nil value)"},
		{"f\n.g = function() end", "c:2: attempt to index global 'f' (a nil value)"},
		{"local t = {}\nt.f(\n1,\n2)", "c:2: attempt to call field 'f' (a nil value)"},
		{"local t = {}\nt\n.f{\n1,\n2}", "c:3: attempt to call field 'f' (a nil value)"},
		{"local s = 'x'\nfor i = 1, 2 do\ns:nope()\nend", "c:3: attempt to call method 'nope' (a nil value)"},
		{"for k in\nnil\ndo\nend", "c:2: attempt to call a nil value"},
		{"for i = 1,\n'x'\ndo\nend", "c:3: 'for' limit must be a number"},
		{"local a, b = 1\nreturn a .. 'x' ..\nb", "c:3: attempt to concatenate local 'b' (a nil value)"},
		{"local a, b = 1\nreturn a <\nb", "c:3: attempt to compare number with nil"},
		{"function x.y()\n\nend", "c:1: attempt to index global 'x' (a nil value)"},
		{"x.y = function()\n\nend", "c:3: attempt to index global 'x' (a nil value)"},
		{"local function f(...)\nlocal a = ...\na()\nend\nf()", "c:3: attempt to call local 'a' (a nil value)"},
		{"(a and b.c)()", "c:1: attempt to call a nil value"},
		{"local a = {\n1,\n-{},\n}", "c:3: attempt to perform arithmetic on a table value"},
		{"return\n#\nnil", "c:3: attempt to get length of a nil value"},
	} {
		s := New()
		s.OpenLibs()
		f, err := s.Load(x.chunk, "=c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Main().Call(ClosureValue(f)); err == nil || err.Error() != x.message {
			t.Errorf("%q:\n got %v\nwant %s", x.chunk, err, x.message)
		}
	}
}
