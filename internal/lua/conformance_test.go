package lua_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/luafuzz"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// The files of testdata/conformance are named after the parts of Lua's manual.
// Each holds programs like this one, with what they print:
//
//	-- # the title
//	emit(1 + 1, "x")
//	--> 2 "x"
//	--> returned
//
// A title that ends in [lua5.1] or [redis-server] names the only one that the
// lines come from; the others are the same on both.
var record = flag.Bool("lua.record", false, "write what lua5.1 and redis-server print into testdata/conformance")

// conformanceCase is one program of those files.
type conformanceCase struct {
	title, program, want string
	only                 string // one oracle, "" for both
}

// header begins the first line of each program.
const header = "local emit, tostr, round, pcall = ... "

func (c conformanceCase) request(m luafuzz.Mode) string { return luafuzz.Request(m, header+c.program) }

// conformanceFiles reads all of the files.
func conformanceFiles(t *testing.T) map[string][]conformanceCase {
	t.Helper()
	names, err := filepath.Glob("testdata/conformance/*.lua")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	files := map[string][]conformanceCase{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n-- # ")[1:] {
			files[name] = append(files[name], parseCase(part))
		}
	}
	return files
}

func parseCase(text string) (c conformanceCase) {
	title, rest, _ := strings.Cut(text, "\n")
	c.title = title
	for _, oracle := range []string{"lua5.1", "redis-server"} {
		if strings.HasSuffix(title, " ["+oracle+"]") {
			c.only = oracle
		}
	}
	var program, want []string
	for _, line := range strings.Split(strings.TrimRight(rest, "\n"), "\n") {
		if printed, ok := strings.CutPrefix(line, "-->"); ok {
			want = append(want, strings.TrimPrefix(printed, " "))
		} else {
			program = append(program, line)
		}
	}
	c.program, c.want = strings.Join(program, "\n"), strings.Join(want, "\n")
	return c
}

func (c conformanceCase) format() string {
	printed := "-->"
	for _, line := range strings.Split(c.want, "\n") {
		printed += strings.TrimRight(" "+line, " ") + "\n-->"
	}
	return "-- # " + c.title + "\n" + c.program + "\n" + strings.TrimSuffix(printed, "\n-->") + "\n"
}

func TestProgramsPrintWhatTheManualPromises(t *testing.T) {
	for name, cases := range conformanceFiles(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			for _, c := range cases {
				mode := luafuzz.Run
				if c.only == "redis-server" {
					mode = luafuzz.Script
				}
				got, _ := luafuzz.Ours{}.Run([]string{c.request(mode)})
				if got[0] != c.want {
					t.Errorf("%s:\n%s\nprinted:\n%s\nwant:\n%s", c.title, c.program, got[0], c.want)
				}
			}
		})
	}
}

func TestWhatProgramsPrintIsWhatLua51AndRedisPrint(t *testing.T) {
	realserver.Program(t, "lua5.1")
	stock, err := luafuzz.NewStock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stock.Close)
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	redis, err := luafuzz.NewRedis(p.Addr(), func() { p.Kill(); p.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	for name, cases := range conformanceFiles(t) {
		text := make([]string, len(cases))
		for i := range cases {
			c := &cases[i]
			printed := map[string]string{
				"lua5.1":       runOne(t, stock, c.request(luafuzz.Run)),
				"redis-server": runOne(t, redis, c.request(luafuzz.Script)),
			}
			if c.only == "" && printed["lua5.1"] != printed["redis-server"] {
				t.Errorf("%s: %s: lua5.1 prints\n%s\nredis-server prints\n%s", name, c.title, printed["lua5.1"], printed["redis-server"])
			}
			want := printed[c.only]
			if c.only == "" {
				want = printed["redis-server"]
			}
			if *record {
				c.want = want
			} else if c.want != want {
				t.Errorf("%s: %s: the file has\n%s\nwant\n%s", name, c.title, c.want, want)
			}
			text[i] = c.format()
		}
		if *record {
			if err := os.WriteFile(name, []byte(strings.Join(text, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func runOne(t *testing.T, m luafuzz.Machine, request string) string {
	t.Helper()
	printed, err := m.Run([]string{request})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return strings.TrimRight(printed[0], " ")
}
