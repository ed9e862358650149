package console

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// The requests that reach the API, by Host, by the origin that browsers report, and by their body.
func TestPagesOfOthersReachNothing(t *testing.T) {
	b := newBench(t, Options{Hosts: []string{"ebb.example.com"}})
	const json = "application/json"
	type row struct {
		local, method, host, site, origin, kind string
		want                                    int
	}
	rows := []row{
		// Host, on a connection to a loopback address
		{"127.0.0.1", "GET", "localhost", "", "", "", 200}, {"127.0.0.1", "GET", "localhost:9121", "", "", "", 200},
		{"127.0.0.1", "GET", "127.0.0.1", "", "", "", 200}, {"127.0.0.1", "GET", "127.0.0.1:1", "", "", "", 200},
		{"127.0.0.1", "GET", "127.9.9.9:9121", "", "", "", 200}, {"127.0.0.1", "GET", "[::1]", "", "", "", 200},
		{"127.0.0.1", "GET", "[::1]:9121", "", "", "", 200}, {"::1", "GET", "[::1]:9121", "", "", "", 200},
		{"::1", "GET", "LOCALHOST", "", "", "", 200}, {"127.0.0.1", "GET", "ebb.example.com", "", "", "", 200},
		{"127.0.0.1", "GET", "EBB.example.com:443", "", "", "", 200}, {"127.0.0.1", "GET", "", "", "", "", 421},
		{"127.0.0.1", "GET", " ", "", "", "", 421}, {"127.0.0.1", "GET", ":9121", "", "", "", 421},
		{"127.0.0.1", "GET", "localhost.evil.com", "", "", "", 421}, {"127.0.0.1", "GET", "127.0.0.1.evil.com", "", "", "", 421},
		{"127.0.0.1", "GET", "127.0.0.1.evil.com:9121", "", "", "", 421}, {"127.0.0.1", "GET", "evil.com", "", "", "", 421},
		{"127.0.0.1", "GET", "evil.com:9121", "", "", "", 421}, {"127.0.0.1", "GET", "localhost.", "", "", "", 421},
		{"127.0.0.1", "GET", "localhost:", "", "", "", 421}, {"127.0.0.1", "GET", "192.0.2.7", "", "", "", 421},
		{"127.0.0.1", "GET", "0.0.0.0", "", "", "", 421}, {"127.0.0.1", "GET", "2130706433", "", "", "", 421},
		{"127.0.0.1", "GET", "0x7f.1", "", "", "", 421}, {"127.0.0.1", "GET", "127.1", "", "", "", 421},
		{"127.0.0.1", "GET", "[::1", "", "", "", 421}, {"127.0.0.1", "GET", "::1", "", "", "", 421},
		{"127.0.0.1", "GET", "[::ffff:127.0.0.1]", "", "", "", 200}, {"127.0.0.1", "GET", "x.ebb.example.com", "", "", "", 421},
		{"127.0.0.1", "GET", "user@localhost", "", "", "", 421}, {"127.0.0.1", "GET", "localhost#.evil.com", "", "", "", 421},
		// Host, on another connection
		{"192.0.2.7", "GET", "192.0.2.7", "", "", "", 200}, {"192.0.2.7", "GET", "192.0.2.7:9121", "", "", "", 200},
		{"192.0.2.7", "GET", "192.0.2.8", "", "", "", 421}, {"192.0.2.7", "GET", "localhost", "", "", "", 421},
		{"192.0.2.7", "GET", "127.0.0.1", "", "", "", 421}, {"192.0.2.7", "GET", "ebb.example.com", "", "", "", 200},
		{"2001:db8::1", "GET", "[2001:db8::1]:80", "", "", "", 200}, {"2001:db8::1", "GET", "[2001:db8::2]:80", "", "", "", 421},
		// reads of other sites
		{"127.0.0.1", "GET", "localhost", "same-origin", "", "", 200}, {"127.0.0.1", "GET", "localhost", "none", "", "", 200},
		{"127.0.0.1", "GET", "localhost", "cross-site", "", "", 403}, {"127.0.0.1", "GET", "localhost", "same-site", "", "", 403},
		{"127.0.0.1", "GET", "localhost", "nonsense", "", "", 403}, {"127.0.0.1", "GET", "localhost", "cross-site", "http://evil.com", "", 403},
		// writes
		{"127.0.0.1", "POST", "localhost", "same-origin", "http://localhost", json, 200}, {"127.0.0.1", "POST", "localhost", "", "", json, 200},
		{"127.0.0.1", "POST", "localhost", "none", "", json, 200}, {"127.0.0.1", "POST", "localhost", "cross-site", "http://evil.com", json, 403},
		{"127.0.0.1", "POST", "localhost", "same-site", "http://localhost:1", json, 403}, {"127.0.0.1", "POST", "localhost", "", "http://evil.com", json, 403},
		{"127.0.0.1", "POST", "localhost", "", "http://localhost:8080", json, 403}, {"127.0.0.1", "POST", "localhost", "", "null", json, 403},
		{"127.0.0.1", "POST", "localhost", "", "http://localhost", json, 200}, {"127.0.0.1", "POST", "evil.com", "same-origin", "http://evil.com", json, 421},
		{"127.0.0.1", "POST", "localhost", "", "", "text/plain", 415}, {"127.0.0.1", "POST", "localhost", "", "", "", 415},
		{"127.0.0.1", "POST", "localhost", "same-origin", "", "application/x-www-form-urlencoded", 415},
		{"127.0.0.1", "POST", "localhost", "same-origin", "", "multipart/form-data; boundary=x", 415},
		{"127.0.0.1", "POST", "localhost", "same-origin", "", "application/json; charset=utf-8", 200},
		{"127.0.0.1", "POST", "localhost", "same-origin", "", "application/jsonp", 415},
	}
	if len(rows) < 60 {
		t.Errorf("%d rows", len(rows))
	}
	b.admin("CONFIG", "SET", "protected-mode", "no")
	for i, x := range rows {
		path, body := "api/me", ""
		if x.method == "POST" {
			path, body = "api/do", fmt.Sprintf(`{"db":0,"argv":[{"t":"SET"},{"t":"row%d"},{"t":"1"}]}`, i)
		}
		r := httptest.NewRequestWithContext(t.Context(), x.method, "http://localhost/"+path, strings.NewReader(body))
		r.Host = x.host
		for name, value := range map[string]string{"Sec-Fetch-Site": x.site, "Origin": x.origin, "Content-Type": x.kind} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(x.local), Port: 9121})))
		w := httptest.NewRecorder()
		if b.ServeHTTP(w, r); w.Code != x.want {
			t.Errorf("row %d, %+v: %d %s", i, x, w.Code, w.Body)
		}
		if set := b.admin("EXISTS", fmt.Sprintf("row%d", i)).Int == 1; set != (x.method == "POST" && x.want == 200) {
			t.Errorf("row %d, %+v: written %v", i, x, set)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
			t.Errorf("row %d: the policy is %q", i, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("row %d: %s is %q", i, name, got)
			}
		}
	}
}

