package instance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// debugged is a session of SCRIPT DEBUG: the reply of EVAL, the replies of the debugger's commands, and after
// <endsession> the script's reply.
type debugged struct {
	script     string
	keys, args []string
	commands   []string
	before     [][]string
}

const traced = `local function fact(n)
  if n <= 1 then
    redis.breakpoint()
    return 1
  end
  local r = n *
    fact(n-1)
  return r
end
local t = {pcall(fact, 3)}
for i = 1, 2 do
  t[i] = i
end
for k, v in ipairs(t) do local z = k + v end
local i = 0
while i < 2 do
  i = i + 1
end
repeat
  i = i - 1
until i == 0
local c = coroutine.wrap(function(a)
  coroutine.yield(a)
  return 2
end)
c(1)
table.sort({3,2,1}, function(a,b)
  return a < b end)
local u = (string.gsub('abc', '%w', function(ch)
  return ch .. ch
end))
local both = (u == 'x' and 1 or
  2) == 2
return fact(2)
`

var debugSessions = map[string]debugged{
	"lines": {script: traced, commands: append([]string{"b 8", "c", "t", "p", "l", "c", "p", "t", "c"}, repeated(70, "n")...)},
	"commands": {script: "local a = redis.call('set', KEYS[1], ARGV[1])\nlocal t = {1, 2, {x='y'}}\n\n" +
		"redis.breakpoint()\nredis.debug('hello', t, 3)\nreturn {a, t}\n",
		keys: []string{"k\r\n\x00y"}, args: []string{"v"}, commands: []string{
			"print", "l", "l 3 1", "l x", "l 0", "l -1", "w", "whole 3", "b", "b 5 400 x 0 5 5 -3 -5 6", "b", "s", "p", "p a",
			"print a b", "p KEYS", "p ARGV", "p nix", "t", "n", "c", "r set a b", "redis get a", "redis hgetall none", "redis foo",
			"r lpush a 3", "r get none", "r", "e 1+1", "e KEYS[1]", "eval local x=3",
			"eval local x=3 return x", "e xx(", "e nil.x", "e error('x')", "e redis.call('get','a')", "e {1,2,{3,{a=1}}}",
			"e print", "e", "e return return",
			"m", "m 10", "m 0", "m x", "maxlen 70", "m 5 5", "e string.rep('x',300)", "zz", "P t", "c", "c"}},
	"values": {script: `local s = string.rep('ab\n\0\255"x', 60)
local t = {}
t.t = t
t[1]=1.5 t[2]=1e100 t[3]=true t[4]=false t[6]=string.rep('z',5)
local f = function() end local co = coroutine.create(f)
local n = {0.1, 1/3, 1e15, 123456789012, 2^53, -0.5, 1/0, {}, {nil,2}, 99999.95, 999999.5, 0.0001, 0.00001, -0}
redis.debug(s, t, f, nil, {n=1,[2]=3})
redis.call('set', s, s)
redis.call('set','a','b','c','d','e','f','g','h','i','j','k','l')
return 1`, commands: strings.Split("n,p s,n,n,n,p,p t,n,n,p,n,p n,m 0,p s,n,n,n", ",")},
	"replies of RESP3": {script: `redis.setresp(3)
redis.call('hset','h','a','1','b','2') redis.call('sadd','s','x')
redis.call('hgetall','h')
redis.call('smembers','s')
redis.call('zadd','z',1.5,'m')
redis.call('zscore','z','m')
redis.call('get','none')
redis.call('lrange','none',0,1)
redis.pcall('get')
redis.pcall()
redis.pcall('subscribe','x')
redis.pcall('get', {})
redis.error_reply('x')
redis.error_reply('-My error')
redis.error_reply()
redis.call('debug','protocol','true')`, commands: repeated(18, "n")},
	"functions": {script: `for i=1,3 do local x=i redis.call('rpush','l',i) end
local r = redis.call('lrange','l',0,-1)
local t = setmetatable({}, {__index=function(t,k)
 local q = k
 return q end})
local y = t.foo
function KEYS.f(z)
 return z end
local z = KEYS.f(
 5)
local function v(...)
 local a,b = ...
 return arg end
v(1,2)
return redis.status_reply('OK')`, commands: slices.Concat(repeated(5, "n"), slices.Repeat([]string{"p", "t", "n"}, 18))},
	"an endless loop": {script: "local i = 0\nwhile true do\n  i = i + 1\nend",
		commands: []string{"n", "b 3", "c", "p", "c", "p i", "b 0", "c", "a"},
		before:   [][]string{{"CONFIG", "SET", "busy-reply-threshold", "50"}}},
	"an error": {script: "local a = KEYS[1]\nredis.call('get', a)\nreturn a .. nil", keys: []string{"k"},
		commands: []string{"n", "n", "n"}},
	"abort":     {script: "return pcall(function()\nlocal x = 1 end)", commands: []string{"n", "a"}},
	"no syntax": {script: "return (", commands: []string{"c"}},
	"nothing":   {script: "\n\n", commands: []string{"w", "n"}},
	"flags": {script: "#!lua flags=no-writes\nlocal a=1\nreturn redis.call('set','a','b')",
		commands: []string{"n", "r set a b", "n"}},
	"flags that are not": {script: "#!lua flags=nonsense\nreturn 1"},
}

