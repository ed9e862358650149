// Package sessionstest has what the tests of session stores share: contrib/scs and contrib/gorilla. Start reading
// at Browser.
package sessionstest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"
)

// Browser keeps the cookies of an app.
type Browser struct {
	Cookies map[string]string
	Last    *http.Response // of Get
	t       testing.TB
}

// NewBrowser returns a browser with a copy of some cookies, which may be nil.
func NewBrowser(t testing.TB, cookies map[string]string) *Browser {
	b := &Browser{Cookies: map[string]string{}, t: t}
	maps.Copy(b.Cookies, cookies)
	return b
}

// Get requests a page of an app and returns its body.
func (b *Browser) Get(h http.Handler, path string) string {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, value := range b.Cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b.Last = w.Result()
	for _, c := range b.Last.Cookies() {
		if c.MaxAge < 0 {
			delete(b.Cookies, c.Name)
		} else {
			b.Cookies[c.Name] = c.Value
		}
	}
	return w.Body.String()
}

// Want fails the test unless a page has the status 200 and a body.
func (b *Browser) Want(h http.Handler, path, body string) {
	b.t.Helper()
	if got := b.Get(h, path); got != body || b.Last.StatusCode != http.StatusOK {
		b.t.Errorf("%s: got %d %q, want 200 %q", path, b.Last.StatusCode, got, body)
	}
}

// Visit visits the page /visit of an app over sockets, with net/http's own cookies. The page counts the visits of a session.
func Visit(t *testing.T, h http.Handler) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := srv.Client()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Jar = jar
	for i := range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/visit", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(i+1, " visits"); string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
}
