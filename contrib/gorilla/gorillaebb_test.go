package gorillaebb_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/securecookie"
	gorilla "github.com/gorilla/sessions"

	gorillaebb "github.com/ebbdb/ebb/contrib/gorilla"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/sessionstest"
)

func TestMain(m *testing.M) {
	gob.Register(profile{})
	backends.Main(m)
}

type profile struct{ Name string }

var keys = [][]byte{[]byte("0123456789abcdef0123456789abcdef"), []byte("fedcba9876543210")}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, c *ebb.Conn, name string, opts ...gorillaebb.Options) *gorillaebb.Store {
	t.Helper()
	s, err := gorillaebb.New(c, name, keys, opts...)
	must(t, err)
	return s
}

// app is a program with sessions: it logs users in and out. before runs before each Save.
func app(store *gorillaebb.Store, before func()) http.Handler {
	mux := http.NewServeMux()
	page := func(path string, serve func(w http.ResponseWriter, r *http.Request, s *gorilla.Session) error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s, err := store.Get(r, "login")
			if err == nil {
				err = serve(w, r, s)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	page("/", func(w http.ResponseWriter, _ *http.Request, s *gorilla.Session) error {
		p, _ := s.Values["profile"].(profile)
		_, err := fmt.Fprintf(w, "hello %s, new: %v", p.Name, s.IsNew)
		return err
	})
	page("/visit", func(w http.ResponseWriter, r *http.Request, s *gorilla.Session) error {
		n, _ := s.Values["visits"].(int)
		s.Values["visits"] = n + 1
		if before != nil {
			before()
		}
		if err := gorilla.Save(r, w); err != nil { // all sessions of the request
			return err
		}
		_, err := fmt.Fprint(w, n+1, " visits")
		return err
	})
	page("/flash", func(w http.ResponseWriter, r *http.Request, s *gorilla.Session) error {
		old := s.Flashes()
		s.AddFlash("saved")
		if err := s.Save(r, w); err != nil {
			return err
		}
		_, err := fmt.Fprint(w, old...)
		return err
	})
	page("/login", func(w http.ResponseWriter, r *http.Request, s *gorilla.Session) error {
		if err := store.Renew(r, s); err != nil {
			return err
		}
		s.Values["profile"] = profile{r.FormValue("user")}
		return s.Save(r, w)
	})
	page("/logout", func(w http.ResponseWriter, r *http.Request, s *gorilla.Session) error {
		s.Options.MaxAge = -1
		return s.Save(r, w)
	})
	return mux
}

func TestASessionOfGorillaIsSharedByPrograms(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for _, o := range []gorillaebb.Options{{}, {Idle: time.Hour}} {
			name := b.Name(fmt.Sprint("session", o.Idle))
			first, second := app(open(t, b.Conn, name, o), nil), app(open(t, b.Open(), name, o), nil)
			ann, bob := sessionstest.NewBrowser(t, nil), sessionstest.NewBrowser(t, nil)
			ann.Want(first, "/", "hello , new: true")
			ann.Want(first, "/visit", "1 visits")
			ann.Want(second, "/visit", "2 visits")
			ann.Want(second, "/flash", "")
			ann.Want(first, "/flash", "saved")
			before := maps.Clone(ann.Cookies)
			ann.Want(first, "/login?user=ann", "")
			c := ann.Last.Cookies()[0]
			if c.Name != "login" || c.MaxAge != gorillaebb.DefaultMaxAge || !c.HttpOnly || !c.Secure ||
				c.SameSite != http.SameSiteLaxMode || c.Path != "/" {
				t.Error(c)
			}
			ann.Want(second, "/", "hello ann, new: false")
			ann.Want(second, "/visit", "3 visits")
			attacker := sessionstest.NewBrowser(t, before) // it has planted its session before the login
			attacker.Want(first, "/", "hello , new: true")
			bob.Want(second, "/login?user=bob", "")

			old := sessionstest.NewBrowser(t, ann.Cookies)
			ann.Want(first, "/logout", "")
			if len(ann.Cookies) != 0 {
				t.Error("the browser keeps", ann.Cookies)
			}
			old.Want(second, "/", "hello , new: true")
			bob.Want(second, "/", "hello bob, new: false")
			bob.Want(second, "/logout", "")
			for key, err := range b.Scan(b.Context(), "*"+name[len(name)-5:]+"*") {
				t.Error("left:", key, err)
			}
		}
	})
}

