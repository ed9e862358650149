package script

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// short is a reply as it is recorded: a long one by its checksum.
func short(reply string) string {
	if len(reply) <= 1000 {
		return reply
	}
	return fmt.Sprintf("%.40s... %d bytes, SHA1 %x", reply, len(reply), sha1.Sum([]byte(reply)))
}

// askFunctions is FUNCTION LOAD, FCALL twice and FUNCTION LIST by redis-server.
func askFunctions(o *oracle, code string) string {
	o.do("FLUSHALL")
	o.do("FUNCTION", "FLUSH")
	replies := o.do("FUNCTION", "LOAD", code)
	for range 2 {
		replies += o.do("FCALL", "f", "1", "k1", "a1", "a2")
	}
	replies += o.do("FUNCTION", "LIST")
	o.do("FLUSHALL")
	return replies
}

// functions does the same by an Engine.
func functions(e *Engine, h Host, proto int, code string) string {
	out := wire.Writer{Proto: proto}
	e.FlushLibraries()
	load(e, h, &out, code, false)
	for range 2 {
		fcall(e, h, &out, "f")
	}
	list(&out, e.Libraries())
	return string(out.Buf)
}

func load(e *Engine, h Host, out *wire.Writer, code string, replace bool) {
	name, err := e.LoadLibrary([]byte(code), replace, h)
	if err != nil {
		out.Error(err.Error())
		return
	}
	out.BulkString(name)
}

func fcall(e *Engine, h Host, out *wire.Writer, name string) {
	f := e.Function([]byte(name))
	if f == nil {
		out.Error("ERR Function not found")
		return
	}
	if host, ok := h.(*realHost); ok {
		host.SetProto(2)
		host.readOnly = f.Flags&NoWrites != 0
	}
	if err := e.CallFunction(f, h, [][]byte{[]byte("k1")}, [][]byte{[]byte("a1"), []byte("a2")}, out); err != nil {
		out.Error(err.Error())
	}
}

// list is FUNCTION LIST.
func list(out *wire.Writer, libraries []*Library) {
	out.Array(len(libraries))
	for _, l := range libraries {
		out.Map(3)
		out.BulkString("library_name")
		out.BulkString(l.Name)
		out.BulkString("engine")
		out.BulkString(EngineName)
		out.BulkString("functions")
		out.Array(len(l.Functions))
		for _, f := range l.Functions {
			out.Map(3)
			out.BulkString("name")
			out.BulkString(f.Name)
			out.BulkString("description")
			if f.Described {
				out.BulkString(f.Description)
			} else {
				out.Null()
			}
			out.BulkString("flags")
			names := f.Flags.Names()
			out.Set(len(names))
			for _, n := range names {
				out.Simple(n)
			}
		}
	}
}

// The order of several functions in FUNCTION LIST is that of Redis's hash table.
func sortable(replies string) bool { return strings.Count(replies, "$11\r\ndescription") > 1 }

func TestFunctionsAnswerAsRecorded(t *testing.T) {
	f := readCases(t, "testdata/functions.txt")
	e := New(testOptions)
	for _, c := range f.cases {
		if calls(c.script) || sortable(c.replies[0]) {
			continue
		}
		for i := range c.replies {
			if got := short(functions(e, quietHost{}, i+2, c.script)); got != c.replies[i] {
				t.Errorf("RESP%d %s\n got %.400q\nwant %.400q", i+2, c.script, got, c.replies[i])
			}
		}
	}
}

func TestFunctionsAnswerAsOracle(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	f := readCases(t, "testdata/functions.txt")
	oracles := [2]*oracle{dial(t, addr, 2), dial(t, addr, 3)}
	if *update {
		for i := range f.cases {
			for j, o := range oracles {
				f.cases[i].replies[j] = short(askFunctions(o, f.cases[i].script))
			}
		}
		f.write(t)
	}
	e := New(testOptions)
	h := newRealHost(t, addr)
	for _, c := range f.cases {
		for i, o := range oracles {
			want := askFunctions(o, c.script)
			if sortable(want) {
				continue
			}
			if short(want) != c.replies[i] {
				t.Errorf("RESP%d %s\nrecorded %.300q\noracle says %.300q", i+2, c.script, c.replies[i], want)
			}
			if got := functions(e, h, i+2, c.script); got != want {
				t.Errorf("RESP%d %s\n got %.400q\nwant %.400q", i+2, c.script, got, want)
			}
		}
	}
}

