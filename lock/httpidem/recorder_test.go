package httpidem_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/lock/httpidem"
)

func TestAResponseThatIsTooLargeIsPassedOnAndTheHandlerDoesNotRunAgain(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{MaxResponse: 100}, func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			for range 30 {
				_, _ = io.WriteString(w, "0123456789")
			}
		})
		srv.post("k", "x").want(t, 200, strings.Repeat("0123456789", 30), false)
		a := srv.post("k", "x")
		a.want(t, http.StatusConflict, gone, false)
		if a.Header.Get("Retry-After") != "" || n.Load() != 1 {
			t.Error(a.Header, n.Load())
		}
		srv.post("k", "y").want(t, http.StatusUnprocessableEntity, used, false)
	})
}

func TestAFlushSendsWhatThereIsAndARepetitionGetsAll(t *testing.T) {
	onMem(t, func(s *site) {
		read := make(chan struct{})
		srv := s.serve(httpidem.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil { // by Unwrap
				s.t.Error(err)
			}
			_, _ = io.WriteString(w, "one ")
			if err := rc.Flush(); err != nil {
				s.t.Error(err)
			}
			<-read
			_, _ = io.WriteString(w, "two ")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "three")
		})
		r, err := http.NewRequestWithContext(s.t.Context(), "POST", srv.URL+"/pay", strings.NewReader("x"))
		must(s.t, err)
		r.Header.Set("Idempotency-Key", "k")
		resp, err := srv.Client().Do(r)
		must(s.t, err)
		defer resp.Body.Close()
		one := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, one); err != nil || string(one) != "one " {
			s.t.Fatal(string(one), err)
		}
		close(read)
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two three" {
			s.t.Error(string(rest), err)
		}
		for range 2 {
			a := srv.post("k", "x")
			if a.StatusCode == http.StatusConflict { // the client has the response before it is kept
				s.eventually(func() bool { a = srv.post("k", "x"); return a.StatusCode != http.StatusConflict })
			}
			a.want(s.t, 200, "one two three", true)
		}
	})
}

func TestWhatIsNoPlainResponse(t *testing.T) {
	onMem(t, func(s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{KeepCookies: true}, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			switch r.URL.Path {
			case "/hints":
				w.Header().Set("Link", "</style.css>; rel=preload")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("Trailer", "X-Sum")
				_, _ = io.WriteString(w, "hinted")
				w.Header().Set("X-Sum", "42")
				w.Header().Set(http.TrailerPrefix+"X-Late", "43")
			case "/empty":
				http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
				w.WriteHeader(http.StatusNoContent)
				if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
					s.t.Error(err)
				}
				w.WriteHeader(http.StatusTeapot) // the first counts
			case "/untyped":
				w.Header()["Content-Type"] = nil
				_, _ = io.WriteString(w, "<html>")
			case "/taken":
				conn, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					s.t.Error(err)
					return
				}
				defer conn.Close()
				if _, err := w.Write(nil); !errors.Is(err, http.ErrHijacked) {
					s.t.Error(err)
				}
				_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nmine!")
				_ = rw.Flush()
			}
		})
		send := func(path string) answer {
			a, err := srv.send("POST", path, "k"+path, "x")
			must(s.t, err)
			return a
		}
		a := send("/hints")
		a.want(s.t, 200, "hinted", false)
		if a.Trailer.Get("X-Sum") != "42" || a.Trailer.Get("X-Late") != "43" {
			s.t.Error(a.Trailer)
		}
		a = send("/hints")
		a.want(s.t, 200, "hinted", true)
		if len(a.Trailer) != 0 || a.Header.Get("Trailer") != "" {
			s.t.Error("trailers are not kept:", a.Trailer, a.Header)
		}
		for i := range 2 {
			a := send("/empty")
			a.want(s.t, http.StatusNoContent, "", i == 1)
			if a.Header.Get("Set-Cookie") != "a=1" {
				s.t.Error(a.Header)
			}
			a = send("/untyped")
			a.want(s.t, 200, "<html>", i == 1)
			if a.Header.Get("Content-Type") != "" {
				s.t.Error(a.Header)
			}
		}
		send("/taken").want(s.t, 200, "mine!", false)
		s.eventually(func() bool { return !strings.Contains(send("/taken").body, running) })
		send("/taken").want(s.t, http.StatusConflict, gone, false)
		if n.Load() != 4 {
			s.t.Error("the handler ran", n.Load())
		}
	})
}

func TestWhatNetHTTPRefusesIsNotKept(t *testing.T) {
	onMem(t, func(s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{}, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			if status, err := strconv.Atoi(r.URL.Path[1:]); err == nil {
				w.WriteHeader(status)
				return
			}
			w.Header().Set("Content-Length", "5")
			for _, part := range strings.Split(r.URL.Path[1:], ",") {
				_, err := io.WriteString(w, part)
				if tooLong := part == "world" || part == "!"; errors.Is(err, http.ErrContentLength) != tooLong {
					s.t.Errorf("%s: %v", part, err)
				}
			}
		})
		for _, path := range []string{"/0", "/99", "/1000"} { // net/http panics, and closes the connection
			for run := range 2 {
				n.Store(0)
				if a, err := srv.send("POST", path, "k"+path, "x"); err == nil || n.Load() != 1 {
					s.t.Errorf("%s, run %d: %v, %v, %d calls of the handler", path, run, a.Response, err, n.Load())
				}
			}
		}
		for i := range 2 {
			a, err := srv.send("POST", "/hello,world,!", "long", "x")
			must(s.t, err)
			a.want(s.t, 200, "hello", i > 0)
		}
		for range 2 {
			if a, err := srv.send("POST", "/hel,world,!", "short", "x"); !errors.Is(err, io.ErrUnexpectedEOF) || a.body != "hel" || a.replayed() {
				s.t.Errorf("%v, %q", err, a.body)
			}
		}
	})
}

func TestFieldsAreRepeatedByteForByte(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		srv := s.serve(httpidem.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Disposition"] = []string{"filename=\"caf\xe9.pdf\"", "filename=\"caf\u00e9.pdf\""}
			w.Header().Set("X-Text", "caf\u00e9")
		})
		first, again := srv.post("k", "x"), srv.post("k", "x")
		for _, name := range []string{"Content-Disposition", "X-Text"} {
			if got := again.Header[name]; !again.replayed() || !slices.Equal(got, first.Header[name]) || got == nil {
				t.Errorf("%s: %q, first %q", name, got, first.Header[name])
			}
		}
	})
}
