package instance

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// lines collects the output of a test's logger.
type lines struct {
	mu   sync.Mutex // guards the fields below
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// transports starts an instance on each of the two transports, and returns functions that connect to them.
func transports(t *testing.T, log io.Writer, options ...string) map[string]func() client {
	t.Helper()
	socket := realserver.Socket(t)
	cfg, err := config.Load(append([]string{"--port", "0", "--unixsocket", socket}, options...), nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutDown(t, in) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in.srv.Start(ln)
	return map[string]func() client{
		"loops":    func() client { return dialTo(t, "unix", socket) },
		"portable": func() client { return dialTo(t, "tcp", ln.Addr().String()) },
	}
}

// rest returns all bytes that the server still sends before it closes the connection.
func (c client) rest() string {
	c.t.Helper()
	all, _ := io.ReadAll(c.r) // a reset counts as the end
	return string(all)
}

func TestAConnectionThatSendsHTTPIsClosedBeforeItsBodyIsRead(t *testing.T) {
	var log lines
	body := "SET fromapage 1\r\n"
	requests := map[string][]string{
		"form":              {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n" + body},
		"in pieces":         {"PO", "ST", " / HTTP/1.1\r", "\n", body},
		"lower case":        {"post / http/1.1\r\n" + body},
		"GET":               {"GET / HTTP/1.1\r\nAccept: */*\r\n\r\n" + body},
		"OPTIONS":           {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + body},
		"PUT without space": {"\r\n\r\nPUT /x\r\nHost:x\r\n\r\n" + body},
		"HTTP/2":            {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + body},
		"its own method":    {"SET /fromapage HTTP/1.1\r\nAccept: x\r\n\r\n" + body},
		"host alone":        {"hOsT: x\r\n" + body},
		"as an array":       {"*1\r\n$4\r\nPOST\r\n" + body, "*2\r\n$5\r\nHost:\r\n$1\r\nx\r\n" + body},
		"behind commands":   {"PING\r\nPOST /\r\n" + body},
		"behind MULTI":      {"MULTI\r\nSET fromapage 1\r\nHost: x\r\nEXEC\r\n" + body},
		"behind SUBSCRIBE":  {"HELLO 3\r\nSUBSCRIBE c\r\nHost: x\r\n" + body},
	}
	for name, dial := range transports(t, &log) {
		for what, pieces := range requests {
			c := dial()
			for _, p := range pieces {
				if _, err := io.WriteString(c, p); err != nil {
					break // the connection is closed
				}
			}
			if said := c.rest(); said != "" {
				t.Errorf("%s, %s: the server says %q", name, what, said)
			}
		}
		c := dial()
		if v := c.ask("EXISTS", "fromapage", "/fromapage"); v.Int != 0 {
			t.Errorf("%s: a page wrote %v", name, c.ask("KEYS", "*"))
		}
		for _, allowed := range []string{"SET HTTP/1.1 x\r\n", "SET /k HTTP/1.1\r\n"} { // an earlier command on the connection was not HTTP
			if _, err := io.WriteString(c, allowed); err != nil {
				t.Fatal(err)
			}
			if v := c.read(); v.Str != "OK" {
				t.Errorf("%s: %q is answered %v", name, allowed, v)
			}
		}
		if v := dial().ask("SET", "/k", "HTTP/1.1"); v.Str != "OK" {
			t.Errorf("%s: a client's first request, which is an array, is answered %v", name, v)
		}
	}
	if n := log.count("Possible SECURITY ATTACK"); n != 1 {
		t.Errorf("%d lines in the log, want one in a minute", n)
	}
}

func TestHTTPIsNoticedBeforeAUserHasLoggedIn(t *testing.T) {
	for name, dial := range transports(t, io.Discard, "--requirepass", "secret") {
		c := dial()
		send(t, c, "POST / HTTP/1.1\r\n")
		if said := c.rest(); said != "" {
			t.Errorf("%s: the server says %q to a client that has not logged in", name, said)
		}
		c = dial()
		c.ask("AUTH", "secret")
		send(t, c, "Host: x\r\nPING\r\n")
		if said := c.rest(); said != "" {
			t.Errorf("%s: the server says %q to a client that has logged in", name, said)
		}
	}
}

func TestTheAdminPortRefusesRESP(t *testing.T) {
	a, err := adminhttp.ListenAdmin("127.0.0.1:0", adminhttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Ready()
	for _, request := range []string{"*1\r\n$4\r\nPING\r\n\r\n\r\n", "PING\r\n\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"} {
		c := dialTo(t, "tcp", a.Addr().String())
		send(t, c, request)
		if said := c.rest(); !strings.HasPrefix(said, "HTTP/1.1 400 ") {
			t.Errorf("%q is answered %q, want 400 and the end", request, said)
		}
	}
}

// dialTo connects with a deadline for the whole test.
func dialTo(t *testing.T, network, addr string) client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	c := tidy(t, nc)
	return client{t, c, bufio.NewReader(c)}
}