const libraryOfF = "#!lua name=%s\nredis.register_function('%s',function() return '%s' end)"

func libraryCode(name, function string) string {
	return fmt.Sprintf(libraryOfF, name, function, name)
}

// Names of libraries and functions clash as in Redis, and what failed changed
// nothing.
func TestNamesClashAsOracle(t *testing.T) {
	o := dial(t, realserver.Start(t, "redis-server"), 2)
	e := New(testOptions)
	for _, step := range []struct {
		code    string
		replace bool
	}{
		{libraryCode("lib", "f"), false},
		{libraryCode("lib", "f"), false},
		{libraryCode("lib", "f"), true},
		{libraryCode("lib2", "f"), false},
		{libraryCode("lib2", "F"), false},
		{libraryCode("lib2", "g"), false},
		{libraryCode("lib2", "f"), true},
		{libraryCode("LIB", "h"), false},
		{"#!lua name=lib\nx", false},
		{"#!lua name=lib\nx", true},
		{"#!lua name=lib\nreturn", true},
		{libraryCode("lib", "H"), true},
		{libraryCode("lib", "i"), true},
		{libraryCode("lib3", "f"), true},
	} {
		var got wire.Writer
		load(e, quietHost{}, &got, step.code, step.replace)
		args := []string{"FUNCTION", "LOAD", step.code}
		if step.replace {
			args = []string{"FUNCTION", "LOAD", "REPLACE", step.code}
		}
		want := o.do(args...)
		for _, f := range []string{"f", "F", "g", "G", "h", "i"} {
			fcall(e, quietHost{}, &got, f)
			want += o.do("FCALL", f, "0")
		}
		if string(got.Buf) != want {
			t.Errorf("%q %v\n got %q\nwant %q", step.code, step.replace, got.Buf, want)
		}
	}
	for _, name := range []string{"Lib", "lib", "lib", "LIB"} {
		var got wire.Writer
		if err := e.DeleteLibrary([]byte(name)); err != nil {
			got.Error(err.Error())
		} else {
			got.OK()
		}
		if want := o.do("FUNCTION", "DELETE", name); string(got.Buf) != want {
			t.Errorf("DELETE %s: %q, want %q", name, got.Buf, want)
		}
	}
	if s := e.Stats(); s.Libraries != 2 || s.Functions != 2 {
		t.Errorf("%+v", s)
	}
}

// payload makes a payload of libraries, each an opcode and a string.
func payload(version int, parts ...string) string {
	return string(rdb.Seal([]byte(strings.Join(parts, "")), version))
}

func rdbString(s string) string {
	if len(s) < 64 {
		return string(rune(len(s))) + s
	}
	return string([]byte{0x40 | byte(len(s)>>8), byte(len(s))}) + s
}

func restorePayloads() []string {
	lib := func(name, function string) string { return "\xf5" + rdbString(libraryCode(name, function)) }
	return []string{
		"", "x", strings.Repeat("x", 20),
		payload(10), payload(9, lib("v", "v")), payload(10, lib("v", "v")), payload(82, lib("v", "v")),
		payload(10, lib("b", "g")), payload(10, lib("a", "g")), payload(10, lib("a", "f")), payload(10, lib("b", "f")),
		payload(10, lib("b", "g"), lib("c", "h")), payload(10, lib("b", "g"), lib("b", "h")), payload(10, lib("b", "g"), lib("c", "G")),
		payload(10, lib("b", "g"), lib("a", "h")), payload(10, lib("b", "f"), lib("a", "h")),
		payload(10, "\xf5"+rdbString("#!lua name=b\nx")), payload(10, lib("b", "g"), "\xf5"+rdbString("#!lua name=c\nx")),
		payload(10, "\xf5"+rdbString("#!lua name=b\nreturn foo")), payload(10, "\xf5"+rdbString("#!lua name=b\n")),
		payload(10, "\xf5"+rdbString("#!python name=b\n")), payload(10, "\xf5"+rdbString("zzz")), payload(10, "\xf5\xc0\x05"),
		payload(10, "\xf5\xc1\x05\x05"),
		payload(10, "\xf5"), payload(10, "\xf5\x45"), payload(10, lib("b", "g"), "x"), payload(10, "\xf6\x03zzz"),
		payload(10, "\x00\x01v"), payload(10, lib("b", "g"), "\x00\x01v"), payload(10, "\xf5\xc3\x40"), payload(10, "\xf5\x80\x00\x00"),
		payload(10, "\xf5\xc3\x02\x0a\x00a"),
	}
}

