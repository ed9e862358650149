// Package limittest tests the middleware that limits requests in an HTTP framework. A
// module of contrib describes how to use its framework, and Run does the rest.
//
// Start reading at Framework.
package limittest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// Framework is an HTTP framework whose handlers get a context C. Run calls the functions
// with a C inside a handler.
type Framework[C any] struct {
	// Serve makes an app with one page, "/", behind middleware with some options. The
	// page calls visit and says "hello".
	Serve func(l *limit.Limiter, o httplimit.OptionsFor[C], visit func()) Get
	// Header returns a field of the request.
	Header func(c C, name string) string
	// Answer replies with a text, from a handler.
	Answer func(c C, status int, text string) error
}

// Get requests the page of an app from an address, with header fields: names and values.
type Get func(t testing.TB, from string, header ...string) Answer

// Answer is the reply of an app.
type Answer struct {
	Code   int
	Body   string
	Header http.Header
}

// Handler returns a Get that calls h without a network.
func Handler(h http.Handler) Get {
	return func(_ testing.TB, from string, header ...string) Answer {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return Answer{w.Code, w.Body.String(), w.Header()}
	}
}

// New returns a limiter by the name of "api" that fails closed, in memory that ends with
// the test, and its Conn.
func New(t testing.TB, rate limit.Rate) (*ebb.Conn, *limit.Limiter) {
	t.Helper()
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l, err := limit.New(c, "api", rate, limit.FailClosed)
	if err != nil {
		t.Fatal(err)
	}
	return c, l
}

// Run tests a framework's middleware.
func Run[C any](t *testing.T, f Framework[C]) {
	t.Run("WhatIsRefusedEndsTheChainAndSaysWhenToComeBack", f.refuses)
	t.Run("OptionsSeeTheContext", f.sees)
	t.Run("AProxyOfOnesOwnIsBelieved", f.believes)
	t.Run("WithoutABackendNothingPasses", f.fails)
}

func (f Framework[C]) refuses(t *testing.T) {
	_, l := New(t, limit.PerHour(2))
	visits := 0
	get := f.Serve(l, httplimit.OptionsFor[C]{}, func() { visits++ })
	for i := range 2 {
		a := get(t, "192.0.2.1:1234")
		if a.Code != http.StatusOK || a.Body != "hello" || a.Header.Get("RateLimit-Policy") != `"api";q=2;w=3600` {
			t.Fatalf("request %d: %+v", i, a)
		}
	}
	if a := get(t, "192.0.2.1:1234"); a.Code != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" ||
		a.Header.Get("RateLimit") == "" {
		t.Errorf("the third: %+v", a)
	}
	if a := get(t, "192.0.2.2:1234", "X-Forwarded-For", "192.0.2.1"); a.Code != http.StatusOK {
		t.Errorf("another client: %+v", a)
	}
	// The middleware does not trust a header that any client can write.
	if a := get(t, "192.0.2.1:1234", "X-Forwarded-For", "192.0.2.99"); a.Code != http.StatusTooManyRequests {
		t.Errorf("a client with an invented address: %+v", a)
	}
	if visits != 3 {
		t.Errorf("%d visits, want 3", visits)
	}
}

func (f Framework[C]) sees(t *testing.T) {
	_, l := New(t, limit.PerHour(10))
	get := f.Serve(l, httplimit.OptionsFor[C]{
		Key: func(c C) string { return f.Header(c, "User") },
		Cost: func(c C) int64 {
			return map[string]int64{"": 10, "nothing": 0, "too much": 11}[f.Header(c, "Cost")]
		},
		Policy:  "users",
		Refused: func(c C) error { return f.Answer(c, http.StatusTooManyRequests, "no, "+f.Header(c, "User")) },
	}, func() {})
	if a := get(t, "192.0.2.1:1", "User", "ann"); a.Code != http.StatusOK || a.Header.Get("RateLimit") != `"users";r=0;t=3600` {
		t.Errorf("%+v", a)
	}
	if a := get(t, "192.0.2.1:1", "User", "ann"); a.Code != http.StatusTooManyRequests || a.Body != "no, ann" {
		t.Errorf("again: %+v", a)
	}
	if a := get(t, "192.0.2.1:1", "User", "ann", "Cost", "nothing"); a.Code != http.StatusOK || a.Header.Get("RateLimit") != "" {
		t.Errorf("what costs nothing: %+v", a)
	}
	if a := get(t, "192.0.2.1:1", "User", "bob", "Cost", "too much"); a.Code != http.StatusTooManyRequests || a.Body != "no, bob" ||
		a.Header.Get("Retry-After") != "" {
		t.Errorf("what costs too much: %+v", a)
	}
	if a := get(t, "192.0.2.1:1", "User", "bob"); a.Code != http.StatusOK {
		t.Errorf("another user: %+v", a)
	}
}

func (f Framework[C]) believes(t *testing.T) {
	_, l := New(t, limit.PerHour(1))
	get := f.Serve(l, httplimit.OptionsFor[C]{Proxies: 1}, func() {})
	for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
		if a := get(t, "198.51.100.1:80", "X-Forwarded-For", "203.0.113.7, "+client); a.Code != http.StatusOK {
			t.Errorf("%s: %+v", client, a)
		}
	}
	if a := get(t, "198.51.100.1:80", "X-Forwarded-For", "203.0.113.8", "X-Forwarded-For", "192.0.2.1"); a.Code != http.StatusTooManyRequests {
		t.Errorf("again: %+v", a)
	}
}

func (f Framework[C]) fails(t *testing.T) {
	c, l := New(t, limit.PerHour(10))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	visits := 0
	visit := func() { visits++ }
	if a := f.Serve(l, httplimit.OptionsFor[C]{}, visit)(t, "192.0.2.1:1"); a.Code != http.StatusServiceUnavailable {
		t.Errorf("%+v", a)
	}
	var failed error
	a := f.Serve(l, httplimit.OptionsFor[C]{Failed: func(c C, err error) error {
		failed = err
		return f.Answer(c, http.StatusTeapot, "no")
	}}, visit)(t, "192.0.2.1:1")
	if a.Code != http.StatusTeapot || a.Body != "no" || !errors.Is(failed, ebb.ErrClosed) {
		t.Errorf("%+v, %v", a, failed)
	}
	if visits != 0 {
		t.Error("a request passed")
	}
}
