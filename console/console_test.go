package console

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/resp"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bench is a console on an engine whose time is a manual clock.
type bench struct {
	*Console
	t     *testing.T
	conn  *conn.Conn
	clock *clock.Manual
	admin func(args ...string) resp.Value // runs a command as the default user

	pages   *httptest.Server // of listen
	expired int              // the number of keys that expire has made
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	clock := clock.NewManual(time.Unix(1_700_000_000, 0))
	over, err := embed.Open(t.Context(), "mem://", embed.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return newBenchOn(t, over, clock, o)
}

// newBenchOn makes a console on a connection of an engine.
func newBenchOn(t *testing.T, over *conn.Conn, clock *clock.Manual, o Options) *bench {
	t.Helper()
	c, err := build(embed.Of(over), o) // the tests call tick themselves
	if err != nil {
		t.Fatal(err)
	}
	c.hub.tick()
	s := c.svc.NewSession(nil)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.Closed(nil)
		if err := over.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{Console: c, t: t, conn: over, clock: clock, admin: func(args ...string) resp.Value {
		argv := make([][]byte, len(args))
		for i, a := range args {
			argv[i] = []byte(a)
		}
		return s.Do(argv...)
	}}
}

// restart replaces the console by a new one on the same engine.
func (b *bench) restart() {
	b.t.Helper()
	c, err := build(embed.Of(b.conn), Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	old := b.Console
	b.Console = c
	if err := old.Close(); err != nil {
		b.t.Error(err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Error(err)
		}
	})
}

// request makes a request like a browser on this machine.
func (b *bench) request(method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(b.t.Context(), method, "http://localhost/"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	at := net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9121})
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
}

// ask sends a request and returns the status and the body.
func (b *bench) ask(method, path, body string) (int, string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, b.request(method, path, body))
	return w.Code, w.Body.String()
}

// serveTo sends a request and returns the status.
func (b *bench) serveTo(r *http.Request) int {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Code
}

func decode(t *testing.T, body string, x any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), x); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

func TestLookingChangesNothing(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "v", "EX", "100", "SLIDE")
	b.clock.Advance(40 * time.Second)
	who, err := b.svc.WithoutLogin()
	if err != nil {
		t.Fatal(err)
	}
	v := b.newViewer(who, "127.0.0.1:1")
	defer v.revoke()
	k, err := b.as(v, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer k.release()
	if got, err := k.do(context.Background(), "GET", "k"); err != nil || got.Str != "v" {
		t.Fatal(got, err)
	}
	if got := b.admin("PTTL", "k"); got.Int != 60000 {
		t.Errorf("the deadline is %d ms away: looking has moved it", got.Int)
	}
	if got := b.admin("OBJECT", "IDLETIME", "k"); got.Int != 40 {
		t.Errorf("the idle time is %d s", got.Int)
	}
}

func TestTheShellKnowsEveryCommand(t *testing.T) {
	b := newBench(t, Options{})
	status, body := b.ask("GET", "api/commands", "")
	var all struct{ Rows []commandRow }
	if err := json.Unmarshal([]byte(body), &all); err != nil || status != 200 || len(all.Rows) < 400 {
		t.Fatalf("%d, %d rows, %v", status, len(all.Rows), err)
	}
	for _, row := range all.Rows {
		status, body := b.ask("GET", "api/help?name="+strings.ReplaceAll(row.Name, " ", "+"), "")
		if status != 200 || !strings.Contains(body, row.Name) {
			t.Fatalf("%s: %d %s", row.Name, status, body)
		}
		if strings.HasPrefix(row.Syntax, row.Name) {
			t.Errorf("the syntax of %s is %q", row.Name, row.Syntax)
		}
	}
	if status, body := b.ask("GET", "api/help?name=nonsense", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := b.ask("GET", "api/nonsense", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if status, _ := b.ask("POST", "api/help", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("%d", status)
	}
}

func mustJSON(t *testing.T, x any) []byte {
	t.Helper()
	out, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
