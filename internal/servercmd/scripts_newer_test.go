package servercmd_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
)

// scriptProbe is a list of requests whose replies are compared one by one. differs has the IDs of the
// differences in internal/compat that explain unequal replies; a difference that covers a server must occur
// there.
type scriptProbe struct {
	differs  string
	requests []string
}

// textsOf7 is a difference that accompanies others.
const textsOf7 = "scripts-texts-of-7"

// evaluated makes a probe of an EVAL of a script, without keys.
func evaluated(differs, script string, before ...string) scriptProbe {
	return scriptProbe{differs, append(before, "EVAL "+quote(script)+" 0")}
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// scriptData are the keys that the probes of commands in scripts find.
var scriptData = []string{"SET str text", "RPUSH lst a b c", "ZADD zs 1 a 2 b", "SADD members m5 m3 m9 m1 m7",
	"XGROUP CREATE s g $ MKSTREAM",
	`FUNCTION LOAD "#!lua name=caller\nredis.register_function('pcall', function(keys, args) return redis.pcall(unpack(args)) end)"`}

// waiting are requests of commands that may wait, with and without something to take.
var waiting = []string{
	"BLPOP none 0", "BLPOP none 1", "BLPOP none lst 0", "BLPOP lst -1", "BLPOP lst x", "BLPOP str 0",
	"BRPOP none 0", "BRPOP lst 0", "BLMOVE none lst LEFT RIGHT 0", "BLMOVE lst str LEFT LEFT 0", "BLMOVE lst other LEFT RIGHT 0",
	"BRPOPLPUSH none lst 0", "BRPOPLPUSH lst lst 0", "BZPOPMIN none 0", "BZPOPMIN zs 0", "BZPOPMAX none 0", "BZPOPMAX str 0",
	"XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS none 0", "XREAD BLOCK -1 STREAMS s 0", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
	"XREADGROUP GROUP none c BLOCK 0 STREAMS s >", "WAIT 1 0", "WAIT 0 0", "WAIT 1 10", "WAIT x 0",
}

// waitingAlways are the ones that Redis 7.0 also runs in scripts.
var waitingAlways = []string{"BLMPOP 0 1 none LEFT", "BLMPOP 0 1 lst LEFT", "BZMPOP 0 1 none MIN", "BZMPOP 0 1 zs MIN"}

// waitingAOF are the ones that Redis 7.0 does not know.
var waitingAOF = []string{"WAITAOF 0 0 0", "WAITAOF 1 0 0", "WAITAOF 0 1 0", "WAITAOF 2 0 0"}

func scriptProbes() []scriptProbe {
	var probes []scriptProbe
	for _, r := range slices.Concat(waiting, waitingAlways, waitingAOF) {
		differs := "scripts-waiting"
		switch {
		case slices.Contains(waitingAlways, r):
			differs = ""
		case slices.Contains(waitingAOF, r):
			differs = "waitaof-command"
		}
		probes = append(probes,
			scriptProbe{differs, slices.Concat(scriptData, []string{`EVAL "return redis.pcall(unpack(ARGV))" 0 ` + r})},
			scriptProbe{differs, slices.Concat(scriptData,
				[]string{`EVAL "redis.setresp(3) local r = redis.pcall(unpack(ARGV)) return {type(r), r}" 0 ` + r})},
			scriptProbe{differs, slices.Concat(scriptData, []string{"FCALL pcall 0 " + r})})
		if differs == "scripts-waiting" {
			differs = "" // in a transaction all replies are the same
		}
		probes = append(probes, scriptProbe{differs, slices.Concat(scriptData, []string{"MULTI", r, "EXEC"})})
	}
	for _, r := range []string{"SORT members BY nosort", "SORT members BY nosort DESC", "SORT members BY nosort LIMIT 1 2",
		"SORT members BY nosort GET # GET w_*",
		"SORT_RO members BY nosort", "SORT members ALPHA", "SORT zs BY nosort", "SORT lst BY nosort", "SORT members BY nosort STORE d"} {
		probes = append(probes, scriptProbe{"", slices.Concat(scriptData,
			[]string{`EVAL "return redis.pcall(unpack(ARGV))" 0 ` + r, "FCALL pcall 0 " + r})})
	}
	return append(probes,
		// Before a write a script may read anything.
		evaluated("", "local x = redis.call('SPOP', 'one') redis.call('SET', 'k', x) return redis.call('GET', 'k')", "SADD one a"),
		evaluated("", "redis.call('TIME') redis.call('SRANDMEMBER', 'none') return redis.call('SET', 'k', 1)"),
		evaluated("", "return {redis.replicate_commands(), redis.replicate_commands(1, 2)}"),
		evaluated("", "redis.set_repl(redis.REPL_ALL) return redis.call('SET', 'k', 1)"),
		evaluated(textsOf7+" scripts-words-of-valkey", "return redis.set_repl()"),
		evaluated("scripts-error-without-sha", "return redis.set_repl(9)"),
		evaluated(textsOf7+" scripts-error-without-sha", "return redis.log(9, 'x')"),
		evaluated("scripts-words-of-valkey", "return redis.log(9)"),
		evaluated("scripts-words-of-valkey", "return redis.setresp()"),
		evaluated("scripts-words-of-valkey", "return redis.pcall()"),
		evaluated("scripts-words-of-valkey", "return redis.pcall('NOPE')"),
		evaluated("scripts-words-of-valkey", "return redis.pcall('GET')"),
		evaluated("scripts-words-of-valkey", "return redis.pcall('GET', {})"),
		evaluated("scripts-words-of-valkey", "return redis.pcall('SUBSCRIBE', 'x')"),
		evaluated("scripts-words-of-valkey", "return redis.pcall('CLIENT', 'NOPE')"),
		evaluated("scripts-words-of-valkey", "return redis.acl_check_cmd('NOPE')"),
		scriptProbe{"scripts-words-of-valkey", []string{"EVALSHA ffffffffffffffffffffffffffffffffffffffff 0", "EVALSHA x 0", "EVALSHA_RO x 0"}},
		scriptProbe{"scripts-words-of-valkey", []string{
			`FUNCTION LOAD "#!lua name=x\nredis.register_function('a-b', function() end)"`,
			`FUNCTION LOAD "#!lua name=x\nredis.register_function('a')"`,
			`FUNCTION LOAD "#!lua name=x\nredis.register_function({})"`,
			`FUNCTION LOAD "#!lua name=x\nredis.register_function('a', function() end) redis.register_function('a', function() end)"`}},
		scriptProbe{"", []string{`FUNCTION LOAD "#!lua name=x y=1\nreturn 1"`, `FUNCTION LOAD "#!lua name=x\n(("`,
			`FUNCTION LOAD "#!lua name=x\nerror('x')"`,
			`FUNCTION LOAD "#!js name=x\nreturn 1"`, `FUNCTION LOAD "return 1"`, `FUNCTION LOAD "#!lua name=x\nreturn 1"`}},

		// Errors and their positions.
		evaluated("scripts-error-without-sha", "error('x')"),
		evaluated("scripts-error-without-sha", "\n\nreturn redis.call('INCR', 'str')", scriptData...),
		scriptProbe{"scripts-error-without-sha",
			[]string{`FUNCTION LOAD "#!lua name=l\nredis.register_function('f', function() error({err = 'MY error'}) end)"`,
				"FCALL f 0"}},
		evaluated("", "return redis.pcall('INCR', 'str')", scriptData...),
		evaluated("", "local e, list = redis.pcall('INCR', 'str'), {} for k, v in pairs(e) do list[#list + 1] = k .. '=' .. tostring(v) end "+
			"table.sort(list) return list", scriptData...),
		evaluated("", "local ok, e = xpcall(function() redis.call('INCR', 'str') end, __redis__err__handler) "+
			"local list = {} for k, v in pairs(e) do list[#list + 1] = k .. '=' .. tostring(v) end table.sort(list) return list", scriptData...),
		evaluated("", "local ok, e = pcall(redis.call, 'INCR', 'str') return {tostring(ok), type(e), e}", scriptData...),
		failing("return redis.pcall('INCR', 'str')", "return {redis.pcall('INCR', 'str')}", "redis.pcall('INCR', 'str') return 1",
			"return {1, redis.error_reply('x')}", "redis.pcall('INCR', 'str') return redis.error_reply('FOO x')"),
		evaluated("", "return {err = 'My error'}"),
		evaluated("", "return redis.error_reply('one')"),
		evaluated("", "return redis.error_reply('-MY x')"),

		// The line that names the language and the flags.
		scriptProbe{"", []string{`EVAL "#!lua flags=no-writes\nreturn redis.pcall('SET', 'k', 1)" 0`, `EVAL_RO "#!lua\nreturn 1" 0`,
			`EVAL "#!lua flags=none\nreturn 1" 0`,
			`EVAL "#!lua name=x\nreturn 1" 0`, `EVAL "#!lua flags=no-writes,allow-oom flags=allow-stale\nreturn 1" 0`, `EVAL "#!lua" 0`,
			`EVAL_RO "return redis.pcall('SET', 'k', 1)" 0`}},
		scriptProbe{"scripts-language-in-capitals", []string{`EVAL "#!LUA\nreturn 1" 0`}},
		scriptProbe{"scripts-words-of-valkey", []string{`EVAL "#!js\nreturn 1" 0`}},
		scriptProbe{"", []string{`FUNCTION LOAD "#!LUA name=x\nredis.register_function('f', function() return 1 end)"`, "FCALL f 0"}},

		// The objects that newer servers offer to scripts, and where they show scripts.
		evaluated("scripts-server-table", "return server.call('SET', 'k', 'v')"),
		scriptProbe{"scripts-server-table",
			[]string{`FUNCTION LOAD "#!lua name=x\nserver.register_function('f', function() return server.sha1hex('') end)"`,
				"FCALL f 0"}},
		evaluated("scripts-version-names", "return {redis.SERVER_NAME, redis.REDIS_VERSION}"),
		evaluated("scripts-os-clock", "return {type(os.clock()), tostring(os.time)}"),
		scriptProbe{"script-show", []string{`SCRIPT LOAD "return 1"`, "SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db"}},
		scriptProbe{"", []string{"SCRIPT FLUSH SYNC", "SCRIPT FLUSH ASYNC", "SCRIPT FLUSH NOW", "SCRIPT FLUSH SYNC x",
			"SCRIPT KILL", "FUNCTION KILL",
			"FUNCTION FLUSH SYNC",
			"FUNCTION FLUSH ASYNC", "FUNCTION FLUSH NOW", "CONFIG GET lua-time-limit", "CONFIG GET busy-reply-threshold"}},
		scriptProbe{"",
			[]string{`FUNCTION LOAD "#!lua name=l\nredis.register_function{function_name='f', callback=function() end, flags={'no-writes', ` +
				`'allow-oom'}, description='d'}"`,
				"FUNCTION LIST WITHCODE", "FUNCTION STATS"}},
		evictions("script-eviction"),
	)
}

// evictions is a probe that evaluates more scripts than a server keeps.
func evictions(differs string) scriptProbe {
	p := scriptProbe{differs, []string{"CONFIG RESETSTAT"}}
	for i := range 600 {
		p.requests = append(p.requests, `EVAL "return `+strings.Repeat("1", i%9+1)+` + `+strings.Repeat("2", i/9+1)+`" 0`)
	}
	p.requests = append(p.requests, "INFO memory", "INFO stats")
	return p
}

// failing is a probe for the counts of scripts with errors.
func failing(scripts ...string) scriptProbe {
	var p scriptProbe
	for _, script := range scripts {
		p.requests = append(append(p.requests, scriptData...), "CONFIG RESETSTAT", `EVAL "`+script+`" 0`, "INFO errorstats", "CONFIG RESETSTAT",
			`EVAL "`+script+`" 0`, "INFO commandstats")
	}
	return p
}

// figures are the lines of INFO that the probes compare.
var figures = regexp.MustCompile(`(number_of_cached_scripts|evicted_scripts):\d+|rejected_calls=\d+,failed_calls=\d+|errorstat_\w+:count=\d+`)

// replies returns the replies to a probe's requests, after the data of earlier probes is removed.
func (p *scriptProbe) replies(t *testing.T, target transcript.Target) []string {
	t.Helper()
	var all []string
	for i, r := range slices.Concat([]string{"FLUSHALL", "FUNCTION FLUSH", "SCRIPT FLUSH"}, p.requests) {
		args, ok := wire.SplitArgs(r)
		if !ok {
			t.Fatalf("%q does not split", r)
		}
		if err := target.Send(1, args); err != nil {
			t.Fatal(err)
		}
		v, ok := target.Next(1)
		if !ok {
			t.Fatalf("%.100q: no reply", r)
		}
		text := strings.Join(transcript.Lines(v), "\n")
		if args[0] == "INFO" {
			found := figures.FindAllString(text, -1)
			slices.Sort(found) // commands come in no particular order
			text = strings.Join(found, " ")
		}
		if i >= 3 {
			all = append(all, text)
		}
	}
	return all
}

// Scripts, functions and waiting commands in them reply as on three servers, except for the differences in
// docs/compatibility.md.
func TestScriptsAnswerAsThreeServersDo(t *testing.T) {
	probes := scriptProbes()
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours := make([][]string, len(probes))
	for i := range probes {
		ours[i] = probes[i].replies(t, e)
	}
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			s := transcript.NewServer(realserver.Start(t, program))
			defer s.Close()
			for i := range probes {
				p := &probes[i]
				theirs := p.replies(t, s)
				covered := false
				for _, id := range strings.Fields(p.differs) {
					covers, err := compat.Covers(id, program)
					if err != nil {
						t.Error(err)
					}
					covered = covered || covers
				}
				same := slices.Equal(ours[i], theirs)
				switch {
				case same && covered:
					t.Errorf("%s on %s: there is no difference now, but %s is named", last(p.requests), program, p.differs)
				case !same && !covered:
					for j := range p.requests {
						if ours[i][j] != theirs[j] {
							t.Errorf("%.200s\nhere: %.400s\n%s: %.400s", p.requests[j], ours[i][j], program, theirs[j])
						}
					}
				}
			}
		})
	}
}

