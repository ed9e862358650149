package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/server"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// start runs a server on a free port until the test ends.
func start(t *testing.T, c server.Config) *server.Server {
	t.Helper()
	c.Addr = "127.0.0.1:0"
	s, err := server.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client is a connection of the Redis protocol.
type client struct {
	t  *testing.T
	nc net.Conn
	r  *bufio.Reader
}

func dial(t *testing.T, addr net.Addr) *client {
	t.Helper()
	nc, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(tier.Patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(words ...string) {
	c.t.Helper()
	if _, err := c.nc.Write(wire.AppendCommand(nil, words...)); err != nil {
		c.t.Fatal(err)
	}
}

// ask returns a reply as text; an error begins with its code.
func (c *client) ask(words ...string) string {
	c.t.Helper()
	c.send(words...)
	v, err := wire.ReadValue(c.r)
	if err != nil {
		c.t.Fatalf("%q: %v", words, err)
	}
	if len(v.Elems) > 0 {
		v = v.Elems[len(v.Elems)-1]
	}
	return v.Str
}

func TestAServerKeepsItsDataFromOneStartToTheNext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	for name, c := range map[string]server.Config{
		"appended":      {Dir: dir, Fsync: "always"},
		"in a snapshot": {Dir: dir + "2", Directives: []string{"appendonly no", "save 3600 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c)
			if got := dial(t, s.Addr()).ask("SET", "k", name); got != "OK" {
				t.Fatal(got)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Wait(); err != nil {
				t.Error(err)
			}
			if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
				t.Error("the address is still served")
			}
			s = start(t, c)
			if got := dial(t, s.Addr()).ask("GET", "k"); got != name {
				t.Errorf("GET k is %q", got)
			}
		})
	}
}

func TestFieldsAndDirectivesAreWhatCONFIGGETSays(t *testing.T) {
	s := start(t, server.Config{MaxMemory: 64 << 20, RequirePass: `a "secret" #1`, Directives: []string{
		"maxmemory 1gb", "# a comment", "", "maxmemory-policy allkeys-lru", "user ann on >pw ~* +@all", "hz 20"}})
	c := dial(t, s.Addr())
	if got := c.ask("PING"); !strings.HasPrefix(got, "NOAUTH") {
		t.Errorf("without the password: %q", got)
	}
	if got := c.ask("AUTH", "ann", "pw"); got != "OK" {
		t.Error(got)
	}
	if got := c.ask("AUTH", `a "secret" #1`); got != "OK" {
		t.Error(got)
	}
	_, port, _ := net.SplitHostPort(s.Addr().String())
	for name, want := range map[string]string{"maxmemory": "67108864", "maxmemory-policy": "allkeys-lru", "port": port,
		"bind": "127.0.0.1", "hz": "20",
		"appendonly": "no", "save": ""} {
		if got := c.ask("CONFIG", "GET", name); got != want {
			t.Errorf("CONFIG GET %s is %q, want %q", name, got, want)
		}
	}
}

func TestAClientsSHUTDOWNEndsTheServer(t *testing.T) {
	s := start(t, server.Config{Dir: t.TempDir()})
	c := dial(t, s.Addr())
	c.ask("SET", "k", "v")
	c.send("SHUTDOWN")
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	<-s.Done()
	if err := errors.Join(s.Shutdown(t.Context()), s.Close()); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestCloseEndsAShutdownThatWaitsForAReplica(t *testing.T) {
	s := start(t, server.Config{Directives: []string{"shutdown-timeout 100000", "repl-diskless-sync-delay 0"}})
	replica, c := dial(t, s.Addr()), dial(t, s.Addr())
	replica.send("PSYNC", "?", "-1") // it never acknowledges anything
	for !strings.Contains(c.ask("INFO", "replication"), "state=online") {
	}
	if got := c.ask("SET", "k", "v"); got != "OK" {
		t.Fatal(got)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	for strings.Contains(c.ask("INFO", "clients"), "paused_reason:none") {
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown says %v", err)
	}
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPagesAreShownBesideTheMetrics(t *testing.T) {
	s := start(t, server.Config{Directives: []string{"http 127.0.0.1:0", "http-pprof yes"}, Pages: map[string]http.Handler{
		"/debug/pprof/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "profiles") })}})
	h := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for path, want := range map[string]string{"/metrics": "\nredis_up 1\n", "/healthz": "ok\n", "/debug/pprof/heap": "profiles"} {
		r, err := h.Get(fmt.Sprintf("http://%s%s", s.AdminAddr(), path))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v, %.200s", path, r.Status, err, text)
		}
	}
}

func TestListeningIsCalledBeforeTheDataIsThere(t *testing.T) {
	var at []net.Addr
	s := start(t, server.Config{Listening: func(addrs []net.Addr) { at = addrs }})
	if len(at) != 1 || at[0].String() != s.Addr().String() {
		t.Errorf("%v, and the server is at %v", at, s.Addr())
	}
}

func TestErrorsOfAStartSayWhatToChange(t *testing.T) {
	used, dir := start(t, server.Config{}), t.TempDir()
	start(t, server.Config{Dir: dir})
	for _, x := range []struct {
		c    server.Config
		want string
	}{
		{server.Config{Addr: "6379"}, `Config.Addr is "6379", and must be host:port`},
		{server.Config{Addr: used.Addr().String()}, "address already in use"},
		{server.Config{Addr: "127.0.0.1:0", Dir: dir}, "is in use by process"},
		{server.Config{Addr: "127.0.0.1:0", Fsync: "never"}, `'appendfsync "never"': argument(s) must be one of the following`},
		{server.Config{Addr: "127.0.0.1:0", Directives: []string{"hz 10", "maxmemry 1gb"}},
			"server.Config line 2: 'maxmemry 1gb': unknown directive; did you mean maxmemory?"},
		{server.Config{Addr: "127.0.0.1:0", File: filepath.Join(dir, "none.conf")}, "can't open config file"},
		{server.Config{Addr: "127.0.0.1:0", Directives: []string{"http-pprof yes"}}, "pprof.Index"},
	} {
		s, err := server.Start(t.Context(), x.c)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.c, err, x.want)
		}
	}
}

func TestConnCallsTheServersOwnEngine(t *testing.T) {
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Conn()
	if err := c.Set(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	again := s.Conn() // the Close of a Conn leaves the server running
	if v, err := again.Get(t.Context(), "k"); err != nil || v != "v" {
		t.Error(v, err)
	}
	if err := errors.Join(again.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
