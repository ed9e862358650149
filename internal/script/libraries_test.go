package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// libraryState returns a machine with Lua's libraries and the four of Redis.
func libraryState(t testing.TB) *lua.State {
	t.Helper()
	s := lua.New()
	s.OpenLibs()
	for _, open := range []func(*lua.State){openCJSON, openMsgpack, openStruct, openBit} {
		open(s)
	}
	return s
}

// runProgram returns the string that a program returns.
func runProgram(t testing.TB, s *lua.State, program string) string {
	t.Helper()
	f, err := s.Load(program, "@user_script")
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Main().Call1(lua.ClosureValue(f))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := v.AsString()
	if !ok {
		t.Fatalf("the program returned a %v", v.Kind())
	}
	return text
}

const libraryPrograms = "testdata/libraries"

// libraryProgram puts a program of testdata together.
func libraryProgram(t testing.TB, seed, cases int, files ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range append([]string{"prelude.lua"}, files...) {
		text, err := os.ReadFile(filepath.Join(libraryPrograms, name))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	b.WriteString("return table.concat(lines, \"\\n\")\n")
	r := strings.NewReplacer("SEED", strconv.Itoa(seed), "CASES", strconv.Itoa(cases))
	return r.Replace(b.String())
}

// fixedPrograms names the programs of chosen cases, without their suffix.
func fixedPrograms(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(libraryPrograms, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no programs", err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".txt"))
	}
	return names
}

// recordedAnswer returns the answer of redis-server 7.0.15 to a program.
func recordedAnswer(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(libraryPrograms, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// compareLines reports the lines in which two answers differ, at most ten.
func compareLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(g) != len(w) {
		t.Errorf("%d lines, want %d", len(g), len(w))
	}
	shown := 0
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("line %d:\n got %.1000s\nwant %.1000s", i+1, g[i], w[i])
			if shown++; shown == 10 {
				return
			}
		}
	}
}

func TestLibrariesAnswerAsRedisDid(t *testing.T) {
	for _, name := range fixedPrograms(t) {
		t.Run(name, func(t *testing.T) {
			compareLines(t, runProgram(t, libraryState(t), libraryProgram(t, 1, 0, name+".lua")), recordedAnswer(t, name))
		})
	}
}