func repeated(n int, s string) []string { return slices.Repeat([]string{s}, n) }

// play runs a session, and returns the server's output, line by line.
func (d debugged) play(t *testing.T, addr, mode string) (said []string) {
	t.Helper()
	c := dialTCP(t, addr)
	for _, b := range d.before {
		c.must(b...)
	}
	c.must("FLUSHALL")
	c.must("SCRIPT", "DEBUG", mode)
	over := false
	take := func(what string, v resp.Value) {
		said = append(said, "> "+what)
		if v.Kind != resp.KindArray {
			t.Fatalf("%s: %q is answered by %v", mode, what, v)
		}
		for _, l := range v.Elems {
			said = append(said, l.Str)
			over = l.Str == "<endsession>"
		}
	}
	take("EVAL", c.ask(slices.Concat([]string{"EVAL", d.script, fmt.Sprint(len(d.keys))}, d.keys, d.args)...))
	for _, command := range d.commands {
		if over {
			break
		}
		take(command, c.ask(strings.Split(command, " ")...))
	}
	if !over {
		t.Fatalf("the session has not ended:\n%s", strings.Join(said, "\n"))
	}
	said = append(said, fmt.Sprint(c.read()))
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	return said
}

func TestScriptsAreDebuggedAsOnRedis(t *testing.T) {
	address := regexp.MustCompile(`@0x[0-9a-f]+`)
	redis, ours := realserver.Start(t, realserver.Redis7), startNode(t)
	for name, d := range debugSessions {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []string{"YES", "SYNC"} {
				want, got := d.play(t, redis, mode), d.play(t, ours, mode)
				for i := range max(len(want), len(got)) {
					w, g := at(want, i), at(got, i)
					if address.ReplaceAllString(w, "@") != address.ReplaceAllString(g, "@") {
						t.Fatalf("%s: line %d behind %q:\n got %q\nwant %q", mode, i, got[max(i-6, 0):i], g, w)
					}
				}
			}
		})
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

// startDebugging starts a session, and runs it to its first stop.
func startDebugging(t *testing.T, addr, mode, script string) client {
	t.Helper()
	c := dialTCP(t, addr)
	c.must("SCRIPT", "DEBUG", mode)
	c.wantStop("EVAL", script, "0")
	return c
}

func (c client) wantStop(args ...string) {
	c.t.Helper()
	if v := c.ask(args...); v.Kind != resp.KindArray || len(v.Elems) == 0 || !strings.Contains(fmt.Sprint(v), "* Stopped at ") {
		c.t.Fatalf("%q is answered by %v", args, v)
	}
}

