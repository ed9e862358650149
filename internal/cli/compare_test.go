package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// outcome is the outcome of a run of either program. Standard error is
// compared too: for errors of the server its wording is redis-cli's.
type outcome struct {
	out, err string
	status   int
}

func (o outcome) String() string {
	return fmt.Sprintf("out %q, err %q, status %d", o.out, o.err, o.status)
}

// ours runs the package as the program.
func ours(t *testing.T, addr, stdin string, args ...string) outcome {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	status := Main(context.Background(), append([]string{"-h", host, "-p", port}, args...),
		Env{In: strings.NewReader(stdin), Out: &out, Err: &errOut})
	return outcome{out.String(), errOut.String(), status}
}

// theirs runs redis-cli.
func theirs(t *testing.T, addr, stdin string, args ...string) outcome {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	path := realserver.Program(t, "redis-cli")
	var out, errOut bytes.Buffer
	cmd := exec.Command(path, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Env = []string{"HOME=" + t.TempDir()}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// seed brings the server into the state every case starts from.
const seed = `flushall
set k v
set n 41
set text "line one\r\nline \"two\"\x00\xff\t"
rpush l a b c d e f g h i j k
hset h a 1 b 2
sadd s one
zadd z 1.5 a 3 b
xadd x 1-1 field value
`

// fresh runs a case that writes with both programs, each from the seeded state.
func fresh(t *testing.T, addr, stdin string, args ...string) {
	t.Helper()
	ours(t, addr, seed)
	want := theirs(t, addr, stdin, args...)
	ours(t, addr, seed)
	compare(t, ours(t, addr, stdin, args...), want, stdin, args)
}

// same runs a case that leaves the server as it is.
func same(t *testing.T, addr, stdin string, args ...string) {
	t.Helper()
	compare(t, ours(t, addr, stdin, args...), theirs(t, addr, stdin, args...), stdin, args)
}

func compare(t *testing.T, got, want outcome, stdin string, args []string) {
	t.Helper()
	if got != want {
		t.Errorf("%q with input %.80q:\n got %v\nwant %v", args, stdin, got, want)
	}
}

var formats = []string{"--no-raw", "--raw", "--csv", "--json", "--quoted-json"}

func TestRepliesPrintAsRedisCLIPrintsThem(t *testing.T) {
	addr := realserver.Start(t, "redis-server", "--enable-debug-command", "yes")
	commands := []string{
		"PING", "GET k", "GET nope", "GET text", "INCR k", "FOO bar", "MGET k nope n text", "LRANGE l 0 -1", "LRANGE nope 0 -1",
		"HGETALL h", "HGETALL nope", "SMEMBERS s", "ZSCORE z a", "ZRANGE z 0 -1 WITHSCORES", "XRANGE x - +", "XINFO STREAM x FULL", "SCAN 0",
		"COMMAND INFO get", "COMMAND DOCS get", "CONFIG GET maxm*", "OBJECT HELP", "ACL CAT", "TYPE k", "EXISTS k", "subscribe", "exec", "multi",
		"INFO keyspace", "LOLWUT version 5 2 2 2", "MEMORY DOCTOR", "LATENCY DOCTOR", "CLUSTER INFO", "CLIENT LIST TYPE replica", "quit", "exit",
		"DEBUG PROTOCOL string", "DEBUG PROTOCOL double", "DEBUG PROTOCOL null", "DEBUG PROTOCOL array", "DEBUG PROTOCOL set",
		"DEBUG PROTOCOL map", "DEBUG PROTOCOL push", "DEBUG PROTOCOL verbatim", "DEBUG PROTOCOL true", "DEBUG PROTOCOL false",
	}
	ours(t, addr, seed)
	for _, protocol := range []string{"-2", "-3"} {
		for _, format := range formats {
			t.Run(protocol+format, func(t *testing.T) {
				for _, c := range commands {
					same(t, addr, "", append([]string{protocol, format}, strings.Fields(c)...)...)
				}
				for _, script := range []string{
					"return {1,{2,'a',{}},false,{err='ERR x'},{ok='fine'}}", "return {{{1,2},3},{}}",
					"redis.setresp(3); return {map={a={map={x=1}}}}", "redis.setresp(3); return {map={a={1,2}}}",
					"redis.setresp(3); return {map={a={{1,2}}}}",
				} {
					same(t, addr, "", protocol, format, "eval", script, "0")
				}
			})
		}
	}
}

func TestFlagsWorkAsRedisCLIs(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	ours(t, addr, seed)
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			fresh(t, addr, "\x00binary\r\n\xff", format, "-x", "set", "k")
			same(t, addr, "two\nlines\n", format, "-x", "echo")
			fresh(t, addr, "data", format, "-X", "TAG", "set", "k", "TAG", "XX")
			same(t, addr, "data", format, "-X", "TAG", "set", "k", "none")
			fresh(t, addr, "", format, "-r", "3", "incr", "n")
			same(t, addr, "", format, "-r", "2", "-i", "0.001", "mget", "k", "n")
			same(t, addr, "", format, "-d", ", ", "lrange", "l", "0", "-1")
			same(t, addr, "", format, "-d", ", ", "-3", "hgetall", "h")
			same(t, addr, "", format, "-D", ";", "-r", "2", "get", "k")
			same(t, addr, "", format, "-D", "", "get", "k")
			same(t, addr, "", format, "-e", "incr", "k")
			same(t, addr, "", format, "-e", "-r", "2", "foo")
			same(t, addr, "", format, "-n", "3", "dbsize")
			same(t, addr, "", format, "-n", "99", "dbsize")
			same(t, addr, "", format, "-a", "wrong", "ping")
			same(t, addr, "", format, "--user", "unknown", "-a", "wrong", "--no-auth-warning", "ping")
			same(t, addr, "", format, "--quoted-input", "echo", `"a\x00b"`)
			same(t, addr, "", format, "-u", "redis://"+addr+"/3", "dbsize")
			same(t, addr, "", format, "-3", "client", "tracking", "on")
		})
	}
	same(t, addr, "", "-x")
	same(t, addr, "", "--bogus")
	same(t, addr, "", "-p")
	same(t, addr, "", "-s", "/nonexistent/socket", "ping")
}

