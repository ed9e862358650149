package clienttest

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/instance"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

//go:embed expected.txt
var expected string

// patience bounds one play, which takes well under a second on an idle machine, and with
// workers some seconds. What plays in Python gives up before it.
var patience = 3 * tier.Patience

// play runs the program with one client against addr and returns what it
// printed. It ends the test where the client is not installed.
type play func(t *testing.T, addr string) string

func TestClientsSeeTheSameOnRedisAndOnEbb(t *testing.T) {
	servers := []struct {
		name  string
		start func(t *testing.T) (addr string)
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	}
	clients := []struct {
		name string
		play play
	}{
		{"go-redis", playGoRedis},
		{"ioredis", playNode},
		{"python3-redis", playPython},
	}
	for _, s := range servers {
		for _, c := range clients {
			t.Run(c.name+" on "+s.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(strings.Split(expected, "\n"), strings.Split(c.play(t, s.start(t)), "\n")); diff != "" {
					t.Errorf("(-expected +seen)\n%s", diff)
				}
			})
		}
	}
}

// startEbb serves an empty engine on a free port until the test ends.
func startEbb(t *testing.T) string { return startEbbWith(t) }

// startEbbWith is startEbb with options, as on the command line.
func startEbbWith(t *testing.T, options ...string) string {
	t.Helper()
	var err error
	// Another process may take the port between our look and the bind.
	for range 5 {
		var in *instance.Instance
		if in, err = tryEbb(realserver.FreePort(t), options); err == nil {
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := in.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
			return in.Addrs()[0].String()
		}
	}
	t.Fatal(err)
	return ""
}

func tryEbb(port int, options []string) (*instance.Instance, error) {
	cfg, err := config.Load(append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1"}, options...), nil)
	if err != nil {
		return nil, err
	}
	return instance.Start(context.Background(), instance.Options{Config: cfg})
}

func playNode(t *testing.T, addr string) string { return node("node/main.js")(t, addr) }

func playPython(t *testing.T, addr string) string { return python(t, "python/main.py", addr) }

// python plays a program of python/ that needs redis-py.
func python(t *testing.T, program, addr string) string {
	return pythonWith(t, "redis", program, addr)
}

// pythonWith plays a program of python/ that needs a module.
func pythonWith(t *testing.T, module, program, addr string) string {
	return run(t, realserver.Python(t, module), program, addr)
}

// run runs a program and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, complaints bytes.Buffer
	cmd := realserver.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&complaints, t.Output())
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", program, err, complaints.Bytes())
	}
	return out.String()
}