// serveStream serves the console with one more endpoint, a stream, on a socket.
func serveStream(t *testing.T, b *bench) (addr string, begun chan *request) {
	t.Helper()
	begun = make(chan *request, allStreams+1)
	b.api["stream"] = map[string]*route{"GET": {method: "GET", path: "stream", lasts: true, answer: func(c *Console, q *request) (any, error) {
		end, err := c.stream(q, &cutter{conn: http.NewResponseController(q.w)})
		if err != nil {
			return nil, err
		}
		defer end()
		begun <- q
		line := []byte(strings.Repeat("x", 64<<10))
		for q.ctx.Err() == nil {
			if q.text("fill") == "" {
				<-q.ctx.Done()
			} else if _, err := q.w.Write(line); err != nil {
				break
			}
		}
		return nil, errSent
	}}}
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), begun
}

func dialStream(t *testing.T, addr, query string, headers ...string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "GET /api/stream%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", query, strings.Join(headers, ""))
	return c
}

func TestCloseEndsStreamsOfViewersThatDoNotRead(t *testing.T) {
	b := newBench(t, Options{})
	addr, begun := serveStream(t, b)
	dialStream(t, addr, "?fill=1")
	dialStream(t, addr, "")
	<-begun
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(tier.Patience):
		t.Fatal("Close waits for the viewers")
	}
	if status, body := b.ask("GET", "api/me", ""); status != 503 {
		t.Errorf("after Close: %d %s", status, body)
	}
	if b.streams != 0 {
		t.Errorf("%d streams are counted", b.streams)
	}
}

