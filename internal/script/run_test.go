package script

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
)

// cannedHost answers every command with the same reply.
type cannedHost struct {
	quietHost
	reply string
	calls []string
	logs  []string
	repl  []string
	tick  func() error
}

func (h *cannedHost) Call(args [][]byte) []byte {
	h.calls = append(h.calls, string(bytes.Join(args, []byte(" "))))
	return []byte(h.reply)
}
func (h *cannedHost) Log(level int, text string) {
	h.logs = append(h.logs, fmt.Sprintf("%d %q", level, text))
}
func (h *cannedHost) SetReplication(aof, replicas bool) {
	h.repl = append(h.repl, fmt.Sprint(aof, replicas))
}
func (h *cannedHost) Tick() error {
	if h.tick == nil {
		return nil
	}
	return h.tick()
}

func TestRepliesBecomeValues(t *testing.T) {
	e := New(testOptions)
	for _, tt := range []struct{ reply, script, want string }{
		{":-7\r\n", "return tostring(redis.call('x'))", "$2\r\n-7\r\n"},
		{":9223372036854775807\r\n", "return string.format('%.0f', redis.call('x'))", "$19\r\n9223372036854775808\r\n"},
		{"$-1\r\n", "return tostring(redis.call('x'))", "$5\r\nfalse\r\n"},
		{"*-1\r\n", "return tostring(redis.call('x'))", "$5\r\nfalse\r\n"},
		{"_\r\n", "return tostring(redis.call('x'))", "$3\r\nnil\r\n"},
		{"#t\r\n", "return tostring(redis.call('x'))", "$4\r\ntrue\r\n"},
		{"#f\r\n", "return tostring(redis.call('x'))", "$5\r\nfalse\r\n"},
		{"$0\r\n\r\n", "return #redis.call('x')", ":0\r\n"},
		{"$4\r\na\r\nb\r\n", "return redis.call('x')", "$4\r\na\r\nb\r\n"},
		{"+OK\r\n", "return redis.call('x').ok", "$2\r\nOK\r\n"},
		{"+OKAY\r\n", "return redis.call('x').ok", "$4\r\nOKAY\r\n"},
		{"+\r\n", "return #redis.call('x').ok", ":0\r\n"},
		{"-E no\r\n", "return redis.pcall('x').err", "$4\r\nE no\r\n"},
		{"-E no\r\n", "return tostring(redis.pcall('x').ignore_error_stats_update)", "$4\r\ntrue\r\n"},
		{"*3\r\n:1\r\n$-1\r\n*1\r\n+x\r\n", "local t = redis.call('x') return {#t, tostring(t[2]), t[3][1].ok}",
			"*3\r\n:3\r\n$5\r\nfalse\r\n$1\r\nx\r\n"},
		{"*2\r\n-E no\r\n:1\r\n", "return redis.call('x')", "*2\r\n-E no\r\n:1\r\n"},
		{"*0\r\n", "return #redis.call('x')", ":0\r\n"},
		{">2\r\n:1\r\n:2\r\n", "return redis.call('x')", "*2\r\n:1\r\n:2\r\n"},
		{"%2\r\n$1\r\na\r\n:1\r\n:2\r\n%0\r\n", "local m = redis.call('x').map return {m.a, type(m[2].map)}", "*2\r\n:1\r\n$5\r\ntable\r\n"},
		{"~2\r\n$1\r\na\r\n:2\r\n", "local s = redis.call('x').set return {tostring(s.a), tostring(s[2]), tostring(s.b)}",
			"*3\r\n$4\r\ntrue\r\n$4\r\ntrue\r\n$3\r\nnil\r\n"},
		{",1.5\r\n", "return tostring(redis.call('x').double)", "$3\r\n1.5\r\n"},
		{",inf\r\n", "return tostring(redis.call('x').double)", "$3\r\ninf\r\n"},
		{"(12345678901234567890\r\n", "return redis.call('x').big_number", "$20\r\n12345678901234567890\r\n"},
		{"=7\r\ntxt:abc\r\n", "local v = redis.call('x').verbatim_string return {v.format, v.string}", "*2\r\n$3\r\ntxt\r\n$3\r\nabc\r\n"},
		{"|1\r\n+a\r\n:1\r\n:5\r\n", "return redis.call('x')", ":5\r\n"},
		{"*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n:6\r\n", "return redis.call('x')", "*2\r\n:5\r\n:6\r\n"},
		{"%1\r\n_\r\n:1\r\n", "return redis.call('x')", "*0\r\n"},
	} {
		if got := eval(e, &cannedHost{reply: tt.reply}, 2, tt.script); got != tt.want {
			t.Errorf("%q %s: %q, want %q", tt.reply, tt.script, got, tt.want)
		}
	}
}