func last(list []string) string { return list[len(list)-1] }

// redis.set_repl(REPL_NONE) keeps later writes out of the append-only file on the three servers. Here
// everything is logged: data and files never differ.
func TestWhatScriptsWriteIsLoggedWhateverSetReplSays(t *testing.T) {
	const write = `EVAL "redis.set_repl(redis.REPL_NONE) redis.call('SET', 'hidden', 1)" 0`
	ask := func(target transcript.Target, line string) string {
		args, _ := wire.SplitArgs(line)
		if err := target.Send(1, args); err != nil {
			t.Fatal(err)
		}
		v, _ := target.Next(1)
		return strings.Join(transcript.Lines(v), "\n")
	}
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ask(e, write)
	if got := ask(e, "GET hidden"); got != `"1"` {
		t.Errorf("the engine has %s", got)
	}
	if err := modeltest.CheckEffects(e.DB); err != nil {
		t.Errorf("the effects do not give the same data: %v", err)
	}
	for _, program := range compat.All.Programs() {
		s := transcript.NewServer(realserver.Start(t, program, "--appendonly", "yes", "--enable-debug-command", "yes"))
		ask(s, write)
		before, loaded, after := ask(s, "GET hidden"), ask(s, "DEBUG LOADAOF"), ask(s, "GET hidden")
		covers, err := compat.Covers("scripts-set-repl", program)
		if differs := before == `"1"` && loaded == "OK" && after == "(nil)"; differs != covers || err != nil {
			t.Errorf("%s: %s before, %s, %s after the load; the difference covers it: %v %v", program, before, loaded, after, covers, err)
		}
		s.Close()
	}
}
