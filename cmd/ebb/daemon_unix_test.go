//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/realserver"
)

// TestMain makes the test program ebb itself where a test says so.
func TestMain(m *testing.M) {
	if os.Getenv("EBB_TEST_AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is ebb with arguments, its standard input and no other environment of the test.
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
	log := make(chan string) // what the server logs until it has ended
	go func() {
		text, _ := os.ReadFile(logfile)
		log <- string(text)
	}()
	stdin := "port 0\nsave \"\"\ndaemonize yes\nunixsocket " + socket + "\npidfile " + pidfile + "\nlogfile " + logfile + "\n"
	cmd := program(t, stdin, "serve", "-")
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

// So do tempredis and the tests of redsync: directives on the standard input, a unix socket
// alone, a line of the standard output to wait for, and a signal to end it.
func TestAHarnessThatStartsRedisServerStartsEbb(t *testing.T) {
	dir := t.TempDir()
	harness(t, dir, "dir "+dir+"\nappendonly no\nsave \"\"\n", nil)
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The tests of redsync start 48 servers in one working directory, and say nothing about files.
func TestAHarnessStartsServersInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second time there is a file to load
		harness(t, dir, "", func() {
			harness(t, dir, "", func() { harness(t, dir, "appendonly no\n", nil) })
		})
	}
}

// harness starts a server in a directory, as tempredis does, runs meanwhile, and ends the server.
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
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+notify)
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
	if got := told(); got != "STATUS=Loading the dataset\n" {
		t.Errorf("%q", got)
	}
	if got := told(); !strings.Contains(got, "\nREADY=1") {
		t.Errorf("%q", got)
	}
	if got := ask(t, socket, "PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	ask(t, socket, "SHUTDOWN NOSAVE")
	if got := told(); !strings.Contains(got, "\nSTOPPING=1") {
		t.Errorf("%q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
