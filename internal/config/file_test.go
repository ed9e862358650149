package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWordsAreCutAsInRedisFiles(t *testing.T) {
	for _, x := range []struct {
		line string
		want []string // nil: not balanced
	}{
		{"", []string{}}, {" \t ", []string{}}, {"port 7000", []string{"port", "7000"}}, {"a\tb  c ", []string{"a", "b", "c"}},
		{`requirepass "a b\x41\n\q"`, []string{"requirepass", "a bA\nq"}}, {`a 'x\'y\n'`, []string{"a", `x'y\n`}}, {`a ""`, []string{"a", ""}},
		{`ab"c d"`, []string{"abc d"}}, {`a "b`, nil}, {`a "b"c`, nil}, {`a 'b`, nil}, {`a "\x4"`, []string{"a", "x4"}}, {`a "\`, nil},
		{"a b\x00c", []string{"a", "b"}},
		{"hz 20 # x", []string{"hz", "20", "#", "x"}},
	} {
		got, ok := Words(x.line)
		if ok != (x.want != nil) || ok && !slices.Equal(got, x.want) {
			t.Errorf("%q gives %q, %v", x.line, got, ok)
		}
	}
}

func TestQuotingReadsBack(t *testing.T) {
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	if got, ok := Words(Quote(string(all))); !ok || len(got) != 1 || got[0] != string(all) {
		t.Errorf("%q, %v", got, ok)
	}
}

const sample = `
# Comments and blank lines do nothing.
port 7000
  MaxMemory   100mb
requirepass "a b"
save 900 1
save 300 10
client-output-buffer-limit replica 1mb 1mb 1
hash-max-ziplist-entries 7
appendonly no
appendfsync always
daemonize yes
rename-command FLUSHALL ""
rename-command Config "hidden config"
loadmodule /x.so a b
`

func TestAFileSetsWhatItSays(t *testing.T) {
	s := New()
	if err := s.Parse(strings.NewReader(sample), "redis.conf"); err != nil {
		t.Fatal(err)
	}
	want := "bind * -::* hash-max-listpack-entries 7 maxmemory 104857600 port 7000 requirepass a b save 900 1 300 10"
	if got := strings.Join(s.Get("port", "maxmemory", "requirepass", "save", "hash-max-listpack-entries", "bind"), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.OutputLimit(Replica) != (OutputLimit{1 << 20, 1 << 20, 1}) || s.OutputLimit(PubSub).Seconds != 60 {
		t.Error(s.String("client-output-buffer-limit"))
	}
	if r := s.Renames(); !slices.Equal(r, []RenameLine{{"FLUSHALL", "", "redis.conf:13"}, {"Config", "hidden config", "redis.conf:14"}}) {
		t.Error(r)
	}
	if !s.WasGiven("port") || s.WasGiven("timeout") || !s.WasGiven("hash-max-ziplist-entries") {
		t.Error("WasGiven is wrong")
	}
}

func TestWhatIsAcceptedAndUnusedIsListed(t *testing.T) {
	s := New()
	if err := s.Parse(strings.NewReader(sample), "redis.conf"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range s.Ignored() {
		if g.Why == "" {
			t.Errorf("%s has no reason", g.Name)
		}
		if !g.AtDefault {
			got = append(got, g.Where+" "+g.Name+" "+g.Value)
		}
	}
	want := []string{"redis.conf:15 loadmodule /x.so"} // daemonize has an effect
	slices.Sort(got)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestSaveLinesAddUpUntilAnEmptyOne(t *testing.T) {
	for _, x := range [][2]string{
		{"", "3600 1 300 100 60 10000"}, {"save 1 2", "1 2"}, {"save 1 2\nsave 3 4 5 6", "1 2 3 4 5 6"}, {"save", ""}, {`save ""`, ""},
		{"save 1 2\nsave \"\"", ""}, {"save 1 2\nsave \"\"\nsave 3 4", "3 4"}, {`save "1 2 3 4"`, "1 2 3 4"},
	} {
		s := New()
		if err := s.Parse(strings.NewReader(x[0]), "f"); err != nil || s.String("save") != x[1] {
			t.Errorf("%q: %v, %q", x[0], err, s.String("save"))
		}
	}
}

func TestAWrongLineIsNamedWithWhatWouldBeRight(t *testing.T) {
	for _, x := range [][2]string{
		{"maxmemry 1mb", "f line 2: 'maxmemry 1mb': unknown directive; did you mean maxmemory?"},
		{"xyzzy 1", "f line 2: 'xyzzy 1': unknown directive"},
		{"requirepas secret", "f line 2: 'requirepas': unknown directive; did you mean requirepass?"},
		{"requirepass a secret", "f line 2: 'requirepass': wrong number of arguments; requirepass takes one string; quote it if it holds spaces"},
		{`requirepass "secret`,
			`f line 2: 'requirepass': Unbalanced quotes in configuration line; a quoted value ends with its quote, and inside it \" ` +
				`stands for one`},
		{"port", "f line 2: 'port': wrong number of arguments; port takes a whole number from 0 to 65535"},
		{"hz 20 # x", "f line 2: 'hz 20 # x': wrong number of arguments; hz takes a whole number from 0 to 2147483647"},
		{"maxmemory 10x", "f line 2: 'maxmemory 10x': argument must be a memory value; " +
			"maxmemory takes a size such as 100mb or 1gb, or a percentage of the machine's memory such as 70%"},
		{"slave-read-only maybe", "f line 2: 'slave-read-only maybe': argument must be 'yes' or 'no'"},
		{"unixsocketperm 888", "f line 2: 'unixsocketperm 888': argument couldn't be parsed as an octal number; unixsocketperm takes " +
			"octal permissions such as 700"},
		{"appendfilename a/b", "f line 2: 'appendfilename a/b': appendfilename can't be a path, just a filename"},
		{"appendfsync maybe", "f line 2: 'appendfsync maybe': argument(s) must be one of the following: everysec, always, no"},
		{"port 70000", "f line 2: 'port 70000': argument must be between 0 and 65535 inclusive"},
		{"databases 2147483647", "f line 2: 'databases 2147483647': argument must be between 1 and 1048576 inclusive"},
		{"port \x1b[2J\xff\u00e9\u202e",
			`f line 2: 'port \x1b[2J\xffé\u202e': argument couldn't be parsed into an integer; port takes a whole number from 0 to 65535`},
		{strings.Repeat("x", maxShown+1) + " 1", "f line 2: '" + strings.Repeat("x", maxShown) + "...': unknown directive"},
		{"shards 3", "f line 2: 'shards 3': argument must be 0 or a power of two up to 64"},
		{"replicaof a b", `f line 2: 'replicaof a b': Invalid master port; replicaof takes a host and a port, or "no one"`},
		{"user", "f line 2: 'user': wrong number of arguments; write user, a name and its rules"},
		{"user ann on\nuser ann >secret", "f line 3: 'user': Duplicate user found. A user can only be defined once in config " +
			"files; its first line is f:2"},
		{"include", "f line 2: 'include': wrong number of arguments; write include and one path, which may hold wildcards"},
		{`""`, `f line 2: '""': unknown directive`},
	} {
		s := New()
		err := s.Parse(strings.NewReader("# first\n"+x[0]+"\nport 1\n"), "f")
		if err == nil || err.Error() != x[1] {
			t.Errorf("%s\ngot  %v\nwant %s", x[0], err, x[1])
		}
	}
}

