// Package packagetest builds the packages and the files of the image, and installs, starts and removes them.
package packagetest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

const top = "../../.."

// patience is the time for which a test waits for what must come.
var patience = tier.Patience

// run runs a program in the top directory and returns what it printed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// asRoot is run with the rights of root.
func asRoot(t *testing.T, name string, args ...string) string {
	t.Helper()
	if os.Getuid() == 0 {
		return run(t, name, args...)
	}
	return run(t, "sudo", append([]string{"-n", name}, args...)...)
}

// disposable skips the test on a machine that is not CI's: it installs a package.
func disposable(t *testing.T) {
	t.Helper()
	if !realserver.Required() {
		realserver.Require(t, "installing a package is for a machine of CI (EBB_REQUIRE=1)")
	}
	if tier.Short() {
		realserver.Require(t, "with -short, no package is installed")
	}
}

// exists reports whether there is a file of this name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// runUnit does what systemd does with the installed unit: it makes the directories and the notify socket, and runs
// the command as the unit's user, until the server has said that it is ready, alive and stopping.
func runUnit(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // which another user can reach
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	notify := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, f := range []string{dir, notify} {
		if err := os.Chmod(f, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	asRoot(t, "install", "-d", "-o", "ebb", "-g", "ebb", "/run/ebb")
	defer asRoot(t, "rm", "-rf", "/run/ebb")
	unit, err := os.ReadFile("/usr/lib/systemd/system/ebb.service")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(unit)
	if command == nil {
		t.Fatalf("no ExecStart in\n%s", unit)
	}
	port := fmt.Sprint(realserver.FreePort(t))
	args := append([]string{"--reuid", "ebb", "--regid", "ebb", "--clear-groups", "env", "-C", "/var/lib/ebb",
		"NOTIFY_SOCKET=" + notify, "WATCHDOG_USEC=1000000"},
		append(strings.Fields(string(command[1])), "--port", port)...)
	server := exec.Command("setpriv", args...)
	if os.Getuid() != 0 {
		server = exec.Command("sudo", append([]string{"-n", "setpriv"}, args...)...)
	}
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			asRoot(t, "sh", "-c", fmt.Sprint("kill ", server.Process.Pid))
			_ = server.Wait()
		}
	}
	defer end()
	await := func(want string) {
		t.Helper()
		b := make([]byte, 4096)
		for {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("%s does not come: %v\n%s", want, err, log.String())
			}
			t.Logf("the socket gets %q", b[:n])
			if strings.Contains(string(b[:n]), want) {
				return
			}
		}
	}
	await("READY=1")
	if out := run(t, "redis-cli", "-p", port, "ping"); out != "PONG\n" {
		t.Errorf("redis-cli ping: %q", out)
	}
	if out := run(t, "/usr/bin/ebb", "health", "-p", port); !strings.Contains(out, ": ok: ebb ") {
		t.Errorf("ebb health: %q", out)
	}
	await("WATCHDOG=1")
	reload := regexp.MustCompile(`(?m)^ExecReload=(.*)$`).FindSubmatch(unit)
	if reload == nil {
		t.Fatalf("no ExecReload in\n%s", unit)
	}
	asRoot(t, "sh", "-c", strings.ReplaceAll(string(reload[1]), "$MAINPID", fmt.Sprint(server.Process.Pid)))
	await("RELOADING=1")
	await("READY=1")
	end()
	await("STOPPING=1")
}

