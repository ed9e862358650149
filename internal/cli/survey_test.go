package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// servers are those whose keys can be surveyed.
var servers = []struct {
	name  string
	start func(t testing.TB, args ...string) string
}{
	{"redis7", func(t testing.TB, args ...string) string { return realserver.Start(t, realserver.Redis7, args...) }},
	{"redis8", func(t testing.TB, args ...string) string { return realserver.Start(t, realserver.Redis8, args...) }},
	{"valkey9", func(t testing.TB, args ...string) string { return realserver.Start(t, realserver.Valkey9, args...) }},
	{"ebb", func(t testing.TB, args ...string) string {
		p := realserver.NewProcess(t, realserver.Ebb(t), args...)
		p.Start()
		return p.Addr()
	}},
}

// onEach runs a test on each of them.
func onEach(t *testing.T, test func(t *testing.T, addr string), args ...string) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) { test(t, s.start(t, args...)) })
	}
}

// keyspace has keys of all types, with names that are not text, and some hundred.
func keyspace() string {
	var b strings.Builder
	b.WriteString(seed + `set "bin\x00\xff \"key\"\n" v
set empty ""
setbit bits 99999 1
rpush l2 one
sadd s1 one two three
pfadd hll a b c
`)
	for i := range 300 {
		fmt.Fprintf(&b, "set key:%d %0*d\nrpush list:%d%s\n", i, i%17, 0, i, strings.Repeat(" x", i%7+1))
	}
	return b.String()
}

// sorted returns the lines of an output without those of progress, which depend on
// the time. redis-cli prints types in an order that changes from run to run.
func sorted(out string) string {
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(l string) bool { return strings.Contains(l, "] Sampled ") })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sameLines compares the two programs' lines.
func sameLines(t *testing.T, addr string, args ...string) {
	t.Helper()
	got, want := ours(t, addr, "", args...), theirs(t, addr, "", args...)
	got.out, want.out = sorted(got.out), sorted(want.out)
	compare(t, got, want, "", args)
}

func TestSurveysOfKeysPrintWhatRedisCLIPrints(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, keyspace())
		ours(t, addr, "", "--bigkeys") // looking up moves the keys of a table that grows: from here on it stands still
		sameLines(t, addr, "--bigkeys")
		sameLines(t, addr, "--bigkeys", "--pattern", "list:*")
		sameLines(t, addr, "--bigkeys", "--quoted-pattern", `"bin\x00*"`)
		sameLines(t, addr, "--bigkeys", "-n", "1")
		sameLines(t, addr, "--memkeys")
		sameLines(t, addr, "--memkeys-samples", "0", "--pattern", "*l*")
		sameLines(t, addr, "--bigkeys", "-3", "--csv")
		got := ours(t, addr, "", "--bigkeys", "--count", "1000")
		if !strings.Contains(got.out, "\nSampled 614 keys in the keyspace!\n") || got.status != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestHotkeysPrintsWhatRedisCLIPrints(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, seed)
		// RESTORE sets the counter: the value does not depend on chance.
		var fill strings.Builder
		for i := range 40 {
			fmt.Fprintf(&fill, `eval "return redis.call('restore','hot '..ARGV[1],0,redis.call('dump','k'),'FREQ',ARGV[1])" 0 %d`+"\n", 10+5*i)
		}
		if out := ours(t, addr, fill.String()).out; out != strings.Repeat("OK\n", 40) {
			t.Fatal(out)
		}
		ours(t, addr, "", "del", "k", "n", "text", "l", "h", "s", "z", "x")
		sameLines(t, addr, "--hotkeys")
		sameLines(t, addr, "--hotkeys", "--pattern", "hot 2*")
		got := ours(t, addr, "", "--hotkeys-count", "2")
		const want = "\n-------- summary -------\n\nSampled 40 keys in the keyspace!\n" +
			"hot key found with counter: 205\tkeyname: \"hot 205\"\nhot key found with counter: 200\tkeyname: \"hot 200\"\n"
		if !strings.HasSuffix(got.out, want) || got.status != 0 {
			t.Errorf("%v", got)
		}
	}, "--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0")
}

func TestHotkeysNeedsAPolicyThatCounts(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, seed)
		got := ours(t, addr, "", "--hotkeys")
		if got.status != 1 || !strings.Contains(got.err, "Set maxmemory-policy to allkeys-lfu or volatile-lfu.") ||
			strings.Contains(got.out, "summary") {
			t.Errorf("%v", got)
		}
	})
}

