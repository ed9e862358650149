// Package servers starts the servers that a benchmark compares.
package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/loadgen"
)

// Server is a server that Start has started.
type Server struct {
	Addr string // host:port
	PID  int
	dir  string
	end  func()
}

// NameOf returns the name of a server program in tables: redis for redis-server.
func NameOf(program string) string { return strings.ReplaceAll(filepath.Base(program), "-server", "") }

// Start starts a server program without files on a free port, with its arguments before those of the port, and waits until it replies. A
// program whose name begins with ebb gets the argument serve. The caller calls Stop. Another process may take the port before the server
// does: the server then ends, and Start tries other ports.
func Start(ctx context.Context, program string, args ...string) (s *Server, err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if strings.HasPrefix(NameOf(path), "ebb") {
		args = slices.Insert(slices.Clone(args), 0, "serve")
	}
	for range 5 {
		if s, err = tryStart(ctx, path, args); !errors.Is(err, errEnded) {
			break
		}
	}
	return s, err
}

// errEnded says that a server ended before it replied.
var errEnded = errors.New("the program ended")

// tryStart makes one attempt.
func tryStart(ctx context.Context, program string, args []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "ebb-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	args = append(slices.Clip(args), "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	cmd := exec.Command(program, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), PID: cmd.Process.Pid, dir: dir, end: func() {
		_ = cmd.Process.Kill()
		<-ended
	}}
	if err := s.await(ctx, ended); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, output.String())
	}
	return s, nil
}

// Stop ends the program and removes its directory.
func (s *Server) Stop() {
	s.end()
	_ = os.RemoveAll(s.dir)
}

// CPU returns the CPU time that the server has used.
func (s *Server) CPU() (time.Duration, error) { return loadgen.CPUTime(s.PID) }

// Dial connects to the server.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
}

// await waits until the server replies to PING, for ten seconds at most.
func (s *Server) await(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// ping reports whether the server replies.
func (s *Server) ping(ctx context.Context) error {
	c, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return err
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && reply != "+PONG\r\n" {
		err = fmt.Errorf("the reply to PING is %q, want +PONG", reply)
	}
	return err
}

// freePort returns a port of the loopback interface on which no program listens.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("the address %v has no port", l.Addr())
	}
	return addr.Port, nil
}
