package adminhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestARefusalHasTheFormThatTheClientReads(t *testing.T) {
	g := &Guard{Next: http.HandlerFunc(hello)}
	ask := func(method, path, host, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
		r.Host = host
		r.Header.Set("Accept", accept)
		r.Header.Set("Origin", "http://evil.test")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	const browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
	for _, x := range []struct {
		method, path, host, accept string
		status                     int
		kind                       string
		want                       string
	}{
		{"GET", "/console/", "evil.test", browser, 421, "text/html; charset=utf-8", "<code>&#34;evil.test&#34;</code>"},
		{"GET", "/console/", "<b>\u202e", browser, 421, "text/html; charset=utf-8", `<code>&#34;&lt;b&gt;\u202e&#34;</code>`},
		{"GET", "/console/api/me", "evil.test", browser, 421, "application/json; charset=utf-8", `{"error":"this server has no such name`},
		{"GET", "/metrics", "evil.test", "*/*", 421, "text/plain; charset=utf-8", "this server has no such name"},
		{"GET", "/console/app.js", "evil.test", "*/*", 421, "text/plain; charset=utf-8", "http-hosts"},
		{"HEAD", "/console/", "evil.test", browser, 421, "text/html; charset=utf-8", ""},
	} {
		w := ask(x.method, x.path, x.host, x.accept)
		if w.Code != x.status || w.Header().Get("Content-Type") != x.kind || !strings.Contains(w.Body.String(), x.want) ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d %v %s", x.method, x.path, w.Code, w.Header(), w.Body)
		}
		if strings.Contains(w.Body.String(), "<b>") || x.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("%s %s: %s", x.method, x.path, w.Body)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/console/", nil)
	r.Header.Set("Accept", browser)
	w := httptest.NewRecorder()
	Refuse(w, r, http.StatusForbidden, "a page of another origin has sent this request")
	for _, want := range []string{"<h1>The server refuses this request</h1>", "<p>A page of another origin has sent this request.</p>"} {
		if w.Code != 403 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s\nwant %s", w.Code, w.Body, want)
		}
	}
}
