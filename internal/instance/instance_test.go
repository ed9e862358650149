package instance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// startInstance serves an empty engine on a unix socket until the test ends.
func startInstance(t *testing.T, level *slog.LevelVar, options ...string) (socket string) {
	t.Helper()
	socket = realserver.Socket(t)
	if _, err := startWith(t, level, append([]string{"--port", "0", "--unixsocket", socket}, options...)...); err != nil {
		t.Fatal(err)
	}
	return socket
}

// startOnPort serves an empty engine on a port of 127.0.0.1 until the test ends. Another program may take the free
// port before the server binds it; then startOnPort tries another port.
func startOnPort(t *testing.T, options ...string) *Instance {
	t.Helper()
	var err error
	for range 5 {
		var in *Instance
		if in, err = startWith(t, nil, append([]string{"--port", strconv.Itoa(unusedPort(t)), "--bind", "127.0.0.1"},
			options...)...); err == nil {
			return in
		}
	}
	t.Fatal(err)
	return nil
}

// startWith serves an empty engine until the test ends.
func startWith(t *testing.T, level *slog.LevelVar, options ...string) (*Instance, error) {
	t.Helper()
	cfg, err := config.Load(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Level: level})
	if err == nil {
		t.Cleanup(func() { shutDown(t, in) })
	}
	return in, err
}

// shutDown ends an instance and its requests.
func shutDown(t *testing.T, in *Instance) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := in.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// client is a connection that reads the reply to each request.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, socket string) client {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

func (c client) ask(args ...string) resp.Value {
	c.t.Helper()
	c.send(args...)
	return c.read()
}

// send sends a request; read reads a reply.
func (c client) send(args ...string) {
	c.t.Helper()
	if _, err := c.Write(wire.AppendCommand(nil, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) read() resp.Value {
	c.t.Helper()
	v, err := wire.ReadValue(c.r)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func TestConfigSetLoglevelReachesTheLogger(t *testing.T) {
	var level slog.LevelVar
	c := dial(t, startInstance(t, &level, "--loglevel", "warning"))
	if level.Level() != slog.LevelWarn {
		t.Errorf("at the start the level is %v", level.Level())
	}
	c.ask("CONFIG", "SET", "loglevel", "debug")
	if level.Level() != slog.LevelDebug {
		t.Errorf("after CONFIG SET it is %v", level.Level())
	}
}

func TestConnectionsBeyondMaxclientsAreCounted(t *testing.T) {
	socket := startInstance(t, nil, "--maxclients", "1")
	c := dial(t, socket)
	c.ask("PING")
	for range 2 {
		if said, err := io.ReadAll(dial(t, socket)); err == nil && !strings.HasPrefix(string(said), "-ERR max number of clients reached") {
			t.Errorf("one too many reads %q", said)
		}
	}
	rejected := func(n int) {
		t.Helper()
		if info := c.ask("INFO", "stats").Str; !strings.Contains(info, fmt.Sprintf("rejected_connections:%d\r\n", n)) {
			t.Errorf("want %d rejected connections in %s", n, info)
		}
	}
	rejected(2)
	c.ask("CONFIG", "RESETSTAT")
	rejected(0)
}

// Bound is called before the first client is served, so that cmd/ebb can write its pidfile.
func TestBoundIsCalledBeforeTheFirstReply(t *testing.T) {
	socket := realserver.Socket(t)
	cfg, err := config.Load([]string{"--port", "0", "--unixsocket", socket}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bound atomic.Bool
	boundAtReply := make(chan bool, 1)
	in, err := Start(context.Background(), Options{Config: cfg, Bound: func() {
		c := dial(t, socket)
		c.send("PING")
		go func() {
			_, err := wire.ReadValue(c.r)
			boundAtReply <- err == nil && bound.Load()
		}()
		for range 10_000 {
			runtime.Gosched() // a server that serves clients would reply meanwhile
		}
		bound.Store(true)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutDown(t, in) })
	if !<-boundAtReply {
		t.Error("a client was served before Bound had returned")
	}
}

// The time of a long command counts for the command although it runs off-loop.
func TestWhatRunsBesideTheLoopsIsCountedWithItsTime(t *testing.T) {
	c := dial(t, startInstance(t, nil, "--enable-debug-command", "yes"))
	c.ask("DEBUG", "SLEEP", "0.02")
	info := c.ask("INFO", "commandstats").Str
	_, line, _ := strings.Cut(info, "cmdstat_debug|sleep:")
	var calls, us int
	if _, err := fmt.Sscanf(line, "calls=%d,usec=%d,", &calls, &us); err != nil || calls != 1 || us < 20000 {
		t.Errorf("INFO says %s", info)
	}
	v := c.ask("SLOWLOG", "GET") // other commands may be in it if the machine stalls
	if n := len(v.Elems); n == 0 || v.Elems[n-1].Elems[2].Int < 20000 || v.Elems[n-1].Elems[3].Elems[0].Str != "DEBUG" {
		t.Errorf("the slow log is %v", v)
	}
}
