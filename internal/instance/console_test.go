package instance

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// startConsole starts a server with the admin pages, and returns a function that requests a page.
func startConsole(t *testing.T, client *http.Client, scheme string, options ...string) (ask func(method, path, body string) (int, string)) {
	t.Helper()
	socket := realserver.Socket(t)
	cfg, err := config.Load(append([]string{"--port", "0", "--unixsocket", socket, "--http", "127.0.0.1:0"}, options...), nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Start(t.Context(), Options{Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutDown(t, in) })
	return asking(t, in, client, scheme)
}

// asking returns a function that requests an admin page of an instance.
func asking(t *testing.T, in *Instance, client *http.Client, scheme string) func(method, path, body string) (int, string) {
	return func(method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+in.AdminAddr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Content-Type", "application/json")
		reply, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reply.Body.Close() }()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
}

func TestAServerHasAConsole(t *testing.T) {
	ask := startConsole(t, http.DefaultClient, "http", "--http-console-label", "production #c0392b", "--http-console-read-only", "yes",
		"--http-console-values", "no")
	if status, body := ask("GET", "/", ""); status != 200 || !strings.Contains(body, "<title>ebb</title>") ||
		!strings.Contains(body, "app.js") {
		t.Errorf("/ is %d %.200s", status, body)
	}
	status, body := ask("GET", "/console/api/me", "")
	for _, want := range []string{`"label":{"text":"production","color":"#c0392b"}`, `"readOnly":true`, `"values":false`} {
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("%d, no %s in %s", status, want, body)
		}
	}
	if status, body := ask("POST", "/console/api/do", `{"db":0,"argv":[{"t":"SET"},{"t":"k"},{"t":"v"}]}`); status != 403 ||
		!strings.Contains(body, "READONLY") {
		t.Errorf("a write: %d %s", status, body)
	}
	if status, body := ask("POST", "/console/api/do", `{"db":0,"argv":[{"t":"DBSIZE"}]}`); status != 200 {
		t.Errorf("a read: %d %s", status, body)
	}
	if status, _ := ask("GET", "/metrics", ""); status != 200 {
		t.Errorf("/metrics: %d", status)
	}
}

func TestAServerMayHaveNoConsole(t *testing.T) {
	ask := startConsole(t, http.DefaultClient, "http", "--http-console", "no")
	if status, body := ask("GET", "/", ""); status != 200 || !strings.Contains(body, "/metrics") {
		t.Errorf("/ is %d %s", status, body)
	}
	if status, _ := ask("GET", "/console/api/me", ""); status != 404 {
		t.Errorf("the console is there: %d", status)
	}
}

// Only the console takes samples: a server without it does not.
func TestAServerWithoutAConsoleTakesNoSamples(t *testing.T) {
	for _, o := range [][]string{{"--http", "127.0.0.1:0", "--http-console", "no"}, {"--http", ""}} {
		cfg, err := config.Load(append([]string{"--port", "0", "--unixsocket", realserver.Socket(t)}, o...), nil)
		if err != nil {
			t.Fatal(err)
		}
		in, err := Start(t.Context(), Options{Config: cfg})
		if err != nil {
			t.Fatal(err)
		}
		if in.console != nil {
			t.Errorf("%q: there is a console", o)
		}
		shutDown(t, in)
	}
}

// While a server loads, the console shows that, and runs the commands that a loading server allows.
func TestTheConsoleShowsThatTheServerLoads(t *testing.T) {
	dir := t.TempDir()
	in, socket, end := openIn(t, "--dir", dir)
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	dial(t, socket).ask("SET", "large", strings.Repeat("x", quickLoad))
	end()
	in, _, end = openIn(t, "--dir", dir, "--http", "127.0.0.1:0")
	defer end()
	ask := asking(t, in, http.DefaultClient, "http")
	const exists = `{"db":0,"argv":[{"t":"EXISTS"},{"t":"large"}]}`
	if status, body := ask("GET", "/console/api/me", ""); status != 200 || !strings.Contains(body, `"loading":{"done":0`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask("POST", "/console/api/do", exists); status != 200 || !strings.Contains(body, `"error":true`) ||
		!strings.Contains(body, "LOADING") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask("POST", "/console/api/do", `{"db":0,"argv":[{"t":"ECHO"},{"t":"hi"}]}`); status != 200 ||
		!strings.Contains(body, `"hi"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask("GET", "/", ""); status != 200 || !strings.Contains(body, "app.js") {
		t.Errorf("/ is %d %.100s", status, body)
	}
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, body := ask("GET", "/console/api/me", ""); status != 200 || !strings.Contains(body, `"loading":null`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask("POST", "/console/api/do", exists); status != 200 || !strings.Contains(body, `{"i":"1"}`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestTheAdminPagesSpeakHTTPS(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.Make(t, "ebb")
	for name, pem := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	protocol, cookie := "", ""
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // the certificate has no names; the next lines compare it
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			c, err := x509.ParseCertificate(raw[0])
			if err == nil {
				_, err = c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			}
			return err
		},
	}}}
	seen := *client
	seen.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		reply, err := client.Transport.RoundTrip(r)
		if err == nil {
			protocol = reply.Proto
			for _, k := range reply.Cookies() {
				cookie = k.String()
			}
		}
		return reply, err
	})
	ask := startConsole(t, &seen, "https", "--http-tls", "yes", "--tls-cert-file", filepath.Join(dir, "cert.pem"),
		"--tls-key-file", filepath.Join(dir, "key.pem"), "--requirepass", "secret")
	if status, body := ask("GET", "/healthz", ""); status != 200 || body != "ok\n" || protocol != "HTTP/2.0" {
		t.Errorf("%d %q by %s", status, body, protocol)
	}
	if status, body := ask("POST", "/console/api/login", `{"user":"default","password":"secret"}`); status != 204 {
		t.Errorf("login: %d %s", status, body)
	}
	for _, want := range []string{"__Host-ebb-", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Strict"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("no %s in the cookie %s", want, cookie)
		}
	}
}

// roundTrip is a function that implements http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
