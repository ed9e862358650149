package script

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

var update = flag.Bool("update", false, "write redis-server's replies into testdata")

// oracle is a connection to redis-server.
type oracle struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dial(t testing.TB, addr string, proto int) *oracle {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	o := &oracle{t, conn, bufio.NewReader(conn)}
	o.do("HELLO", strconv.Itoa(proto))
	return o
}

// raw sends a request and returns the bytes of its reply.
func (o *oracle) raw(args [][]byte) []byte {
	if _, err := o.conn.Write(wire.AppendCommand(nil, args...)); err != nil {
		o.t.Fatal(err)
	}
	b, err := readRaw(nil, o.r)
	if err != nil {
		o.t.Fatal(err)
	}
	return b
}

func (o *oracle) do(args ...string) string {
	o.t.Helper()
	b := make([][]byte, len(args))
	for i, a := range args {
		b[i] = []byte(a)
	}
	return string(o.raw(b))
}

// readRaw appends one reply to b.
func readRaw(b []byte, r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	b = append(b, line...)
	n, _ := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			at := len(b)
			b = append(b, make([]byte, n+2)...)
			_, err = io.ReadFull(r, b[at:])
		}
		return b, err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return b, nil
	}
	for ; n > 0; n-- {
		if b, err = readRaw(b, r); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// realHost is a Host whose commands run on redis-server, with the refusals that
// scripts get.
type realHost struct {
	*oracle
	commands map[string]commandInfo
	readOnly bool
	log      []string
}

type commandInfo struct {
	arity           int
	noscript, write bool
}

func newRealHost(t testing.TB, addr string) *realHost {
	h := &realHost{oracle: dial(t, addr, 2), commands: map[string]commandInfo{}}
	v, err := wire.ReadValue(bufio.NewReader(strings.NewReader(h.do("COMMAND"))))
	if err != nil {
		t.Fatal(err)
	}
	h.learn(v)
	return h
}

// learn reads COMMAND's reply, or the subcommands in it.
func (h *realHost) learn(v resp.Value) {
	for _, c := range v.Elems {
		info := commandInfo{arity: int(c.Elems[1].Int)}
		for _, flag := range c.Elems[2].Elems {
			info.noscript = info.noscript || flag.Str == "noscript"
			info.write = info.write || flag.Str == "write"
		}
		h.commands[c.Elems[0].Str] = info
		if len(c.Elems[9].Elems) > 0 {
			h.commands[c.Elems[0].Str] = commandInfo{arity: -2}
			h.learn(c.Elems[9])
		}
	}
}

func (h *realHost) find(args [][]byte) (commandInfo, bool) {
	name := strings.ToLower(string(args[0]))
	info, ok := h.commands[name]
	if ok && len(args) > 1 {
		if sub, ok := h.commands[name+"|"+strings.ToLower(string(args[1]))]; ok {
			return sub, true
		}
		for other := range h.commands {
			if strings.HasPrefix(other, name+"|") {
				return info, false
			}
		}
	}
	return info, ok && !strings.Contains(name, "|")
}

func (h *realHost) Call(args [][]byte) []byte {
	c, ok := h.find(args)
	switch {
	case !ok:
		return []byte("-ERR Unknown Redis command called from script\r\n")
	case c.arity > 0 && len(args) != c.arity || len(args) < -c.arity:
		return []byte("-ERR Wrong number of args calling Redis command from script\r\n")
	case c.noscript:
		return []byte("-ERR This Redis command is not allowed from script\r\n")
	case c.write && h.readOnly:
		return []byte("-ERR Write commands are not allowed from read-only scripts.\r\n")
	}
	return h.raw(args)
}

func (h *realHost) SetProto(proto int)       { h.do("HELLO", strconv.Itoa(proto)) }
func (h *realHost) SetReplication(_, _ bool) {}
func (h *realHost) Log(level int, text string) {
	h.log = append(h.log, fmt.Sprint(level, " ", text))
}
func (h *realHost) CountError(string, bool) {}
func (h *realHost) Tick() error             { return nil }

func (h *realHost) Allowed(args [][]byte) (bool, error) {
	if _, ok := h.find(args[:1]); !ok {
		return false, errors.New("no such command")
	}
	return true, nil
}

// evalCase is a script and the replies to it in RESP2 and RESP3.
type evalCase struct {
	script  string
	replies [2]string
}

// caseFile is a file of cases, with the lines before each.
type caseFile struct {
	path  string
	cases []evalCase
	heads []string // of each case, and the end of the file
}

func readCases(t testing.TB, path string) *caseFile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &caseFile{path: path}
	head := ""
	for _, line := range strings.SplitAfter(string(b), "\n") {
		kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind != ">" && kind != "2" && kind != "3" {
			head += line
			continue
		}
		if strings.HasPrefix(text, `"`) {
			if text, err = strconv.Unquote(text); err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
		}
		switch last := len(f.cases) - 1; kind {
		case ">":
			f.cases = append(f.cases, evalCase{script: text})
			f.heads = append(f.heads, head)
			head = ""
		case "2":
			f.cases[last].replies = [2]string{text, text}
		case "3":
			f.cases[last].replies[1] = text
		}
	}
	f.heads = append(f.heads, head)
	return f
}

