package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// patience limits every wait in these tests; no result depends on its length.
var patience = tier.Patience

// running is a server that runs like `ebb serve`.
type running struct {
	t      *testing.T
	socket string // of the Redis protocol
	admin  string // address of the HTTP pages
	stop   func() error
}

// startServe runs a server until the test ends or stop is called.
func startServe(t *testing.T, options ...string) *running {
	t.Helper()
	leaks.Check(t)
	dir, err := os.MkdirTemp("", "ebb")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, socket: dir + "/s"}
	ctx, cancel := context.WithCancel(context.Background())
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, append([]string{"--port", "0", "--unixsocket", r.socket}, options...), nil, out)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		_ = os.RemoveAll(dir)
		http.DefaultClient.CloseIdleConnections()
		leaks.Check(t)
		return err
	})
	t.Cleanup(func() { _ = r.stop() })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if where, ok := strings.CutPrefix(lines.Text(), "metrics: http://"); ok {
			r.admin = strings.TrimSuffix(where, "/metrics")
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return r
}

// get returns the status and the body of a page.
func (r *running) get(path string) (status int, body string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.admin+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// metric returns the value of a series of /metrics.
func (r *running) metric(series string) float64 {
	r.t.Helper()
	_, page := r.get("/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		r.t.Fatalf("no %s in\n%s", series, page)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// do sends commands in one pipeline and reads the replies.
func (r *running) do(commands ...string) {
	r.t.Helper()
	r.replies(commands...)
}

// ask sends a command and returns its reply.
func (r *running) ask(command string) string {
	r.t.Helper()
	return r.replies(command)[0].Str
}

func (r *running) replies(commands ...string) []resp.Value {
	r.t.Helper()
	c, err := net.Dial("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var out []byte
	for _, line := range commands {
		out = wire.AppendCommand(out, strings.Fields(line)...)
	}
	if _, err := c.Write(out); err != nil {
		r.t.Fatal(err)
	}
	in := bufio.NewReader(c)
	var all []resp.Value
	for range commands {
		v, err := wire.ReadValue(in)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func TestScrapesSeeAStormOfDeadlines(t *testing.T) {
	r := startServe(t, "--http", "127.0.0.1:0")
	if status, body := r.get("/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("%d %q", status, body)
	}
	before := r.metric(`ebb_expired_total{level="key"}`)
	var storm []string
	for i := range 500 {
		storm = append(storm, "SET storm:"+strconv.Itoa(i)+" v PX 20", "SET calm:"+strconv.Itoa(i)+" v EX 3600")
	}
	r.do(storm...)
	if got := r.metric(`redis_commands_total{cmd="set"}`); got != 1000 {
		t.Errorf("%v calls", got)
	}
	end := time.Now().Add(patience)
	for r.metric(`ebb_expired_total{level="key"}`)-before < 500 {
		if time.Now().After(end) {
			t.Fatal("the storm does not pass")
		}
	}
	for series, want := range map[string]float64{`redis_db_keys{db="db0"}`: 500, `redis_db_keys_expiring{db="db0"}`: 500,
		`ebb_expiry_backlog{of="keys"}`:             0,
		`ebb_expiry_lag_seconds_count{level="key"}`: 500, `ebb_expiry_lag_seconds_bucket{level="key",le="+Inf"}`: 500,
		`ebb_expiry_due{of="keys",within="1m"}`: 0,
		`redis_expired_keys_total`:              500, `ebb_stale_shards`: 0} {
		if got := r.metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "redis_instance_info{"} {
		if _, page := r.get("/metrics"); !strings.Contains(page, "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", r.admin); err == nil {
		_ = c.Close()
		t.Error("the address of the pages is still served")
	}
}

func TestProfilesAreOffByDefault(t *testing.T) {
	r := startServe(t, "--http", "127.0.0.1:0")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/vars"} {
		if status, _ := r.get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	_ = r.stop()
	r = startServe(t, "--http", "127.0.0.1:0", "--http-pprof", "yes")
	if status, body := r.get("/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(body, "goroutine profile:") {
		t.Errorf("%d %.100s", status, body)
	}
	_ = r.stop()
	r = startServe(t, "--http", "127.0.0.1:0", "--http-pprof", "yes", "--http-console", "no")
	if _, body := r.get("/"); !strings.Contains(body, `href="/debug/pprof/"`) {
		t.Errorf("the index lacks them:\n%s", body)
	}
}

func TestWithoutTheDirectiveNothingListens(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out greeting
	out.seen = cancel
	if err := serve(ctx, []string{"--port", "0", "--unixsocket", realserver.Socket(t)}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "metrics") || !strings.Contains(text, "stopping") {
		t.Error(text)
	}
}

// greeting collects the output of a server, and calls seen when the server prints that it listens.
type greeting struct {
	strings.Builder
	seen func()
}

func (g *greeting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), " serves ") {
		g.seen()
	}
	return g.Builder.Write(p)
}

func TestBadAddressesOfThePagesAreErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for address, want := range map[string]string{
		"x":               "must be a port",
		"127.0.0.1:x":     "must be a port",
		":9121":           "say 127.0.0.1:9121, or 0.0.0.0:9121",
		"70000":           "must be a port",
		"192.0.2.77:9121": "this machine does not have that address",
		l.Addr().String(): "already in use",
	} {
		err := serve(t.Context(), []string{"--port", "0", "--unixsocket", realserver.Socket(t), "--http", address}, nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--http %s: %v, want %q", address, err, want)
		}
	}
}
