// Package realserver runs a real redis-server for a test, as the oracle for ebb's
// replies.
//
//	addr := realserver.Start(t, realserver.Redis7, "--save", "")
//
// A machine without the server skips the test with a printed reason; with
// EBB_REQUIRE=1 in the environment that is a failure. Start reading at Start.
package realserver

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// The servers that ebb is compared with: redis-server of Debian 12 (7.0.15), and
// Redis 8.0.6 and Valkey 9.1.2, which .ci/servers puts on the PATH.
const (
	Redis7  = "redis-server"
	Redis8  = "redis-server-8"
	Valkey9 = "valkey-server-9"
)

// Environment variables: the first one turns skips into failures; the second one names
// programs, separated by spaces, for which it does not; the third one lets tests start
// other programs also in the short tier.
const (
	requireEnv  = "EBB_REQUIRE"
	withoutEnv  = "EBB_WITHOUT"
	programsEnv = "EBB_PROGRAMS"
)

// startTimeout bounds the wait for the server's first PONG. It starts in tens of
// milliseconds; a loaded machine has been seen to need two seconds.
var startTimeout = tier.Patience

// Require ends a test that lacks a program or another part of the system. It fails the
// test if EBB_REQUIRE is 1, and otherwise skips it with the reason.
func Require(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("%s=1, but %s", requireEnv, reason)
	}
	t.Skip(reason)
}

// Required reports whether EBB_REQUIRE forbids skips.
func Required() bool { return os.Getenv(requireEnv) == "1" }

// Alone reports whether tests must start no program except ebb. This is so in the short tier,
// which is that without EBB_FULL=1, unless EBB_PROGRAMS is 1. Such a skip is not a failure with
// EBB_REQUIRE=1 either, because other runs run the same tests in full.
func Alone() bool { return tier.Short() && os.Getenv(programsEnv) != "1" }

// Has reports whether Program would return a path.
func Has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil && !Alone()
}

// Program returns the path of a program other than ebb. If the program is missing, it ends
// the test as Require does. It skips the test if EBB_WITHOUT names the program, or if
// Alone reports true.
func Program(t testing.TB, program string) string {
	t.Helper()
	if Alone() {
		t.Skip("tests of the short tier start no program but ebb; EBB_FULL=1 runs all: " + filepath.Base(program))
	}
	path, err := exec.LookPath(program)
	if err == nil && program == Redis7 {
		if is := redisVersion(); !strings.Contains(is, " v=7.0.") {
			Require(t, "the tests compare ebb with redis-server 7.0, and this is "+is)
		}
	}
	if err == nil {
		return path
	}
	reason := program + " is not installed"
	if program == Redis8 || program == Valkey9 {
		reason += "; .ci/servers fetches it"
	}
	Lacks(t, program, reason)
	return ""
}

// Lacks ends the test as Require does, for a reason. It skips the test if EBB_WITHOUT names what the machine lacks: .ci/run has said so.
func Lacks(t testing.TB, what, reason string) {
	t.Helper()
	if slices.Contains(strings.Fields(os.Getenv(withoutEnv)), what) {
		t.Skip(reason)
	}
	Require(t, reason)
}

// Python returns the path of a Python that has a module, of the system's or the first one: Debian's package python3-MODULE serves the
// system's alone. If there is none, it ends the test as Require does.
func Python(t testing.TB, module string) string {
	t.Helper()
	Program(t, "python3")
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	Require(t, "no python3 with "+module+" (python3-"+module+") is installed")
	return ""
}

// redisVersion returns what redis-server says about itself.
var redisVersion = sync.OnceValue(func() string {
	said, err := exec.Command(Redis7, "--version").Output()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(said))
})

// find returns the path of a server program, which may be the one that Ebb has returned.
func find(t testing.TB, program string) string {
	t.Helper()
	if filepath.Base(program) == ebbName && filepath.IsAbs(program) {
		return program
	}
	return Program(t, program)
}

// Start runs a server program on a free port of 127.0.0.1, in a temporary
// directory of its own, waits until it answers, and returns its address. args
// are options behind "--port" and "--dir"; without any "--save" among them the
// server saves nothing. The server is stopped when the test ends.
func Start(t testing.TB, program string, args ...string) (addr string) {
	t.Helper()
	path := find(t, program)
	// Another process may take the port between the check and the server's bind. The server
	// then exits at once, and Start tries the next port.
	var err error
	for range 5 {
		if addr, err = start(t, path, args); err == nil {
			return addr
		}
	}
	t.Fatalf("%s does not start: %v", program, err)
	return ""
}

// start makes one attempt.
func start(t testing.TB, path string, args []string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	all := append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no"}, args...)
	if !slices.Contains(args, "--save") {
		all = append(all, "--save", "")
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, all...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, log, log, orphans()
	cmd.Env = of(t)
	if err := cmd.Start(); err != nil {
		return "", errors.Join(err, log.Close())
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = log.Close()
		close(gone)
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-gone
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := answers(addr, gone); err != nil {
		stop()
		said, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("%w; it said: %s", err, said)
	}
	t.Cleanup(stop)
	return addr, nil
}

// of returns the environment of a program that a test starts. It names the test, so that .ci/test can say which one has left a
// process.
func of(t testing.TB) []string { return append(os.Environ(), "EBB_TEST="+t.Name()) }

// FreePort returns a port of 127.0.0.1 on which no process listens at the moment.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// lastPort counts the ports that this process has checked.
var lastPort atomic.Uint32

// The system gives ports from lowPort to highPort only to callers that name them. It takes
// the ports of outgoing connections, and of listeners at port 0, from above. So the port
// of a killed server stays free until it starts again, even if other programs connect
// meanwhile.
const lowPort, highPort = 10_000, 30_000

// freePort returns a port on which no process listens, and which no other test process gets
// while this one runs: a server that a test kills and starts again finds its port free. Processes
// that run at the same time begin their search at distant ports: the factor is the golden section
// of the range.
func freePort() (int, error) {
	err := errors.New("other test processes have all ports")
	for range 1000 {
		port := lowPort + (12_361*os.Getpid()+int(lastPort.Add(1)))%(highPort-lowPort)
		if !reserve(port) {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// answers waits until the server replies to PING.
func answers(addr string, gone <-chan struct{}) error {
	deadline := time.After(startTimeout)
	for {
		err := ping(addr)
		if err == nil {
			return nil
		}
		select {
		case <-gone:
			return errors.New("the server exited")
		case <-deadline:
			return fmt.Errorf("no answer in %v: %w", startTimeout, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("PING was answered %q", line)
	}
	return err
}