func TestASurveyNamesThePermissionThatIsMissing(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, seed)
		for _, c := range []struct{ rights, option, command string }{
			{"-type", "--bigkeys", "TYPE"},
			{"-strlen", "--bigkeys", "STRLEN"},
			{"-dbsize", "--bigkeys", "DBSIZE"},
			{"-scan", "--hotkeys", "SCAN"},
			{"-memory", "--memkeys", "MEMORY USAGE"},
			{"-object", "--hotkeys", "OBJECT FREQ"},
		} {
			ours(t, addr, "", "acl", "setuser", "ann", "reset", "on", ">pw", "~*", "+@all", c.rights)
			got := ours(t, addr, "", "--no-auth-warning", "--user", "ann", "--pass", "pw", c.option)
			if got.status != 1 || !strings.Contains(got.err, c.option+" lacks the permission for "+c.command+": ") ||
				strings.Contains(got.out, "summary") {
				t.Errorf("%s: %v", c.rights, got)
			}
		}
		// A user may read some keys: those are counted, and the others are mentioned.
		ours(t, addr, "", "acl", "setuser", "ann", "reset", "on", ">pw", "~k", "~l", "+@all")
		got := ours(t, addr, "", "--no-auth-warning", "--user", "ann", "--pass", "pw", "--bigkeys")
		if got.status != 0 || !strings.Contains(got.out, "Sampled 2 keys") ||
			!strings.HasPrefix(got.err, "6 answers are missing, since the user may not read all keys: ") {
			t.Errorf("%v", got)
		}
	})
}

// shifty is a server whose keys change while they are looked at.
func shifty(_ int, args []string) string {
	switch args[0] {
	case "DBSIZE":
		return ":4\r\n"
	case "SCAN":
		if args[1] == "0" {
			return "*2\r\n$1\r\n7\r\n*2\r\n$4\r\ngone\r\n$4\r\nlist\r\n"
		}
		return "*2\r\n$1\r\n0\r\n*2\r\n$4\r\nlate\r\n$4\r\nstay\r\n"
	case "TYPE":
		if args[1] == "gone" {
			return "+none\r\n"
		}
		return "+string\r\n"
	case "STRLEN":
		switch args[1] {
		case "list":
			return "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
		case "late":
			return "-MOVED 12 127.0.0.1:1\r\n"
		}
		return ":5\r\n"
	case "MEMORY":
		if args[2] == "stay" {
			return ":50\r\n"
		}
		return "$-1\r\n"
	case "OBJECT":
		switch args[2] {
		case "gone":
			return "$-1\r\n"
		case "list":
			return "-ERR no such key\r\n"
		}
		return ":9\r\n"
	}
	return "-ERR no\r\n"
}

func TestKeysThatChangeDuringASurveyAreNoError(t *testing.T) {
	addr := serve(t, listen(t), shifty)
	for option, want := range map[string]string{
		"--bigkeys": "1 strings with 5 bytes (100.00% of keys, avg size 5.00)\n",
		"--memkeys": "1 strings with 50 bytes (100.00% of keys, avg size 50.00)\n",
		"--hotkeys": "hot key found with counter: 9\tkeyname: \"late\"\nhot key found with counter: 9\tkeyname: \"stay\"\n",
	} {
		got := ours(t, addr, "", option)
		if !strings.Contains(got.out, want) || got.err != "" || got.status != 0 {
			t.Errorf("%s: %v", option, got)
		}
	}
}

func TestALostConnectionEndsASurveyWithTheSummarySoFar(t *testing.T) {
	addr := serve(t, listen(t), func(conn int, args []string) string {
		if args[0] == "SCAN" && args[1] == "7" {
			return ""
		}
		return shifty(conn, args)
	})
	got := ours(t, addr, "", "--hotkeys")
	if got.status != 1 || got.err != "Error: --hotkeys ends after 1 of about 4 keys: Server closed the connection\n" ||
		!strings.HasSuffix(got.out, "\n-------- summary -------\n\n[25.00%] Sampled 1 keys in the keyspace!\n") {
		t.Errorf("%v", got)
	}
}

func TestAnInterruptedSurveyPrintsTheSummarySoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	addr := serve(t, listen(t), func(conn int, args []string) string {
		if args[0] == "SCAN" {
			if args[1] == "7" {
				cancel()
				return "\r" // no reply: the survey must not wait for one
			}
			return "*2\r\n$1\r\n7\r\n*1\r\n$4\r\nstay\r\n"
		}
		return shifty(conn, args)
	})
	host, port, _ := net.SplitHostPort(addr)
	for _, option := range []string{"--bigkeys"} {
		var out, errOut bytes.Buffer
		status := Main(ctx, []string{"-h", host, "-p", port, option}, Env{In: strings.NewReader(""), Out: &out, Err: &errOut})
		if status != 0 || errOut.Len() > 0 || !strings.Contains(out.String(), "[25.00%] Sampled 1 keys in the keyspace!\n") {
			t.Errorf("%s: %d %q %q", option, status, out.String(), errOut.String())
		}
	}
}

