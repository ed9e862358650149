package command

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

func TestLookupIgnoresCaseAndNothingElse(t *testing.T) {
	table := FixtureTable(t)
	for _, s := range table.Commands() {
		for _, name := range []string{s.Name, strings.ToUpper(s.Name), strings.ToUpper(s.Name[:1]) + s.Name[1:]} {
			if table.Lookup([]byte(name)) != s {
				t.Errorf("%q is not found", name)
			}
		}
		for _, name := range []string{"", s.Name + "x", s.Name + "\x00", s.Name[:len(s.Name)-1] + "\x00", " " + s.Name} {
			if got := table.Lookup([]byte(name)); got != nil {
				t.Errorf("%q finds %s", name, got.Name)
			}
		}
	}
	for _, name := range []string{strings.Repeat("x", 25), "\xe7et", "G\x05T", "geT@", "`et", "[get"} {
		if got := table.Lookup([]byte(name)); got != nil {
			t.Errorf("%q finds %s", name, got.Name)
		}
	}
}

func TestFoldLowersExactlyTheCapitals(t *testing.T) {
	for c := range 256 {
		in := bytes.Repeat([]byte{byte(c)}, 1)
		want := bytes.Clone(in)
		if 'A' <= c && c <= 'Z' {
			want[0] += 'a' - 'A'
		}
		for n := 1; n <= MaxName; n++ {
			got, _ := fold(bytes.Repeat(in, n))
			exp := name{w0: load(bytes.Repeat(want, min(n, 8))), n: n}
			if n > 8 {
				exp.w1 = load(bytes.Repeat(want, min(n-8, 8)))
			}
			if n > 16 {
				exp.w2 = load(bytes.Repeat(want, min(n-16, 8)))
			}
			if n > 24 {
				exp.w3 = load(bytes.Repeat(want, n-24))
			}
			if got != exp {
				t.Fatalf("byte %#x, %d times: %x, want %x", c, n, got, exp)
			}
		}
	}
}

func TestEqualFoldAgreesWithTheStandardLibrary(t *testing.T) {
	for a := range 256 {
		for b := range 128 {
			x, y := []byte{byte(a)}, string(rune(b))
			if got, want := EqualFold(x, y), a < 128 && strings.EqualFold(string(x), y); got != want {
				t.Fatalf("EqualFold(%q, %q) = %v", x, y, got)
			}
		}
	}
}

func TestResolveAnswersAsRedisDoes(t *testing.T) {
	table := FixtureTable(t)
	for _, x := range []struct{ line, found, err string }{
		{"GET k", "get", ""},
		{"get", "", "ERR wrong number of arguments for 'get' command"},
		{"object encoding k", "object|encoding", ""},
		{"object encoding", "", "ERR wrong number of arguments for 'object|encoding' command"},
		{"object", "", "ERR wrong number of arguments for 'object' command"},
		{"OBJECT nope", "", "ERR unknown subcommand 'nope'. Try OBJECT HELP."},
		{"FOO a b", "", "ERR unknown command 'FOO', with args beginning with: 'a' 'b' "},
		{"foo", "", "ERR unknown command 'foo', with args beginning with: "},
		{"foo " + strings.Repeat("x", 200) + " y", "", "ERR unknown command 'foo', with args beginning with: '" +
			strings.Repeat("x", 128) + "' "},
	} {
		s, err := table.Resolve(bytes.Split([]byte(x.line), []byte(" ")))
		switch {
		case x.err != "" && (err == nil || err.Error() != x.err):
			t.Errorf("%s: %v, want %s", x.line, err, x.err)
		case x.err == "" && (err != nil || s.Name != x.found):
			t.Errorf("%s: %v, want %s", x.line, err, x.found)
		}
	}
	_, err := table.Resolve([][]byte{[]byte("a\r\n+OK\x00b")})
	if want := "ERR unknown command 'a  +OK', with args beginning with: "; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	_, err = table.Resolve([][]byte{[]byte("caf\xe9")}) // not UTF-8: the bytes stay
	if want := "ERR unknown command 'caf\xe9', with args beginning with: "; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// call runs a command of the COMMAND family and returns its reply.
func call(table *Table, line string) resp.Value {
	var w wire.Writer
	w.Proto = 3
	w.Collect()
	args := bytes.Split([]byte(line), []byte(" "))
	s, err := table.Resolve(args)
	if err == nil {
		err = s.Run(&Ctx{Spec: s, Args: args, Out: &w, Table: table})
	}
	if err != nil {
		w.Error(err.Error())
	}
	return w.Value()
}

func TestCommandGetKeys(t *testing.T) {
	table := FixtureTable(t)
	for _, x := range []struct{ line, want string }{
		{"get a", "a"}, {"set a 1", "a"}, {"mset a 1 b 2", "a b"}, {"rename a b", "a b"}, {"blpop a b c 0", "a b c"},
		{"blmpop 0 2 a b LEFT", "a b"}, {"zunion 2 a b WEIGHTS 1 2", "a b"}, {"zunionstore d 2 a b", "d a b"},
		{"xread COUNT 1 STREAMS a b 1 2", "a b"}, {"xreadgroup GROUP g c STREAMS a 1", "a"}, {"eval s 2 a b c", "a b"},
		{"sort a STORE b STORE c", "a c"}, {"georadiusbymember a m 1 m STORE x STOREDIST y", "a x y"}, {"object encoding a", "a"},
		{"eval s 0", ""},
		{"eval s 5 a", "ERR Invalid arguments specified for command"},
		{"zunion 0 a", "ERR Invalid arguments specified for command"},
		{"zunion x a", "ERR Invalid arguments specified for command"},
		{"zunion 9223372036854775807 a", "ERR Invalid arguments specified for command"},
		{"xread COUNT 1 2 3", "ERR Invalid arguments specified for command"},
		{"get a b", "ERR Invalid number of arguments specified for command"},
		{"nope a", "ERR Invalid command specified"},
		{"object nope", "ERR Invalid command specified"},
		{"ssubscribe a", "ERR The command has no key arguments"},
		{"command count", "ERR The command has no key arguments"},
	} {
		v := call(table, "COMMAND GETKEYS "+x.line)
		got := v.Str
		if v.Err() == nil {
			words, err := v.AsStrings()
			if err != nil {
				t.Fatal(err)
			}
			got = strings.Join(words, " ")
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.line, got, x.want)
		}
	}
}

