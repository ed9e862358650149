package browsertest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/instance"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/resp"
)

// Server is a whole ebb server in the test's process, with the console and a port for clients, both on ports of their own.
type Server struct {
	// URL is the URL of the console, with a slash at its end.
	URL string
	// Addr is the address for clients.
	Addr string
	// Conn runs commands as the default user. Stop closes it; Start makes another.
	Conn *conn.Conn
	// Log keeps the log of the server.
	Log *Log

	t    testing.TB
	args []string
	in   *instance.Instance
}

// Serve starts a server without files, with the directives args: "--requirepass", "secret". It ends with the test.
func Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	realserver.Program(t, program) // without the browser there is nothing to serve
	s := &Server{t: t, Log: &Log{}, args: append([]string{"--save", "", "--port", fmt.Sprint(realserver.FreePort(t)),
		"--http", fmt.Sprintf("127.0.0.1:%d", realserver.FreePort(t))}, args...)}
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

// Start starts the server again, on the same ports.
func (s *Server) Start(more ...string) {
	s.t.Helper()
	cfg, err := config.Load(append(s.args[:len(s.args):len(s.args)], more...), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.in, err = instance.Start(s.t.Context(), instance.Options{Config: cfg, Log: slog.New(slog.NewTextHandler(s.Log, nil))}); err != nil {
		s.t.Fatal(err)
	}
	s.Conn = s.in.Conn()
	s.Addr = s.in.Addrs()[0].String()
	s.URL = "http://" + s.in.AdminAddr().String() + "/console/"
}

// Stop ends the server, and with it all connections.
func (s *Server) Stop() {
	s.t.Helper()
	if s.in == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // time for the server to write its last replies
	defer cancel()
	if err := s.Conn.Close(); err != nil {
		s.t.Error(err)
	}
	if err := s.in.Shutdown(ctx); err != nil {
		s.t.Error(err)
	}
	s.in = nil
}

// Service returns the commands of the server.
func (s *Server) Service() *session.Service { return s.in.Service() }

// Do runs a command as the default user and returns its reply. The arguments are those of conn.Conn.Do. An
// error reply fails the test.
func (s *Server) Do(args ...any) resp.Value {
	s.t.Helper()
	return do(s.t, s.Conn, args)
}

// Try runs a command as Do does, and returns the error.
func (s *Server) Try(args ...any) (resp.Value, error) {
	s.t.Helper()
	return s.Conn.Do(s.t.Context(), args...)
}

func do(t testing.TB, c *conn.Conn, args []any) resp.Value {
	t.Helper()
	v, err := c.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// Front is the console of an embedded engine behind an http.Server of the test: the engine's time may be virtual,
// and the test may wrap the handler to inject faults.
type Front struct {
	URL     string
	Conn    *conn.Conn
	Console *console.Console
	t       testing.TB
}

// FrontOptions configure a Front. The zero value works.
type FrontOptions struct {
	Console console.Options
	Clock   clock.Clock // nil: the system's
	// Prefix is where the console is mounted, with slashes around it. "": /
	Prefix string
	// Wrap wraps the handler, prefix included.
	Wrap func(http.Handler) http.Handler
}

// Embed starts a Front. It ends with the test.
func Embed(t testing.TB, o FrontOptions) *Front {
	t.Helper()
	realserver.Program(t, program)
	c, err := embed.Open(t.Context(), "mem://", embed.Options{Clock: o.Clock})
	if err != nil {
		t.Fatal(err)
	}
	ui, err := console.New(embed.Of(c), o.Console)
	if err != nil {
		t.Fatal(err)
	}
	prefix := "/"
	if o.Prefix != "" {
		prefix = o.Prefix
	}
	mux := http.NewServeMux()
	mux.Handle(prefix, http.StripPrefix(strings.TrimSuffix(prefix, "/"), ui))
	var h http.Handler = mux
	if o.Wrap != nil {
		h = o.Wrap(h)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := ui.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Front{URL: web.URL + prefix, Conn: c, Console: ui, t: t}
}

// Do runs a command as Server.Do does.
func (f *Front) Do(args ...any) resp.Value {
	f.t.Helper()
	return do(f.t, f.Conn, args)
}

// Site serves a handler on a port of its own until the test ends: a page of another origin. It returns the URL, with a slash at its
// end. With a name below .test for the host, the origin is of another site as well.
func Site(t testing.TB, host string, h http.Handler) string {
	t.Helper()
	realserver.Program(t, program)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// Log keeps everything that is written to it. Any goroutine may use it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