// write writes the file with its cases' replies.
func (f *caseFile) write(t testing.TB) {
	t.Helper()
	var b strings.Builder
	for i, c := range f.cases {
		b.WriteString(f.heads[i])
		script := c.script
		if script == "" || strings.TrimSpace(script) != script || script[0] == '"' ||
			strconv.Quote(script) != `"`+strings.ReplaceAll(strings.ReplaceAll(script, `\`, `\\`), `"`, `\"`)+`"` {
			script = strconv.Quote(script)
		}
		fmt.Fprintf(&b, "> %s\n2 %q\n", script, c.replies[0])
		if c.replies[1] != c.replies[0] {
			fmt.Fprintf(&b, "3 %q\n", c.replies[1])
		}
	}
	b.WriteString(f.heads[len(f.cases)])
	if err := os.WriteFile(f.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// testOptions are those of redis-server 7.0.15.
var testOptions = Options{Version: "7.0.15", MemoryLimit: 256 << 20}

var evalKeys, evalArgs = []string{"k1", "k2"}, []string{"a1", "a2"}

func bytesList(list []string) [][]byte {
	var all [][]byte
	for _, s := range list {
		all = append(all, []byte(s))
	}
	return all
}

// eval is EVAL by an Engine.
func eval(e *Engine, h Host, proto int, script string) string {
	out := wire.Writer{Proto: proto}
	text := []byte(script)
	s, err := e.Script(text)
	if err == nil {
		if host, ok := h.(*realHost); ok {
			host.readOnly = s.Flags&NoWrites != 0
		}
		keys, args := bytesList(evalKeys), bytesList(evalArgs)
		err = e.Run(s, h, keys, args, &out)
		poison(keys)
		poison(args)
	}
	poison([][]byte{text})
	if err != nil {
		out.Error(err.Error())
	}
	return string(out.Buf)
}

// poison overwrites memory that a run was given, as the next command's arguments
// do: what still saw it would be wrong in a later run.
func poison(list [][]byte) {
	for _, b := range list {
		for i := range b {
			b[i] = 0xdb
		}
	}
}

// calls reports whether a script needs a server behind its Host.
func calls(script string) bool {
	return strings.Contains(script, "redis.call") || strings.Contains(script, "redis.pcall") || strings.Contains(script, "acl_check")
}

// The replies are redis-server's, even where there is none: those of scripts that
// run no commands are compared with what was recorded.
func TestScriptsAnswerAsRecorded(t *testing.T) {
	f := readCases(t, "testdata/eval.txt")
	e := New(testOptions)
	for _, c := range f.cases {
		if calls(c.script) {
			continue
		}
		for i := range c.replies {
			if got := short(eval(e, quietHost{}, i+2, c.script)); got != c.replies[i] {
				t.Errorf("RESP%d %s\n got %.300q\nwant %.300q", i+2, c.script, got, c.replies[i])
			}
		}
	}
}

// quietHost runs no commands.
type quietHost struct{}

func (quietHost) Call([][]byte) []byte {
	return []byte("-ERR Unknown Redis command called from script\r\n")
}
func (quietHost) SetProto(int)                   {}
func (quietHost) SetReplication(_, _ bool)       {}
func (quietHost) Allowed([][]byte) (bool, error) { return true, nil }
func (quietHost) Log(int, string)                {}
func (quietHost) CountError(string, bool)        {}
func (quietHost) Tick() error                    { return nil }

// newerWords are texts of Redis 7.0.15 that later releases have changed, and ours.
var newerWords = strings.NewReplacer("redis.set_repl() requires two arguments", "redis.set_repl() requires one argument",
	"Invalid debug level", "Invalid log level")

// ask runs EVAL in redis-server, on an empty database.
func ask(o *oracle, script string) string {
	o.do("FLUSHALL")
	reply := o.do(append([]string{"EVAL", script, "2"}, append(evalKeys, evalArgs...)...)...)
	o.do("FLUSHALL")
	return newerWords.Replace(reply)
}

// Each script runs on redis-server by EVAL, and in an Engine whose commands run
// on the same server.
func TestScriptsAnswerAsOracle(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	f := readCases(t, "testdata/eval.txt")
	oracles := [2]*oracle{dial(t, addr, 2), dial(t, addr, 3)}
	if *update {
		for i := range f.cases {
			for j, o := range oracles {
				f.cases[i].replies[j] = short(ask(o, f.cases[i].script))
			}
		}
		f.write(t)
	}
	e := New(testOptions)
	h := newRealHost(t, addr)
	for _, c := range f.cases {
		for i, o := range oracles {
			want := ask(o, c.script)
			if c.replies[i] != short(want) {
				t.Errorf("RESP%d %s\nrecorded %.300q\noracle says %.300q", i+2, c.script, c.replies[i], want)
			}
			h.SetProto(2)
			if got := eval(e, h, i+2, c.script); got != want {
				t.Errorf("RESP%d %s\n got %.300q\nwant %.300q", i+2, c.script, got, want)
			}
		}
	}
}

// randomValue is an expression for a value that a script may return, with the
// tables that mean something in a result, and others.
func randomValue(r *rand.Rand, depth int) string {
	scalars := []string{"nil", "true", "false", "0", "-1", "1.5", "-0.0", "1e15", "1e17", "2^53", "-2^63", "1/0", "0/0", "0.1", "123456789012",
		"''", "'a'", "'a b'", "'a\\r\\nb'", "'a\\0b'", "'-x'", "'txt'", "cjson.null", "print0", "redis.call", "KEYS", "ARGV[1]"}
	if depth == 0 || r.IntN(3) == 0 {
		return strings.ReplaceAll(scalars[r.IntN(len(scalars))], "print0", "tostring")
	}
	fields := []string{"err", "ok", "double", "map", "set", "big_number", "verbatim_string", "string", "format", "x"}
	var parts []string
	for range r.IntN(4) {
		v := randomValue(r, depth-1)
		switch r.IntN(4) {
		case 0:
			parts = append(parts, fmt.Sprintf("[%d]=%s", r.IntN(4), v))
		case 1:
			parts = append(parts, fields[r.IntN(len(fields))]+"="+v)
		default:
			parts = append(parts, v)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Any value that a script returns, raises or gives to a command has the same
// reply.
func TestRandomResultsAnswerAsOracle(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	oracles := [2]*oracle{dial(t, addr, 2), dial(t, addr, 3)}
	e := New(testOptions)
	h := newRealHost(t, addr)
	r := rand.New(rand.NewPCG(4, 3))
	forms := []string{"return %s", "redis.setresp(3) return %s", "return redis.call('echo', %s)", "return redis.pcall('rpush', 'k', 'a', %s)",
		"return {pcall(redis.call, 'echo', %s)}", "local t = %s return {t, {t}}", "return {map={%s}}", "return {set={a=true, %s}}",
		"return redis.sha1hex(%s)", "return redis.error_reply(%s)", "return redis.status_reply(%s)", "return {pcall(error, %s)}",
		"local ok, e = pcall(error, %s) return type(e)"}
	for range 2000 {
		script := fmt.Sprintf(forms[r.IntN(len(forms))], randomValue(r, 3))
		for i, o := range oracles {
			want := ask(o, script)
			h.SetProto(2)
			if got := eval(e, h, i+2, script); got != want {
				t.Errorf("RESP%d %s\n got %.300q\nwant %.300q", i+2, script, got, want)
			}
		}
	}
}

// raise is error, but for tables without a text, on which redis-server crashes.
const raise = "local function raise(e, n) if type(e) == 'table' and not e.err then e = 'no text' end error(e, n) end\n"

// randomFailure is code that fails, on lines of its own, inside of calls of many
// kinds.
func randomFailure(r *rand.Rand, depth int) string {
	leaves := []string{"error('x')", "error('x', 0)", "error('x', 2)", "error('x', 3)", "error({err='E x'})", "error(redis.error_reply('x'))",
		"error(5)", "error()",
		"local t = nil\n t.x = 1", "local t\n return t.x.y", "return 1 + {}", "return {} .. 'x'", "return {} < {}", "return nope",
		"nope = 1", "redis.x = 1", "redis.call('nope')", "redis.call()", "return redis.call('get')", "redis.call('set', {})",
		"return redis.call('incr', 'k', 'x')", "string.rep()", "('x'):rep({})", "return ('x'):rep({})", "return setmetatable({}, 5)",
		"redis.log()", "return redis.log()", "redis.sha1hex()",
		"string.format('%d', 'x')", "return tonumber('1', 99)", "rawset(_G, 'x', 1)", "table.concat({{}})", "cjson.decode('x')",
		"return cjson.decode('x')", "for i = 1, 'x' do end", "local a = #5", "undefined()", "redis.undefined()", "local f\n f()",
		"('x'):undefined()", "return -{}", "return 2 ^ {}"}
	if depth == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	inner := "\n " + randomFailure(r, depth-1) + "\n"
	wrappers := []string{
		"local function f()%send\n f()",
		"local function f()%send\n return f()",
		"local function f()%send\n local x = f()\n return x",
		"(function()%send)()",
		"local ok, e = pcall(function()%send)\n raise(e)",
		"local ok, e = pcall(function()%send)\n raise(e, 0)",
		"local ok, e = pcall(function()%send)\n return e",
		"local ok, e = xpcall(function()%send, function(e) return e end)\n raise(e)",
		"local ok, e = xpcall(function()%send, __redis__err__handler)\n return {e.err, e.source, tostring(e.line)}",
		"local ok, e = xpcall(function()%send, __redis__err__handler)\n raise(e)",
		"local co = coroutine.wrap(function()%send)\n co()",
		"local co = coroutine.wrap(function()%send)\n return co()",
		"local co = coroutine.create(function()%send)\n local ok, e = coroutine.resume(co)\n raise(e)",
		"local t = setmetatable({}, {__index = function()%send})\n return t.x",
		"local t = setmetatable({}, {__newindex = function()%send})\n t.x = 1",
		"local t = setmetatable({}, {__add = function()%send})\n return t + 1",
		"local t = setmetatable({}, {__call = function()%send})\n return t()",
		"local t = setmetatable({}, {__tostring = function()%send})\n return tostring(t)",
		"string.gsub('x', '.', function()%send)",
		"return string.gsub('x', '.', function()%send)",
		"table.sort({2, 1}, function()%send)",
		"for k in function()%send do\n break\n end",
		"local f = loadstring([==[%s]==], '=text')\n f()",
		"local f = loadstring([==[%s]==], '@other')\n return f()",
		"local function f(n)\n if n > 0 then\n return f(n - 1)\n end%send\n f(2)",
		"if true then%send",
		"for i = 1, 2 do%send",
		"assert(pcall(function()%send))",
	}
	return fmt.Sprintf(wrappers[r.IntN(len(wrappers))], inner)
}

// Errors have the same message and the same line, wherever they arise.
func TestErrorsAreWhereOracleSeesThem(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	o := dial(t, addr, 2)
	e := New(testOptions)
	h := newRealHost(t, addr)
	r := rand.New(rand.NewPCG(4, 2))
	for range 2000 {
		script := raise + randomFailure(r, r.IntN(4))
		want := ask(o, script)
		h.SetProto(2)
		if got := eval(e, h, 2, script); got != want {
			t.Errorf("%s\n got %q\nwant %q", script, got, want)
		}
	}
}
