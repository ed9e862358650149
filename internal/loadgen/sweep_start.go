package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StartServer starts a server program without files, with its arguments before those of the port, and waits until it
// replies. The caller calls stop, which ends the program and removes its directory. Another process may take the port before
// the server does: the server then ends, and StartServer tries other ports.
func StartServer(ctx context.Context, program string, args ...string) (t Target, stop func(), err error) {
	for range 5 {
		if t, stop, err = startServer(ctx, program, args); !errors.Is(err, errEnded) {
			break
		}
	}
	return t, stop, err
}

// errEnded says that a server ended before it replied.
var errEnded = errors.New("the program ended")

// startServer makes one attempt.
func startServer(ctx context.Context, program string, args []string) (t Target, stop func(), err error) {
	dir, err := os.MkdirTemp("", "ebb-bench-")
	if err != nil {
		return t, nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return t, nil, errors.Join(err, os.RemoveAll(dir))
	}
	t.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args = append(slices.Clip(args), "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	cmd := exec.Command(program, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return t, nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	if err := t.await(ctx, ended); err != nil {
		stop()
		return t, nil, fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, said.String())
	}
	return t, stop, nil
}

// await waits until the server replies to PING, for ten seconds at most.
func (t Target) await(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		c, err := t.client(ctx)
		if err == nil {
			_, err = c.do("PING")
			_ = c.conn.Close()
			if err == nil {
				return nil
			}
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-look.C:
		}
	}
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
