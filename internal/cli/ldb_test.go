package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

const debugged = `local a = redis.call('set', KEYS[1], ARGV[1])
local t = {1, 2, {x='y'}}
redis.breakpoint()
redis.debug("hello", t, 3)
local n = redis.call('incr', 'n')
return {n, t}
`

func TestScriptsAreDebuggedAsWithRedisCLI(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.lua"), filepath.Join(dir, "bad.lua")
	for name, text := range map[string]string{good: debugged, bad: "return redis.call('foo'"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	colours := regexp.MustCompile(`\x1b\[[01];\d\d;49m|\x1b\[0m`)
	debug := func(addr, lines string, args ...string) {
		t.Helper()
		ours(t, addr, seed)
		want := theirs(t, addr, lines, args...)
		want.out = colours.ReplaceAllString(want.out, "")
		ours(t, addr, seed)
		compare(t, ours(t, addr, lines, args...), want, lines, args)
	}
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		addr := realserver.Start(t, program)
		for _, format := range []string{"--raw", "--csv"} {
			debug(addr, "list\nstep\nprint a\nbreak 5\ne redis.call(\"get\", KEYS[1])\n\nget \"open\ncontinue\nprint t\nc\nc\nget k\nlrange l 0 1\n",
				format, "--ldb", "--eval", good, "k", ",", "v")
		}
		debug(addr, "n\nabort\nget k\nrestart\nn\nredis get k\nhelp\nquit\nget k\n", "--ldb", "--eval", good, "k", ",", "v")
		debug(addr, "c\nc\nget k\n", "--ldb-sync-mode", "--eval", good, "k", ",", "v")
		debug(addr, "c\n", "--ldb", "--eval", bad, "k")
		debug(addr, "", "--ldb", "--eval", filepath.Join(dir, "none.lua"), "k")

		ours(t, addr, seed)
		ours(t, addr, "c\nc\n", "--ldb", "--eval", good, "k", ",", "changed")
		if got := ours(t, addr, "", "get", "k"); got.out != "v\n" {
			t.Errorf("--ldb has changed the data: %v", got)
		}
		ours(t, addr, "c\nc\n", "--ldb-sync-mode", "--eval", good, "k", ",", "changed")
		if got := ours(t, addr, "", "get", "k"); got.out != "changed\n" {
			t.Errorf("--ldb-sync-mode has not changed the data: %v", got)
		}
	}
}

func TestADebuggerThatIsMissingOrLostIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.lua")
	if err := os.WriteFile(file, []byte(debugged), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := serve(t, listen(t), func(_ int, args []string) string { return "-ERR unknown subcommand 'DEBUG'\r\n" })
	got := ours(t, addr, "c\n", "--ldb", "--eval", file)
	if got.status != 1 || !strings.Contains(got.err, "--ldb needs a server with a debugger of scripts; this one answered SCRIPT DEBUG YES "+
		"with: ERR unknown subcommand") {
		t.Errorf("%v", got)
	}
	addr = serve(t, listen(t), func(_ int, args []string) string {
		switch args[0] {
		case "SCRIPT":
			return "+OK\r\n"
		case "EVAL":
			return "*1\r\n+* Stopped at 1\r\n"
		}
		return "" // a step closes the connection
	})
	got = ours(t, addr, "s\nflushall\n", "--ldb", "--eval", file)
	if got.status != 1 || got.err != "Error: Server closed the connection\n" || !strings.HasSuffix(got.out, "* Stopped at 1\n") {
		t.Errorf("%v", got)
	}
}

func TestTheDebuggersLinesHaveRedisCLIsColours(t *testing.T) {
	c := &client{env: Env{OutTTY: true}}
	for line, want := range map[string]string{
		"* Stopped at 1": "0;37", "-> 1   local a": "0;33", "->#5   local n": "0;33", "  #5   local n": "1;37", "   6   return": "0;37",
		"<redis> get k": "0;32", "<reply> 1": "0;36", "<value> 1": "0;35", "<retval> 1": "0;35", "<error> no": "0;31",
		"<debug> line 4": "1;37", "<hint> x": "1;37",
	} {
		if got := string(c.colour(nil, line)); got != "\x1b["+want+";49m"+line+"\x1b[0m" {
			t.Errorf("%q", got)
		}
	}
}
