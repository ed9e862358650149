package session

import (
	"strings"
	"testing"
)

// The first words of a script's reply from redis-server 7.0.15. "ok" is any reply that is not an error.
const (
	okay     = "ok"
	noGood   = "NOREPLICAS"
	readOnly = "READONLY"
	stale    = "MASTERDOWN"
	staleIn  = "ERR Can not execute the command on a stale replica"
	misconf  = "MISCONF"
	roWrites = "ERR Write commands are not allowed from read-only scripts."
	roFlag   = "ERR Can not execute a script with write flag using *_ro command."
	aborted  = "EXECABORT"
)

// scriptKinds are the ways in which a script can declare its behaviour.
var scriptKinds = [...]string{"EVAL", "EVAL_RO", "#!", "#! no-writes", "#! allow-stale", "#! allow-oom",
	"#! no-writes,allow-stale", "_RO #!",
	"_RO #! no-writes"}

var gatedScripts = []struct {
	gates gate
	body  string // get, set, none (no call) or echo, a command that a stale replica runs
	want  [len(scriptKinds)]string
}{
	{0, "get", [...]string{okay, okay, okay, okay, okay, okay, okay, roFlag, okay}},
	{0, "set", [...]string{okay, roWrites, okay, roWrites, okay, okay, roWrites, roFlag, roWrites}},
	{gateNoReplicas, "get", [...]string{okay, okay, noGood, okay, noGood, noGood, okay, noGood, okay}},
	{gateNoReplicas, "set", [...]string{noGood, roWrites, noGood, roWrites, noGood, noGood, roWrites, noGood, roWrites}},
	{gateNoReplicas, "none", [...]string{okay, okay, noGood, okay, noGood, noGood, okay, noGood, okay}},
	{gateDisk, "get", [...]string{okay, okay, misconf, okay, misconf, misconf, okay, misconf, okay}},
	{gateDisk, "set", [...]string{misconf, roWrites, misconf, roWrites, misconf, misconf, roWrites, misconf, roWrites}},
	{gateReadOnly, "get", [...]string{okay, okay, readOnly, okay, readOnly, readOnly, okay, readOnly, okay}},
	{gateReadOnly, "set", [...]string{readOnly, roWrites, readOnly, roWrites, readOnly, readOnly, roWrites, readOnly, roWrites}},
	{gateReadOnly, "none", [...]string{okay, okay, readOnly, okay, readOnly, readOnly, okay, readOnly, okay}},
	{gateStale, "get", [...]string{stale, stale, stale, stale, staleIn, stale, staleIn, stale, stale}},
	{gateStale, "set", [...]string{stale, stale, stale, stale, staleIn, stale, staleIn, stale, stale}},
	{gateStale, "none", [...]string{stale, stale, stale, stale, okay, stale, okay, stale, stale}},
	{gateStale, "echo", [...]string{stale, stale, stale, stale, okay, stale, okay, stale, stale}},
	{gateStale | gateReadOnly, "get", [...]string{stale, stale, readOnly, stale, readOnly, readOnly, staleIn, readOnly, stale}},
	{gateStale | gateReadOnly, "echo", [...]string{stale, stale, readOnly, stale, readOnly, readOnly, okay, readOnly, stale}},
	{gateStale | gateReadOnly | gateNoReplicas, "none", [...]string{stale, stale, readOnly, stale, readOnly, readOnly, okay, readOnly, stale}},
	{gateLoading, "none", [...]string{"LOADING", "LOADING", "LOADING", "LOADING", "LOADING", "LOADING", "LOADING", "LOADING", "LOADING"}},
}

// If writes are refused, a script or function that does not declare no-writes is refused before it begins. On
// a replica that must not serve old data, so is one that does not declare allow-stale, and every EVAL without
// a shebang line.
func TestEachKindOfScriptMeetsEachGate(t *testing.T) {
	s := gated(t)
	x := s.NewSession(nil)
	defer x.Closed(nil)
	bodies := map[string]string{
		"get": "return redis.call('get', 'x')", "set": "return redis.call('set', 'x', '1')", "none": "return 7",
		"echo": "return redis.call('echo', 'hi')",
	}
	s.gates.refuseWrites("MISCONF the disk is full") // the text of the error
	if !s.FilesFail() {
		t.Error("the server refuses writes because of its files, and FilesFail is false")
	}
	s.gates.refuseWrites("")
	if s.FilesFail() {
		t.Error("the server takes writes, and FilesFail is true")
	}
	// requests returns the forms of a kind: as a script, by its digest, as a function.
	requests := func(kind, body string) (all [][]string) {
		_, flags, declares := strings.Cut(kind, "#!")
		ro := ""
		if strings.Contains(kind, "_RO") {
			ro = "_RO"
		}
		text := bodies[body]
		if flags = strings.TrimSpace(flags); declares {
			text = "#!lua flags=" + flags + "\n" + text
		}
		sha := x.Do(bytesOf("SCRIPT", "LOAD", text)...)
		all = append(all, []string{"EVAL" + ro, text, "0"}, []string{"EVALSHA" + ro, sha.Str, "0"})
		if declares {
			name := "f_" + body + strings.NewReplacer("-", "", ",", "").Replace(flags)
			list := ""
			if flags != "" {
				list = "'" + strings.ReplaceAll(flags, ",", "','") + "'"
			}
			code := "#!lua name=" + name + "\nredis.register_function{function_name='" + name + "', callback=function() " +
				bodies[body] + " end, flags={" + list + "}}"
			if v := x.Do(bytesOf("FUNCTION", "LOAD", "REPLACE", code)...); v.Err() != nil {
				t.Fatal(v)
			}
			all = append(all, []string{"FCALL" + ro, name, "0"})
		}
		return all
	}
	for _, c := range gatedScripts {
		for i, kind := range scriptKinds {
			for _, words := range requests(kind, c.body) {
				s.gates.set(c.gates, true)
				got := x.Do(bytesOf(words...)...)
				s.gates.set(c.gates, false)
				if want := c.want[i]; want == okay && got.Err() != nil || want != okay && !strings.HasPrefix(got.Str, want) {
					t.Errorf("gates %b: %s of %q (%s): got %v, want %s", c.gates, words[0], c.body, kind, got, want)
				}
				// EXEC refuses as a whole a transaction that was queued before the gate closed.
				want := c.want[i]
				if want != readOnly && want != noGood && want != misconf || kind == "EVAL" {
					continue
				}
				x.Do(bytesOf("MULTI")...)
				x.Do(bytesOf(words...)...)
				s.gates.set(c.gates, true)
				got = x.Do(bytesOf("EXEC")...)
				s.gates.set(c.gates, false)
				if !strings.HasPrefix(got.Str, aborted) {
					t.Errorf("gates %b: EXEC of %s of %q (%s): got %v, want %s", c.gates, words[0], c.body, kind, got, aborted)
				}
			}
		}
	}
}

// EXEC of a PUBLISH is not a write: a read-only replica runs it, as redis-server does.
func TestAPublishInATransactionIsNoWrite(t *testing.T) {
	s := gated(t)
	x := s.NewSession(nil)
	defer x.Closed(nil)
	s.gates.set(gateReadOnly, true)
	x.Do(bytesOf("MULTI")...)
	x.Do(bytesOf("PUBLISH", "c", "m")...)
	if v := x.Do(bytesOf("EXEC")...); len(v.Elems) != 1 || v.Elems[0].Err() != nil {
		t.Errorf("got %v", v)
	}
}

func bytesOf(words ...string) [][]byte {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return args
}
