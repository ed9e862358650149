package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// browser is a client that keeps its cookie, at one address.
type browser struct {
	b      *bench
	addr   string
	cookie *http.Cookie
	retry  string // of the latest answer
}

func (w *browser) ask(method, path, body string) (int, string) {
	w.b.t.Helper()
	r := w.b.request(method, path, body)
	r.RemoteAddr = w.addr
	if w.cookie != nil {
		r.AddCookie(w.cookie)
	}
	rec := httptest.NewRecorder()
	w.b.ServeHTTP(rec, r)
	for _, k := range rec.Result().Cookies() {
		if w.cookie = k; k.MaxAge < 0 {
			w.cookie = nil
		}
	}
	w.retry = rec.Header().Get("Retry-After")
	return rec.Code, rec.Body.String()
}

func (w *browser) login(user, password string) int {
	status, _ := w.ask("POST", "api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password))
	return status
}

// whoami returns the user of the browser's requests, "" if it has to log in.
func (w *browser) whoami() string {
	w.b.t.Helper()
	status, body := w.ask("GET", "api/me", "")
	if status != http.StatusOK {
		return ""
	}
	var m struct{ User struct{ T string } }
	decode(w.b.t, body, &m)
	return m.User.T
}

func TestAUserOfTheServerLogsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		w := &browser{b: b, addr: "127.0.0.1:40000"}
		if got := w.whoami(); got != "default" {
			t.Errorf("without a password the user is %q", got)
		}
		b.admin("CONFIG", "SET", "requirepass", "secret")
		b.admin("ACL", "SETUSER", "ann", "on", ">pw", "+get", "~a*")
		if status, body := w.ask("GET", "api/me", ""); status != 401 || !strings.Contains(body, `"login":true`) {
			t.Errorf("without a login: %d %s", status, body)
		}
		before := time.Now()
		if got := w.login("ann", "wrong"); got != 401 || w.cookie != nil {
			t.Errorf("a wrong password: %d, %v", got, w.cookie)
		}
		if d := time.Since(before); d != loginPause {
			t.Errorf("the answer to a wrong password took %s", d)
		}
		if got := w.login("carl", "pw"); got != 401 {
			t.Errorf("an unknown user: %d", got)
		}
		if got := w.login("ann", "pw"); got != 204 || w.whoami() != "ann" {
			t.Errorf("login: %d, then %q", got, w.whoami())
		}
		k := w.cookie
		if !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Path != "" || k.Name != "ebb-9121" || len(k.Value) < 50 {
			t.Errorf("the cookie is %v", k)
		}
		status, body := w.ask("POST", "api/do", `{"db":0,"argv":[{"t":"GET"},{"t":"b"}]}`)
		if status != 403 || !strings.Contains(body, "NOPERM") {
			t.Errorf("a key of others: %d %s", status, body)
		}
		if status, body := w.ask("POST", "api/do", `{"db":0,"argv":[{"t":"GET"},{"t":"a"}]}`); status != 200 || !strings.Contains(body, `"reply":null`) {
			t.Errorf("an own key: %d %s", status, body)
		}
		list := b.admin("CLIENT", "LIST").String()
		if !strings.Contains(list, "addr=127.0.0.1:40000 ") || !strings.Contains(list, "user=ann ") || !strings.Contains(list, "lib-name=ebb-console") {
			t.Errorf("CLIENT LIST: %s", list)
		}
		log := b.admin("ACL", "LOG").String()
		for _, want := range []string{`"AUTH"`, `"carl"`, "addr=127.0.0.1:40000 ", "lib-name=ebb-console"} {
			if !strings.Contains(log, want) {
				t.Errorf("ACL LOG has no %s: %s", want, log)
			}
		}
		if got := b.svc.Admin().Totals.Denied[acl.DeniedAuth].Load(); got != 2 {
			t.Errorf("acl_access_denied_auth is %d", got)
		}
		stolen := &browser{b: b, addr: "127.0.0.1:40001", cookie: w.cookie}
		if status, _ := w.ask("POST", "api/logout", "{}"); status != 204 || w.whoami() != "" || stolen.whoami() != "" {
			t.Errorf("after the logout %d, the users are %q and %q", status, w.whoami(), stolen.whoami())
		}
	})
}

func TestALoginReplacesTheCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.admin("CONFIG", "SET", "requirepass", "secret")
		w := &browser{b: b, addr: "127.0.0.1:1", cookie: &http.Cookie{Name: "ebb-9121", Value: "chosen-by-another-port"}}
		if w.whoami() != "" {
			t.Error("a cookie of another port logs in")
		}
		w.login("default", "secret")
		first := &browser{b: b, addr: "127.0.0.1:1", cookie: w.cookie}
		w.login("default", "secret")
		if w.cookie.Value == first.cookie.Value || first.whoami() != "" || w.whoami() != "default" {
			t.Errorf("the cookie before the login still works as %q", first.whoami())
		}
	})
}