func TestHostHearsWhatScriptsDo(t *testing.T) {
	e := New(testOptions)
	h := &cannedHost{reply: "+OK\r\n"}
	eval(e, h, 2, `
		redis.call('set', 'a', 1, 1.5, 'b')
		redis.pcall('get', KEYS[1], ARGV[2])
		redis.log(redis.LOG_WARNING, 'a', {}, 1.5, 'x', nil, 'y')
		redis.log(3, {}, 'x')
		redis.log(2.9, true)
		redis.log('1', ' z ', 1e15, -0.5)
		redis.set_repl(redis.REPL_NONE) redis.set_repl(redis.REPL_AOF)
		redis.set_repl(redis.REPL_SLAVE) redis.set_repl(redis.REPL_ALL)`)
	for _, tt := range []struct{ name, got, want string }{
		{"calls", strings.Join(h.calls, ";"), "set a 1 1.5 b;get k1 a2"},
		{"log", strings.Join(h.logs, ";"), `3 "a 1.5 x y";3 " x";2 "";1 " z  1e+15 -0.5"`},
		{"replication", strings.Join(h.repl, ";"), "false false;true false;false true;true true"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
}

const killed = Error("ERR Script killed by user with SCRIPT KILL...")

// Whatever a script does, the error of Tick ends it, with the place that it had
// come to.
func TestTickEndsEveryLoop(t *testing.T) {
	for script, line := range map[string]string{
		"\nwhile true do end":                                                                    "2",
		"pcall(function()\n while true do end end)":                                              "2",
		"while true do pcall(function()\n while true do end end) end":                            "",
		"\nreturn string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))": "2",
		"local function f() return f() end\nreturn f()":                                          "1",
		"coroutine.wrap(function()\n\n while true do end end)()":                                 "3",
		"local t = {} for i = 1, 40 do t = {t, t} end\nreturn t":                                 "",
		"while true do redis.call('x') end":                                                      "1",
	} {
		ticks := 0
		h := &cannedHost{reply: ":1\r\n", tick: func() error {
			if ticks++; ticks < 10 {
				return nil
			}
			return killed
		}}
		got := eval(New(testOptions), h, 2, script)
		want := "-" + string(killed)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", script, got)
		}
		if line != "" && got != want+" script: "+hexSHA1(script)+", on @user_script:"+line+".\r\n" {
			t.Errorf("%q: %q, want line %s", script, got, line)
		}
	}
}

// An error of Tick that is not an Error comes back as it is.
func TestTickErrorsOfOthersPass(t *testing.T) {
	e := New(testOptions)
	s, err := e.Script([]byte("while true do end"))
	if err != nil {
		t.Fatal(err)
	}
	closed := errors.New("closed")
	var out wire.Writer
	h := &cannedHost{tick: func() error { return closed }}
	if err := e.Run(s, h, nil, nil, &out); err != closed || len(out.Buf) != 0 {
		t.Errorf("%v, %q", err, out.Buf)
	}
	if got := eval(e, quietHost{}, 2, "return 1"); got != ":1\r\n" {
		t.Errorf("the next script: %q", got)
	}
}

func TestSlowLibrariesAreNotLoaded(t *testing.T) {
	e := New(testOptions)
	h := &cannedHost{tick: func() error { return ErrLoadTimeout }}
	for _, code := range []string{"while true do end", "redis.register_function('f', function() end) while true do end"} {
		_, err := e.LoadLibrary([]byte("#!lua name=lib\n"+code), false, h)
		if want := "ERR Error registering functions: ERR FUNCTION LOAD timeout"; err == nil || err.Error() != want {
			t.Errorf("%s: %v", code, err)
		}
	}
	if s := e.Stats(); s.Libraries != 0 || s.Functions != 0 || s.FunctionBytes != 0 {
		t.Errorf("%+v", s)
	}
}

// Scripts that want more memory than there is get an error, which they may catch,
// and the machine serves the next.
func TestMemoryIsBounded(t *testing.T) {
	o := testOptions
	o.MemoryLimit = 8 << 20
	e := New(o)
	for _, script := range []string{
		"local s = 'x' while true do s = s .. s end",
		"local t = {} local i = 0 while true do i = i + 1 t[i] = {i} end",
		"return string.rep('x', 1e9)",
		"local t = {} while true do t[#t+1] = redis.call('x') end",
		"local t = {} for i = 1, 100 do t[i] = string.rep('x', 1e5) end return 1",
	} {
		got := eval(e, &cannedHost{reply: "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n"}, 2, script)
		if !strings.Contains(got, "not enough memory") {
			t.Errorf("%s: %.100q", script, got)
		}
		if got := eval(e, quietHost{}, 2, "return #string.rep('x', 1e6)"); got != ":1000000\r\n" {
			t.Errorf("after %s: %q", script, got)
		}
	}
}

// A result can be larger than all that the script holds.
func TestResultsAreBounded(t *testing.T) {
	o := testOptions
	o.MemoryLimit = 8 << 20
	e := New(o)
	want := "-" + string(errTooLarge)
	if got := eval(e, quietHost{}, 2, "local t = {} for i = 1, 40 do t = {t, t} end return t"); !strings.HasPrefix(got, want) {
		t.Errorf("%.100q", got)
	}
	if got := eval(e, quietHost{}, 3, "local s, t = string.rep('x', 1e6), {} for i = 1, 100 do t[i] = s end "+
		"return {map = t}"); !strings.HasPrefix(got, want) {
		t.Errorf("%.100q", got)
	}
}

// Where redis-server 7.0.15 crashes we answer.
func TestErrorsWithoutATextAnswer(t *testing.T) {
	e := New(testOptions)
	for _, script := range []string{"error({})", "error({err = {}})", "error(setmetatable({}, {__tostring = function() return 'x' end}))"} {
		want := "-ERR unknown error script: " + hexSHA1(script) + ", on @user_script:1.\r\n"
		if got := eval(e, quietHost{}, 2, script); got != want {
			t.Errorf("%s: %q", script, got)
		}
	}
}

// The hot path: a script that is known, with keys, arguments, a command and an
// integer for its result.
func TestRunsAllocateLittle(t *testing.T) {
	e := New(testOptions)
	h := &fixedHost{}
	keys, args := bytesList(evalKeys), bytesList(evalArgs)
	var out wire.Writer
	for _, tt := range []struct {
		script, reply string
		limit         float64
	}{
		{"return 1", "", 0},
		{"return KEYS[1]", "", 0},
		{"return #KEYS + #ARGV", "", 0},
		{"return redis.call('INCR', KEYS[1])", ":5\r\n", 0},
		{"return redis.call('INCRBY', KEYS[1], 17)", ":5\r\n", 0},
		{"return redis.call('EXISTS', KEYS[1]) == 1", ":1\r\n", 0},
		{"return redis.call('GET', KEYS[1])", "$5\r\nhello\r\n", 1},
		{"return redis.call('GET', KEYS[1])", "$-1\r\n", 0},
		{"return redis.call('SET', KEYS[1], ARGV[1])", "+OK\r\n", 2},
	} {
		h.reply = []byte(tt.reply)
		run := func() {
			s, err := e.Script([]byte(tt.script))
			if err == nil {
				out.Buf = out.Buf[:0]
				err = e.Run(s, h, keys, args, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n > tt.limit {
			t.Errorf("%s: %v allocations, at most %v", tt.script, n, tt.limit)
		}
	}
}

type fixedHost struct {
	quietHost
	reply []byte
}

func (h *fixedHost) Call([][]byte) []byte { return h.reply }

func BenchmarkRun(b *testing.B) {
	for _, bb := range []struct{ name, script, reply string }{
		{"empty", "return 1", ""},
		{"get", "return redis.call('GET', KEYS[1])", "$5\r\nhello\r\n"},
		{"set", "return redis.call('SET', KEYS[1], ARGV[1])", "+OK\r\n"},
		{"calls", "for i = 1, 1000 do redis.call('INCR', KEYS[1]) end", ":5\r\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e := New(testOptions)
			h := &fixedHost{reply: []byte(bb.reply)}
			keys, args := bytesList(evalKeys), bytesList(evalArgs)
			var out wire.Writer
			text := []byte(bb.script)
			b.ReportAllocs()
			for b.Loop() {
				out.Buf = out.Buf[:0]
				s, err := e.Script(text)
				if err == nil {
					err = e.Run(s, h, keys, args, &out)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
