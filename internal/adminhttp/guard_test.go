package adminhttp

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server's names depend on the address to which the connection was made.
func TestTheGuardKnowsTheServersNames(t *testing.T) {
	passed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, x := range []struct {
		listen, local, host, path, header string
		in                                bool
	}{
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:9121", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "localhost:80", "/debug/pprof/", "", true},
		{"127.0.0.1", "127.0.0.1", "LocalHost", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "127.1.2.3:1", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "[::1]:9121", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "[::1]", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "[::ffff:127.0.0.1]:1", "/", "", true},
		{"127.0.0.1", "127.0.0.1", "", "/", "", false},
		{"127.0.0.1", "127.0.0.1", ":9121", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "evil.test", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "evil.test:9121", "/debug/pprof/heap", "", false},
		{"127.0.0.1", "127.0.0.1", "localhost.evil.com", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1.evil.com", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "localhost.", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "192.0.2.7", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "::1", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "[::1", "/", "", false},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:", "/", "", false},
		{"0.0.0.0", "127.0.0.1", "localhost", "/", "", true},
		{"0.0.0.0", "192.0.2.7", "192.0.2.7:9121", "/", "", true},
		{"0.0.0.0", "::ffff:192.0.2.7", "192.0.2.7:9121", "/", "", true},
		{"0.0.0.0", "192.0.2.7", "192.0.2.8", "/", "", false},
		{"0.0.0.0", "192.0.2.7", "localhost", "/", "", false},
		{"0.0.0.0", "192.0.2.7", "127.0.0.1", "/", "", false},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/", "", false},
		{"::", "2001:db8::1", "[2001:db8::1]:80", "/", "", true},
		{"ebb.internal", "192.0.2.7", "EBB.internal:9121", "/", "", true},
		{"ebb.internal", "192.0.2.7", "evil.ebb.internal", "/", "", false},
		{"ebb.internal", "127.0.0.1", "ebb.internal", "/", "", true},
		// Programs of other machines may use any name for these two, and browsers may not.
		{"0.0.0.0", "192.0.2.7", "ebb-metrics:9121", "/metrics", "", true},
		{"0.0.0.0", "192.0.2.7", "ebb-metrics:9121", "/healthz", "", true},
		{"0.0.0.0", "192.0.2.7", "", "/healthz", "", true},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/metrics", "Origin", false},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/metrics", "Sec-Fetch-Site", false},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/healthz", "Sec-Fetch-Mode", false},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/metrics", "Accept-Encoding: gzip, deflate", false},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/metrics", "Accept-Encoding: GZIP;q=1,identity", true},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/healthz", "User-Agent: Mozilla/5.0", false},
		{"0.0.0.0", "192.0.2.7", "prometheus.test", "/metrics", "User-Agent: Prometheus/3.5.0", true},
		{"0.0.0.0", "192.0.2.7", "evil.test", "/metrics/", "", false},
		// On this machine a program needs a name of the server too, whatever it looks like. HTTP/1.0 has no Host.
		{"127.0.0.1", "127.0.0.1", "ebb-metrics:9121", "/metrics", "", false},
		{"127.0.0.1", "127.0.0.1", "evil.test", "/healthz", "", false},
		{"127.0.0.1", "127.0.0.1", "10.0.0.7:9121", "/metrics", "", true}, // a proxy beside the server passes the pod's address on
		{"127.0.0.1", "127.0.0.1", "[2001:db8::7]:9121", "/healthz", "", true},
		{"127.0.0.1", "127.0.0.1", "10.0.0.7.evil.test", "/metrics", "", false},
		{"127.0.0.1", "127.0.0.1", "10.0.0.7:9121", "/metrics", "Origin", false},
		{"127.0.0.1", "127.0.0.1", "10.0.0.7:9121", "/console/", "", false},
		{"127.0.0.1", "127.0.0.1", "evil.test", "/metrics", "User-Agent: Prometheus/3.5.0", false},
		{"127.0.0.1", "127.0.0.1", "evil.test", "/metrics", "Range: bytes=0-", false},
		{"::1", "::1", "evil.test", "/metrics", "", false},
		{"0.0.0.0", "::ffff:127.0.0.1", "evil.test", "/metrics", "", false},
		{"0.0.0.0", "", "evil.test", "/metrics", "", false}, // where it has arrived is not known
		{"127.0.0.1", "127.0.0.1", "localhost:9121", "/metrics", "User-Agent: Prometheus/3.5.0", true},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:9121", "/metrics", "", true},
		{"127.0.0.1", "127.0.0.1", "[::1]:9121", "/healthz", "", true},
		{"ebb-metrics", "127.0.0.1", "ebb-metrics:9121", "/metrics", "", true},
		{"127.0.0.1", "127.0.0.1", "", "/healthz", "", true},
		{"127.0.0.1", "127.0.0.1", "", "/healthz", "Sec-Fetch-Mode", false},
		{"127.0.0.1", "127.0.0.1", ":9121", "/healthz", "", false},
		{"127.0.0.1", "127.0.0.1", "localhost", "/metrics", "Sec-Fetch-Site", true},
	} {
		r := httptest.NewRequest("GET", "http://x"+x.path, nil)
		r.Host = x.host
		if name, value, _ := strings.Cut(x.header, ": "); name != "" {
			r.Header.Set(name, cmp.Or(value, "x"))
		}
		if local := net.ParseIP(x.local); local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: local, Port: 9121})))
			r.RemoteAddr = "198.51.100.9:40000"
			if local.IsLoopback() {
				r.RemoteAddr = net.JoinHostPort(x.local, "40000")
			}
		}
		w := httptest.NewRecorder()
		g := &Guard{Hosts: []string{x.listen}, Programs: programs, Next: passed}
		g.ServeHTTP(w, r)
		if in := w.Code == http.StatusOK; in != x.in || !in && w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%+v: %d", x, w.Code)
		}
	}
}

// All pages are behind the guard, even while the server loads.
func TestAPageOfAnotherSiteReadsNoAdminPage(t *testing.T) {
	a := admin(t)
	ask := func(path, host string) int {
		t.Helper()
		c, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n", path, host)
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		return reply.StatusCode
	}
	paths := []string{"/", "/metrics", "/healthz", "/debug/pprof/heap", "/nosuch", "http://" + a.Addr().String() + "/metrics"}
	for range 2 {
		for _, path := range paths[:5] {
			if got := ask(path, "evil.test"); got != http.StatusMisdirectedRequest {
				t.Errorf("%s: %d", path, got)
			}
		}
		a.Ready(Page{Path: "/metrics", Title: "", Handler: http.HandlerFunc(hello)},
			Page{Path: "/debug/pprof/", Title: "", Handler: http.HandlerFunc(hello)})
	}
	// An absolute target names the host, whatever Host says.
	if got := ask("http://evil.test/metrics", a.Addr().String()); got != http.StatusMisdirectedRequest {
		t.Errorf("an absolute target: %d", got)
	}
	for _, path := range paths {
		if got := ask(path, a.Addr().String()); got == http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", path, got)
		}
	}
}
