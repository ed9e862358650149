package httpidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func TestMain(m *testing.M) { backends.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a backend for the servers of a test. Their sockets need real time, even with mem://.
type site struct {
	t    *testing.T
	open func() *ebb.Conn
	name string
	log  *logged
}

// each runs a test on each kind of backend.
func each(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	t.Run("mem", func(t *testing.T) {
		c, err := ebb.Open(t.Context(), "mem://")
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		test(t, &site{t: t, open: func() *ebb.Conn { return c }, name: t.Name(), log: &logged{}})
	})
	backends.Except(t, []string{"mem"}, func(t *testing.T, b *backends.Backend) {
		test(t, &site{t: t, open: b.Open, name: b.Name("pay"), log: &logged{}})
	})
}

// onMem runs a test with mem:// only: the test concerns the middleware alone.
func onMem(t *testing.T, test func(s *site)) {
	t.Helper()
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	test(&site{t: t, open: func() *ebb.Conn { return c }, name: t.Name(), log: &logged{}})
}

// logged keeps the log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (s *site) once(c *ebb.Conn, o ...lock.OnceValueOptions[httpidem.Response]) *lock.OnceValue[httpidem.Response] {
	s.t.Helper()
	once, err := lock.NewOnceValue(c, s.name, time.Hour, o...)
	must(s.t, err)
	return once
}

// serve starts a server that stands for another program.
func (s *site) serve(o httpidem.Options, h http.HandlerFunc) *server {
	s.t.Helper()
	return s.serveOnce(s.once(s.open()), o, h)
}

func (s *site) serveOnce(once *lock.OnceValue[httpidem.Response], o httpidem.Options, h http.HandlerFunc) *server {
	s.t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	}
	return s.start(httpidem.New(once, o)(h))
}

func (s *site) start(h http.Handler) *server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	srv.Start()
	s.t.Cleanup(srv.Close)
	return &server{Server: srv, t: s.t}
}

type server struct {
	*httptest.Server
	t *testing.T
}

// answer is a response that was read.
type answer struct {
	*http.Response
	body string
}

func (a answer) replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// send sends a request; fields are names and values in turn.
func (s *server) send(method, path, key, body string, fields ...string) (answer, error) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	must(s.t, err)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return s.do(r)
}

func (s *server) do(r *http.Request) (answer, error) {
	resp, err := s.Client().Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp, string(b)}, err
}

func (s *server) post(key, body string, fields ...string) answer {
	s.t.Helper()
	a, err := s.send("POST", "/pay", key, body, fields...)
	if err != nil {
		s.t.Error(err)
		return answer{Response: &http.Response{Header: http.Header{}}}
	}
	return a
}

// want checks the status, the body (for a problem: its title), and whether the response was replayed.
func (a answer) want(t *testing.T, status int, body string, replayed bool) {
	t.Helper()
	got := a.body
	if a.Header.Get("Content-Type") == "application/problem+json" {
		var p struct {
			Title, Detail string
			Status        int
		}
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != a.StatusCode || p.Detail == "" {
			t.Error(a.body, err)
		}
		got = p.Title
	}
	if a.StatusCode != status || got != body || a.replayed() != replayed {
		t.Errorf("got %d %q, replayed: %v; want %d %q, %v", a.StatusCode, got, a.replayed(), status, body, replayed)
	}
}

const (
	running  = "A request is outstanding for this Idempotency-Key"
	used     = "Idempotency-Key is already used"
	tooLarge = "The request is too large"
	down     = "The request cannot be made repeatable now"
	gone     = "The response cannot be repeated"
)

// counter is a handler that counts its runs.
func counter(n *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "run %d", n.Add(1))
	}
}

