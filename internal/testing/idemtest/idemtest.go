// Package idemtest tests the middleware that makes requests repeatable in an HTTP framework. A module of
// contrib describes how to use its framework, and Run does the rest.
//
// Start reading at Framework.
package idemtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

// Framework is an HTTP framework.
type Framework struct {
	// Serve makes an app that serves POST / with a page. Before the page come, in this order, a handler that sets
	// the header field Outer to "yes", and tells after the chain the status of the response to seen; and the
	// middleware, with some options and the header field User as the scope.
	Serve func(once *lock.OnceValue[httpidem.Response], o httpidem.Options, page Page, seen func(status int)) Do
}

// Page returns the reply to a request with a key, as the framework shows it to the handler, and a body.
type Page func(key, body string) Reply

// Reply is the behaviour of a page: it sets the header field Name, and a cookie, and writes Text with Status; or, if Fails, returns
// the framework's error with Status and Text, or what stands for that in the framework.
type Reply struct {
	Status int
	Name   string
	Text   string
	Fails  bool
}

// Do sends a request to an app.
type Do func(t testing.TB, r *http.Request) *http.Response

// Handler returns the Do of an app that is an http.Handler.
func Handler(h http.Handler) Do {
	return func(_ testing.TB, r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
}

// Run tests a framework's middleware.
func Run(t *testing.T, f Framework) {
	t.Run("ARepetitionGetsTheResponseOfTheFirstRun", f.repeats)
	t.Run("TheReplyToAnErrorIsTheResponse", f.errors)
	t.Run("AnotherRequestOrNoKeyIsAnotherMatter", f.tells)
	t.Run("EachCallerHasItsOwnKeys", f.scopes)
	t.Run("ALargeResponseIsSentAndNotRepeated", f.large)
}

// visits is an app and what it has done.
type visits struct {
	do   Do
	runs int
	keys []string // that the page has seen
	seen []int    // statuses that the handler before the middleware has seen
}

func (f Framework) open(t *testing.T, o httpidem.Options, page func(run int, body string) Reply) *visits {
	t.Helper()
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	once, err := lock.NewOnceValue[httpidem.Response](c, "api", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	v := &visits{}
	v.do = f.Serve(once, o, func(key, body string) Reply {
		v.runs++
		v.keys = append(v.keys, key)
		return page(v.runs, body)
	}, func(status int) { v.seen = append(v.seen, status) })
	return v
}

// answer is the response to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

func (v *visits) post(t *testing.T, key, user, body string) answer {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/?q=1", strings.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	if user != "" {
		r.Header.Set("User", user)
	}
	response := v.do(t, r)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(text), response.Header}
}

// wants fails the test unless an answer has a status and a body, and is a repetition or not.
func (a answer) wants(t *testing.T, status int, body string, replayed bool) {
	t.Helper()
	if a.status != status || a.body != body || (a.header.Get("Idempotent-Replayed") == "true") != replayed {
		t.Errorf("%d %q, %v; want %d %q, a repetition: %v", a.status, a.body, a.header, status, body, replayed)
	}
	if got := a.header.Values("Outer"); len(got) != 1 || got[0] != "yes" {
		t.Errorf("the field of the handler before the middleware is %q, want yes", got)
	}
}

func (f Framework) repeats(t *testing.T) {
	v := f.open(t, httpidem.Options{}, func(run int, body string) Reply {
		return Reply{Status: http.StatusCreated, Name: fmt.Sprint(run), Text: fmt.Sprint(run, body)}
	})
	for i := range 3 {
		a := v.post(t, `"k"`, "", "order")
		a.wants(t, http.StatusCreated, "1order", i > 0)
		if got := a.header.Get("Name"); got != "1" {
			t.Errorf("the field of the page is %q, want 1", got)
		}
		if got := len(a.header.Values("Set-Cookie")); got != 1-min(i, 1) {
			t.Errorf("response %d has %d cookies: the first has it, and a repetition has not", i, got)
		}
	}
	if v.runs != 1 || v.keys[0] != "k" {
		t.Errorf("the page ran %d times, with the keys %q", v.runs, v.keys)
	}
	if got := fmt.Sprint(v.seen); got != "[201 201 201]" {
		t.Errorf("the handler before the middleware saw %s, want 201 each time", got)
	}
}

