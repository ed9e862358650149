package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/session"
)

// errAccess is the response to a request that Options.Access refuses.
var errAccess = &failure{status: http.StatusForbidden, Text: "the program's Options.Access refuses this request"}

// viewerOf returns the viewer of a request: the program's answer, a login, or the default user without a
// password. The error is a *failure.
func (c *Console) viewerOf(r *http.Request) (*viewer, error) {
	now := c.clock.Micros()
	c.sweep(now)
	if c.opt.Access != nil {
		name, ok := c.opt.Access(r)
		if !ok {
			return nil, errAccess
		}
		id := c.svc.ActAs(name)
		if id == nil {
			return nil, errAccess
		}
		return c.plainViewer(r, id, now)
	}
	if v := c.loggedIn(r, now); v != nil {
		return v, nil
	}
	if c.svc.NeedsLogin() {
		return nil, &failure{status: http.StatusUnauthorized, Text: "log in with a user of the server", Login: true}
	}
	if denied := c.svc.Denied(); denied != "" && !local(r) {
		return nil, &failure{status: http.StatusForbidden, Text: denied, Code: "DENIED"}
	}
	id, err := c.svc.WithoutLogin()
	if err != nil { // a password has just been set
		return nil, err
	}
	return c.plainViewer(r, id, now)
}

// newViewer returns a viewer without a login.
func (c *Console) newViewer(id *session.Identity, addr string) *viewer {
	v := &viewer{svc: c.svc, clock: c.clock, id: id, addr: addr,
		guest: session.GuestOptions{From: session.Origin{Addr: addr, Lib: library}, Unnoticed: true, Quit: c.closing.Done()}}
	if c.opt.ReadOnly {
		v.guest.Restrict = readOnly
	}
	return v
}

// isOpen reports whether a viewer is the default user without a password.
func (c *Console) isOpen(v *viewer) bool { return v.createdAt == 0 && c.opt.Access == nil }

// plainViewer returns the viewer of a client without a login: there is one for each user at each address.
func (c *Console) plainViewer(r *http.Request, id *session.Identity, now int64) (*viewer, error) {
	name := id.Name() + " " + hostOf(r.RemoteAddr)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosing
	}
	v := c.plain[name]
	var over *viewer // its user was deleted, and a new user has the name
	if v != nil && !v.id.Valid() {
		v, over = nil, v
	}
	if v == nil {
		v = c.newViewer(id, r.RemoteAddr)
		c.plain[name] = v
	}
	v.noteRequest(now)
	c.mu.Unlock()
	if over != nil {
		over.revoke()
	}
	return v, nil
}

// loggedIn returns the viewer whose cookie a request has, nil if there is none. It ends a login whose user is
// no longer valid, and one that is too old.
func (c *Console) loggedIn(r *http.Request, now int64) *viewer {
	v := c.loginOf(r)
	if v == nil {
		return nil
	}
	if now-v.idleSince(now) > loginIdle || now-v.createdAt > loginLife || !v.id.Valid() {
		c.logout(v)
		return nil
	}
	v.noteRequest(now)
	return v
}

// logout ends a login.
func (c *Console) logout(v *viewer) {
	c.mu.Lock()
	delete(c.logins, v.token)
	c.mu.Unlock()
	v.revoke()
}

// sweep closes the sessions of viewers that have left, and ends expired logins, at most once a second.
func (c *Console) sweep(now int64) {
	var rest, over []*viewer
	c.mu.Lock()
	if now-c.swept < 1e6 {
		c.mu.Unlock()
		return
	}
	c.swept = now
	for name, v := range c.plain {
		if now-v.idleSince(now) > idleTimeout || !v.id.Valid() {
			delete(c.plain, name)
			over = append(over, v)
		}
	}
	for token, v := range c.logins {
		switch idle := now - v.idleSince(now); {
		case idle > loginIdle || now-v.createdAt > loginLife || !v.id.Valid():
			delete(c.logins, token)
			over = append(over, v)
		case idle > idleTimeout:
			rest = append(rest, v)
		}
	}
	c.mu.Unlock()
	for _, v := range over {
		v.revoke()
	}
	for _, v := range rest {
		v.closeIdle()
	}
}

// cookieName returns the name of the cookie. Browsers share the cookies of a host between its ports, so the
// name has the port; under TLS a prefix keeps other hosts of the domain from setting it.
func cookieName(r *http.Request) string {
	port := 0
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		port = at.Port
	}
	name := "ebb-" + strconv.Itoa(port)
	if r.TLS != nil {
		name = "__Host-" + name
	}
	return name
}

