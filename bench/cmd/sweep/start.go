package main

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

	"github.com/ebbdb/ebb/internal/loadgen"
)

// startServer starts a server program without files, with its arguments before those of the port, and waits until it
// replies. The caller calls stop, which ends the program and removes its directory. Another process may take the port before
// the server does: the server then ends, and startServer tries other ports.
func startServer(ctx context.Context, program string, args ...string) (t loadgen.Target, stop func(), err error) {
	for range 5 {
		if t, stop, err = tryStart(ctx, program, args); !errors.Is(err, errEnded) {
			break
		}
	}
	return t, stop, err
}

// errEnded says that a server ended before it replied.
var errEnded = errors.New("the program ended")

// tryStart makes one attempt.
func tryStart(ctx context.Context, program string, args []string) (t loadgen.Target, stop func(), err error) {
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
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
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
	if err := await(ctx, t, ended); err != nil {
		stop()
		return t, nil, fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, output.String())
	}
	return t, stop, nil
}

// await waits until the server replies to PING, for ten seconds at most.
func await(ctx context.Context, t loadgen.Target, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := dial(ctx, t)
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
		case <-tick.C:
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