func (f Framework) errors(t *testing.T) {
	v := f.open(t, httpidem.Options{}, func(run int, body string) Reply {
		if body == "broken" && run < 3 {
			return Reply{Status: http.StatusInternalServerError, Text: "broken", Fails: true}
		}
		return Reply{Status: http.StatusPaymentRequired, Text: "declined", Fails: body != "broken"}
	})
	for range 2 { // the page fails twice, and then does not
		if a := v.post(t, "a", "", "broken"); a.status != http.StatusInternalServerError || a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("a response of a server's fault: %+v", a)
		}
	}
	v.post(t, "a", "", "broken").wants(t, http.StatusPaymentRequired, "declined", false)
	first := v.post(t, "b", "", "order")
	second := v.post(t, "b", "", "order")
	if first.status != http.StatusPaymentRequired || !strings.Contains(first.body, "declined") {
		t.Errorf("the reply to an error: %+v", first)
	}
	second.wants(t, first.status, first.body, true)
	if v.runs != 4 {
		t.Errorf("the page ran %d times, want 4", v.runs)
	}
	if got := fmt.Sprint(v.seen); got != "[500 500 402 402 402]" {
		t.Errorf("the handler before the middleware saw %s", got)
	}
}

func (f Framework) tells(t *testing.T) {
	v := f.open(t, httpidem.Options{MaxRequest: 100}, func(run int, body string) Reply {
		return Reply{Status: http.StatusOK, Text: fmt.Sprint(run, body)}
	})
	v.post(t, "k", "", "order").wants(t, http.StatusOK, "1order", false)
	if a := v.post(t, "k", "", "another"); a.status != http.StatusUnprocessableEntity || a.header.Get("Outer") != "yes" {
		t.Errorf("another body: %+v", a)
	}
	problem := func(a answer) bool {
		return strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json")
	}
	if a := v.post(t, "white space", "", "order"); a.status != http.StatusBadRequest || !problem(a) {
		t.Errorf("a malformed key: %+v", a)
	}
	if a := v.post(t, "long", "", strings.Repeat("x", 101)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %+v", a)
	}
	v.post(t, "", "", "order").wants(t, http.StatusOK, "2order", false)
	v.post(t, "", "", "order").wants(t, http.StatusOK, "3order", false)
	if got := fmt.Sprintf("%q", v.keys); got != `["k" "" ""]` {
		t.Errorf("the page saw the keys %s", got)
	}

	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	if response := v.do(t, r); response.StatusCode != http.StatusBadRequest {
		t.Errorf("two keys: %d, want 400", response.StatusCode)
	}
}

func (f Framework) scopes(t *testing.T) {
	v := f.open(t, httpidem.Options{}, func(run int, _ string) Reply { return Reply{Status: http.StatusOK, Text: fmt.Sprint(run)} })
	v.post(t, "k", "ann", "order").wants(t, http.StatusOK, "1", false)
	v.post(t, "k", "bob", "order").wants(t, http.StatusOK, "2", false)
	v.post(t, "k", "ann", "order").wants(t, http.StatusOK, "1", true)
	v.post(t, "k", "bob", "order").wants(t, http.StatusOK, "2", true)
}

func (f Framework) large(t *testing.T) {
	text := strings.Repeat("x", 2000)
	v := f.open(t, httpidem.Options{MaxResponse: 1000}, func(int, string) Reply { return Reply{Status: http.StatusOK, Text: text} })
	v.post(t, "k", "", "order").wants(t, http.StatusOK, text, false)
	if a := v.post(t, "k", "", "order"); a.status != http.StatusConflict || a.header.Get("Retry-After") != "" {
		t.Errorf("a repetition of a request whose response was too large: %+v", a)
	}
	if v.runs != 1 {
		t.Errorf("the page ran %d times, want 1", v.runs)
	}
}