func TestARequestThatRunsDuringALogoutDoesNotBringTheSessionBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		name := b.Name("session")
		ann := sessionstest.NewBrowser(t, nil)
		plain := app(open(t, b.Conn, name), nil)
		ann.Want(plain, "/login?user=ann", "")
		tab := sessionstest.NewBrowser(t, ann.Cookies)
		slow := app(open(t, b.Open(), name), func() { ann.Want(plain, "/logout", "") })
		if got := tab.Get(slow, "/visit"); tab.Last.StatusCode != http.StatusInternalServerError ||
			!strings.Contains(got, gorillaebb.ErrEnded.Error()) {
			t.Error(tab.Last.Status, got)
		}
		tab.Want(plain, "/", "hello , new: true")
	})
}

func TestACookieThatWasNotMadeByTheStoreIsANewSessionWithAnError(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		name := b.Name("session")
		s := open(t, b.Conn, name)
		h := app(s, nil)
		ann := sessionstest.NewBrowser(t, nil)
		ann.Want(h, "/login?user=ann", "")
		other, err := gorillaebb.New(b.Conn, name, [][]byte{[]byte("another key of at least 32 bytes")})
		must(t, err)
		get := func(s *gorillaebb.Store, cookie string) (*gorilla.Session, error) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: "login", Value: cookie})
			return s.Get(r, "login")
		}
		id, err := securecookie.EncodeMulti("login", "an id that the client chose", other.Codecs...)
		must(t, err)
		for _, cookie := range []string{"x", id, ann.Cookies["login"] + "x"} {
			if session, err := get(s, cookie); err == nil || session == nil || !session.IsNew || session.ID != "" || len(session.Values) != 0 {
				t.Error(cookie, session, err)
			}
		}
		// Keys are replaced: old cookies are read, and new ones are made with the new key.
		rotated, err := gorillaebb.New(b.Conn, name, [][]byte{[]byte("another key of at least 32 bytes"), nil, keys[0], keys[1]})
		must(t, err)
		ann.Want(app(rotated, nil), "/", "hello ann, new: false")
		ann.Want(app(rotated, nil), "/visit", "1 visits")
		ann.Want(app(other, nil), "/", "hello ann, new: false")
		// The backend fails: a new session, so that a Save does not replace the user's.
		c, f := backends.Faulty(b.Conn)
		f.LoseRequests(1)
		if session, err := get(open(t, c, name), ann.Cookies["login"]); !errors.Is(err, ebb.ErrUnavailable) && err == nil ||
			session == nil || session.ID != "" {
			t.Error(session, err)
		}
	})
}

func TestASessionEndsMaxAgeAfterItsLastSaveOrWhenItIsIdle(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, native := range []bool{true, false} {
			c := b.Conn
			if !native {
				c = b.Hidden()
			}
			name := b.Name(fmt.Sprint(native))
			h := app(open(t, c, name, gorillaebb.Options{Idle: 20 * time.Minute, Cookie: &gorilla.Options{MaxAge: 3 * 60 * 60}}), nil)
			used, idle := sessionstest.NewBrowser(t, nil), sessionstest.NewBrowser(t, nil)
			used.Want(h, "/login?user=ann", "")
			idle.Want(h, "/login?user=bob", "")
			for range 10 {
				b.Pass(17 * time.Minute)
				used.Want(h, "/", "hello ann, new: false") // it saves nothing
			}
			idle.Want(h, "/", "hello , new: true")
			b.Pass(15 * time.Minute)
			if got := used.Get(h, "/"); got == "hello ann, new: false" {
				t.Error("the session has no end")
			}

			// MaxAge 0: until the browser is closed
			h = app(open(t, c, name, gorillaebb.Options{Cookie: &gorilla.Options{}, Browser: time.Hour}), nil)
			used = sessionstest.NewBrowser(t, nil)
			used.Want(h, "/login?user=ann", "")
			if c := used.Last.Cookies()[0]; c.MaxAge != 0 || !c.Expires.IsZero() {
				t.Error(c)
			}
			b.Pass(59 * time.Minute)
			used.Want(h, "/", "hello ann, new: false")
			b.Pass(2 * time.Minute)
			used.Want(h, "/", "hello , new: true")
			if n, err := b.Do(b.Context(), "DBSIZE"); err != nil || n.Int != 0 {
				t.Errorf("%d keys are left, %v", n.Int, err)
			}
		}
	})
}