func TestTheNameOfAHugeKeyIsCutAndQuoted(t *testing.T) {
	addr := realserver.Start(t, realserver.Redis7)
	name := "\x1b[2J" + strings.Repeat("x", 1<<20)
	fresh := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nv\r\n", len(name), name)
	ours(t, addr, fresh, "--pipe")
	got := ours(t, addr, "", "--bigkeys")
	want := fmt.Sprintf(`Biggest string found '"\x1b[2J%s"... (%d bytes)' has 1 bytes`, strings.Repeat("x", longestName-4), len(name))
	if !strings.Contains(got.out, want) || strings.Contains(got.out, "\x1b") || len(got.out) > 10_000 {
		t.Errorf("%.5000v", got)
	}
}

func TestEvalRunsAFileAsRedisCLIDoes(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.lua"), filepath.Join(dir, "bad.lua")
	for name, text := range map[string]string{good: "return {KEYS, ARGV, redis.call('get', 'k')}", bad: "return redis.call('foo'"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, seed)
		for _, format := range formats {
			same(t, addr, "", format, "--eval", good)
			same(t, addr, "", format, "--eval", good, "k1", "k2", ",", "a1", "-a2", ",")
			same(t, addr, "", format, "--eval", good, "k1", "k2,a1")
			same(t, addr, "", format, "-r", "2", "-e", "--eval", good, ",", "a")
			same(t, addr, "", format, "-e", "--eval", bad, "k")
		}
		same(t, addr, "", "--eval", filepath.Join(dir, "none.lua"), "k")
		same(t, addr, "", "--eval")
	})
}

func TestFunctionsRDBHasTheFunctionsAndNotTheKeys(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		ours(t, addr, seed+`function load "#!lua name=mine\nredis.register_function('nine', function() return 9 end)"`+"\n")
		file := filepath.Join(t.TempDir(), "functions.rdb")
		if got := ours(t, addr, "", "--functions-rdb", file); got.status != 0 || got.out != "" {
			t.Fatalf("%v", got)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, []byte("REDIS")) && !bytes.HasPrefix(data, []byte("VALKEY")) ||
			!bytes.Contains(data, []byte("register_function")) || bytes.Contains(data, []byte("line one")) {
			t.Errorf("%q", data)
		}
	}, "--repl-diskless-sync-delay", "0")
}

func TestIntrinsicLatencyNeedsNoServer(t *testing.T) {
	got := ours(t, "127.0.0.1:1", "", "--intrinsic-latency", "0.01")
	want := regexp.MustCompile(`^(Max latency so far: \d+ microseconds\.\n)*\n` +
		`[1-9]\d* total runs \(avg latency: \d+\.\d{4} microseconds / \d+\.\d\d nanoseconds per run\)\.\n` +
		`Worst run took \d+x longer than the average latency\.\n$`)
	if !want.MatchString(got.out) || got.err != "" || got.status != 0 {
		t.Errorf("%v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	if status := Main(ctx, []string{"--intrinsic-latency", "1e6"}, Env{Out: &out, Err: &out}); status != 0 || !want.MatchString(out.String()) {
		t.Errorf("interrupted: %d %q", status, out.String())
	}
}

func TestLatencyDistPaintsTheShareOfEachRange(t *testing.T) {
	addr := serve(t, listen(t), func(int, []string) string { return "+PONG\r\n" })
	host, port, _ := net.SplitHostPort(addr)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var printed strings.Builder
	out := writerFunc(func(p []byte) (int, error) {
		printed.Write(p)
		if strings.Count(printed.String(), "?\x1b[0m\n") == 2 {
			cancel()
		}
		return len(p), nil
	})
	status := Main(ctx, []string{"-h", host, "-p", port, "--latency-dist", "-i", "0.001"}, Env{Out: out, Err: out})
	row := `\x1b\[38;5;0m(\x1b\[48;5;\d+m[-.*#1-9A-Q?]){31}\x1b\[0m\n`
	if !regexp.MustCompile(`^-{45}\n(.*\n){6}-{45}\n`+row+row+`$`).MatchString(printed.String()) || status != 0 {
		t.Errorf("%d %q", status, printed.String())
	}

	samples := buckets()
	for _, us := range []int{0, 10, 11, 126, 600, 9000, 10_001, 600_000, 70_000_000} {
		note(samples, micros(us))
	}
	var signs []byte
	for _, b := range samples {
		signs = append(signs, bytes.Repeat([]byte{b.sign}, b.count)...)
	}
	if string(signs) != "..-*19BK?" {
		t.Errorf("%s", signs)
	}
}

func micros(n int) time.Duration { return time.Duration(n) * time.Microsecond }
