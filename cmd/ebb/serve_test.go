package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/config"
)

// Test harnesses read the version of Redis behind the first v= of this line.
func TestServePrintsTheVersionThatHarnessesRead(t *testing.T) {
	for _, option := range []string{"--version", "-v"} {
		var out strings.Builder
		cmd := serveCommand()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{option})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`^\S+ server v=(\S+) sha=[0-9a-f]+:[01] malloc=\S+ bits=(32|64) build=\S+ .*ebb=(\S+)`).FindStringSubmatch(out.String())
		if m == nil || m[1] != admin.RedisVersion || m[3] != admin.Version || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s prints %q", option, out.String())
		}
	}
}

// Ctrl-C ends a server that is still saving its data. A second SIGTERM does not: timeout(1) sends it to the program
// and to its process group, so the program receives it twice.
func TestASecondInterruptCallsTheWritingOff(t *testing.T) {
	signals := make(chan os.Signal)
	err := untilInterrupt(signals, func(ctx context.Context) error {
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM
		if ctx.Err() != nil {
			t.Error("SIGTERM has called it off")
		}
		signals <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("%v", err)
	}
	full := errors.New("no space left")
	if err := untilInterrupt(signals, func(context.Context) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// INFO, /metrics, `ebb version`, scripts and LOLWUT show the same version: that of the newest release in
// CHANGELOG.md.
func TestAllThatShowTheVersionShowTheSame(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) \((\d|unreleased)`).FindSubmatch(changes)
	if heading == nil {
		t.Fatal("CHANGELOG.md names no version")
	}
	want := string(heading[1])
	if string(heading[2]) == "unreleased" {
		want += "-dev"
	}
	r := startServe(t, "--http", "127.0.0.1:0")
	_, page := r.get("/metrics")
	for name, text := range map[string]string{
		"the constant": "version " + admin.Version, "ebb version": "version " + version(), "ebb serve --version": serverVersion(),
		"/metrics": page, "INFO": r.ask("INFO server"), "a script": "version " + r.ask("EVAL return(server.EBB_VERSION) 0"),
		"LOLWUT": r.ask("LOLWUT"),
	} {
		got := regexp.MustCompile(`(?:^version |ebb=|ebb_version:|ebb_build_info\{version="|ebb )(\d+\.\d+\.\d+(?:-dev)?)`).
			FindStringSubmatch(text)
		if got == nil || got[1] != want {
			t.Errorf("%s shows %q, and CHANGELOG.md has %s:\n%.300s", name, got, want, text)
		}
	}
}

// --console uses the first free port of ten.
func TestConsoleFindsAFreePort(t *testing.T) {
	args, err := withConsole([]string{"--port", "1", "--console", "--save", ""})
	if err != nil || len(args) != 6 || args[4] != "--http" || !strings.HasPrefix(args[5], "127.0.0.1:91") {
		t.Fatalf("%q, %v", args, err)
	}
	taken, err := net.Listen("tcp", args[5])
	if err == nil { // otherwise another program has just taken it
		defer taken.Close()
	}
	next, err := withConsole([]string{"--console"})
	if err != nil || len(next) != 2 || next[1] <= args[5] {
		t.Errorf("%q after %q, %v", next, args, err)
	}
	for _, args := range [][]string{{"--http", "7000", "--console"}, {"--port", "7000"}} {
		got, err := withConsole(args)
		if err != nil || slices.Contains(got, "--console") || slices.Contains(got[1:], "--http") || len(got) != 2 {
			t.Errorf("%q became %q, %v", args, got, err)
		}
	}
}

func TestTheEnvironmentStandsBetweenTheFileAndTheOptions(t *testing.T) {
	for _, x := range []struct{ args, want []string }{
		{nil, []string{"--port", "7"}},
		{[]string{"--port", "8"}, []string{"--port", "7", "--port", "8"}},
		{[]string{"ebb.conf", "--port", "8"}, []string{"ebb.conf", "--port", "7", "--port", "8"}},
		{[]string{"-"}, []string{"-", "--port", "7"}},
		{[]string{"--port", "8", "-"}, []string{"--port", "7", "--port", "8", "-"}},
	} {
		got, _, err := withEnvironment(x.args, []string{"EBB_PORT=7"})
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("%q is %q (%v), want %q", x.args, got, err, x.want)
		}
	}
}

// ebb cli reaches the server with the flags that the start-up line shows.
func TestClientFlagsReachTheServer(t *testing.T) {
	tcp := func(host string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(host), Port: port} }
	socket := &net.UnixAddr{Net: "unix", Name: "/run/s.sock"}
	for _, x := range []struct {
		addrs []net.Addr
		want  string
	}{
		{[]net.Addr{tcp("127.0.0.1", 6379), tcp("::1", 6379)}, ""},
		{[]net.Addr{tcp("::", 7000)}, " -p 7000"},
		{[]net.Addr{tcp("192.0.2.1", 6379), tcp("0.0.0.0", 7000)}, " -p 7000"},
		{[]net.Addr{tcp("127.0.0.2", 7000)}, " -h 127.0.0.2 -p 7000"},
		{[]net.Addr{tcp("::1", 6379), socket}, " -h ::1"},
		{[]net.Addr{socket}, " -s /run/s.sock"},
	} {
		cfg, err := config.Load([]string{"--unixsocket", "/run/s.sock"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := clientFlags(cfg, x.addrs); got != x.want {
			t.Errorf("%v: %q, want %q", x.addrs, got, x.want)
		}
	}
}

// The image sets EBB_DIR, and an option overrides it.
func TestTheLastDirectoryIsMade(t *testing.T) {
	root := t.TempDir()
	t.Setenv("EBB_DIR", filepath.Join(root, "from", "the", "image"))
	dir := filepath.Join(root, "new")
	p, err := configure([]string{"--dir", dir}, nil)
	if err != nil || p.cfg.String("dir") != dir {
		t.Fatalf("%v, %+v", err, p)
	}
	if _, err := os.Stat(filepath.Join(root, "from")); err == nil {
		t.Error("the directory that is overridden was made")
	}
	for _, args := range [][]string{nil, {"--dir"}, {"--dir", "a"}, {"--port", "1", "--dir", "a", "--save", ""}} {
		if got := lastDirectory(args); !slices.Equal(got, args) {
			t.Errorf("%q became %q", args, got)
		}
	}
}

func TestTheEnvironmentsOptionsAreThoseOfTheCommandLine(t *testing.T) {
	t.Setenv("EBB_ARGS", "--accept-clock yes --port 7007")
	p, err := configure(nil, nil)
	if err != nil || !p.accept || p.cfg.Int("port") != 7007 {
		t.Fatalf("%v, %+v", err, p)
	}
	if p, err = configure([]string{"--accept-clock", "no"}, nil); err != nil || p.accept {
		t.Errorf("%v, %+v", err, p)
	}
	got := directivesOnly([]string{"--console", "--port", "1", "--peers", "a:1 b:1", "--accept-clock", "yes", "--save", ""})
	if want := []string{"--port", "1", "--save", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