func TestALoginHasFourStreams(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("CONFIG", "SET", "requirepass", "secret")
	testStreams(t, b, maxStreams, func(addr string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/api/login", strings.NewReader(`{"user":"default","password":"secret"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		if err != nil || len(reply.Cookies()) != 1 {
			t.Fatal(reply, err)
		}
		_ = reply.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		return "Cookie: " + reply.Cookies()[0].Name + "=" + reply.Cookies()[0].Value + "\r\n"
	})
}

// Several people behind one proxy share a viewer if they need no login.
func TestUsersWithoutALoginShareMoreStreams(t *testing.T) {
	testStreams(t, newBench(t, Options{}), maxShared, func(string) string { return "" })
}

// Users that hold all feeds do not exclude another user: a newcomer gets the oldest feed of the user with the
// most.
func TestOneMoreUserAlwaysGetsAFeed(t *testing.T) {
	b := newBench(t, Options{Access: func(r *http.Request) (string, bool) { return r.Header.Get("X-User"), true }})
	addr, begun := serveStream(t, b)
	open := func(user string) net.Conn { return dialStream(t, addr, "", "X-User: "+user+"\r\n") }
	begins := func(user string) net.Conn {
		t.Helper()
		c := open(user)
		select {
		case <-begun:
		case <-time.After(tier.Patience):
			t.Fatalf("%s gets no feed", user)
		}
		return c
	}
	users := allStreams / maxShared
	for i := range users + 2 {
		b.admin("ACL", "SETUSER", fmt.Sprint("u", i), "on", "nopass", "+@all")
	}
	first := begins("u0")
	for i := 1; i < allStreams; i++ {
		begins(fmt.Sprint("u", i/maxShared))
	}
	newcomer := fmt.Sprint("u", users)
	begins(newcomer)
	if err := first.SetReadDeadline(time.Now().Add(tier.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) { // its answer or its connection ends
		t.Error("the oldest feed of the first user goes on")
	}
	reply, err := http.ReadResponse(bufio.NewReader(open("u0")), nil) // it would have more than the others
	if err != nil || reply.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("%v %v", reply, err)
	}
	_ = reply.Body.Close()
	share := allStreams / (users + 1)
	for range share - 1 {
		begins(newcomer)
	}
	begins(fmt.Sprint("u", users+1))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams != allStreams || len(b.streamsOf[newcomer]) != share {
		t.Errorf("%d feeds, %d of the newcomer", b.streams, len(b.streamsOf[newcomer]))
	}
	for user, held := range b.streamsOf {
		if len(held) > share+1 {
			t.Errorf("%s has %d feeds", user, len(held))
		}
	}
}

// testStreams opens most streams, one too many, and one in place of one that has ended.
func testStreams(t *testing.T, b *bench, most int, login func(addr string) (header string)) {
	addr, begun := serveStream(t, b)
	header := login(addr)
	dialStream := func(t *testing.T, addr, query string) net.Conn { return dialStream(t, addr, query, header) }
	var open []net.Conn
	for range most {
		open = append(open, dialStream(t, addr, ""))
		<-begun
	}
	fifth := dialStream(t, addr, "")
	reply, err := http.ReadResponse(bufio.NewReader(fifth), nil)
	if err != nil || reply.StatusCode != http.StatusTooManyRequests || reply.Header.Get("Retry-After") != "1" {
		t.Fatalf("%v %v", reply, err)
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	if status, _ := b.ask("GET", "api/me", ""); status == http.StatusTooManyRequests {
		t.Errorf("streams keep other requests out: %d", status)
	}
	_ = open[0].Close()
	for deadline := time.Now().Add(tier.Patience); ; {
		dialStream(t, addr, "")
		select {
		case <-begun:
			return
		case <-time.After(time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("a stream that has ended still counts")
			}
		}
	}
}

// Requests whose bodies do not arrive are ended: otherwise one client on this machine could exclude the
// others without a login.
func TestBodiesThatDoNotComeKeepNoRequestOut(t *testing.T) {
	b := newBench(t, Options{})
	addr, _ := serveStream(t, b)
	for range maxRequests {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprint(c, "POST /api/do HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n")
	}
	waiting := func() (n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, v := range b.plain {
			v.mu.Lock()
			n += len(v.reading)
			v.mu.Unlock()
		}
		return n
	}
	for deadline := time.Now().Add(tier.Patience); waiting() < maxRequests; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests wait for their bodies", waiting())
		}
	}
	for range 3 {
		if status, body := b.ask("GET", "api/me", ""); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
	}
}

