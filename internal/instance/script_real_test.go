package instance

import (
	"bufio"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// conversations are requests of several clients to a server, one on each line: the client's name and its request, or
// the name and < to read one more message. A prefix of the request changes that: with + the reply is not read, with *
// the request must block, with ! it is repeated until the reply is BUSY, and with & the client only connects. LONG is
// untilSomebodyComes.
var conversations = []struct {
	name    string
	options []string
	lines   string
}{
	{"access rules", nil, `
a ACL SETUSER u on nopass ~k* +@all -get &c*
b AUTH u x
b EVAL "return redis.pcall('GET', 'k1')" 0
b EVAL "return redis.call('SET', 'other', 'v')" 0
b EVAL "return redis.pcall('PUBLISH', 'd', 'm')" 0
b EVAL "return {redis.acl_check_cmd('GET', 'k'), redis.acl_check_cmd('SET', 'k', 'v'), redis.acl_check_cmd('SET', 'x', 'v')}" 0
b EVAL "return 1" 1 other
a ACL LOG
a ACL LOG RESET
`},
	{"what others see", nil, `
m MONITOR
a EVAL "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])" 1 k "a b"
m<
m<
m<
a EVAL "return redis.pcall('nosuch')" 0
m<
a MULTI
a EVAL "return redis.call('SELECT', 3)" 0
a EXEC
m<
m<
m<
m<
`},
	{"counts", nil, `
a CONFIG RESETSTAT
a EVAL "redis.call('SET', 'k', 'v') redis.pcall('LPUSH', 'k', 'v') redis.pcall('GET') return redis.call('INCR', 'k')" 0
a EVAL "error('x')" 0
a EVAL "return redis.error_reply('MY own')" 0
a EVAL "return {err='OTHER one'}" 0
a EVAL "return (" 0
a EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
a INFO errorstats
a EVAL "local t = redis.call('INFO', 'commandstats') local r = {} for _, c in ipairs({'set', 'lpush', 'get', 'incr', 'eval', 'evalsha'}) do r[#r+1] = c .. ':' .. (t:match('cmdstat_' .. c .. ':calls=(%d+)') or '-') .. (t:match('cmdstat_' .. c .. ':.-(rejected_calls=%d+,failed_calls=%d+)') or '-') end return r" 0
`},
	{"memory", nil, `
a SET k v
a SET big xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
a CONFIG SET maxmemory 1
a EVAL "return redis.call('SET', 'x', 1)" 0
a EVAL "return redis.call('GET', 'k')" 0
a EVAL "redis.call('DEL', 'k') return redis.call('SET', 'x', 1)" 0
a EVAL "#!lua\nreturn redis.call('GET', 'k')" 0
a EVAL "#!lua flags=no-writes\nreturn redis.call('GET', 'x')" 0
a EVAL "#!lua flags=allow-oom\nreturn redis.call('SET', 'y', 1)" 0
a EVAL "return redis.pcall('SET', 'z', 1)" 0
a MULTI
a EVAL "return redis.call('SET', 'x', 2)" 0
a EXEC
a CONFIG SET maxmemory 0
a MGET k x y z
`},
	{"reading only", nil, `
a EVAL_RO "return redis.call('SET', 'k', 'v')" 0
a EVAL "#!lua flags=no-writes\nreturn redis.pcall('SET', 'k', 'v')" 0
a EVAL_RO "#!lua\nreturn 1" 0
a EVAL_RO "#!lua flags=no-writes\nreturn redis.call('PUBLISH', 'c', 'm')" 0
a EVAL_RO "return redis.pcall('PFCOUNT', 'k')" 0
a FUNCTION LOAD "#!lua name=l\nredis.register_function{function_name='ro', callback=function() return redis.call('SET', 'k', 1) end, flags={'no-writes'}} redis.register_function('rw', function() return 1 end)"
a FCALL ro 0
a FCALL_RO rw 0
`},
	{"databases and protocols", nil, `
a SELECT 2
a EVAL "redis.call('SET', 'k', 'two') redis.call('SELECT', 5) redis.call('SET', 'k', 'five') return redis.call('GET', 'k')" 0
a GET k
a HELLO 3
a EVAL "redis.call('HSET', 'h', 'f', 'v') return redis.call('HGETALL', 'h')" 0
a EVAL "redis.setresp(3) return redis.call('HGETALL', 'h')" 0
a EVAL "redis.setresp(3) return {redis.call('SISMEMBER', 'no', 'x'), redis.call('GET', 'no'), true, false}" 0
a EVAL "return redis.call('HELLO', 2)" 0
a EVAL "return redis.pcall('MULTI')" 0
a EVAL "return redis.pcall('SUBSCRIBE', 'c')" 0
a EVAL "return redis.pcall('BLPOP', 'none', 0)" 0
a EVAL "return redis.pcall('CLIENT', 'ID')" 0
a EVAL "return redis.pcall('EVAL', 'return 1', 0)" 0
a EVAL "return redis.pcall('DEBUG', 'SLEEP', 0)" 0
a EVAL "return redis.pcall('WAIT', 0, 0)" 0
a EVAL "return redis.pcall('XREAD', 'BLOCK', 0, 'STREAMS', 'x', '$')" 0
`},
	{"no replies", nil, `
a+ CLIENT REPLY SKIP
a+ EVAL "return redis.call('SET', 'k', 1)" 0
a GET k
a SET k 2
`},
	{"transactions", nil, `
a MULTI
a EVAL "error('x')" 0
a EVAL "return (" 0
a EVAL "return redis.call('INCR', 'n')" 0
a EVAL x y
a EXEC
a MULTI
a EVAL "error('x')" 0
a EVAL "return (" 0
a EVAL "return redis.call('INCR', 'n')" 0
a EXEC
a WATCH w
b EVAL "redis.call('SET', 'w', 1)" 0
a MULTI
a GET w
a EXEC
a WATCH w
b EVAL "redis.pcall('LPUSH', 'w', 1) redis.call('GET', 'w')" 0
a MULTI
a GET w
a EXEC
a WATCH e
a EVAL "redis.call('SET', 'e', 1)" 0
a MULTI
a GET e
a EXEC
`},
	{"events", nil, `
a CONFIG SET notify-keyspace-events KEA
s PSUBSCRIBE __key*:* news
a EVAL "redis.call('SET', 'k', 1) redis.call('PUBLISH', 'news', 'm') redis.call('EXPIRE', 'k', 100) redis.call('DEL', 'k') return 'end'" 0
s<
s<
s<
s<
s<
s<
s<
s<
`},
	{"time stands still", []string{"--enable-debug-command", "yes"}, `
a EVAL "redis.call('SET', 'k', 'v', 'PX', 1) for i = 1, 1e6 do end return {redis.call('EXISTS', 'k'), redis.call('PTTL', 'k') <= 1}" 0
a EXISTS k
a DEBUG SET-ACTIVE-EXPIRE 0
a SET k v PX 1
a EVAL "for i = 1, 1e6 do end return 1" 0
a EVAL "return {redis.call('EXISTS', 'k'), redis.call('SET', 'k', 'new', 'NX'), redis.call('GET', 'k')}" 0
`},
	{"waits", nil, `
w* BLPOP l 0
v* BLPOP l 0
a EVAL "redis.call('RPUSH', 'l', 'one', 'two') return redis.call('LLEN', 'l')" 0
w<
v<
a LLEN l
w* BLPOP l 0
a EVAL "redis.call('RPUSH', 'l', 'one') redis.call('LPOP', 'l') redis.call('RPUSH', 'l', 'three') return 1" 0
w<
w* BLMOVE l m LEFT RIGHT 0
a EVAL "redis.call('RPUSH', 'l', 'four') return redis.call('EXISTS', 'm')" 0
w<
a LRANGE m 0 -1
`},
	{"tracking", nil, `
t HELLO 3
t CLIENT TRACKING ON
t GET k
a EVAL "redis.call('SET', 'k', 1) return 1" 0
t<
t EVAL "return redis.call('GET', 'q')" 1 q
a SET q 1
t PING
t CLIENT TRACKING OFF
t CLIENT TRACKING ON BCAST
a EVAL "redis.call('SET', 'x', 1) redis.call('SET', 'x', 2) return 1" 0
t<
t PING
`},
	{"pause", nil, `
a CLIENT PAUSE 100000 WRITE
b EVAL_RO "return redis.call('GET', 'k')" 0
b EVAL "#!lua flags=no-writes\nreturn 5" 0
w+ EVAL "return 'paused'" 0
v+ EVAL "#!lua\nreturn 'paused too'" 0
b PING
a CLIENT UNPAUSE
w<
v<
`},
	{"subscribers", nil, `
s SUBSCRIBE c
s EVAL "return 1" 0
s FCALL f 0
s SCRIPT KILL
`},
	{"busy", []string{"--busy-reply-threshold", "50"}, `
x MULTI
x SET k 1
y MULTI
y SET k 1
z WATCH k
r+ EVAL "while true do end" 0
a! GET k
a GET k
a PING
a MULTI
a SET k 1
a EXEC
a RESET
x EXEC
x EXEC
y SET k 2
y EXEC
z UNWATCH
b SUBSCRIBE c
b PING
c AUTH default x
c HELLO
c SHUTDOWN
c SHUTDOWN ABORT
c FUNCTION STATS
c FUNCTION KILL
c EVAL "return 1" 0
c CLIENT UNBLOCK 1000
c CONFIG GET maxmemory
c SCRIPT KILL
r<
c SCRIPT KILL
c GET k
r+ EVAL "redis.call('SET', 'k', 'v') LONG return 'done'" 0
a! GET k
c SCRIPT KILL
c FUNCTION KILL
d&
r<
c GET k
`},
}

// volatile matches parts of replies that differ between servers and runs.
var volatile = regexp.MustCompile(`(?s)\d{10}\.\d{6}|127\.0\.0\.1:\d+|unix:[^\]]+|11\) "age-seconds".*?(\n {0,4}\d+\)  1\) "count"|$)`)

// Concurrent clients get the same replies from ebb and from Redis 8.
func TestScriptsAmongClientsBesideRedis(t *testing.T) {
	for _, c := range conversations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := converse(t, "tcp", realserver.Start(t, realserver.Redis8, c.options...), c.lines)
			got := converse(t, "unix", startInstance(t, nil, c.options...), c.lines)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Errorf("redis: %s\nours:  %s", want[i], append(got, make([]string, len(want))...)[i])
				}
			}
		})
	}
}

