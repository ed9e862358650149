package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// redis-cli and redis-benchmark are Debian's, of the version of redis-server that
// we compare with.

// manyKeys is the number of keys that the mass insertion makes of each type, and fillers how
// many more strings, so that SCAN takes many steps.
const (
	manyKeys = 200
	fillers  = 5000
)

// insertion is the data set: commands of all types, some 100,000. The sizes differ,
// so that there is one biggest key of each type.
func insertion() (requests []byte, n int) {
	say := func(args ...string) {
		requests = wire.AppendCommand(requests, args...)
		n++
	}
	for i := range fillers {
		say("SET", fmt.Sprintf("filler:%d", i), strconv.Itoa(i))
	}
	for i := range manyKeys {
		id := strconv.Itoa(i)
		say("SET", "string:"+id, strings.Repeat("x", i+100))
		say("SETBIT", "bits:"+id, id, "1")
		say("PFADD", "seen:"+id, "a", "b", id)
		say("GEOADD", "geo:"+id, "13.361389", "38.115556", "Palermo")
		say("EXPIRE", "string:"+id, "100000")
		for j := range 2*i + 1 {
			item := strconv.Itoa(j)
			switch i % 5 {
			case 0:
				say("RPUSH", "list:"+id, item)
			case 1:
				say("HSET", "hash:"+id, item, "value")
			case 2:
				say("SADD", "set:"+id, item)
			case 3:
				say("ZADD", "zset:"+id, item+".5", item)
			default:
				say("XADD", "stream:"+id, item+"-1", "k", "v")
			}
		}
	}
	for n < 100000-1 {
		say("INCRBY", "counter", "2")
	}
	say("XGROUP", "CREATE", "stream:4", "g", "0")
	return requests, n
}

// redisCLI runs redis-cli on a server and returns what it prints.
func redisCLI(t *testing.T, addr string, input io.Reader, args ...string) string {
	t.Helper()
	cmd, complaints := cliCommand(t, t.Context(), "redis-cli", addr, args...)
	cmd.Stdin = input
	out, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Errorf("redis-cli %v: %v\n%s%s", args, err, out, complaints)
	}
	return string(out)
}

func cliCommand(t *testing.T, ctx context.Context, program, addr string, args ...string) (cmd *exec.Cmd, complaints *bytes.Buffer) {
	t.Helper()
	path := realserver.Program(t, program)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	cmd = realserver.CommandContext(ctx, path, append([]string{"-h", host, "-p", port}, args...)...)
	complaints = &bytes.Buffer{}
	cmd.Stderr = complaints
	return cmd, complaints
}

// bothServers are a redis-server and an ebb with the same data.
func bothServers(t *testing.T) (real, ours string) {
	t.Helper()
	real, ours = realserver.Start(t, "redis-server"), startEbb(t)
	requests, n := insertion()
	for _, addr := range []string{real, ours} {
		out := redisCLI(t, addr, bytes.NewReader(requests), "--pipe")
		if want := fmt.Sprintf("errors: 0, replies: %d\n", n); !strings.HasSuffix(out, want) {
			t.Fatalf("the mass insertion says %q, want %q at the end", out, want)
		}
	}
	return real, ours
}

func TestRedisCLISeesTheSameOnRedisAndOnEbb(t *testing.T) {
	real, ours := bothServers(t)
	same := func(name string, see func(string) []string, args ...string) {
		t.Run(name, func(t *testing.T) {
			want := see(redisCLI(t, real, nil, args...))
			if len(want) == 0 {
				t.Fatalf("redis-cli %v sees nothing", args)
			}
			if diff := cmp.Diff(want, see(redisCLI(t, ours, nil, args...))); diff != "" {
				t.Errorf("redis-cli %v (-redis-server +ebb)\n%s", args, diff)
			}
		})
	}
	same("bigkeys", summary, "--bigkeys")
	same("memkeys", withoutSizes, "--memkeys")
	same("scan", sortedLines, "--scan")
	same("scan a pattern", sortedLines, "--scan", "--pattern", "*s*:1?")
	for _, kind := range []string{"string", "list", "hash", "set", "zset", "stream"} {
		same("scan "+kind, sortedLines, "--scan", "--pattern", kind+":*")
	}
	for _, kind := range []string{"string", "list", "hash", "set", "zset", "stream"} {
		same("scan for a type "+kind, sortedLines, "--raw", "SCAN", "0", "COUNT", "1000000", "TYPE", kind)
	}
	same("again", lines, "-r", "3", "-i", "0.01", "INCR", "again")
	same("again without pause", lines, "-r", "100", "INCR", "again")
	for _, format := range []string{"--csv", "--json", "-3", "--raw", "--no-raw"} {
		for _, args := range []string{"GET string:0", "GET nothing", "TTL counter", "LRANGE list:5 0 -1", "HGETALL hash:6", "SMEMBERS set:7",
			"ZRANGE zset:8 0 -1 WITHSCORES",
			"ZSCORE zset:8 3", "XRANGE stream:9 - + COUNT 3", "XINFO STREAM stream:4", "XREAD COUNT 2 STREAMS stream:4 0",
			"GEOHASH geo:3 Palermo none", "PFCOUNT seen:3",
			"GET bits:9", "OBJECT ENCODING hash:6", "CONFIG GET maxmemory", "COMMAND COUNT NOTHING", "INCR list:5", "EXISTS string:1 nothing"} {
			if args == "GET bits:9" && format == "--json" {
				continue // not UTF-8
			}
			same(format+" "+args, lines, append([]string{format}, strings.Fields(args)...)...)
		}
	}
	same("latency", shape, "--latency", "-i", "0.2")
	for _, args := range [][]string{{"--latency-history", "-i", "0.02"}, {"--stat", "-i", "0.01"}} {
		t.Run(args[0], func(t *testing.T) {
			if diff := cmp.Diff(firstLines(t, real, args...), firstLines(t, ours, args...)); diff != "" {
				t.Errorf("redis-cli %v (-redis-server +ebb)\n%s", args, diff)
			}
		})
	}
}