func TestWhatRedisDidIsWhatItDoes(t *testing.T) {
	r := dialRedis(t)
	for _, name := range fixedPrograms(t) {
		t.Run(name, func(t *testing.T) {
			answer := r.eval(t, libraryProgram(t, 1, 0, name+".lua"))
			if *update {
				path := filepath.Join(libraryPrograms, name+".txt")
				if err := os.WriteFile(path, []byte(answer+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			compareLines(t, answer, recordedAnswer(t, name))
		})
	}
}

func TestLibrariesAgreeWithRedisOnRandomCases(t *testing.T) {
	r := dialRedis(t)
	cases := map[string]int{"cjson_encode": 300, "cjson_decode": 300, "msgpack": 200, "struct": 800, "bit": 300}
	seeds := 3
	if tier.Short() {
		seeds = 1 // under the race detector a case takes twenty times as long
	}
	for name, n := range cases {
		if tier.Short() {
			n /= 10
		}
		t.Run(name, func(t *testing.T) {
			for seed := 1; seed <= seeds && !t.Failed(); seed++ {
				text := libraryProgram(t, seed*7919, n, "random/values.lua", "random/"+name+".lua")
				compareLines(t, runProgram(t, libraryState(t), text), r.eval(t, text))
			}
		})
	}
}

// redisClient speaks to a redis-server that the test started.
type redisClient struct {
	net.Conn
	r *bufio.Reader
}

func dialRedis(t *testing.T) *redisClient {
	t.Helper()
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisClient{conn, bufio.NewReader(conn)}
}

// eval returns the string that EVAL returns.
func (c *redisClient) eval(t *testing.T, program string) string {
	t.Helper()
	if _, err := fmt.Fprintf(c, "*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(program), program); err != nil {
		t.Fatal(err)
	}
	head, err := c.r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
	if head[0] != '$' || err != nil {
		t.Fatalf("EVAL: %s", head)
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, body); err != nil {
		t.Fatal(err)
	}
	return string(body[:n])
}

func TestAStringOfALargeDocumentDoesNotKeepItAlive(t *testing.T) {
	var p pile
	if err := p.begin(lua.New(), 1<<20); err != nil {
		t.Fatal(err)
	}
	document := strings.Repeat("x", 1<<20)
	p.text(document[:10])
	if cap(p.chunk) > chunkSize {
		t.Errorf("ten bytes share %d", cap(p.chunk))
	}
	p.text(document[:shortBytes+1])
	if len(p.chunk) != 10 {
		t.Error("a long string shares memory with short ones")
	}
}

func TestLibrariesAreCutShortByTheInterrupt(t *testing.T) {
	stop := errors.New("stop")
	const items = `local t = {} for i = 1, 10000 do t[i] = i end `
	for _, text := range []string{
		items + `return function() cjson.encode(t) end`,
		`local s = "[" .. ("1,"):rep(10000) .. "1]" return function() cjson.decode(s) end`,
		`local s = "[" .. ('{"a":"b"},'):rep(5000) .. "1]" return function() cjson.decode(s) end`,
		items + `return function() cmsgpack.pack(t) end`,
		`local s = "\221\0\0\39\16" .. ("\1"):rep(10000) return function() cmsgpack.unpack(s) end`,
		`local s = ("x"):rep(10000) return function() struct.pack(s) end`,
		`local s = ("x"):rep(10000) return function() struct.size(s) end`,
		`local s = ("x"):rep(10000) return function() struct.unpack(s, s) end`,
	} {
		s := libraryState(t)
		f, err := s.Load(text, "@user_script")
		if err != nil {
			t.Fatal(err)
		}
		call, err := s.Main().Call1(lua.ClosureValue(f))
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		s.SetInterrupt(stepsPerSpend/2, func() error { calls++; return nil })
		if _, err := s.Main().Call(call); err != nil {
			t.Fatal(err)
		}
		if calls < 9 {
			t.Errorf("%s: %d interrupts in 10000 items", text, calls)
		}
		s.SetInterrupt(stepsPerSpend/2, func() error { return stop })
		if _, err := s.Main().Call(call); !errors.Is(err, stop) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLibrariesStayWithinTheMemoryLimit(t *testing.T) {
	for _, text := range []string{
		`local s = ("x"):rep(100000) local t = {} for i = 1, 1000 do t[i] = s end return cjson.encode(t)`,
		`local s = ("\0"):rep(1000000) return cjson.encode(s)`,
		`local s = ("x"):rep(100000) local t = {} for i = 1, 1000 do t[i] = s end return cmsgpack.pack(t)`,
		`local s = ("x"):rep(100000) return struct.pack(("s"):rep(1000), unpack((function() local t = {} for i = 1, 1000 do t[i] = s end return t end)()))`,
		`local s = "[" .. ("{},"):rep(300000) .. "1]" return tostring(cjson.decode(s))`,
		`local s = ("\144"):rep(7000) local t = {} for i = 1, 100 do t[i] = {cmsgpack.unpack(s)} end return ""`,
	} {
		s := libraryState(t)
		s.SetMemoryLimit(4 << 20)
		f, err := s.Load(text, "@user_script")
		if err != nil {
			t.Fatal(err)
		}
		var refused *lua.Error
		if _, err := s.Main().Call(lua.ClosureValue(f)); !errors.As(err, &refused) || !strings.Contains(refused.Error(), "not enough memory") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// libraryFunction is a function of a library.
func libraryFunction(t testing.TB, s *lua.State, library, name string) lua.Value {
	t.Helper()
	l, ok := s.Globals().GetString(library).AsTable()
	if !ok {
		t.Fatalf("no library %s", library)
	}
	return l.GetString(name)
}

// tryCall calls a function and fails the test unless it returns or fails as a program
// can catch it.
func tryCall(t *testing.T, s *lua.State, f lua.Value, args ...lua.Value) (lua.Value, bool) {
	t.Helper()
	v, err := s.Main().Call1(f, args...)
	var refused *lua.Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return v, err == nil
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,-3e7,null,true,"x\u00e9\n"]}`, `[[],{},"",0x1F,nan,-inf]`, `"\ud83d\ude00"`, "[1,\x00", `{"a":`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		s := libraryState(t)
		encode, decode := libraryFunction(t, s, "cjson", "encode"), libraryFunction(t, s, "cjson", "decode")
		v, ok := tryCall(t, s, decode, lua.String(document))
		if !ok {
			return
		}
		text, ok := tryCall(t, s, encode, v)
		if !ok {
			return // a number that is none
		}
		again, ok := tryCall(t, s, decode, text)
		if !ok {
			t.Fatalf("%q was decoded, its encoding %v was not", document, text)
		}
		same, _ := tryCall(t, s, encode, again)
		if strings.Contains(document, "{") {
			return // an object's order depends on that in which it was made
		}
		if !lua.Equal(text, same) {
			t.Fatal("encoding, decoding, encoding changes the text")
		}
	})
}

func FuzzMsgpack(f *testing.F) {
	for _, s := range []string{"\x93\x01\xa1a\xc0", "\x82\xa1a\x01\xa1b\x90", "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "\xdc\x00\x01\xd9\x01a",
		"\xc1", "\x81\xc0\x01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, packed string) {
		s := libraryState(t)
		pack, unpack := libraryFunction(t, s, "cmsgpack", "pack"), libraryFunction(t, s, "cmsgpack", "unpack_one")
		unpackOne := func(packed lua.Value) (lua.Value, bool) {
			results, err := s.Main().Call(unpack, packed)
			if err != nil || len(results) < 2 {
				return lua.Nil, false
			}
			return results[1], true
		}
		v, ok := unpackOne(lua.String(packed))
		if !ok {
			return
		}
		text, ok := tryCall(t, s, pack, v)
		if !ok {
			t.Fatal("what was unpacked cannot be packed")
		}
		if _, ok = unpackOne(text); !ok {
			t.Fatal("what was packed cannot be unpacked")
		}
	})
}

func FuzzStruct(f *testing.F) {
	for _, s := range []string{"bhilfd", ">!4bi3s", "c3xc0", "!8bi16", "<I5>T"} {
		f.Add(s, "\x01\x02\x03\x04\x05\x06\x07\x08\x00\x0a", 1)
	}
	f.Fuzz(func(t *testing.T, format, data string, at int) {
		s := libraryState(t)
		size, ok := tryCall(t, s, libraryFunction(t, s, "struct", "size"), lua.String(format))
		results, err := s.Main().Call(libraryFunction(t, s, "struct", "unpack"), lua.String(format), lua.String(data))
		if err == nil && ok && !strings.ContainsAny(format, "0123456789") {
			want, _ := size.AsNumber()
			if next, _ := results[len(results)-1].AsNumber(); next != want+1 {
				t.Fatalf("%q has the size %v, but unpack ends at %v", format, want, next)
			}
		}
		tryCall(t, s, libraryFunction(t, s, "struct", "unpack"), lua.String(format), lua.String(data), lua.Int(at))
	})
}

// tenKilobytes is a program's beginning: a document d of about 10 kB and the
// value v that it is.
const tenKilobytes = `
local v = {}
for i = 1, 64 do
  v[i] = {id = i * 1001, name = "user " .. i, email = "user" .. i .. "@example.com", active = i % 3 == 0,
    score = i / 8, tags = {"red", "green", "blue"}, address = {city = "Springfield", zip = "1234" .. i}}
end
local d = cjson.encode(v)
`

// Both do in a loop what the same program does with EVAL on redis-server, whose
// time per turn they are compared with.
func BenchmarkJSON(b *testing.B) {
	for name, body := range map[string]string{
		"Encode": "cjson.encode(v)", "Decode": "cjson.decode(d)",
	} {
		b.Run(name, func(b *testing.B) {
			s := libraryState(b)
			f, err := s.Load(tenKilobytes+"return function(n) for i = 1, n do "+body+" end end", "@user_script")
			if err != nil {
				b.Fatal(err)
			}
			loop, err := s.Main().Call1(lua.ClosureValue(f))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := s.Main().Call(loop, lua.Int(b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