func TestFindingKeysOfAnyArgumentsStaysInBounds(t *testing.T) {
	table, rng := FixtureTable(t), rand.New(rand.NewPCG(1, 2))
	words := []string{"STREAMS", "STORE", "0", "1", "2", "-1", "99", "k", "", "GROUP"}
	for range 50_000 {
		s := table.Spec(rng.IntN(table.Len()))
		args := make([][]byte, rng.IntN(8)+1)
		for i := range args {
			args[i] = []byte(words[rng.IntN(len(words))])
		}
		if !s.ArityOK(args) {
			continue
		}
		keys, err := s.AppendKeys(nil, args)
		if err != nil && len(keys) > 0 {
			t.Fatalf("%s %q: keys and an error", s.Name, args)
		}
		for _, k := range keys {
			if k.Pos < 1 || k.Pos >= len(args) {
				t.Fatalf("%s %q: a key at %d", s.Name, args, k.Pos)
			}
		}
	}
}

func TestCommandList(t *testing.T) {
	table := FixtureTable(t)
	for _, x := range []struct{ line, want string }{
		{"FILTERBY ACLCAT SCRIPTING", "eval"}, {"filterby aclcat nope", ""}, {"FILTERBY MODULE x", ""},
		{"FILTERBY PATTERN OBJ*", "object object|encoding"}, {"FILTERBY PATTERN mset", "mset"},
	} {
		got, err := call(table, "COMMAND LIST "+x.line).AsStrings()
		if err != nil || strings.Join(got, " ") != x.want {
			t.Errorf("%s: %q, %v", x.line, got, err)
		}
	}
	all := len(table.Commands())
	for _, s := range table.Commands() {
		all += len(s.Sub)
	}
	if got, _ := call(table, "COMMAND LIST").AsStrings(); len(got) != all || !slices.Contains(got, "object|encoding") {
		t.Errorf("%q", got)
	}
	for _, line := range []string{"FILTERBY", "FILTERBY X y", "nope x y", "FILTERBY MODULE a b"} {
		if err := call(table, "COMMAND LIST "+line).Err(); err == nil || err.Error() != "ERR syntax error" {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestEveryHelpIsMadeFromItsSubcommands(t *testing.T) {
	lines, err := call(FixtureTable(t), "command HELP").AsStrings()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "(no subcommand)\n    Lists all",
		"\nGETKEYS command [arg [arg ...]]\n    Returns the keys among", "\nHELP\n    Explains the subcommands."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if got := specCommandHelp.Examples; strings.Contains(got, "1)") {
		t.Error("the example was written into the shared spec")
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	table, word := FixtureTable(t), []byte("XREADGROUP")
	args := bytes.Split([]byte("BLMPOP 0 2 a b LEFT"), []byte(" "))
	refs := make([]KeyRef, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		if table.Lookup(word) == nil {
			t.Fatal("not found")
		}
		s, err := table.Resolve(args)
		if err != nil {
			t.Fatal(err)
		}
		if refs, err = s.AppendKeys(refs[:0], args); err != nil || len(refs) != 2 {
			t.Fatal(refs, err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	table := FixtureTable(b)
	for _, word := range []string{"GET", "xreadgroup", "GEORADIUSBYMEMBER", "nosuch"} {
		b.Run(word, func(b *testing.B) {
			key := []byte(word)
			for b.Loop() {
				table.Lookup(key)
			}
		})
	}
}
