//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/spf13/cobra"
)

// TestMain makes the test program act as ebb if a test asks for that.
func TestMain(m *testing.M) {
	if os.Getenv("EBB_TEST_AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns a command that runs ebb with arguments and standard input, in a clean environment.
func program(t *testing.T, stdin string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "EBB_TEST_AS_PROGRAM=1")
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// ask sends one command over a unix socket and returns the first line of the reply.
func ask(t *testing.T, socket, command string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestDaemonizeReturnsWhenTheServerListens(t *testing.T) {
	dir := t.TempDir()
	socket, pidfile, logfile := filepath.Join(dir, "s"), filepath.Join(dir, "pid"), filepath.Join(dir, "log")
	if err := syscall.Mkfifo(logfile, 0o600); err != nil {
		t.Fatal(err)
	}
	log := make(chan string) // the lines of the server's log, until it ends
	go func() {
		text, _ := os.ReadFile(logfile)
		log <- string(text)
	}()
	stdin := "port 0\nsave \"\"\ndaemonize yes\nunixsocket " + socket + "\npidfile " + pidfile + "\nlogfile " + logfile + "\n"
	cmd := program(t, stdin)
	cmd.Args = []string{"redis-server", "-"} // the child keeps the name, which selects the command
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%v, %q", err, out)
	}
	if got := ask(t, socket, "PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	text, err := os.ReadFile(pidfile)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if sid, err2 := syscall.Getpgid(pid); err != nil || err2 != nil || pid == cmd.Process.Pid || sid != pid {
		t.Errorf("the pidfile has %q (%v), its process group is %d (%v)", text, err, sid, err2)
	}
	ask(t, socket, "SHUTDOWN NOSAVE")
	if said := <-log; !strings.Contains(said, "Ready to accept connections unix") {
		t.Errorf("the log: %q", said)
	}
}

func TestDaemonizeReportsWhyTheServerDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "no", "s")
	cmd := program(t, "", "serve", "--port", "0", "--daemonize", "yes", "--unixsocket", socket)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "its directory does not exist") {
		t.Errorf("%v, %q", err, out)
	}
}

// tempredis and the tests of redsync use redis-server like this: directives on the standard input, only a unix
// socket, a line of the standard output to wait for, and a signal to end it.
func TestAHarnessThatStartsRedisServerStartsEbb(t *testing.T) {
	dir := t.TempDir()
	harness(t, dir, "dir "+dir+"\nappendonly no\nsave \"\"\n", nil)
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The tests of redsync start 48 servers in one working directory, without directives about files.
func TestAHarnessStartsServersInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second server has a file to load
		harness(t, dir, "", func() {
			harness(t, dir, "", func() { harness(t, dir, "appendonly no\n", nil) })
		})
	}
}