func TestAModeDoesNothingWithoutItsUserOrItsDatabase(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	file := filepath.Join(t.TempDir(), "f")
	for _, mode := range [][]string{
		{"--scan"}, {"--pipe"}, {"--latency", "-i", "0.001"}, {"--bigkeys"}, {"--memkeys"}, {"--hotkeys"},
		{"--rdb", file}, {"--functions-rdb", file}, {"--eval", "/dev/null", "k"},
	} {
		same(t, addr, "SET k v\r\n", append([]string{"-n", "99"}, mode...)...)
		same(t, addr, "SET k v\r\n", append([]string{"-a", "wrong"}, mode...)...)
	}
	if got := ours(t, addr, "", "dbsize"); got.out != "0\n" {
		t.Errorf("%v", got)
	}
}

func TestLinesOfAFileRunAsRedisCLIRunsThem(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	script := `set a 1
get a

foo
2 incr a
select 2
get a
multi
incr a
exec
multi
set a
exec
get "open
get "a b"
echo 'it''s'
echo 'it\'s "raw"\n'
echo "\x41\t\q"
subscribe
lrange l 0 -1
clear
quit
get b`
	for _, format := range formats {
		fresh(t, addr, script, format)
	}
}

func TestScanPrintsEveryKeyOnce(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	ours(t, addr, seed)
	for _, format := range formats {
		same(t, addr, "", format, "--scan")
		same(t, addr, "", format, "--scan", "--pattern", "[a-l]")
		same(t, addr, "", format, "--scan", "--quoted-pattern", `"te\x78t"`)
	}
	var fill strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&fill, "SET key:%d v\r\n", i)
	}
	ours(t, addr, "flushall")
	ours(t, addr, fill.String(), "--pipe")
	got := ours(t, addr, "", "--scan", "--pattern", "key:*", "--count", "50", "--type", "string")
	seen := map[string]bool{}
	for line := range strings.Lines(got.out) {
		seen[line] = true
	}
	if len(seen) != 1000 || strings.Count(got.out, "\n") != 1000 || got.status != 0 {
		t.Fatalf("%d lines, %d of them different, status %d", strings.Count(got.out, "\n"), len(seen), got.status)
	}
}

func TestPipeCountsRepliesAndErrors(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	for _, input := range []string{
		"", "*1\r\n$4\r\nPING\r\n", "SET a b\r\nGET a\r\nINCR a\r\nfoo\r\n", "SET a",
		"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n",
	} {
		same(t, addr, input, "--pipe")
	}
	const n = 20_000
	got := ours(t, addr, strings.Repeat("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n", n), "--pipe")
	want := fmt.Sprintf("All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: %d\n", n)
	if got != (outcome{out: want}) {
		t.Fatalf("%v", got)
	}
}

func TestHelpShowsTheSyntaxRedisCLIShows(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	for _, group := range []string{"string", "generic", "list", "sorted-set", "stream", "server", "connection"} {
		got := syntaxLines(ours(t, addr, "", "help", "@"+group).out)
		want := syntaxLines(theirs(t, addr, "", "help", "@"+group).out)
		if len(want) < 5 {
			t.Fatalf("redis-cli knows %d commands of %s", len(want), group)
		}
		for name, syntax := range want {
			if got[name] != syntax && name != "MIGRATE" { // its table names an empty string where the server says nothing
				t.Errorf("%s\n got %s\nwant %s", name, got[name], syntax)
			}
		}
	}
}

// syntaxLines picks the lines NAME arguments out of help's output.
func syntaxLines(help string) map[string]string {
	all := map[string]string{}
	for _, code := range []string{"\x1b[1m", "\x1b[90m", "\x1b[33m", "\x1b[0m", "\r"} {
		help = strings.ReplaceAll(help, code, "")
	}
	for line := range strings.Lines(help) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		if name != "" && name == strings.ToUpper(name) {
			if key, ok := all[name]; ok {
				line = key + "\n" + line
			}
			all[name] = line
		}
	}
	return all
}