func TestARepetitionGetsTheResponseOfTheFirstRun(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		pay := func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Location", "/payments/1")
			h.Add("X-Many", "a")
			h.Add("X-Many", "b")
			h.Set("Set-Cookie", "session=secret")
			h.Set("Connection", "X-Hop")
			h.Set("X-Hop", "1")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "<html>run %d of %s", n.Add(1), httpidem.Key(r))
		}
		first := s.serve(httpidem.Options{}, pay)
		second := s.start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // another middleware wraps ours
			w.Header().Set("X-Request-Id", "2")
			httpidem.New(s.once(s.open()))(http.HandlerFunc(pay)).ServeHTTP(w, r)
		}))
		for i, srv := range []*server{first, first, second} {
			a := srv.post([]string{`"k-1"`, `k-1`, ` "k-1" `}[i], "amount=7")
			a.want(t, http.StatusCreated, "<html>run 1 of k-1", i > 0)
			if a.Header.Get("Location") != "/payments/1" || strings.Join(a.Header["X-Many"], ",") != "a,b" ||
				a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Error(i, a.Header)
			}
			if a.ContentLength != int64(len(a.body)) || a.Header.Get("Date") == "" {
				t.Error(i, a.ContentLength, a.Header)
			}
			if got := a.Header.Get("Set-Cookie") + a.Header.Get("X-Hop"); got != "" != (i == 0) {
				t.Error(i, "fields of one connection or one moment:", a.Header)
			}
		}
		second.post("k-2", "amount=7").want(t, http.StatusCreated, "<html>run 2 of k-2", false)
		if a := first.post("k-2", "amount=7"); a.Header.Get("X-Request-Id") != "" {
			t.Error("a field of other middleware was kept:", a.Header)
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} { // they are repeatable by definition
			if a, err := first.send(method, "/pay", "k-1", ""); err != nil || a.replayed() {
				t.Error(method, err, a.Header)
			}
		}
		first.post("", "amount=7").want(t, http.StatusCreated, "<html>run 6 of ", false)
		if s.log.String() != "" {
			t.Error(s.log)
		}
	})
}

func TestOfManyRequestsToTwoProgramsOneRunsTheHandler(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		servers := []*server{s.serve(httpidem.Options{}, counter(&n)), s.serve(httpidem.Options{Wait: time.Minute}, counter(&n))}
		var clients sync.WaitGroup
		for i := range 16 {
			clients.Go(func() {
				for {
					a := servers[i%2].post("k", "x")
					if a.StatusCode == http.StatusConflict && i%2 == 0 {
						continue
					}
					if a.StatusCode != 200 || a.body != "run 1" {
						t.Error(a.Status, a.body)
					}
					return
				}
			})
		}
		clients.Wait()
		if n.Load() != 1 {
			t.Errorf("the handler ran %d times", n.Load())
		}
	})
}

func TestWhileTheFirstRunsARepetitionGets409WithRetryAfter(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		begun, end := make(chan struct{}), make(chan struct{})
		slow := func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-end
			_, _ = io.WriteString(w, "done")
		}
		first := s.serve(httpidem.Options{}, slow)
		second := s.serve(httpidem.Options{RetryAfter: 1500 * time.Millisecond, Docs: "https://example.com/keys"}, slow)
		patient := s.serve(httpidem.Options{Wait: time.Minute}, slow)
		hasty := s.serve(httpidem.Options{Wait: 20 * time.Millisecond}, slow)
		var clients sync.WaitGroup
		clients.Go(func() { first.post("k", "x").want(t, 200, "done", false) })
		<-begun
		a := second.post("k", "x")
		a.want(t, http.StatusConflict, running, false)
		if a.Header.Get("Retry-After") != "2" || a.Header.Get("Link") != `<https://example.com/keys>; rel="describedby"; type="text/html"` ||
			!strings.Contains(a.body, `"type":"https://example.com/keys"`) {
			t.Error(a.Header, a.body)
		}
		hasty.post("k", "x").want(t, http.StatusConflict, running, false)
		clients.Go(func() { patient.post("k", "x").want(t, 200, "done", true) })
		close(end)
		clients.Wait()
		second.post("k", "x").want(t, 200, "done", true)
	})
}

