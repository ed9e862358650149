package instance

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// until repeats a command until the reply has a prefix. The test's time limit ends it if the reply never does.
func (c client) until(prefix string, args ...string) resp.Value {
	c.t.Helper()
	for {
		if v := c.ask(args...); strings.HasPrefix(v.Str, prefix) {
			return v
		}
	}
}

func TestAScriptThatDoesNotEndIsNoticedAndKilled(t *testing.T) {
	for _, c := range []struct{ name, script, killed string }{
		{"loop", "while true do end", "ERR Script killed by user with SCRIPT KILL... script: "},
		{"caught", "while true do pcall(function() while true do end end) end", "ERR Script killed by user with SCRIPT KILL... script: "},
		{"in a builtin", "return string.find(string.rep('a', 5000), string.rep('a*', 5000) .. 'b')",
			"ERR Script killed by user with SCRIPT KILL... script: "},
		{"in a callback", "table.sort({3, 2, 1}, function(a, b) while true do end end)",
			"ERR Script killed by user with SCRIPT KILL... script: "},
		{"calls", "while true do redis.call('GET', 'k') end", "ERR Script killed by user with SCRIPT KILL... script: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := startInstance(t, nil, "--busy-reply-threshold", "30")
			runs, other, third := dial(t, in), dial(t, in), dial(t, in)
			if v := other.ask("SET", "k", "v"); v.Str != "OK" {
				t.Fatal(v)
			}
			runs.send("EVAL", c.script, "0")
			const busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
			if v := other.until("BUSY", "GET", "k"); v.Str != busy {
				t.Errorf("got %q", v.Str)
			}
			for _, refused := range [][]string{{"PING"}, {"SET", "k", "w"}, {"EVAL", "return 1", "0"}, {"FUNCTION", "KILL"},
				{"SCRIPT", "EXISTS", "x"}, {"DBSIZE"}} {
				if v := third.ask(refused...); v.Str != busy {
					t.Errorf("%q: %v", refused, v)
				}
			}
			if v := third.ask("SCRIPT", "KILL"); v.Str != "OK" {
				t.Errorf("SCRIPT KILL: %v", v)
			}
			if v := runs.read(); !strings.HasPrefix(v.Str, c.killed) {
				t.Errorf("the script got %q", v.Str)
			}
			if v := other.until("v", "GET", "k"); v.Str != "v" {
				t.Error(v)
			}
			if v := runs.ask("EVAL", "return redis.call('GET', KEYS[1])", "1", "k"); v.Str != "v" {
				t.Errorf("the connection went on with %v", v)
			}
		})
	}
}

// untilSomebodyComes is a script that loops until the next client connects, so it runs for as long as a test needs on
// any machine.
const untilSomebodyComes = `
local function came() return string.match(redis.call('INFO', 'stats'), 'total_connections_received:(%d+)') end
local before = came()
repeat until came() ~= before
`

func TestAScriptThatHasWrittenIsNotKilled(t *testing.T) {
	in := startInstance(t, nil, "--busy-reply-threshold", "30")
	runs, other := dial(t, in), dial(t, in)
	other.ask("PING") // both are connected, and counted
	runs.send("EVAL", "redis.call('SET', 'k', 'half')"+untilSomebodyComes+"redis.call('SET', 'k', 'whole') return 'done'", "0")
	other.until("BUSY", "GET", "k")
	if v := other.ask("SCRIPT", "KILL"); !strings.HasPrefix(v.Str, "UNKILLABLE ") {
		t.Errorf("got %v", v)
	}
	dial(t, in)
	if v := runs.read(); v.Str != "done" {
		t.Errorf("got %v", v)
	}
	if v := other.ask("GET", "k"); v.Str != "whole" {
		t.Errorf("got %v", v)
	}
}

// The reply of a script that leaves its loop keeps its place among the client's other replies, inside MULTI as well.
func TestLongScriptsKeepTheOrderOfReplies(t *testing.T) {
	in := startInstance(t, nil)
	c, other := dial(t, in), dial(t, in)
	const long = "for i = 1, 1e6 do end return redis.call('INCR', KEYS[1])"
	for range 3 {
		c.send("SET", "k", "1")
		c.send("EVAL", long, "1", "k")
		c.send("GET", "k")
		c.send("MULTI")
		c.send("INCR", "k")
		c.send("EVAL", long, "1", "k")
		c.send("GET", "k")
		c.send("EXEC")
		c.send("EVAL", "return 'short'", "0")
		if v := other.ask("PING"); v.Str != "PONG" {
			t.Error(v)
		}
		var got []string
		for range 9 {
			got = append(got, strings.Join(strings.Fields(string(wire.AppendTTY(nil, c.read()))), " "))
		}
		want := `OK|(integer) 2|"2"|OK|QUEUED|QUEUED|QUEUED|1) (integer) 3 2) (integer) 4 3) "4"|"short"`
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	}
}

func TestFunctionsThatDoNotEnd(t *testing.T) {
	t.Parallel() // the test mostly waits
	in := startInstance(t, nil, "--busy-reply-threshold", "30")
	runs, other := dial(t, in), dial(t, in)
	if v := runs.ask("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() while true do end end)"); v.Str != "l" {
		t.Fatal(v)
	}
	runs.send("FCALL", "f", "0", "arg")
	const busy = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	if v := other.until("BUSY", "GET", "k"); v.Str != busy {
		t.Errorf("got %v", v)
	}
	if v := other.ask("SCRIPT", "KILL"); v.Str != busy {
		t.Errorf("got %v", v)
	}
	stats := string(wire.AppendTTY(nil, other.ask("FUNCTION", "STATS")))
	if !strings.Contains(stats, `"f"`) || !strings.Contains(stats, `"arg"`) || !strings.Contains(stats, "duration_ms") {
		t.Errorf("got %s", stats)
	}
	if v := other.ask("FUNCTION", "KILL"); v.Str != "OK" {
		t.Errorf("got %v", v)
	}
	if v := runs.read(); !strings.HasPrefix(v.Str, "ERR Script killed by user with SCRIPT KILL... script: f, on @user_function:2.") {
		t.Errorf("got %v", v)
	}
	if v := runs.ask("FUNCTION", "LOAD", "#!lua name=m\nwhile true do end"); !strings.Contains(v.Str, "FUNCTION LOAD timeout") {
		t.Errorf("got %v", v)
	}
}

// A server that stops does not wait for a script: startInstance fails if the shutdown takes long.
func TestShutdownEndsAScript(t *testing.T) {
	in := startInstance(t, nil, "--busy-reply-threshold", "30")
	runs, other := dial(t, in), dial(t, in)
	runs.send("EVAL", "while true do end", "0")
	other.until("BUSY", "GET", "k")
	if v := other.ask("SHUTDOWN", "SAVE"); !strings.HasPrefix(v.Str, "BUSY ") {
		t.Errorf("got %v", v)
	}
}
