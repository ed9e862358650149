package scsebb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	scsebb "github.com/ebbdb/ebb/contrib/scs"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/sessionstest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, c *ebb.Conn, name string, opts ...scsebb.Options) *scsebb.Store {
	t.Helper()
	s, err := scsebb.New(c, name, opts...)
	must(t, err)
	return s
}

// app is a program with sessions: it logs users in and out.
func app(m *scs.SessionManager, store scs.Store) http.Handler {
	m.Store = store
	m.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello "+m.GetString(r.Context(), "user"))
	})
	mux.HandleFunc("/visit", func(w http.ResponseWriter, r *http.Request) {
		m.Put(r.Context(), "visits", m.GetInt(r.Context(), "visits")+1)
		_, _ = fmt.Fprint(w, m.GetInt(r.Context(), "visits"), " visits")
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		if err := m.RenewToken(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		m.Put(r.Context(), "user", r.FormValue("user"))
	})
	mux.HandleFunc("/logout", func(w http.ResponseWriter, r *http.Request) {
		if err := m.Destroy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return m.LoadAndSave(mux)
}

func TestASessionOfScsIsSharedByPrograms(t *testing.T) {
	m, other := scs.New(), scs.New()
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for _, o := range []scsebb.Options{{}, {Idle: time.Hour}} {
			name := b.Name(fmt.Sprint("session", o.Idle))
			first := app(m, open(t, b.Conn, name, o))
			second := app(other, open(t, b.Open(), name, o))
			ann, bob := sessionstest.NewBrowser(t, nil), sessionstest.NewBrowser(t, nil)
			ann.Want(first, "/visit", "1 visits")
			ann.Want(second, "/visit", "2 visits")
			before := ann.Cookies["session"]
			ann.Want(first, "/login?user=ann", "")
			if ann.Cookies["session"] == before {
				t.Error("the token was not renewed")
			}
			ann.Want(second, "/", "hello ann")
			ann.Want(second, "/visit", "3 visits")
			bob.Want(second, "/", "hello ")
			bob.Want(first, "/login?user=bob", "")
			sessionstest.NewBrowser(t, map[string]string{"session": before}).Want(first, "/", "hello ") // an attacker has planted it

			users := map[string]bool{}
			must(t, m.Iterate(b.Context(), func(ctx context.Context) error {
				users[m.GetString(ctx, "user")] = true
				return nil
			}))
			if got := slices.Sorted(maps.Keys(users)); !slices.Equal(got, []string{"ann", "bob"}) {
				t.Error(got)
			}
			old := sessionstest.NewBrowser(t, ann.Cookies)
			ann.Want(first, "/logout", "")
			ann.Want(second, "/", "hello ")
			old.Want(second, "/", "hello ")
			bob.Want(second, "/", "hello bob")
			must(t, m.Iterate(b.Context(), func(ctx context.Context) error { return m.Destroy(ctx) }))
			bob.Want(second, "/", "hello ")
			all, err := open(t, b.Conn, name, o).All()
			if err != nil || all == nil || len(all) != 0 {
				t.Error(all, err)
			}
		}
	})
}

func TestASessionEndsWithItsLifetimeOrWhenItIsIdle(t *testing.T) {
	m := scs.New()
	m.Lifetime = 3 * time.Hour
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, native := range []bool{true, false} {
			c := b.Conn
			if !native {
				c = b.Hidden()
			}
			name := b.Name(fmt.Sprint(native))
			h := app(m, open(t, c, name, scsebb.Options{Idle: 20 * time.Minute}))
			used, idle := sessionstest.NewBrowser(t, nil), sessionstest.NewBrowser(t, nil)
			used.Want(h, "/login?user=ann", "")
			idle.Want(h, "/login?user=bob", "")
			for range 10 {
				b.Pass(17 * time.Minute)
				used.Want(h, "/", "hello ann") // it writes nothing
			}
			idle.Want(h, "/", "hello ")
			b.Pass(15 * time.Minute) // 185 minutes after the login
			used.Want(h, "/", "hello ")
			if n, err := b.Do(b.Context(), "DBSIZE"); err != nil || n.Int != 0 {
				t.Errorf("%d keys are left, %v", n.Int, err)
			}
		}
	})
}

// The contract of scs.Store and scs.CtxStore.
func TestTheStoreKeepsTheContractOfScs(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := open(t, b.Conn, b.Name("session"))
		must(t, s.Delete("none"))
		if data, found, err := s.Find("none"); data != nil || found || err != nil {
			t.Error(data, found, err)
		}
		must(t, s.Commit("a", []byte("one"), time.Now().Add(time.Hour)))
		must(t, s.Commit("a", []byte("two"), time.Now().Add(time.Hour)))
		must(t, s.Commit("old", []byte("three"), time.Now().Add(-time.Second)))
		if data, found, err := s.Find("a"); string(data) != "two" || !found || err != nil {
			t.Error(string(data), found, err)
		}
		if _, found, err := s.Find("old"); found || err != nil {
			t.Error(found, err)
		}
		if all, err := s.All(); err != nil || len(all) != 1 || string(all["a"]) != "two" {
			t.Error(all, err)
		}
		if _, found, err := s.Find(strings.Repeat("x", 5000) + "}{\x00"); found || err != nil {
			t.Error(found, err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, _, err := s.FindCtx(ctx, "a"); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "scsebb ") {
			t.Error(err)
		}
		must(t, s.Delete("a"))
		if _, found, err := s.Find("a"); found || err != nil {
			t.Error(found, err)
		}
	})
}

func TestScsOverSockets(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	h := app(scs.New(), open(t, c, "session"))
	sessionstest.Visit(t, h)
}

func TestBadOptionsAreRefused(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	for name, call := range map[string]func() (*scsebb.Store, error){
		"conn": func() (*scsebb.Store, error) { return scsebb.New(nil, "x") },
		"name": func() (*scsebb.Store, error) { return scsebb.New(c, "a}b") },
		"idle": func() (*scsebb.Store, error) { return scsebb.New(c, "x", scsebb.Options{Idle: -1}) },
		"two":  func() (*scsebb.Store, error) { return scsebb.New(c, "x", scsebb.Options{}, scsebb.Options{}) },
	} {
		if _, err := call(); !errors.Is(err, ebb.ErrArgument) || !strings.HasPrefix(err.Error(), "scsebb ") {
			t.Error(name, err)
		}
	}
	if got, want := open(t, c, "x",
		scsebb.Options{Idle: time.Minute}).String(), `scsebb "x" (GET and SET SLIDE of ebb`; !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

func ExampleNew() {
	c, err := ebb.Open(context.Background(), "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	store, err := scsebb.New(c, "session", scsebb.Options{Idle: 20 * time.Minute})
	if err != nil {
		panic(err)
	}
	manager := scs.New()
	manager.Store = store
	handler := manager.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := manager.GetInt(r.Context(), "n") + 1
		manager.Put(r.Context(), "n", n)
		_, _ = fmt.Fprintf(w, "request %d", n)
	}))

	var cookies []*http.Cookie
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		cookies = w.Result().Cookies()
		fmt.Println(w.Body)
	}
	// Output:
	// request 1
	// request 2
}