func TestProtectedModeKeepsOtherMachinesOut(t *testing.T) {
	b := newBench(t, Options{})
	far := &browser{b: b, addr: "192.0.2.1:5"}
	if status, body := far.ask("GET", "api/me", ""); status != 403 || !strings.Contains(body, "protected mode") {
		t.Errorf("%d %s", status, body)
	}
	b.admin("CONFIG", "SET", "protected-mode", "no")
	if status, body := far.ask("GET", "api/me", ""); status != 200 || !strings.Contains(body, "has no password") {
		t.Errorf("%d %s", status, body)
	}
	b.admin("CONFIG", "SET", "requirepass", "x")
	if status, _ := far.ask("GET", "api/me", ""); status != 401 {
		t.Errorf("%d", status)
	}
	near := newBench(t, Options{LocalOnly: true})
	near.admin("CONFIG", "SET", "protected-mode", "no")
	far.b = near
	if status, _ := far.ask("GET", "api/me", ""); status != 403 {
		t.Errorf("the local console let in another machine: %d", status)
	}
	r := near.request("GET", "", "")
	r.RemoteAddr = "192.0.2.7:50000"
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	if near.ServeHTTP(w, r); w.Code != 403 || !strings.Contains(w.Body.String(), "<p>The console serves clients of this machine alone") {
		t.Errorf("a page for another machine: %d %s", w.Code, w.Body)
	}
}

func TestTheProgramDecidesFromWhichUserARequestComes(t *testing.T) {
	b := newBench(t, Options{Access: func(r *http.Request) (string, bool) { return r.Header.Get("X-User"), r.Header.Get("X-User") != "" }})
	b.admin("ACL", "SETUSER", "ann", "on", "nopass", "+@all", "~*")
	for user, want := range map[string]int{"": 403, "ann": 200, "bob": 403} {
		r := b.request("GET", "api/me", "")
		r.Header.Set("X-User", user)
		w := httptest.NewRecorder()
		if b.ServeHTTP(w, r); w.Code != want || want == 200 && !strings.Contains(w.Body.String(), `"ann"`) {
			t.Errorf("%q: %d %s", user, w.Code, w.Body)
		}
	}
}

// The model of a login has the user, the password and the times.
func TestASessionEndsWhenItShould(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			b.admin("CONFIG", "SET", "requirepass", "root")
			type login struct {
				w        *browser
				user, pw string
				gen      int // of the account
				made     time.Duration
				seen     time.Duration
			}
			var all []*login
			now := time.Duration(0)
			pass, gens, on := map[string]string{}, map[string]int{}, map[string]bool{}
			users := []string{"ann", "bob"}
			steps := []string{"login", "login", "wait", "long", "use", "use", "password", "off", "del", "logout", "restart"}
			for step := range 40 {
				user := rapid.SampledFrom(users).Draw(rt, "user")
				switch rapid.SampledFrom(steps).Draw(rt, "step") {
				case "login":
					w := &browser{b: b, addr: fmt.Sprintf("10.0.%d.1:1", step)}
					b.throttle.by = nil // wrong passwords are tested elsewhere
					got := w.login(user, pass[user]) == 204
					if want := pass[user] != "" && on[user]; got != want {
						wrong = fmt.Sprintf("login of %s: %v, want %v", user, got, want)
						return
					}
					if got {
						all = append(all, &login{w, user, pass[user], gens[user], now, now})
					}
				case "wait":
					now += 7 * time.Minute
					b.clock.Advance(7 * time.Minute)
				case "long":
					now += 31 * time.Minute
					b.clock.Advance(31 * time.Minute)
				case "password":
					pass[user] = fmt.Sprint("pw", step)
					on[user] = true
					b.admin("ACL", "SETUSER", user, "on", "resetpass", ">"+pass[user], "+@all", "~*")
				case "off":
					if pass[user] != "" {
						on[user] = false
						b.admin("ACL", "SETUSER", user, "off")
					}
				case "del":
					b.admin("ACL", "DELUSER", user)
					pass[user] = ""
					on[user] = false
					gens[user]++
				case "logout":
					if len(all) > 0 {
						i := rapid.IntRange(0, len(all)-1).Draw(rt, "which")
						all[i].w.ask("POST", "api/logout", "{}")
						all = slices.Delete(all, i, i+1)
					}
				case "restart": // logins are in memory
					b.restart()
					for _, x := range all {
						x.gen = -1
					}
				case "use":
					for i := 0; i < len(all); i++ {
						x := all[i]
						want := x.user
						if pass[x.user] != x.pw || !on[x.user] || gens[x.user] != x.gen || now-x.seen > 30*time.Minute || now-x.made > 12*time.Hour {
							want = ""
						}
						if got := x.w.whoami(); got != want {
							wrong = fmt.Sprintf("a login of %s, %s after its last request, is %q, want %q", x.user, now-x.seen, got, want)
							return
						}
						if x.seen = now; want == "" {
							all = slices.Delete(all, i, i+1)
							i--
						}
					}
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func TestALoginEndsAfterTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.admin("CONFIG", "SET", "requirepass", "root")
		w := &browser{b: b, addr: "127.0.0.1:1"}
		w.login("default", "root")
		for range 36 { // every 20 minutes
			if got := w.whoami(); got != "default" {
				t.Fatalf("the login ended early: %q", got)
			}
			b.clock.Advance(20 * time.Minute)
		}
		b.clock.Advance(time.Second)
		if got := w.whoami(); got != "" {
			t.Errorf("after 12 hours the user is %q", got)
		}
	})
}

func TestWrongPasswordsHaveToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.admin("CONFIG", "SET", "requirepass", "root")
		b.admin("ACL", "SETUSER", "ann", "on", ">pw", "+@all")
		w := &browser{b: b, addr: "192.0.2.1:1"}
		for i := range 5 {
			if got := w.login("default", "x"); got != 401 {
				t.Fatalf("try %d: %d", i, got)
			}
		}
		if got := w.login("default", "root"); got != 429 || w.retry != "2" {
			t.Errorf("the sixth try: %d, Retry-After %q", got, w.retry)
		}
		other := &browser{b: b, addr: "192.0.2.2:1"}
		if got := other.login("ann", "pw"); got != 204 {
			t.Errorf("another user at another address: %d", got)
		}
		if got := other.login("default", "root"); got != 429 || other.retry != "2" {
			t.Errorf("the user whose password is guessed, from another address: %d, Retry-After %q", got, other.retry)
		}
		if got := w.login("ann", "pw"); got != 429 {
			t.Errorf("another user from the address of the guesses: %d", got)
		}
		for _, pause := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
			b.clock.Advance(pause*time.Second - time.Millisecond)
			if got := w.login("default", "x"); got != 429 {
				t.Fatalf("a try before %d s: %d", pause, got)
			}
			b.clock.Advance(time.Millisecond)
			if got := w.login("default", "x"); got != 401 {
				t.Fatalf("a try after %d s: %d", pause, got)
			}
		}
		b.clock.Advance(time.Minute)
		if got := w.login("default", "root"); got != 204 {
			t.Fatalf("the right password after the pause: %d", got)
		}
		if got := w.login("ann", "x"); got != 401 {
			t.Errorf("a wrong password after it: %d", got)
		}
		if got := w.login("ann", "pw"); got != 429 || w.retry != "60" {
			t.Errorf("a success has ended the count of the address: %d, Retry-After %q", got, w.retry)
		}
		if got := w.login("default", "root"); got != 204 {
			t.Errorf("the user who has logged in at this address: %d", got)
		}
	})
}

func TestGuessesKeepNoKnownUserOut(t *testing.T) {
	var h throttle
	now := int64(1e9)
	for host, user := range map[string]string{"10.0.0.1": "ann", "10.0.0.3": "bob"} {
		if wait := h.try(now, host, user); wait != 0 {
			t.Fatal(wait)
		}
		h.succeeded(now, host, user)
	}
	want := func(what, host, user string, want int64) {
		t.Helper()
		if wait := h.try(now, host, user); wait != want {
			t.Errorf("%s: %s at %s waits for %d us, want %d", what, user, host, wait, want)
		}
	}
	for i := range 2 * freeTries { // from many addresses
		h.try(now, fmt.Sprintf("10.9.9.%d", i), "ann")
	}
	want("where the user has logged in before", "10.0.0.1", "ann", 0)
	want("elsewhere", "10.0.0.2", "ann", firstPause)
	for i := range 2 * freeTries { // unknown names at one address, which other clients share
		h.try(now, "10.0.0.3", fmt.Sprint("wrong", i))
	}
	want("a user who has logged in at the address", "10.0.0.3", "bob", 0)
	want("another user at the address", "10.0.0.3", "carol", firstPause)
	for range 1000 { // one address
		now += 1e6
		h.try(now, "10.0.0.4", "dora")
	}
	want("a user whose password one address guesses, at another", "10.0.0.5", "dora", 0)
}

// The server keeps the names of failed logins, in memory and in ACL LOG, so it only accepts short ones.
func TestANameBeforeTheLoginIsShort(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("CONFIG", "SET", "requirepass", "root")
	w := &browser{b: b, addr: "192.0.2.1:1"}
	if got := w.login(strings.Repeat("x", openBody), "pw"); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a name of %d bytes: %d", openBody, got)
	}
	if got := w.login("default", "root"); got != 204 {
		t.Errorf("the right password: %d", got)
	}
}

