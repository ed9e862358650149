package realserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
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
	if filepath.Base(p.path) == ebbName {
		args = append([]string{"serve"}, args...)
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.Dir, log, log, orphans()
	if err := cmd.Start(); err != nil {
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

// Wait waits until the program has ended by itself, and returns its exit status.
func (p *Process) Wait() int {
	<-p.gone
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the program as kill -9 does. It does nothing if the program does not run.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Stop sends SIGTERM to the program and waits until it has ended.
func (p *Process) Stop() { p.signal(syscall.SIGTERM) }

// Pid returns the process id of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

func (p *Process) signal(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(s)
	<-p.gone
	p.cmd = nil
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

// binary builds the program once for a test process. `go run` keeps the executable in
// Go's build cache, from its second run on, so that nothing is left in the temporary folder
// and the next test process finds it there. The two runs of the program are true and echo.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	// The package that is tested may be in another module, such as internal/test, whose
	// go.sum does not have what the program needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ebbdb/ebb").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	var said []byte
	for _, instead := range []string{"true", "echo"} {
		args := []string{"run", "-exec", instead}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "github.com/ebbdb/ebb/cmd/ebb")...)
		cmd.Dir = strings.TrimSpace(string(root))
		var complaints bytes.Buffer
		cmd.Stderr = &complaints
		var err error
		if said, err = cmd.Output(); err != nil {
			return "", fmt.Errorf("go run: %w: %s", err, complaints.Bytes())
		}
	}
	path := strings.TrimSpace(string(said))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("go run keeps no executable: %w", err)
	}
	return path, nil
})

// Ebb returns the path of the program ebb: the one that EBB_BINARY names, or else
// it is built from these sources, in Go's build cache.
func Ebb(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