func TestTheServersStatesAreShown(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "big", strings.Repeat("x", 1000))
	b.admin("CONFIG", "SET", "maxmemory", "1")
	b.admin("CONFIG", "SET", "maxmemory-policy", "noeviction")
	if status, body := b.do("SET k v"); status != 200 || !strings.Contains(body, `"error":true`) || !strings.Contains(body, "OOM command not allowed") {
		t.Errorf("memory is used up: %d %s", status, body)
	}
	b.admin("CONFIG", "SET", "maxmemory", "0")
	b.admin("CONFIG", "SET", "min-replicas-to-write", "1")
	if status, body := b.do("SET k v"); status != 200 || !strings.Contains(body, "NOREPLICAS") {
		t.Errorf("no replicas: %d %s", status, body)
	}
	b.admin("CONFIG", "SET", "min-replicas-to-write", "0")
	for _, mode := range []string{"WRITE", "ALL"} {
		b.admin("CLIENT", "PAUSE", "100000", mode)
		if status, body := b.do("SET k paused"); status != 200 || !strings.Contains(body, "(error) PAUSED ") {
			t.Errorf("a write during CLIENT PAUSE %s: %d %s", mode, status, body)
		}
		set := `{"db":0,"atomic":true,"cmds":[[{"t":"SET"},{"t":"k"},{"t":"paused"}]]}`
		if status, body := b.ask("POST", "api/batch", set); status != 503 || !strings.Contains(body, `"code":"PAUSED"`) {
			t.Errorf("a transaction during CLIENT PAUSE %s: %d %s", mode, status, body)
		}
		if status, body := b.do("GET k"); status != 200 || strings.Contains(body, "error") || strings.Contains(body, "paused") {
			t.Errorf("a read during CLIENT PAUSE %s: %d %s", mode, status, body)
		}
		b.admin("CLIENT", "UNPAUSE")
	}
	b.admin("CONFIG", "SET", "replica-serve-stale-data", "no")
	b.admin("REPLICAOF", "127.0.0.1", "1")
	if status, body := b.do("GET k"); status != 200 || !strings.Contains(body, "MASTERDOWN") {
		t.Errorf("no master: %d %s", status, body)
	}
	if status, body := b.ask("GET", "api/me", ""); status != 200 || !strings.Contains(body, `"role":"replica"`) {
		t.Errorf("no master: %d %s", status, body)
	}
	b.admin("REPLICAOF", "NO", "ONE")
	b.admin("CONFIG", "SET", "busy-reply-threshold", "1")
	b.clock.Advance(time.Second) // events due now must run before the script: Advance would wait for the script, and the script for Advance
	script := make(chan resp.Value)
	s := b.svc.NewSession(nil)
	defer s.Closed(nil)
	go func() { script <- s.Do([]byte("EVAL"), []byte("while true do end"), []byte("0")) }()
	for overdue := false; !overdue; {
		b.clock.Advance(time.Second)
		_, overdue, _ = b.svc.Admin().Host.RunningScript()
	}
	if status, body := b.do("GET k"); status != 200 || !strings.Contains(body, "BUSY") {
		t.Errorf("a script overruns: %d %s", status, body)
	}
	if status, body := b.ask("GET", "api/me", ""); status != 200 {
		t.Errorf("me during a script: %d %s", status, body)
	}
	if status, body := b.do("SCRIPT KILL"); status != 200 || !strings.Contains(body, "OK") {
		t.Errorf("%d %s", status, body)
	}
	if v := <-script; !strings.Contains(v.Str, "killed") {
		t.Error(v)
	}
	if status, body := b.do("SET k v"); status != 200 || !strings.Contains(body, `"OK"`) {
		t.Errorf("afterwards: %d %s", status, body)
	}
}

func TestAViewersSessionsEndWhenItHasLeft(t *testing.T) {
	b := newBench(t, Options{})
	b.do("PING")
	v := b.plain["default 127.0.0.1"]
	if len(v.idle) != 1 {
		t.Fatalf("%d idle sessions", len(v.idle))
	}
	b.clock.Advance(2 * time.Minute)
	b.sweep(b.clock.Micros())
	if len(v.idle) != 0 || len(b.plain) != 0 {
		t.Errorf("%d idle sessions, %d viewers", len(v.idle), len(b.plain))
	}
}

