package servercmd_test

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
)

// debugged returns the replies to DEBUG's tools for test suites, in RESP2 and RESP3.
func debugged(t *testing.T, target transcript.Target, program string) map[string]string {
	t.Helper()
	replies := map[string]string{}
	ask := func(n, count int, line string) (text string) {
		args, _ := wire.SplitArgs(line)
		if err := target.Send(n, args); err != nil {
			t.Fatal(err)
		}
		for range count {
			v, ok := target.Next(n)
			if !ok {
				t.Fatalf("%s: no reply", line)
			}
			text += fmt.Sprintf("%v %q\n", v.Kind, transcript.Lines(v))
			for _, a := range v.Attrs {
				text += fmt.Sprintf("attribute %v %q\n", a.Kind, transcript.Lines(a))
			}
		}
		return text
	}
	for _, line := range []string{"RPUSH l a b", "HSET h f v", "SADD s a", "SADD i 1", "ZADD z 1 a", "SET str text",
		"SET n 12", "XADD x 1-1 f v"} {
		ask(1, 1, line)
	}
	for proto, n := range map[string]int{"2": 2, "3": 3} {
		ask(n, 1, "HELLO "+proto)
		for _, line := range []string{"DEBUG ERROR abc", "DEBUG ERROR -abc", `DEBUG ERROR "MINE a\r\nb"`, "DEBUG LOG x",
			"DEBUG PROTOCOL none", "DEBUG LISTPACK h",
			"DEBUG LISTPACK z",
			"DEBUG LISTPACK i", "DEBUG LISTPACK str", "DEBUG LISTPACK none", "DEBUG LISTPACK x", "DEBUG SDSLEN l",
			"DEBUG SDSLEN n", "DEBUG SDSLEN none"} {
			replies[proto+" "+line] = ask(n, 1, line)
		}
		if program != realserver.Redis7 { // which has lists and sets in other forms
			replies[proto+" l"], replies[proto+" s"] = ask(n, 1, "DEBUG LISTPACK l"), ask(n, 1, "DEBUG LISTPACK s")
		}
		for _, kind := range []string{"string", "integer", "double", "bignum", "null", "array", "set", "map", "attrib", "push",
			"verbatim", "true", "false", "TRUE"} {
			count := 1
			if kind == "push" && proto == "3" {
				if count = 2; program == realserver.Redis7 {
					continue // the message precedes the reply
				}
			}
			replies[proto+" "+kind] = ask(n, count, "DEBUG PROTOCOL "+kind)
		}
	}
	return replies
}

func TestToolsOfDebugAnswerAsThreeServersDo(t *testing.T) {
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			e, err := transcript.NewEngine()
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			s := transcript.NewServer(realserver.Start(t, program, "--enable-debug-command", "yes"))
			defer s.Close()
			ours, theirs := debugged(t, e, program), debugged(t, s, program)
			for what, want := range theirs {
				if ours[what] != want {
					t.Errorf("%s: %q, %s %q", what, ours[what], program, want)
				}
			}
		})
	}
}