// cookie returns a cookie for the browser. Without TLS it has no Path: the browser then sends it to all
// addresses below api/, whatever prefix a proxy adds.
func cookie(r *http.Request, value string) *http.Cookie {
	k := &http.Cookie{Name: cookieName(r), Value: value, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if r.TLS != nil {
		k.Secure, k.Path = true, "/"
	}
	if value == "" {
		k.MaxAge = -1
	}
	return k
}

// maxCookies is the number of cookies of a request that loginOf looks at: a browser keeps fewer of one host.
const maxCookies = 256

// loginOf returns the login whose cookie a request has, or nil. A page on another port of this host can set
// cookies of the same name for other paths, and the browser sends all of them, in an order that the page
// chooses.
func (c *Console) loginOf(r *http.Request) *viewer {
	cookies := r.CookiesNamed(cookieName(r))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range cookies[:min(len(cookies), maxCookies)] {
		if v := c.logins[sha256.Sum256([]byte(k.Value))]; v != nil {
			return v
		}
	}
	return nil
}

// errWrongPassword is the response to every failed login. It does not show whether the user exists.
var errWrongPassword = &failure{status: http.StatusUnauthorized, Code: "WRONGPASS", Login: true,
	Text: "the user does not exist, is off, or has another password"}

// postLogin answers POST api/login {user, password} with 204 and a cookie.
func postLogin(c *Console, q *request) (any, error) {
	var in struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	if err := q.body(&in); err != nil {
		return nil, err
	}
	if c.opt.Access != nil {
		return nil, &failure{status: http.StatusForbidden, Text: "the program decides who a request comes from: there is no login"}
	}
	now, host := c.clock.Micros(), hostOf(q.r.RemoteAddr)
	if wait := c.throttle.try(now, host, in.User); wait > 0 {
		seconds := int((wait + 999_999) / 1e6)
		return nil, &failure{status: http.StatusTooManyRequests, retry: seconds, Login: true,
			Text: "too many wrong passwords: wait for " + strconv.Itoa(seconds) + " s"}
	}
	id, err := c.svc.Login([]byte(in.User), []byte(in.Password), session.Origin{Addr: q.r.RemoteAddr, Lib: library})
	if err != nil {
		if err := c.wait(q, loginPause); err != nil {
			return nil, err
		}
		return nil, errWrongPassword
	}
	c.throttle.succeeded(now, host, in.User)
	return nil, c.login(q, id, now)
}

// login creates a login and sends its cookie. It ends the login whose cookie the request has.
func (c *Console) login(q *request, id *session.Identity, now int64) error {
	if old := c.loggedIn(q.r, now); old != nil {
		c.logout(old)
	}
	secret := rand.Text() + rand.Text() // 26 letters of 5 bits, twice
	v := c.newViewer(id, q.r.RemoteAddr)
	v.token, v.createdAt, v.lastRequest = sha256.Sum256([]byte(secret)), now, now
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosing
	}
	c.logins[v.token] = v
	oldest := c.excessLogin(v, now)
	if oldest != nil {
		delete(c.logins, oldest.token)
	}
	c.mu.Unlock()
	if oldest != nil {
		oldest.revoke()
	}
	http.SetCookie(q.w, cookie(q.r, secret))
	return nil
}

// excessLogin returns the login that must end because v is new, or nil. It is the least recently used login
// of v's user if that user has more than userLogins; or, if there are more than maxLogins, the least recently
// used one of the user with most logins. So users with many logins do not end the login of a user with few.
// The caller holds mu.
func (c *Console) excessLogin(v *viewer, now int64) (oldest *viewer) {
	counts := map[string]int{}
	for _, x := range c.logins {
		counts[x.id.Name()]++
	}
	most := counts[v.id.Name()]
	if most <= userLogins {
		if len(c.logins) <= maxLogins {
			return nil
		}
		for _, n := range counts {
			most = max(most, n)
		}
	}
	for _, x := range c.logins {
		if x != v && counts[x.id.Name()] == most && (oldest == nil || x.idleSince(now) < oldest.idleSince(now)) {
			oldest = x
		}
	}
	return oldest
}

// wait waits for some time, or until the request ends.
func (c *Console) wait(q *request, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

// postLogout answers POST api/logout with 204, even without a login.
func postLogout(c *Console, q *request) (any, error) {
	if v := c.loggedIn(q.r, c.clock.Micros()); v != nil {
		c.logout(v)
	}
	http.SetCookie(q.w, cookie(q.r, ""))
	return nil, nil
}