// wantEnd reads the end of a session; the reply of EVAL must begin with want.
func (c client) wantEnd(want string) {
	c.t.Helper()
	if v := c.read(); v.Kind != resp.KindArray || v.Elems[len(v.Elems)-1].Str != "<endsession>" {
		c.t.Fatalf("not the end: %v", v)
	}
	if v := c.read(); !strings.HasPrefix(v.Str, want) {
		c.t.Fatalf("the script ends with %v, want %q", v, want)
	}
}

const writes = "redis.call('SET', 'k', 'debugged')\nredis.call('SET', 'k', 'again')\nreturn 'end'"

func TestADebuggedCopyIsThrownAway(t *testing.T) {
	addr := startNode(t)
	other := dialTCP(t, addr)
	other.must("SET", "k", "v")
	other.must("HSETEX", "h", "EX", "1000", "FIELDS", "1", "f", "1")
	a, b := startDebugging(t, addr, "YES", writes), startDebugging(t, addr, "YES", "return redis.call('GET', 'k')")
	a.wantStop("n")
	if v := a.ask("r", "GET", "k"); !strings.Contains(fmt.Sprint(v), "debugged") {
		t.Errorf("the script does not see what it wrote: %v", v)
	}
	if v := a.ask("r", "HGET", "h", "f"); !strings.Contains(fmt.Sprint(v), `\"1\"`) {
		t.Errorf("the copy lacks a hash: %v", v)
	}
	if got := other.must("GET", "k").Str; got != "v" {
		t.Errorf("k is %q outside of the session", got)
	}
	other.must("SET", "k", "w")
	b.send("c")
	b.wantEnd("v")
	a.send("c")
	a.wantEnd("end")
	if got := other.must("GET", "k").Str; got != "w" {
		t.Errorf("k is %q behind the session", got)
	}
}

func TestOthersGetBusyWhileAScriptStandsStill(t *testing.T) {
	if covers, err := compat.Covers("script-debug", realserver.Redis7); !covers || err != nil {
		t.Fatal("the list of differences lacks what this test shows", err)
	}
	addr := startNode(t)
	other := dialTCP(t, addr)
	c := startDebugging(t, addr, "SYNC", writes)
	if v := other.ask("GET", "k"); !strings.HasPrefix(v.Str, "BUSY ") {
		t.Errorf("GET is answered by %v", v)
	}
	c.wantStop("n")
	if v := other.ask("SCRIPT", "KILL"); !strings.HasPrefix(v.Str, "UNKILLABLE ") {
		t.Errorf("SCRIPT KILL of a script that has written: %v", v)
	}
	c.send("a")
	c.wantEnd("ERR script aborted for user request")
	if got := other.must("GET", "k").Str; got != "debugged" {
		t.Errorf("what the script wrote before abort is gone: %q", got)
	}

	c = startDebugging(t, addr, "SYNC", "return pcall(redis.call, 'GET', 'k')")
	other.must("SCRIPT", "KILL")
	c.wantEnd("ERR Script killed by user with SCRIPT KILL")
	if got := other.must("GET", "k").Str; got != "debugged" {
		t.Errorf("GET k is %q", got)
	}
}