// The usual command to find hot keys works once a policy counts accesses.
func TestRedisCLIFindsTheHotKey(t *testing.T) {
	for _, s := range []struct {
		name string
		addr string
	}{{"redis-server", realserver.Start(t, "redis-server")}, {"ebb", startEbb(t)}} {
		t.Run(s.name, func(t *testing.T) {
			redisCLI(t, s.addr, nil, "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
			var gets []byte
			for i := range 50 {
				gets = wire.AppendCommand(gets, "SET", fmt.Sprintf("cold:%d", i), "v")
			}
			gets = wire.AppendCommand(gets, "HSET", "hot", "f", "v")
			for range 20000 {
				gets = wire.AppendCommand(gets, "HGET", "hot", "f")
			}
			redisCLI(t, s.addr, bytes.NewReader(gets), "--pipe")
			out := redisCLI(t, s.addr, nil, "--hotkeys")
			m := regexp.MustCompile(`hot key found with counter: (\d+)\s+keyname: "hot"\n`).FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("the hot key is not found:\n%s", out)
			}
			// The counter grows by chance, with the logarithm.
			if n, _ := strconv.Atoi(m[1]); n < 40 || n > 200 {
				t.Errorf("20,000 accesses give a counter of %d", n)
			}
			if !strings.Contains(out, "Sampled 51 keys in the keyspace!") {
				t.Errorf("not all keys were looked at:\n%s", out)
			}
		})
	}
}

func TestRedisBenchmarkRunsItsTests(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(t *testing.T) string
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	} {
		for _, more := range [][]string{nil, {"-P", "16", "-3", "-r", "100"}, {"--threads", "2", "--enable-tracking"}} {
			t.Run(strings.Join(append([]string{s.name}, more...), " "), func(t *testing.T) {
				t.Parallel()
				cmd, complaints := cliCommand(t, t.Context(), "redis-benchmark", s.start(t), append([]string{"-n", "1000", "-q", "--csv"}, more...)...)
				out, err := cmd.Output()
				if err != nil || complaints.Len() > 0 || strings.Contains(string(out), "rror") {
					t.Fatalf("%v: %s\n%s", err, complaints, out)
				}
				// PING twice, 18 others, and a table's head.
				if n := strings.Count(string(out), "\n"); n != 21 {
					t.Errorf("it prints %d lines:\n%s", n, out)
				}
			})
		}
	}
}

// firstLines returns what different lines there are among the first ones of what
// redis-cli prints without end, with their figures taken away.
func firstLines(t *testing.T, addr string, args ...string) (seen []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, _ := cliCommand(t, ctx, "redis-cli", addr, args...)
	// Into a pipe it would print 4 KiB at a time.
	if realserver.Has("stdbuf") {
		path := realserver.Program(t, "stdbuf")
		cmd.Path, cmd.Args = path, append([]string{path, "-oL", cmd.Path}, cmd.Args[1:]...)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	for s := bufio.NewScanner(out); len(seen) < 6 && s.Scan(); {
		seen = append(seen, strings.Join(shape(s.Text()), " "))
	}
	slices.Sort(seen)
	return slices.Compact(seen)
}

func lines(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

func sortedLines(out string) []string {
	all := lines(out)
	slices.Sort(all)
	return all
}

// summary returns the text that --bigkeys prints at the end, whose lines come in the order of a
// hash table.
func summary(out string) []string {
	_, end, _ := strings.Cut(out, "-------- summary -------")
	return sortedLines(end)
}

// withoutSizes is a summary in which sizes of keys are taken away: they are
// different, and which is the biggest may be as well.
func withoutSizes(out string) []string {
	sizes := regexp.MustCompile(`found '.*' has [1-9]\d* bytes|with [1-9]\d* bytes|avg size [1-9][\d.]*`)
	all := summary(out)
	for i := range all {
		all[i] = sizes.ReplaceAllString(all[i], "SIZE")
	}
	return all
}

// shape is an output whose figures are taken away.
func shape(out string) []string {
	return strings.Fields(regexp.MustCompile(`\d+(\.\d+)?[BKMG]?`).ReplaceAllString(out, "N"))
}