// The package starts under its unit's command as the unit's user, tells systemd how it is, and leaves nothing
// behind when it is purged.
func TestThePackageIsInstalledStartedAndPurged(t *testing.T) {
	disposable(t)
	dist := t.TempDir()
	run(t, "packaging/build.sh", dist, "deb", "rpm", "apk")
	debs, _ := filepath.Glob(filepath.Join(dist, "*.deb"))
	others, _ := filepath.Glob(filepath.Join(dist, "*.[ra]p[mk]"))
	if len(debs) != 1 || len(others) != 2 {
		t.Fatalf("built are %q and %q", debs, others)
	}
	places := []string{"/usr/bin/ebb", "/etc/ebb", "/var/lib/ebb", "/usr/lib/systemd/system/ebb.service", "/usr/share/doc/ebb",
		"/usr/share/man/man5/ebb.conf.5.gz"}
	for _, p := range places {
		if exists(p) {
			t.Fatalf("%s is there before the package is installed", p)
		}
	}
	asRoot(t, "dpkg", "-i", debs[0])
	t.Cleanup(func() { asRoot(t, "dpkg", "-P", "ebb") })
	for _, p := range places {
		if !exists(p) && p != "/usr/share/man/man5/ebb.conf.5.gz" && p != "/usr/share/doc/ebb" { // small images leave documentation out
			t.Errorf("the package has no %s", p)
		}
	}

	unit := "/usr/lib/systemd/system/ebb.service"
	out, err := exec.Command(realserver.Program(t, "systemd-analyze"), "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "ebb.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}

	runUnit(t)

	asRoot(t, "dpkg", "-r", "ebb")
	if !exists("/etc/ebb/ebb.conf") || !exists("/var/lib/ebb") {
		t.Error("removing the package has removed the configuration or the data")
	}
	asRoot(t, "dpkg", "-P", "ebb")
	for _, p := range places {
		if exists(p) {
			t.Errorf("%s is left behind", p)
		}
	}
	if out, err := exec.Command("getent", "passwd", "ebb").Output(); err == nil {
		t.Errorf("the user is left behind: %s", out)
	}
}

// The image is one static program under several names: it runs in a root directory with nothing else in it.
func TestTheProgramsOfTheImageRunInAnEmptyRoot(t *testing.T) {
	disposable(t)
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(root, "usr/bin/ebb"), "./cmd/ebb")
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, "packaging/image.sh", root)
	for line, want := range map[string]string{
		"redis-server --version":  "ebb=",
		"valkey-server --version": "ebb=",
		"redis-cli --version":     "ebb cli",
		"valkey-check-rdb --help": "Examine files of data",
		"redis-benchmark --help":  "Measure throughput",
		"ebb redis-cli --version": "ebb cli",
	} {
		if out := asRoot(t, "chroot", append([]string{root}, strings.Fields("/usr/bin/"+line)...)...); !strings.Contains(out, want) {
			t.Errorf("%s prints %q, want %q", line, out, want)
		}
	}
	serveInRoot(t, root)
}

// serveInRoot runs the image's entry point and its health check in a root directory, as the image's user and with its variables, but on
// loopback; the data is written as that user.
func serveInRoot(t *testing.T, root string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	user := regexp.MustCompile(`(?m)^USER (\S+)$`).FindStringSubmatch(last)
	env := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(last)
	if user == nil || env == nil {
		t.Fatalf("no USER and ENV in\n%s", last)
	}
	asRoot(t, "chown", user[1], filepath.Join(root, "data"))
	defer func() { asRoot(t, "chown", "-R", fmt.Sprint(os.Getuid()), filepath.Join(root, "data")) }() // so that it can be removed
	// which t.TempDir makes for its user alone
	asRoot(t, "chmod", "755", root)
	var variables []string
	for _, m := range regexp.MustCompile(`(\w+)=("[^"]*"|\S+)`).FindAllStringSubmatch(env[1], -1) {
		variables = append(variables, m[1]+"="+strings.Trim(m[2], `"`))
	}
	variables = append(variables, "EBB_BIND=127.0.0.1", fmt.Sprint("EBB_PORT=", realserver.FreePort(t)),
		fmt.Sprint("EBB_HTTP=127.0.0.1:", realserver.FreePort(t)))
	inside := func(words ...string) *exec.Cmd { // the last one of a variable counts
		args := append(append([]string{"-i"}, variables...), append([]string{"/usr/sbin/chroot", "--userspec=" + user[1], root}, words...)...)
		if os.Getuid() == 0 {
			return exec.Command("env", args...)
		}
		return exec.Command("sudo", append([]string{"-n", "env"}, args...)...)
	}
	server := inside("/usr/bin/ebb", "serve")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	defer func() {
		asRoot(t, "sh", "-c", fmt.Sprint("kill ", server.Process.Pid))
		if err := <-ended; err != nil {
			t.Errorf("the end of the server: %v\n%s", err, log.String())
		}
	}()
	var out []byte
	err = errors.New("the server was not asked")
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
		out, err = inside("/usr/bin/ebb", "health").CombinedOutput()
	}
	if err != nil || !strings.Contains(string(out), ": ok: ebb ") {
		t.Fatalf("ebb health: %v: %s", err, out)
	}
	for _, words := range [][]string{{"SET", "k", "v"}, {"SAVE"}} {
		port, _ := strings.CutPrefix(variables[len(variables)-2], "EBB_PORT=")
		out, err := inside(append([]string{"/usr/bin/redis-cli", "-p", port}, words...)...).CombinedOutput()
		if err != nil || string(out) != "OK\n" {
			t.Errorf("redis-cli %q: %v: %q", words, err, out)
		}
	}
	id, _, _ := strings.Cut(user[1], ":")
	if owner := strings.TrimSpace(asRoot(t, "stat", "-c", "%u", filepath.Join(root, "data/dump.rdb"))); owner != id {
		t.Errorf("the data is that of the user %s, want %s", owner, id)
	}
}