// Redis writes versions up to 12, and Valkey 80, where libraries look the same; redis-server
// 7.0 refuses them.
func TestLibrariesOfNewerServersAreTaken(t *testing.T) {
	for _, version := range []int{11, 12, 13, 80, 81} {
		e := New(testOptions)
		err := e.RestoreLibraries([]byte(payload(version, "\xf5"+rdbString(libraryCode("v", "v")))), Append, quietHost{})
		if err != nil || len(e.Libraries()) != 1 || e.Libraries()[0].Name != "v" {
			t.Errorf("version %d: %d libraries, %v", version, len(e.Libraries()), err)
		}
	}
}

func TestRestoreAnswersAsOracle(t *testing.T) {
	o := dial(t, realserver.Start(t, "redis-server"), 2)
	for i, p := range restorePayloads() {
		for policy, name := range []string{"APPEND", "REPLACE", "FLUSH"} {
			o.do("FUNCTION", "FLUSH")
			o.do("FUNCTION", "LOAD", libraryCode("a", "f"))
			want := o.do("FUNCTION", "RESTORE", p, name)
			e := New(testOptions)
			if _, err := e.LoadLibrary([]byte(libraryCode("a", "f")), false, quietHost{}); err != nil {
				t.Fatal(err)
			}
			var got wire.Writer
			if err := e.RestoreLibraries([]byte(p), Policy(policy), quietHost{}); err != nil {
				got.Error(err.Error())
			} else {
				got.OK()
			}
			for _, f := range []string{"f", "g", "h", "v"} {
				fcall(e, quietHost{}, &got, f)
				want += o.do("FCALL", f, "0")
			}
			if string(got.Buf) != want {
				t.Errorf("payload %d %q %s\n got %q\nwant %q", i, p, name, got.Buf, want)
			}
		}
	}
}

// Payloads go both ways, with compressed and long code.
func TestPayloadsAreExchangedWithOracle(t *testing.T) {
	o := dial(t, realserver.Start(t, "redis-server"), 2)
	codes := []string{libraryCode("a", "f"), libraryCode("b", "g") + strings.Repeat("-- abc\n", 100),
		libraryCode("c", "h") + "\n--" + strings.Repeat("\x00\xff é", 40),
		libraryCode("d", "i") + "\n--" + strings.Repeat("0123456789abcdef", 5000)}
	e := New(testOptions)
	for _, c := range codes {
		if _, err := e.LoadLibrary([]byte(c), false, quietHost{}); err != nil {
			t.Fatal(err)
		}
	}
	if reply := o.do("FUNCTION", "RESTORE", string(e.DumpLibraries())); reply != "+OK\r\n" {
		t.Fatalf("redis-server takes our dump: %q", reply)
	}
	theirs := bulk(t, o.do("FUNCTION", "DUMP"))
	other := New(testOptions)
	if err := other.RestoreLibraries([]byte(theirs), Append, quietHost{}); err != nil {
		t.Fatalf("we take redis-server's dump: %v", err)
	}
	var got []string
	for _, l := range other.Libraries() {
		got = append(got, l.Code)
	}
	if !slices.Equal(got, codes) {
		t.Errorf("the code changed: %.300q", got)
	}
	var out wire.Writer
	fcall(other, quietHost{}, &out, "i")
	if string(out.Buf) != "$1\r\nd\r\n" {
		t.Errorf("%q", out.Buf)
	}
	if empty := bulk(t, dialEmpty(o)); empty != string(New(testOptions).DumpLibraries()) {
		t.Errorf("the dump of nothing: %q", empty)
	}
}

func dialEmpty(o *oracle) string {
	o.do("FUNCTION", "FLUSH")
	return o.do("FUNCTION", "DUMP")
}

// bulk returns the string of a reply.
func bulk(t *testing.T, reply string) string {
	t.Helper()
	_, rest, ok := strings.Cut(reply, "\r\n")
	if !ok || reply[0] != '$' {
		t.Fatalf("%q is not a string", reply)
	}
	return strings.TrimSuffix(rest, "\r\n")
}