func TestASessionMayBeSavedAndDeletedSeveralTimesInARequest(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := open(t, b.Conn, b.Name("session"))
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		session, err := s.New(r, "a")
		must(t, err)
		must(t, session.Save(r, w))
		id := session.ID
		session.Values["x"] = 1
		must(t, session.Save(r, w))
		if session.ID != id || id == "" {
			t.Error(session.ID)
		}
		session.Options.MaxAge = -1
		must(t, session.Save(r, w))
		must(t, session.Save(r, w)) // it is gone
		session.Options.MaxAge = 60
		must(t, session.Save(r, w))
		if session.ID == id || session.ID == "" {
			t.Error("the id was used again:", session.ID)
		}
		session.Values["f"] = func() {}
		if err := session.Save(r, w); !errors.Is(err, ebb.ErrArgument) || !strings.HasPrefix(err.Error(), "gorillaebb ") {
			t.Error(err)
		}
		must(t, s.Renew(r, session))
		must(t, s.Renew(r, session))
	})
}

func TestGorillaOverSockets(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	sessionstest.Visit(t, app(open(t, c, "session", gorillaebb.Options{Cookie: &gorilla.Options{Path: "/", MaxAge: 60}}), nil))
}

func TestBadOptionsAreRefused(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	for name, call := range map[string]func() (*gorillaebb.Store, error){
		"conn":    func() (*gorillaebb.Store, error) { return gorillaebb.New(nil, "x", keys) },
		"name":    func() (*gorillaebb.Store, error) { return gorillaebb.New(c, "", keys) },
		"no keys": func() (*gorillaebb.Store, error) { return gorillaebb.New(c, "x", nil) },
		"empty":   func() (*gorillaebb.Store, error) { return gorillaebb.New(c, "x", [][]byte{nil}) },
		"encrypt": func() (*gorillaebb.Store, error) {
			return gorillaebb.New(c, "x", [][]byte{keys[0], []byte("17 bytes are bad!")})
		},
		"idle": func() (*gorillaebb.Store, error) { return gorillaebb.New(c, "x", keys, gorillaebb.Options{Idle: 1}) },
		"browser": func() (*gorillaebb.Store, error) {
			return gorillaebb.New(c, "x", keys, gorillaebb.Options{Browser: -1})
		},
		"two": func() (*gorillaebb.Store, error) {
			return gorillaebb.New(c, "x", keys, gorillaebb.Options{}, gorillaebb.Options{})
		},
	} {
		if _, err := call(); !errors.Is(err, ebb.ErrArgument) || !strings.HasPrefix(err.Error(), "gorillaebb ") {
			t.Error(name, err)
		}
	}
	if got := open(t, c, "x").String(); !strings.HasPrefix(got, `gorillaebb "x" (GET and SET of ebb`) {
		t.Error(got)
	}
}

func ExampleNew() {
	c, err := ebb.Open(context.Background(), "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	store, err := gorillaebb.New(c, "session", [][]byte{securecookie.GenerateRandomKey(32)})
	if err != nil {
		panic(err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		session, err := store.Get(r, "visits")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		n, _ := session.Values["n"].(int)
		session.Values["n"] = n + 1
		if err := session.Save(r, w); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "request %d", n+1)
	}

	var cookies []*http.Cookie
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		handler(w, r)
		cookies = w.Result().Cookies()
		fmt.Println(w.Body)
	}
	// Output:
	// request 1
	// request 2
}