// Behind a reverse proxy that adds a prefix, the pages, the login and the API work as without one.
func TestTheConsoleWorksBehindAProxy(t *testing.T) {
	b := newBench(t, Options{Hosts: []string{"ebb.internal"}})
	b.admin("CONFIG", "SET", "requirepass", "secret")
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", b))
	inner := httptest.NewServer(mux)
	defer inner.Close()
	target, err := neturl.Parse(inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/x/y")
		r.SetURL(target)
		r.Out.Host = "ebb.internal"
	}}
	outer := httptest.NewServer(proxy)
	defer outer.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, outer.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		reply, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reply.Body.Close() }()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	if status, body := ask("GET", "/x/y/console/", ""); status != 200 || !strings.Contains(body, `src="app.js"`) {
		t.Errorf("%d %.100s", status, body)
	}
	if status, _ := ask("GET", "/x/y/console/api/me", ""); status != 401 {
		t.Errorf("before the login: %d", status)
	}
	if status, body := ask("POST", "/x/y/console/api/login", `{"user":"default","password":"secret"}`); status != 204 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask("GET", "/x/y/console/api/me", ""); status != 200 {
		t.Errorf("after the login: %d %s", status, body)
	}
	if status, _ := ask("POST", "/x/y/console/api/logout", "{}"); status != 204 {
		t.Errorf("%d", status)
	}
	if status, _ := ask("GET", "/x/y/console/api/me", ""); status != 401 {
		t.Errorf("after the logout: %d", status)
	}
}

// No endpoint that reads moves the deadline of a sliding key, or changes its idle time.
func TestNoEndpointTouchesAKey(t *testing.T) {
	b := newBench(t, Options{})
	keys := []string{"str", "hash", "set", "zset", "list", "stream", "lim", "lock", "sem", "queue"}
	for _, line := range []string{"SET str v", "HSET hash f v", "SADD set a b", "ZADD zset 1 a", "RPUSH list a b", "XADD stream 1-1 f v", "RL.TAKE lim 5 1000000",
		"LOCK.ACQUIRE lock o 1000000", "SEM.ACQUIRE sem o 2 1000000", "DQ.ADD queue i p"} {
		if v := b.admin(strings.Fields(line)...); v.Err() != nil {
			t.Fatalf("%s: %v", line, v)
		}
	}
	b.admin("SET", "sliding", "v", "EX", "1000", "SLIDE")
	b.clock.Advance(100 * time.Second)
	state := func() string {
		var s strings.Builder
		for _, k := range append(keys, "sliding") {
			fmt.Fprintf(&s, "%s pttl %d idle %d\n", k, b.admin("PTTL", k).Int, b.admin("OBJECT", "IDLETIME", k).Int)
		}
		return s.String()
	}
	before := state()
	asked := 0
	for path, methods := range b.api {
		if methods["GET"] == nil || path == "feed" {
			continue // the feed has its own test
		}
		for _, k := range append(keys, "sliding") {
			b.ask("GET", "api/"+path+"?db=0&state=all&k="+base64.RawURLEncoding.EncodeToString([]byte(k)), "")
			asked++
		}
		if now := state(); now != before {
			t.Fatalf("GET api/%s has changed\n%sto\n%s", path, before, now)
		}
	}
	if asked < 50 {
		t.Errorf("%d requests", asked)
	}
}

// Users with the maximum number of shares do not exclude the others.
func TestAUserWithoutAShareGetsOne(t *testing.T) {
	var s shares
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var give func()
	for n := range 3 * userShares {
		user := string(rune('a' + n/userShares))
		g, err := s.acquire(over, user)
		if want := n < allShares-firstShares || n%userShares == 0; (err == nil) != want {
			t.Errorf("share %d of %s: %v", n%userShares, user, err)
		}
		if err == nil {
			give = g
		}
	}
	for _, user := range []string{"x", "y", "z"} {
		if _, err := s.acquire(over, user); err != nil {
			t.Errorf("the first share of %s: %v", user, err)
		}
	}
	if s.awaited() {
		give() // of c
		if s.awaited() {
			t.Error("shares are awaited after one became free")
		}
	}
}

func TestTheNamesOfTriesAreShort(t *testing.T) {
	seen := map[string]bool{}
	x, y := strings.Repeat("x", 16_001), strings.Repeat("y", 32)
	for _, user := range []string{"", "ann", x[1:], x, y[1:], y} {
		for _, name := range []string{byUser(user), byBoth("192.0.2.1", user)} {
			if len(name) > 60 || seen[name] {
				t.Errorf("%.20s: %q", user, name)
			}
			seen[name] = true
		}
	}
}