func TestAnotherRequestWithAUsedKeyGets422(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{}, func(w http.ResponseWriter, _ *http.Request) { // it reads no body
			fmt.Fprintf(w, "run %d", n.Add(1))
		})
		srv.post("k", "amount=7").want(t, 200, "run 1", false)
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/pay", "amount=8"}, {"POST", "/pay", "amount=70"}, {"POST", "/pay", ""}, {"POST", "/pay", "amount="},
			{"PATCH", "/pay", "amount=7"}, {"POST", "/pay/2", "amount=7"}, {"POST", "/pay?x=1", "amount=7"},
		} {
			a, err := srv.send(c.method, c.path, "k", c.body)
			must(t, err)
			a.want(t, http.StatusUnprocessableEntity, used, false)
		}
		srv.post("k", "amount=7").want(t, 200, "run 1", true)
	})
}

func TestAMissingOrMalformedKeyGets400(t *testing.T) {
	onMem(t, func(s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{Required: true, MaxKey: 20}, counter(&n))
		srv.post("", "x").want(s.t, http.StatusBadRequest, "Idempotency-Key is missing", false)
		for _, key := range []string{`""`, `"a`, `"a" b`, `"a";x=1`, `"a\b"`, `"ä"`, `a b`, `a,b`, `a;b`, `a"b`, `ä`, `"a", "b"`,
			strings.Repeat("x", 21), `:` + `\`} {
			srv.post(key, "x").want(s.t, http.StatusBadRequest, "Idempotency-Key is malformed", false)
		}
		r, err := http.NewRequestWithContext(s.t.Context(), "POST", srv.URL, nil)
		must(s.t, err)
		r.Header["Idempotency-Key"] = []string{"a", "a"}
		a, err := srv.do(r)
		must(s.t, err)
		a.want(s.t, http.StatusBadRequest, "Idempotency-Key is malformed", false)
		r.Header["Idempotency-Key"] = []string{""}
		a, err = srv.do(r)
		must(s.t, err)
		a.want(s.t, http.StatusBadRequest, "Idempotency-Key is malformed", false)
		if n.Load() != 0 {
			s.t.Error("the handler ran")
		}
		srv.post(`"a \"quoted\\ key"`, "x").want(s.t, 200, "run 1", false)
		srv.post(strings.Repeat("x", 20), "x").want(s.t, 200, "run 2", false)
	})
}

func TestARequestThatIsTooLargeIsRefusedAndNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{MaxRequest: 100}, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				var most *http.MaxBytesError
				if !errors.As(err, &most) || most.Limit != 100 {
					t.Error(err)
				}
				http.Error(w, "too much", http.StatusRequestEntityTooLarge)
			}
		})
		srv.post("k", strings.Repeat("x", 101)).want(t, http.StatusRequestEntityTooLarge, tooLarge, false)
		if n.Load() != 0 {
			t.Error("the handler ran")
		}
		chunked := func(size int) answer {
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", size))) // of unknown length
			r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/pay", body)
			must(t, err)
			r.Header.Set("Idempotency-Key", "k")
			a, err := srv.do(r)
			must(t, err)
			return a
		}
		chunked(101).want(t, http.StatusRequestEntityTooLarge, "too much\n", false)
		chunked(100).want(t, 200, "", false) // the key is free
		chunked(101).want(t, http.StatusRequestEntityTooLarge, tooLarge, false)
		srv.post("k", strings.Repeat("x", 100)).want(t, 200, "", true)
	})
}

func TestAStatusAfterWhichARepetitionMaySucceedIsNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		status := func(w http.ResponseWriter, r *http.Request) {
			var code int
			_, _ = fmt.Fscan(r.Body, &code)
			w.WriteHeader(code)
			fmt.Fprintf(w, "run %d", n.Add(1))
		}
		srv, all := s.serve(httpidem.Options{}, status), s.serve(httpidem.Options{Keep: func(int) bool { return true }}, status)
		for code, kept := range map[int]bool{200: true, 302: true, 400: true, 401: false, 403: true, 404: true, 408: false, 409: true, 422: true,
			425: false, 429: false, 500: false, 502: false, 503: false} {
			n.Store(0)
			key, body := fmt.Sprint("k", code), fmt.Sprint(code)
			srv.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			srv.post(key, body).want(t, code, "run 1", false)
			again := map[bool]string{true: "run 1", false: "run 2"}[kept]
			srv.post(key, body).want(t, code, again, kept)
			n.Store(0)
			all.Client().CheckRedirect = srv.Client().CheckRedirect
			all.post(key+"-all", body).want(t, code, "run 1", false)
			all.post(key+"-all", body).want(t, code, "run 1", true)
		}
	})
}

func TestTheSameKeyOfTwoCallersIsTwoKeys(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		srv := s.serve(httpidem.Options{Scope: func(r *http.Request) string { return r.Header.Get("Authorization") }}, counter(&n))
		srv.post("k", "x", "Authorization", "ann").want(t, 200, "run 1", false)
		srv.post("k", "x", "Authorization", "bob").want(t, 200, "run 2", false)
		srv.post("k", "x").want(t, 200, "run 3", false)
		srv.post("k", "x", "Authorization", "ann").want(t, 200, "run 1", true)
		srv.post("k", "x", "Authorization", "bob").want(t, 200, "run 2", true)
		// A caller without a scope that writes the keys of the others as its own.
		seen := 0
		for key, err := range s.open().Scan(t.Context(), "*"+s.name[len(s.name)-3:]+"*") {
			must(t, err)
			_, rest, _ := strings.Cut(strings.Trim(key, "{}"), s.name+":")
			seen++
			if strings.Contains(key, "ann") {
				t.Error("the scope is stored as it is:", key)
			}
			if a := srv.post(rest, "x"); a.replayed() {
				t.Error(rest, a.body)
			}
		}
		if seen < 3 {
			t.Error("only", seen, "keys were found")
		}
	})
}

func TestAHandlerThatPanicsGivesUpTheTurn(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		var fails atomic.Bool
		fails.Store(true)
		srv := s.serve(httpidem.Options{}, func(w http.ResponseWriter, r *http.Request) {
			if fails.Load() {
				_, _ = io.WriteString(w, "half of it")
				panic(http.ErrAbortHandler)
			}
			counter(&n)(w, r)
		})
		if a, err := srv.send("POST", "/pay", "k", "x"); err == nil {
			t.Error("the client got", a.Status, a.body)
		}
		fails.Store(false)
		srv.post("k", "x").want(t, 200, "run 1", false)
		srv.post("k", "x").want(t, 200, "run 1", true)
	})
}

func TestAHandlerWhoseContextEndsInTheMiddleGivesUpTheTurn(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		var how atomic.Value
		once := s.once(s.open())
		idem := httpidem.New(once)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch how.Load() {
			case "nothing": // it returns as soon as its context ends
				<-r.Context().Done()
				return
			case "half":
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, "half of it")
				<-r.Context().Done()
				return
			}
			counter(&n)(w, r)
		}))
		srv := s.start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a middleware with a deadline wraps ours
			within := time.Minute
			if how.Load() != "" {
				within = 20 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(r.Context(), within)
			defer cancel()
			idem.ServeHTTP(w, r.WithContext(ctx))
		}))
		how.Store("nothing")
		srv.post("k", "x").want(t, http.StatusServiceUnavailable, "The request was not finished", false)
		how.Store("half")
		if a, err := srv.send("POST", "/pay", "k", "x"); err == nil {
			t.Error("the client got", a.Status, a.body)
		}
		how.Store("")
		srv.post("k", "x").want(t, 200, "run 1", false)
		srv.post("k", "x").want(t, 200, "run 1", true)
	})
}

func TestAClientThatDisconnectsInTheMiddleGetsTheResponseLater(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for _, cancels := range []bool{false, true} {
			var n atomic.Int64
			begun, disconnected, over := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
			inner := httpidem.New(s.once(s.open()), httpidem.Options{CancelWithClient: cancels})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if n.Add(1) == 1 {
					close(begun)
					<-disconnected
					if cancels {
						<-r.Context().Done()
						return
					}
				}
				if err := r.Context().Err(); err != nil {
					t.Error("the handler's context has ended:", err)
				}
				fmt.Fprintf(w, "run %d", n.Load())
			}))
			srv := s.start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Load() == 0 { // the server has seen that the client has gone
					defer context.AfterFunc(r.Context(), func() { close(disconnected) })()
				}
				inner.ServeHTTP(w, r)
				over <- struct{}{}
			}))
			key := fmt.Sprint("k", cancels)
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/pay", strings.NewReader("x"))
			must(t, err)
			r.Header.Set("Idempotency-Key", key)
			var client sync.WaitGroup
			client.Go(func() {
				if _, err := srv.do(r); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			<-begun
			cancel()
			client.Wait()
			<-over
			want := map[bool]string{false: "run 1", true: "run 2"}[cancels]
			srv.post(key, "x").want(t, 200, want, !cancels)
		}
	})
}

// eventually waits until other goroutines have done their work.
func (s *site) eventually(ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 30_000 {
		if ok() {
			return
		}
		<-tick.C
	}
	s.t.Fatal("it does not happen")
}

func TestWithoutTheBackendARequestIsRefusedOrRuns(t *testing.T) {
	onMem(t, func(s *site) {
		c, f := backends.Faulty(s.open())
		var n atomic.Int64
		h := func(w http.ResponseWriter, r *http.Request) {
			if httpidem.Key(r) == "loses" {
				f.LoseRequests(1 << 20)
			}
			counter(&n)(w, r)
		}
		closed, open := s.serveOnce(s.once(c), httpidem.Options{}, h), s.serveOnce(s.once(c), httpidem.Options{FailOpen: true}, h)
		f.LoseRequests(1 << 20)
		a := closed.post("k", "x")
		a.want(t, http.StatusServiceUnavailable, down, false)
		if a.Header.Get("Retry-After") != "1" || n.Load() != 0 {
			t.Error(a.Header, n.Load())
		}
		open.post("k", "x").want(t, 200, "run 1", false)
		if log := s.log.String(); strings.Count(log, "cannot look up the Idempotency-Key") != 2 {
			t.Error(log)
		}
		f.LoseRequests(0)
		closed.post("k", "x").want(t, 200, "run 2", false)
		closed.post("k", "x").want(t, 200, "run 2", true)
		// A finished handler's response is sent even if it cannot be kept.
		closed.post("loses", "x").want(t, 200, "run 3", false)
		if log := s.log.String(); !strings.Contains(log, "a response was not kept") {
			t.Error(log)
		}
	})
}

func TestWhereTheBackendRefusesWritesANewKeyGets503(t *testing.T) {
	onMem(t, func(s *site) {
		set := func(n int) {
			_, err := s.open().Do(s.t.Context(), "CONFIG", "SET", "min-replicas-to-write", n)
			must(s.t, err)
		}
		var n atomic.Int64
		closed, open := s.serve(httpidem.Options{}, counter(&n)), s.serve(httpidem.Options{FailOpen: true}, counter(&n))
		closed.post("before", "x").want(s.t, 200, "run 1", false)
		set(1)
		closed.post("k", "x").want(s.t, http.StatusServiceUnavailable, down, false)
		closed.post("before", "x").want(s.t, 200, "run 1", true)
		open.post("k", "x").want(s.t, 200, "run 2", false)
		set(0)
	})
}

// silent is a backend that does not answer.
type silent struct{ conn.Driver }

func (silent) Do(ctx context.Context, _ []any) (ebb.Value, error) {
	<-ctx.Done()
	return ebb.Value{}, ctx.Err()
}

func TestABackendThatDoesNotAnswerIsGivenUpAfterTheTimeout(t *testing.T) {
	onMem(t, func(s *site) {
		o := httpidem.Options{Timeout: 20 * time.Millisecond}
		srv := s.serveOnce(s.once(ebb.Use(silent{s.open().Driver()})), o, func(http.ResponseWriter, *http.Request) {
			s.t.Error("the handler ran")
		})
		srv.post("k", "x").want(s.t, http.StatusServiceUnavailable, down, false)
		if log := s.log.String(); !strings.Contains(log, "no decision in time") {
			s.t.Error(log)
		}
	})
}

func TestAResponseWhoseLeaseIsLostIsAnsweredAndNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		once := s.once(s.open())
		srv := s.serveOnce(once, httpidem.Options{}, func(w http.ResponseWriter, r *http.Request) {
			if n.Load() == 0 {
				must(t, once.Delete(r.Context(), "-:k"))
			}
			counter(&n)(w, r)
		})
		srv.post("k", "x").want(t, 200, "run 1", false)
		if log := s.log.String(); !strings.Contains(log, "the lease is lost") {
			t.Error(log)
		}
		srv.post("k", "x").want(t, 200, "run 2", false)
	})
}

func TestARequestThatDidNotArriveWholeIsNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var n atomic.Int64
		over := make(chan struct{}, 2)
		idem := httpidem.New(s.once(s.open()))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, "incomplete", http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, "run %d", n.Add(1))
		}))
		srv := s.start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idem.ServeHTTP(w, r)
			over <- struct{}{}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body, end := io.Pipe()
		r, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/pay", body)
		must(t, err)
		r.Header.Set("Idempotency-Key", "k")
		var client sync.WaitGroup
		client.Go(func() {
			if a, err := srv.do(r); err == nil {
				t.Error(a.Status)
			}
		})
		_, err = io.WriteString(end, "half")
		must(t, err)
		must(t, end.CloseWithError(errors.New("the client dies")))
		client.Wait()
		<-over
		srv.post("k", "half and the rest").want(t, 200, "run 1", false)
		srv.post("k", "half and the rest").want(t, 200, "run 1", true)
	})
}

func TestBadOptionsAreAPanic(t *testing.T) {
	onMem(t, func(s *site) {
		once := s.once(s.open())
		for name, call := range map[string]func(){
			"no once":  func() { httpidem.New(nil) },
			"two":      func() { httpidem.New(once, httpidem.Options{}, httpidem.Options{}) },
			"negative": func() { httpidem.New(once, httpidem.Options{MaxKey: -1}) },
			"a time":   func() { httpidem.New(once, httpidem.Options{Wait: -1}) },
		} {
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, ebb.ErrArgument) || !strings.HasPrefix(err.Error(), "httpidem: New: ") {
						s.t.Error(name, err)
					}
				}()
				call()
			}()
		}
	})
}

// Middleware that runs before this one knows the caller: its scope counts, even an empty one. Without it, the
// option decides.
func TestTheScopeThatARequestHasReplacesThatOfTheOptions(t *testing.T) {
	onMem(t, func(s *site) {
		runs := 0
		h := httpidem.New(s.once(s.open()), httpidem.Options{Scope: func(*http.Request) string { return "ann" }})(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				runs++
				_, _ = fmt.Fprintf(w, "%d %s %s", runs, httpidem.Key(r), httpidem.KeyFrom(r.Context()))
			}))
		get := func(change func(r *http.Request) *http.Request) string {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, change(r))
			return w.Body.String()
		}
		for _, want := range []struct{ scope, body string }{{"-", "1 k k"}, {"bob", "2 k k"}, {"", "3 k k"}, {"ann", "1 k k"}, {"bob", "2 k k"}, {"", "3 k k"}} {
			got := get(func(r *http.Request) *http.Request {
				if want.scope == "-" {
					return r
				}
				return httpidem.WithScope(r, want.scope)
			})
			if got != want.body {
				t.Errorf("scope %q: %q, want %q", want.scope, got, want.body)
			}
		}
	})
}
