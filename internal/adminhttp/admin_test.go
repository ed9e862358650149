package adminhttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// patience bounds every wait in these tests; nothing depends on its length.
var patience = tier.Patience

// admin listens on a port of its own until the test ends.
func admin(t *testing.T) *Admin {
	t.Helper()
	a, err := ListenAdmin("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// request requests a page, on a connection of its own.
func request(t *testing.T, a *Admin, method, path string) (status int, body string, header http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text), reply.Header
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestHealthFollowsTheServersLife(t *testing.T) {
	a := admin(t)
	want := func(path string, status int, text string) {
		t.Helper()
		if got, body, _ := request(t, a, "GET", path); got != status || body != text {
			t.Errorf("%s: %d %q, want %d %q", path, got, body, status, text)
		}
	}
	want("/healthz", 503, "loading\n")
	want("/metrics", 503, "loading\n")
	want("/", 503, "loading\n")
	a.Ready(Page{Path: "/metrics", Title: "numbers & more", Handler: http.HandlerFunc(hello)})
	want("/healthz", 200, "ok\n")
	want("/metrics", 200, "hello")
	a.Leave()
	want("/healthz", 503, "shutting down\n")
	want("/metrics", 200, "hello")
}

func TestTheIndexLinksThePages(t *testing.T) {
	a := admin(t)
	a.Ready(Page{Path: "/metrics", Title: "numbers & more", Handler: http.HandlerFunc(hello)})
	_, body, header := request(t, a, "GET", "/")
	for _, want := range []string{`<a href="/healthz">`, `<a href="/metrics">/metrics</a> numbers &amp; more`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if got := header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Error(got)
	}
	if status, _, _ := request(t, a, "GET", "/debug/pprof/"); status != 404 {
		t.Errorf("a page that does not exist: %d", status)
	}
}

func TestOnlyReadsAreAnswered(t *testing.T) {
	a := admin(t)
	a.Ready(Page{Path: "/metrics", Title: "", Handler: http.HandlerFunc(hello)})
	for _, method := range []string{"POST", "DELETE", "OPTIONS"} {
		if status, _, h := request(t, a, method, "/metrics"); status != 405 || h.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, %v", method, status, h)
		}
	}
	if status, body, _ := request(t, a, "HEAD", "/healthz"); status != 200 || body != "" {
		t.Errorf("HEAD: %d %q", status, body)
	}
}

func TestCloseEndsAnswersThatTakeTooLong(t *testing.T) {
	a := admin(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	a.Ready(Page{Path: "/slow", Title: "", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(ended)
	})})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		req, _ := http.NewRequestWithContext(context.Background(), "GET", "http://"+a.Addr().String()+"/slow", nil)
		req.Close = true
		if reply, err := http.DefaultClient.Do(req); err == nil {
			_ = reply.Body.Close()
		}
	}()
	<-begun
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	<-asked
	b, err := ListenAdmin(a.Addr().String(), Options{})
	if err != nil {
		t.Fatalf("the port is not free again: %v", err)
	}
	_ = b.Close()
}

func TestAdminAddresses(t *testing.T) {
	for directive, want := range map[string]string{"": "", "0": "", "9121": "127.0.0.1:9121", "127.0.0.1:0": "127.0.0.1:0",
		"0.0.0.0:80": "0.0.0.0:80", "[::1]:80": "[::1]:80", "name:80": "name:80"} {
		if got := AdminAddr(directive); got != want {
			t.Errorf("%q is %q, want %q", directive, got, want)
		}
	}
	a := admin(t)
	_, err := ListenAdmin(a.Addr().String(), Options{})
	if err == nil || !strings.Contains(err.Error(), "already in use") || !strings.Contains(err.Error(), "--http") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// A page may have methods of its own, work while the server loads, and be what / leads to.
func TestAPageMayBeHome(t *testing.T) {
	a := admin(t)
	home := Page{Path: "/console/", Handler: http.HandlerFunc(hello), Methods: []string{"GET", "POST"}, Home: true}
	a.Loading(home)
	for range 2 {
		if status, body, _ := request(t, a, "POST", "/console/x"); status != 200 || body != "hello" {
			t.Errorf("POST: %d %s", status, body)
		}
		if status, _, h := request(t, a, "DELETE", "/console/"); status != 405 || h.Get("Allow") != "GET, POST" {
			t.Errorf("DELETE: %d %v", status, h)
		}
		if status, body, h := request(t, a, "GET", "/"); status != 200 || body != "hello" || h.Get("Content-Security-Policy") == "" {
			t.Errorf("the redirect leads to %d %s", status, body)
		}
		a.Ready(home, Page{Path: "/metrics", Handler: http.HandlerFunc(hello)})
	}
	b := admin(t)
	b.Loading(home)
	if status, body, _ := request(t, b, "GET", "/metrics"); status != 503 || body != "loading\n" {
		t.Errorf("another page while the server loads: %d %q", status, body)
	}
}

// A page of another origin cannot write by any page.
func TestOtherOriginsDoNotWrite(t *testing.T) {
	a := admin(t)
	a.Ready(Page{Path: "/w", Handler: http.HandlerFunc(hello), Methods: []string{"POST"}})
	for site, want := range map[string]int{"cross-site": 403, "same-origin": 200} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+a.Addr().String()+"/w", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Sec-Fetch-Site", site)
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = reply.Body.Close(); reply.StatusCode != want {
			t.Errorf("%s: %d", site, reply.StatusCode)
		}
	}
}
