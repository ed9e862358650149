package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/limit"
)

func TestMain(m *testing.M) { backends.Main(m) }

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })

func get(h http.Handler, addr string, forwarded ...string) *http.Response {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	for _, f := range forwarded {
		r.Header.Add("X-Forwarded-For", f)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func newLimiter(t *testing.T, c *ebb.Conn, name string, rate limit.Rate, o limit.Options) *limit.Limiter {
	t.Helper()
	o.Timeout = 15 * time.Second
	l, err := limit.New(c, name, rate, limit.FailClosed, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheRefusedAreToldWhenToComeBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l := newLimiter(t, b.Conn, b.Name("api"), limit.PerHour(2), limit.Options{})
		h := New(l, Options{Policy: `a"p"i`})(ok)
		for i := range 3 {
			r := get(h, "192.0.2.1:1234")
			if got := r.Header.Get("RateLimit-Policy"); got != `"a\"p\"i";q=2;w=3600` {
				t.Error(got)
			}
			got := r.Header.Get("RateLimit")
			if want := []string{`"a\"p\"i";r=1;t=1`, `"a\"p\"i";r=0;t=3`, `"a\"p\"i";r=0;t=3`}[i]; !strings.HasPrefix(got, want) {
				t.Errorf("%d: %s, want %s...", i, got, want)
			}
			if i < 2 && (r.StatusCode != 200 || r.Header.Get("Retry-After") != "") {
				t.Error(i, r.Status, r.Header)
			}
			if i == 2 {
				after, err := strconv.Atoi(r.Header.Get("Retry-After"))
				if r.StatusCode != 429 || err != nil || after > 1800 || after < 1700 {
					t.Error(r.Status, r.Header)
				}
			}
		}
		if r := get(h, "192.0.2.2:1234"); r.StatusCode != 200 {
			t.Error("another address:", r.Status)
		}
	})
}

func TestAClientDoesNotChooseItsAddress(t *testing.T) {
	const peer = "203.0.113.9:80"
	for _, c := range []struct {
		proxies int
		addr    string
		xff     []string
		want    string
	}{
		{0, peer, nil, "203.0.113.9"},
		{0, peer, []string{"192.0.2.1"}, "203.0.113.9"},
		{1, peer, nil, "203.0.113.9"},
		{1, peer, []string{"192.0.2.1"}, "192.0.2.1"},
		{1, peer, []string{"198.51.100.7, 192.0.2.1"}, "192.0.2.1"},
		{1, peer, []string{"198.51.100.7", "192.0.2.1:443"}, "192.0.2.1"},
		{2, peer, []string{"198.51.100.7, 192.0.2.1", "10.0.0.1"}, "192.0.2.1"},
		{2, peer, []string{"192.0.2.1"}, "203.0.113.9"},
		{1, peer, []string{"what, ever"}, "203.0.113.9"},
		{1, peer, []string{"[2001:db8:1:2:3::4]:5"}, "2001:db8:1:2::/64"},
		{0, "[2001:db8:1:2:3::4]:5", nil, "2001:db8:1:2::/64"},
		{0, "[fe80::1%eth0]:5", nil, "fe80::/64"},
		{0, "[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		{0, "@", nil, "@"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.addr
		r.Header["X-Forwarded-For"] = c.xff
		if got := ByAddress(c.proxies)(r); got != c.want {
			t.Errorf("%d proxies, %s, %q: %s, want %s", c.proxies, c.addr, c.xff, got, c.want)
		}
	}
}

func TestWhatCannotBeDecidedIs503(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l := newLimiter(t, b.Conn, b.Name("api"), limit.PerHour(1), limit.Options{})
		r := httptest.NewRequest("GET", "/", nil)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		w := httptest.NewRecorder()
		New(l)(ok).ServeHTTP(w, r.WithContext(ctx))
		if w.Code != http.StatusServiceUnavailable {
			t.Error(w.Code)
		}
	})
}

func TestCostsAndPolicies(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		inner := newLimiter(t, b.Conn, b.Name("inner"), limit.PerHour(100), limit.Options{})
		outer := newLimiter(t, b.Conn, b.Name("outer"), limit.PerMinute(60), limit.Options{Burst: 10})
		cost := int64(4)
		h := New(outer, Options{Policy: "outer", Cost: func(*http.Request) int64 { return cost }})(New(inner, Options{Policy: "inner"})(ok))
		r := get(h, "192.0.2.1:1")
		if got := strings.Join(r.Header.Values("RateLimit-Policy"), ", "); got != `"outer";q=10;w=10, "inner";q=100;w=3600` {
			t.Error(got)
		}
		if got := r.Header.Values("RateLimit")[0]; got != `"outer";r=6;t=4` {
			t.Error(got)
		}
		cost = 11
		if r := get(h, "192.0.2.1:1"); r.StatusCode != 429 || r.Header.Get("Retry-After") != "" {
			t.Error(r.Status, r.Header)
		}
		cost = 0
		if r := get(h, "192.0.2.1:1"); r.StatusCode != 200 {
			t.Error(r.Status)
		}
	})
}
