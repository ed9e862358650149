package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The comparisons of the toolkit run on these. Each is started when the first
// benchmark needs it, keeps nothing on disk, and ends with the test process.
var (
	redisServer = &server{name: "redis", command: func(string) (string, []string, error) {
		path, err := exec.LookPath("redis-server")
		return path, []string{"--save", "", "--appendonly", "no"}, err
	}}
	ebbServer = &server{name: "ebb", command: ebbCommand}
	servers   = []*server{redisServer, ebbServer}
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range servers {
		s.stop()
	}
	os.Exit(code)
}

// server is a program that listens on a port of 127.0.0.1.
type server struct {
	name    string
	command func(dir string) (path string, args []string, err error)

	once  sync.Once
	err   error
	addr  string
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// start returns the address; a benchmark is skipped where the server is missing.
func (s *server) start(b *testing.B) string {
	b.Helper()
	s.once.Do(func() { s.err = s.run() })
	if errors.Is(s.err, exec.ErrNotFound) {
		b.Skip(s.err)
	}
	if s.err != nil {
		b.Fatal(s.err)
	}
	return s.addr
}

func (s *server) run() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "ebb-bench-"); err != nil {
		return err
	}
	path, args, err := s.command(s.dir)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(path, append(args, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir)...)
	s.cmd.Dir = s.dir
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s.ready()
}

// ready waits until the server answers.
func (s *server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	defer c.Close()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-s.ended:
			return fmt.Errorf("%s has ended: %s", s.name, s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", s.name, err)
		}
	}
}

func (s *server) stop() {
	if s.ended != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// ebbCommand is the program that EBB_BINARY names, or else one built from the
// sources beside these.
func ebbCommand(dir string) (string, []string, error) {
	path := os.Getenv("EBB_BINARY")
	if path == "" {
		path = filepath.Join(dir, "ebb")
		build := exec.Command("go", "build", "-o", path, "./cmd/ebb")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("go build ./cmd/ebb: %w: %s", err, out)
		}
	}
	return path, []string{"serve", "--save", "", "--appendonly", "no"}, nil
}