// harness starts a server in a directory, as tempredis does, calls meanwhile, and ends the server.
func harness(t *testing.T, dir, lines string, meanwhile func()) {
	t.Helper()
	socket := realserver.Socket(t)
	cmd := program(t, "port 0\nunixsocket "+socket+"\n"+lines, "serve", "-")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	ready := false
	for !ready && said.Scan() {
		ready = strings.Contains(strings.ToLower(said.Text()), "ready to accept connections")
	}
	if !ready {
		t.Error("the line that says that it is ready did not come")
	} else if got := ask(t, socket, "SET k v"); got != "+OK" {
		t.Errorf("SET: %q", got)
	}
	if meanwhile != nil {
		meanwhile()
	}
	_ = cmd.Process.Signal(syscall.SIGHUP) // has no effect
	_ = cmd.Process.Signal(syscall.SIGTERM)
	for said.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// Debian's unit starts redis-server with Type=notify, and systemd waits for READY=1.
func TestSystemdIsToldWhenTheServerIsReady(t *testing.T) {
	dir := t.TempDir()
	notify, socket := filepath.Join(dir, "notify"), filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cmd := program(t, "", "serve", "--port", "0", "--unixsocket", socket, "--supervised", "auto", "--daemonize", "yes")
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC=200000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := func() string {
		b := make([]byte, 1000)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := told(); got != "STATUS=Loading the dataset" {
		t.Errorf("%q", got)
	}
	if got := told(); !strings.Contains(got, "\nREADY=1") {
		t.Errorf("%q", got)
	}
	if got := ask(t, socket, "PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	for range 2 { // idle loops turn only when asked
		if got := told(); got != "WATCHDOG=1" {
			t.Errorf("%q", got)
		}
	}
	ask(t, socket, "SHUTDOWN NOSAVE")
	got := told()
	for got == "WATCHDOG=1" {
		got = told()
	}
	if !strings.Contains(got, "\nSTOPPING=1") {
		t.Errorf("%q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// systemctl reload waits for READY=1 after RELOADING=1. The latter carries a time of the clock that systemd uses.
func TestSIGHUPReloadsTheUsersAndTellsSystemd(t *testing.T) {
	dir := t.TempDir()
	notify, socket, users := filepath.Join(dir, "notify"), filepath.Join(dir, "s"), filepath.Join(dir, "users.acl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(users, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user default on nopass ~* &* +@all\n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cmd := program(t, "", "serve", "--port", "0", "--unixsocket", socket, "--supervised", "systemd", "--aclfile", users)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+notify)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await := func(part string) string {
		t.Helper()
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b[:n]), part) {
				return string(b[:n])
			}
		}
	}
	// reload returns the messages that systemd receives until the reload is done.
	reload := func() string {
		t.Helper()
		before := monotonicMicros(t, monotonic())
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		began := strings.Split(await("RELOADING=1"), "\n")
		done := await("READY=1")
		if at := monotonicMicros(t, began); at < before || at > monotonicMicros(t, monotonic()) {
			t.Errorf("the reload began at %q, and the signal was sent at %d", began, before)
		}
		return done
	}
	await("READY=1")
	by := `EVAL "return redis.status_reply(string.match(redis.call('INFO', 'server'), 'process_supervised:(%a+)'))" 0`
	if got := ask(t, socket, by); got != "+systemd" {
		t.Errorf("process_supervised: %q", got)
	}
	write("user default on nopass ~* &* +@all\nuser ann on nopass ~* +get\n")
	if got := reload(); got != "STATUS=Ready to accept connections; keys after the start: 0\nREADY=1" {
		t.Errorf("%q", got)
	}
	if got := ask(t, socket, "ACL USERS"); got != "*2" {
		t.Errorf("ACL USERS after the reload: %q", got)
	}
	write("user default on nonsense\n")
	if got := reload(); !strings.Contains(got, "the last reload failed") || !strings.Contains(got, "users.acl") {
		t.Errorf("a reload with a mistake in the file: %q", got)
	}
	if got := ask(t, socket, "ACL USERS"); got != "*2" {
		t.Errorf("ACL USERS after a reload that failed: %q", got)
	}
	ask(t, socket, "SHUTDOWN NOSAVE")
	await("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// monotonicMicros returns the time in assignments for systemd, or 0 without systemd.
func monotonicMicros(t *testing.T, assignments []string) (micros int64) {
	t.Helper()
	for _, a := range assignments {
		if n, ok := strings.CutPrefix(a, "MONOTONIC_USEC="); ok {
			var err error
			if micros, err = strconv.ParseInt(n, 10, 64); err != nil {
				t.Error(err)
			}
		}
	}
	if micros == 0 && runtime.GOOS == "linux" {
		t.Errorf("no time in %q", assignments)
	}
	return micros
}

// A load of several minutes is not a failed start, and a stuck loop is not reported as alive.
func TestSystemdIsToldHowFarALoadIsAndNothingOfAStuckLoop(t *testing.T) {
	notify := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", notify)
	t.Setenv("WATCHDOG_USEC", "20000")
	told := func() string {
		b := make([]byte, 1000)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	var log strings.Builder
	m := &manager{log: slog.New(slog.NewTextHandler(&log, nil))}
	m.loads(func() durable.Info {
		return durable.Info{Loading: true, LoadingTotal: 100 << 20, LoadingLoaded: 43 << 20, LoadingETA: 7}
	})
	told()
	if got := told(); got != "STATUS=Loading the dataset: 43 % of 100 MB, about 7 s left\nEXTEND_TIMEOUT_USEC=30000000" {
		t.Errorf("%q", got)
	}
	tries := make(chan struct{}, 100)
	m.ready(func() int { return 5 }, func(ctx context.Context) error {
		<-ctx.Done()
		tries <- struct{}{}
		return context.Cause(ctx)
	})
	if got := told(); got != "STATUS=Ready to accept connections; keys after the start: 5\nREADY=1" {
		t.Errorf("%q", got)
	}
	<-tries
	<-tries
	m.stops()
	if got := told(); !strings.Contains(got, "STOPPING=1") {
		t.Errorf("a stuck loop is reported as %q", got)
	}
	if !strings.Contains(log.String(), "a quarter of WatchdogSec") {
		t.Errorf("the log: %s", log.String())
	}
}

// SIGTERM cancels the context of a migration and does not end the program at once, so the migration can undo its
// settings.
func TestSIGTERMEndsWhatCtrlCEnds(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		err := interruptible(cmd, func(ctx context.Context) error {
			if err := syscall.Kill(os.Getpid(), sent); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err != exitStatus(130) {
			t.Errorf("%v: %v, want status 130", sent, err)
		}
	}
}

// A library that reads the control group's pressure at the start used to log a line on machines without that file.
func TestACommandPrintsNoLineOfALibrary(t *testing.T) {
	cmd := program(t, "", "version")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 || !strings.Contains(out.String(), "ebb ") {
		t.Errorf("%v: %q, and on standard error %q", err, out.String(), errs.String())
	}
}