// Every file that the Dockerfile copies is there, and every variable that it sets is a directive.
func TestTheDockerfileNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(string(text), "\\\n", " ")
	// The image with a shell is used as the other one is.
	_, debian, _ := strings.Cut(file, " AS debian\n")
	debian, scratch, _ := strings.Cut(debian, "\nFROM scratch\n")
	_, debian, _ = strings.Cut(debian, "\nUSER ")
	if _, scratch, _ = strings.Cut(scratch, "\nUSER "); strings.TrimSpace(debian) != strings.TrimSpace(scratch) || debian == "" {
		t.Errorf("the two images end differently:\n%s\n\n%s", debian, scratch)
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(file, -1) {
		for _, source := range strings.Fields(m[1]) {
			if !exists(filepath.Join(top, source)) {
				t.Errorf("the Dockerfile copies %s, which is not there", source)
			}
		}
	}
	env := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(file)
	variables := regexp.MustCompile(`(EBB_\w+)=("[^"]*"|\S+)`).FindAllStringSubmatch(env[1], -1)
	if len(variables) < 4 {
		t.Fatalf("ENV sets %q", variables)
	}
	cmd := exec.Command(realserver.Ebb(t), "serve", "--port", "0", "--daemonize", "maybe")
	cmd.Env = os.Environ()
	for _, v := range variables {
		value := strings.Trim(v[2], `"`)
		if v[1] == "EBB_DIR" {
			value = t.TempDir()
		}
		cmd.Env = append(cmd.Env, v[1]+"="+value)
	}
	// The server refuses its command line after it has read all variables without a complaint.
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "daemonize") || strings.Contains(string(out), "EBB_") {
		t.Errorf("the server says %q", out)
	}
	for _, want := range []string{"FROM scratch", "USER 10001:10001", "HEALTHCHECK", "VOLUME /data", `ENTRYPOINT ["ebb"]`} {
		if !strings.Contains(file, want) {
			t.Errorf("the Dockerfile has no %s", want)
		}
	}
}

// systemd's own tools find nothing wrong with the unit, and its exposure low.
func TestTheUnitIsValidAndHardened(t *testing.T) {
	analyze := realserver.Program(t, "systemd-analyze")
	out, err := exec.Command(analyze, "security", "--offline=true", filepath.Join(top, "packaging/ebb.service")).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for ebb.service: (\d+\.\d)`).FindSubmatch(out)
	if err != nil || m == nil || string(m[1]) > "1.5" {
		t.Errorf("%v\n%.3000s", err, out)
	}
	if strings.Contains(string(out), "Failed to parse") {
		t.Errorf("systemd cannot read a line of the unit:\n%s", out)
	}
}