func TestIncludesFollowPatternsAndNameTheirOwnLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("1.conf", "timeout 1\nhz 20\n")
	write("2.conf", "timeout 2\n")
	loop := write("loop.cnf", "include "+filepath.Join(dir, "loop.cnf"))
	bad := write("bad.cnf", "\nport x\n")
	parse := func(text string) (*Set, error) { s := New(); return s, s.Parse(strings.NewReader(text), "f") }

	s, err := parse("timeout 9\ninclude " + dir + "/?.conf\ninclude " + dir + "/none*\n")
	if err != nil || s.Timeout() != 2 || s.Int("hz") != 20 {
		t.Errorf("%v, timeout %d", err, s.Timeout())
	}
	if _, err = parse("include " + bad); err == nil || !strings.HasPrefix(err.Error(), bad+" line 2: 'port x'") {
		t.Error(err)
	}
	if _, err = parse("\n\ninclude " + loop); err == nil || !strings.Contains(err.Error(), "more than 16 deep") {
		t.Error(err)
	}
	if _, err = parse("\ninclude " + dir + "/none"); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "f line 2: ") {
		t.Error(err)
	}
}

func TestTheCommandLineReadsAsRedisServers(t *testing.T) {
	const keys = "client-output-buffer-limit loglevel masterauth port save timeout"
	for _, x := range []struct {
		args []string
		want string // a part of what Get gives, or of the error
	}{
		{[]string{"--port", "7000", "--save", ""}, "port 7000 save  timeout"},
		{[]string{"--save", "60", "1", "--loglevel", "debug"}, "loglevel debug masterauth  port 6379 save 60 1"},
		{[]string{"--save", "--port", "7000"}, "port 7000 save  timeout"},
		{[]string{"--port", "7000", "--save"}, "port 7000 save  timeout"},
		{[]string{"--save", "60", "1", "--save", "30", "2"}, "save 60 1 30 2"},
		{[]string{"--save 5 6", "--timeout", "3"}, "save 5 6 timeout 3"},
		{[]string{"--timeout", "5", "--timeout", "6"}, "timeout 6"},
		{[]string{"--masterauth", "--foo"}, "masterauth --foo"},
		{[]string{"--client-output-buffer-limit", "replica", "1", "2", "3", "--client-output-buffer-limit", "pubsub", "3", "3", "3"},
			"slave 1 2 3 pubsub 3 3 3"},
		{[]string{"--port"}, "command line: '--port': wrong number of arguments"},
		{[]string{"--prot", "1"}, "command line: '--prot 1': unknown directive; did you mean port?"},
		{[]string{"--requirepass", "a", "b"}, "command line: '--requirepass': wrong number of arguments"},
		{[]string{"port", "1", "--timeout", "3"}, "port 1 save  timeout 3"},
		{[]string{"loglevel", "verbose", "--timeout '3'"}, "loglevel verbose masterauth  port 6379 save  timeout 3"},
		{[]string{"--timeout '3"}, "not an option"},
		{[]string{"--masterauth 'a b'", "--timeout", "3"}, "masterauth a b port 6379 save  timeout 3"},
		{[]string{"--timeout", "3", "--"}, "timeout 3"},
		{[]string{"-port", "1"}, "command line: '-port 1': not an option; options look like --port 7000"},
		{[]string{"nothing", "1"}, "command line: 'nothing 1': unknown directive"},
		{[]string{"--hz", "--5"}, "couldn't be parsed into an integer"},
	} {
		s := New()
		var got string
		if err := s.ParseArgs(x.args); err != nil {
			got = err.Error()
		} else {
			got = strings.Join(s.Get(strings.Fields(keys)...), " ")
		}
		if !strings.Contains(got+" ", x.want) {
			t.Errorf("%q\ngot  %s\nwant %s", x.args, got, x.want)
		}
	}
}

func TestLoadTakesAFileStandardInputAndOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(path, []byte("port 1\ntimeout 1\nhz 11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		want string
		path string
	}{
		{nil, "bind 127.0.0.1 -::1 hz 10 port 6379 save  timeout 0", ""},
		{[]string{path, "timeout", "9", "--hz '12'"}, "bind * -::* hz 12 port 1 save 3600 1 300 100 60 10000 timeout 9", path},
		{[]string{path, "--port", "3"}, "bind * -::* hz 11 port 3 save 3600 1 300 100 60 10000 timeout 1", path},
		{[]string{"-", "--port", "3"}, "bind * -::* hz 10 port 3 save 3600 1 300 100 60 10000 timeout 2", ""},
		{[]string{path, "--port", "3", "-"}, "bind * -::* hz 11 port 3 save 3600 1 300 100 60 10000 timeout 2", path},
	} {
		s, err := Load(x.args, strings.NewReader("port 2\ntimeout 2\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Get("bind", "hz", "port", "save", "timeout"), " "); got != x.want || s.Path() != x.path {
			t.Errorf("%q gives %s, path %q", x.args, got, s.Path())
		}
	}
	if _, err := Load([]string{path + "x"}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// noFiles stands for a disk on which every include is an empty file.
type noFiles struct{}

func (noFiles) Open(string) (io.ReadCloser, error)    { return io.NopCloser(strings.NewReader("")), nil }
func (noFiles) Glob(pattern string) ([]string, error) { return []string{pattern}, nil }

// FuzzParse holds any text to the parser's promises: it ends with a set or an
// error that names a line; and what was read survives CONFIG REWRITE.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("save 1 2\nsave \"\"\ninclude x*\nnotify-keyspace-events KEA\nbind\n")
	f.Add("requirepass \"\\x00\\xff'\"\nmaxmemory-clients 5%\nreplicaof a 1\nlatency-tracking-info-percentiles 1e-9 100\nport")
	f.Add("client-output-buffer-limit normal 1 2 3 pubsub 1gb 1k 0\nshutdown-on-sigint save now\noom-score-adj-values -5 +6 07\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := New()
		if err := s.parser(noFiles{}).file(strings.NewReader(text), "f"); err != nil {
			var at *ParseError
			if !errors.As(err, &at) || at.Line < 1 || at.Where != "f" || at.Line > 1+strings.Count(text, "\n") {
				t.Fatalf("the error does not name a line: %v", err)
			}
			return
		}
		same, err := s.rewritten(text, noFiles{})
		if err != nil || same != text {
			t.Fatalf("rewriting an unchanged file: %v\n%q", err, same)
		}
		if err := s.Change(true, "timeout", "77", "save", "5 6", "masterauth", "\x00 \"", "maxmemory", "3gb"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.rewritten(text, noFiles{}); err != nil {
			t.Fatalf("rewriting: %v", err)
		}
	})
}