// If the client of a session disconnects, a SYNC script runs to its end on the data, as in Redis, and a forked
// session ends.
func TestSessionsWithoutAUserEnd(t *testing.T) {
	in := startMaster(t, "--busy-reply-threshold", "50")
	addr := in.Addrs()[0].String()
	other := dialTCP(t, addr)
	_ = startDebugging(t, addr, "SYNC", writes).Close()
	tier.Eventually(t, "the script has gone on", func() bool { return other.ask("GET", "k").Str == "again" })
	_ = startDebugging(t, addr, "SYNC", "while true do end").Close()
	tier.Eventually(t, "the endless script has ended", func() bool { return other.ask("GET", "k").Str == "again" })
	c := startDebugging(t, addr, "YES", "while true do end")
	c.send("c")
	_ = c.Close()

	for _, mode := range []string{"YES", "SYNC"} {
		c := dialTCP(t, addr)
		c.must("CLIENT", "SETNAME", "debugger")
		c.must("SCRIPT", "DEBUG", mode)
		c.wantStop("EVAL", "while true do end", "0")
		if mode == "YES" {
			id := regexp.MustCompile(`id=(\d+) [^\n]* name=debugger `).FindStringSubmatch(other.must("CLIENT", "LIST").Str)
			if id == nil {
				t.Fatal("CLIENT LIST lacks the debugger's connection")
			}
			other.must("CLIENT", "KILL", "ID", id[1])
			if _, err := wire.ReadValue(c.r); err == nil {
				t.Error("the session goes on behind CLIENT KILL")
			}
		}
	}
	// The SYNC session is stopped in the debugger; shutDown must end it when the test ends.
}

func TestDebuggingNeedsRightsAndAPlace(t *testing.T) {
	addr := startNode(t)
	admin, c := dialTCP(t, addr), dialTCP(t, addr)
	admin.must("ACL", "SETUSER", "eve", "on", "nopass", "+@all", "-script", "~*")
	admin.must("ACL", "SETUSER", "bob", "on", "nopass", "+eval", "+script", "+get", "~*")
	c.must("AUTH", "eve", "x")
	if v := c.ask("SCRIPT", "DEBUG", "YES"); !strings.HasPrefix(v.Str, "NOPERM ") {
		t.Errorf("a user without SCRIPT debugs: %v", v)
	}
	for _, mode := range []string{"YES", "SYNC"} {
		c := dialTCP(t, addr)
		c.must("AUTH", "bob", "x")
		c.must("SCRIPT", "DEBUG", mode)
		c.wantStop("EVAL", "return 1", "0")
		if v := c.ask("r", "SET", "a", "b"); !strings.Contains(fmt.Sprint(v), "<error> ") || strings.Contains(fmt.Sprint(v), "<reply>") {
			t.Errorf("%s: a user without SET sets: %v", mode, v)
		}
		c.send("c")
		if v := c.read(); v.Elems[len(v.Elems)-1].Str != "<endsession>" {
			t.Errorf("%v", v)
		}
	}
	c = dialTCP(t, addr)
	c.must("SCRIPT", "DEBUG", "YES")
	sha := c.must("SCRIPT", "LOAD", "return 5").Str
	if v := c.ask("EVALSHA", sha, "0"); v.Str != "ERR Please use EVAL instead of EVALSHA for debugging" {
		t.Errorf("EVALSHA: %v", v)
	}
	c.must("MULTI")
	c.must("EVAL", "return 1", "0")
	if v := c.must("EXEC"); v.Elems[0].Str != "ERR a script cannot be debugged in a transaction" {
		t.Errorf("EXEC: %v", v)
	}
	c.must("SCRIPT", "DEBUG", "NO")
	if v := c.must("EVAL", "return 1", "0"); v.Int != 1 {
		t.Errorf("behind NO: %v", v)
	}
	c.must("MULTI")
	c.must("SCRIPT", "DEBUG", "SYNC")
	if v := c.must("EXEC"); v.Elems[0].Str != "ERR SCRIPT DEBUG must be called outside a pipeline" {
		t.Errorf("EXEC: %v", v)
	}

	// The debugger obeys all requests of a pipeline. An invalid one ends the script.
	c.must("SCRIPT", "DEBUG", "SYNC")
	c.wantStop("EVAL", "local a = 1\nlocal b = 2\nreturn b", "0")
	if _, err := c.Write(append(wire.AppendCommand(nil, "n"), "step\r\n"...)); err != nil {
		t.Fatal(err)
	}
	c.read()
	c.wantEnd("ERR protocol error script: ")
}