func TestFiftyTriesASecond(t *testing.T) {
	var h throttle
	for i := range int64(triesASec) {
		if wait := h.try(7e6+i, fmt.Sprint("host", i), fmt.Sprint("user", i)); wait != 0 {
			t.Fatalf("try %d has to wait for %d us", i, wait)
		}
	}
	if wait := h.try(7.5e6, "host", "user"); wait != 500_000 {
		t.Errorf("the next try has to wait for %d us", wait)
	}
	if wait := h.try(8e6, "host", "user"); wait != 0 {
		t.Errorf("in the next second a try has to wait for %d us", wait)
	}
	for i := range int64(2 * maxThrottle) {
		h.try(10e6+i*30_000, fmt.Sprint("h", i), fmt.Sprint("u", i))
		h.succeeded(10e6+i*30_000, fmt.Sprint("h", i), fmt.Sprint("u", i))
	}
	if len(h.by) > maxThrottle || len(h.known) > maxThrottle {
		t.Errorf("it remembers %d and %d names", len(h.by), len(h.known))
	}
}

func TestAThousandLoginsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		for i := range maxLogins / userLogins {
			b.admin("ACL", "SETUSER", fmt.Sprint("ann", i), "on", ">pw", "+@all")
		}
		b.admin("ACL", "SETUSER", "bob", "on", ">pw")
		b.admin("CONFIG", "SET", "requirepass", "x")
		first := &browser{b: b, addr: "10.0.0.1:1"}
		first.login("ann0", "pw")
		b.clock.Advance(time.Second)
		second := &browser{b: b, addr: "10.0.0.2:1"}
		second.login("ann0", "pw")
		for i := range 2 * userLogins { // one user cannot end a login of another
			b.clock.Advance(30 * time.Millisecond)
			w := &browser{b: b, addr: fmt.Sprintf("10.2.%d.%d:1", i/256, i%256)}
			if got := w.login("bob", "pw"); got != 204 {
				t.Fatalf("login %d: %d", i, got)
			}
		}
		if len(b.logins) != userLogins+2 || first.whoami() != "ann0" {
			t.Errorf("%d logins; the first is %q", len(b.logins), first.whoami())
		}
		b.clock.Advance(time.Second)
		second.whoami()
		for i := range maxLogins - userLogins - 1 {
			b.clock.Advance(30 * time.Millisecond)
			w := &browser{b: b, addr: fmt.Sprintf("10.1.%d.%d:1", i/256, i%256)}
			if got := w.login(fmt.Sprint("ann", 1+i/userLogins), "pw"); got != 204 {
				t.Fatalf("login %d: %d", i, got)
			}
		}
		if len(b.logins) != maxLogins || first.whoami() != "ann0" || second.whoami() != "ann0" {
			t.Errorf("%d logins; the first is %q, the second %q", len(b.logins), first.whoami(), second.whoami())
		}
		b.clock.Advance(time.Second)
		b.admin("ACL", "SETUSER", "one-more", "on", ">pw", "+@all")
		last := &browser{b: b, addr: "10.0.0.3:1"}
		last.login("one-more", "pw")
		b.clock.Advance(time.Second)
		for i := range 3 * userLogins { // users with many logins end only each other's
			b.clock.Advance(30 * time.Millisecond)
			w := &browser{b: b, addr: fmt.Sprintf("10.3.%d.%d:1", i/256, i%256)}
			if got := w.login(fmt.Sprint("ann", 1+i%3), "pw"); got != 204 {
				t.Fatalf("login %d: %d", i, got)
			}
		}
		for _, x := range []struct {
			is   *browser
			name string
		}{{first, "ann0"}, {second, "ann0"}, {last, "one-more"}} {
			if got := x.is.whoami(); got != x.name || len(b.logins) > maxLogins {
				t.Errorf("%d logins; that of %s is %q", len(b.logins), x.name, got)
			}
		}
	})
}

func TestCookiesOfOthersDoNotHideALogin(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("CONFIG", "SET", "requirepass", "secret")
	w := &browser{b: b, addr: "127.0.0.1:50000"}
	if status := w.login("default", "secret"); status != http.StatusNoContent {
		t.Fatal(status)
	}
	r := b.request("GET", "api/me", "")
	for i := range 200 {
		r.AddCookie(&http.Cookie{Name: w.cookie.Name, Value: fmt.Sprint("planted", i)})
	}
	for _, value := range []string{"", w.cookie.Value} {
		r.AddCookie(&http.Cookie{Name: w.cookie.Name, Value: value})
	}
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Errorf("a login behind 201 other cookies of its name answers %d: %s", rec.Code, rec.Body)
	}
}