// blocked returns the number of blocked clients.
func blocked(t *testing.T, network, addr string) int {
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(wire.AppendCommand(nil, "INFO", "clients")); err != nil {
		t.Fatal(err)
	}
	v, err := wire.ReadValue(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(v.Str, "blocked_clients:")
	n, _, _ := strings.Cut(rest, "\r")
	count, err := strconv.Atoi(n)
	if err != nil {
		t.Fatalf("%q", v.Str)
	}
	return count
}

// converse plays a conversation, and returns each line with its replies.
func converse(t *testing.T, network, addr, lines string) (heard []string) {
	conns := map[string]*bufio.ReadWriter{}
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		who, request := line[:1], strings.TrimSpace(line[1:])
		rw := conns[who]
		if rw == nil {
			conn, err := net.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(patience))
			rw = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
			conns[who] = rw
		}
		mark := request[0]
		if mark == '&' {
			continue
		}
		request = strings.ReplaceAll(request, "LONG", strings.ReplaceAll(untilSomebodyComes, "\n", " "))
		args, ok := wire.SplitArgs(strings.TrimLeft(request, "+*!<"))
		if !ok {
			t.Fatalf("%q", line)
		}
		before := 0
		if mark == '*' {
			before = blocked(t, network, addr)
		}
		for {
			if mark != '<' {
				_, _ = rw.Write(wire.AppendCommand(nil, args...))
				_ = rw.Flush()
			}
			if mark == '*' {
				for blocked(t, network, addr) == before {
				}
			}
			if mark == '+' || mark == '*' {
				break
			}
			v, err := wire.ReadValue(rw.Reader)
			if err != nil {
				return append(heard, line+": "+err.Error())
			}
			if mark == '!' && !strings.HasPrefix(v.Str, "BUSY") {
				continue
			}
			if len(args) > 0 && args[0] == "HELLO" {
				v.Elems = nil // versions and similar fields
			}
			heard = append(heard, line+"\n"+volatile.ReplaceAllString(string(wire.AppendTTY(nil, v)), "~"))
			break
		}
	}
	return heard
}
