package realserver

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Process is a server program that a test kills and starts again, on the same port and in
// the same directory. One goroutine at a time may use it.
type Process struct {
	Port int
	Dir  string
	// Config, if not empty, is written to a file before the first start, and the program
	// gets only that file as its argument. redis-sentinel needs this, because it rewrites
	// the file.
	Config string
	// Command is the command of ebb to run, whatever the program's file is called; empty: serve, if that is ebb.
	Command string
	// Within, if not nil, calls start, which starts the program, for instance on a thread of another network namespace.
	Within func(start func() error) error

	t    testing.TB
	path string
	args []string
	cmd  *exec.Cmd
	gone chan struct{}
}

// NewProcess returns a program that will listen on a free port of 127.0.0.1 and keep its
// files in a temporary directory; it does not run yet. path is a program name, or a path
// that Ebb has returned. args follow "--port", "--bind" and "--dir".
func NewProcess(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	found := find(t, path)
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Port: port, Dir: t.TempDir(), t: t, path: found, args: args}
	t.Cleanup(p.Kill)
	return p
}

// Args adds arguments for all later starts.
func (p *Process) Args(more ...string) { p.args = append(p.args[:len(p.args):len(p.args)], more...) }

// Addr returns the address on which it listens.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)) }

// Log returns the path of the file with its output since NewProcess.
func (p *Process) Log() string { return filepath.Join(p.Dir, "server.log") }

// Start runs the program and waits until it replies PONG to PING, which means that it has
// loaded its data.
func (p *Process) Start(more ...string) {
	p.t.Helper()
	if err := p.Begin(more...); err != nil {
		p.t.Fatal(err)
	}
	if err := answers(p.Addr(), p.gone); err != nil {
		p.t.Fatalf("%s does not start: %v; it said: %s", p.path, err, p.Said())
	}
}

// Begin runs the program and does not wait.
func (p *Process) Begin(more ...string) error {
	log, err := os.OpenFile(p.Log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args, err := p.arguments(more)
	if err != nil {
		return err
	}
	if p.Command != "" || filepath.Base(p.path) == ebbName {
		args = append([]string{cmp.Or(p.Command, "serve")}, args...)
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.Dir, log, log, orphans()
	cmd.Env = of(p.t)
	start := cmd.Start
	if p.Within != nil {
		start = func() error { return p.Within(cmd.Start) }
	}
	if err := start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	p.cmd, p.gone = cmd, gone
	return nil
}

func (p *Process) arguments(more []string) ([]string, error) {
	if p.Config == "" {
		args := []string{"--port", strconv.Itoa(p.Port), "--bind", "127.0.0.1", "--dir", p.Dir}
		return append(args, append(p.args[:len(p.args):len(p.args)], more...)...), nil
	}
	name := filepath.Join(p.Dir, "server.conf")
	if _, err := os.Stat(name); err == nil {
		return []string{name}, nil
	}
	return []string{name}, os.WriteFile(name, []byte(p.Config), 0o644)
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.gone }

// Wait waits until the program has ended by itself, and returns its exit status. If it does not end within tier.Patience, Wait fails
// the test and kills it; the status is -1 then.
func (p *Process) Wait() int {
	p.t.Helper()
	p.await()
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the program as kill -9 does. It does nothing if the program does not run.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Stop sends SIGTERM to the program and waits until it has ended, as Wait does.
func (p *Process) Stop() { p.signal(syscall.SIGTERM) }

// Pid returns the process id of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

func (p *Process) signal(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	p.t.Helper()
	_ = p.cmd.Process.Signal(s)
	p.await()
	p.cmd = nil
}

// await waits until the program has ended, for tier.Patience.
func (p *Process) await() {
	p.t.Helper()
	select {
	case <-p.gone:
		return
	case <-time.After(tier.Patience):
	}
	_ = p.cmd.Process.Kill()
	<-p.gone
	p.t.Errorf("%s did not end within %v, and was killed; it said: %s", p.path, tier.Patience, p.Said())
}

// Said returns the end of the program's output.
func (p *Process) Said() string {
	f, err := os.Open(p.Log())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-4096), io.SeekStart)
	}
	b, _ := io.ReadAll(f)
	return string(b)
}

const ebbName = "ebb"

// binaryEnv is the environment variable with the path of a program to use instead of
// building one.
const binaryEnv = "EBB_BINARY"

// binary builds the program once for a test process, and keeps it in the user's cache
// folder, so that nothing is left in the temporary folder.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	into := filepath.Join(caches, "ebb", "bin")
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", err
	}
	// The package that is tested may be in another module, such as internal/test, whose
	// go.sum does not have what the program needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ebbdb/ebb").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return keepIn(into, func(path string) error {
		args := []string{"build", "-buildvcs=false", "-o", path}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./cmd/ebb")...)
		cmd.Dir = strings.TrimSpace(string(root))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
		return nil
	})
})

// programAge is the time for which a program stays in the cache folder after its last use. The
// programs of a day's work are about 40 MB each.
const programAge = 7 * 24 * time.Hour

// keepIn calls build with a path in the directory into, and returns the path at which
// the program stays: a directory named by the hash of its content. Test processes may do so
// at the same time. It removes programs that were not used for programAge.
func keepIn(into string, build func(path string) error) (string, error) {
	work, err := os.MkdirTemp(into, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	name := ebbName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	built := filepath.Join(work, name)
	if err := build(built); err != nil {
		return "", err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(into, fmt.Sprintf("%x", sha256.Sum256(content)))
	kept := filepath.Join(dir, name)
	if err := os.Rename(work, dir); err != nil { // the directory is there: another process has built the same program
		if _, err := os.Stat(kept); err != nil {
			return "", err
		}
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(into)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if i, err := e.Info(); err == nil && now.Sub(i.ModTime()) > programAge {
			_ = os.RemoveAll(filepath.Join(into, e.Name())) // another process may remove it at the same time
		}
	}
	return kept, nil
}

// Ebb returns the path of the program ebb: the one that EBB_BINARY names, or else
// one that the test process builds from these sources and keeps in the user's cache
// folder. The first call takes as long as `go build` does.
func Ebb(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Socket returns a path for a Unix socket, in a temporary directory that the end of the test
// removes. The path is short, because a system allows some 100 bytes: the directory of
// t.TempDir has the name of the test in its own.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}
