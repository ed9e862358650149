package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

// feeds returns the requests for the stream.
func feeds(p *browsertest.Page) []browsertest.Hit {
	var out []browsertest.Hit
	for _, h := range p.Hits() {
		if strings.Contains(h.URL, "/api/feed?") {
			out = append(out, h)
		}
	}
	return out
}

// open returns the number of streams that the server has begun and that are still open.
func open(p *browsertest.Page) int { return following(p, "") }

// following returns the number of open streams with a topic. A screen that opens adds its topics with a new
// stream.
func following(p *browsertest.Page, topic string) (n int) {
	for _, h := range feeds(p) {
		if h.Status == 200 && !h.Ended && strings.Contains(h.URL, topic) {
			n++
		}
	}
	return n
}

// A click whose request fails, and whose handler ignores errors, shows one message, however often it is
// clicked.
func TestAFailureThatNothingAwaitsIsAMessage(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SCRIPT", "LOAD", "return 1")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^failed: .* net::ERR_`)
	p.Allow(`^status 503: `) // requests while it ends
	p.Screen("performance")
	p.Eventually(button("Show"))
	s.Stop()
	for range 2 {
		p.Click(button("Show"))
		p.Eventually(`byText('.toast.bad', 'The server is not responding').length`)
		p.Quiet("api/feed")
	}
	if n := p.Number(`$$('.toast').length`); n != 1 {
		t.Errorf("the page has %v messages", n)
	}
}

func TestAPageFindsItsServerAgainAfterARestart(t *testing.T) {
	s := browsertest.Serve(t, "--dir", t.TempDir(), "--appendonly", "yes")
	s.Do("EXPIRY", "RULE", "SET", "all", "MATCH", "*", "TO", "expired")
	p := browsertest.Open(t, s.URL+"#/expiry", browsertest.Options{})
	p.Allow(`^failed: .* net::ERR_`)
	p.Allow(`^status 503: `) // requests while it ends or loads
	p.Screen("expiry")
	p.Wait("the stream of expirations is open", func() bool { return following(p, "expired") == 1 })
	const rows = `[...($$('#screen section').find((e) => e.innerText.startsWith('Recently expired'))?.querySelectorAll('tbody tr') || [])]
		.map((e) => e.querySelector('.bytes').innerText).join()`
	tail := func(want string) { p.Eventually(rows + ` === ` + browsertest.Quote(want)) }
	for _, k := range []string{"one", "two"} {
		s.Do("SET", k, "x", "PX", 1)
		p.Eventually(rows + `.includes(` + browsertest.Quote(k) + `)`)
	}
	tail("two,one")

	s.Stop()
	p.Eventually(`$('#banner').innerText.includes('No updates for') && $('.stale')`)
	p.Eventually(`/Next try in \d/.test($('#banner').innerText)`)
	tries := len(feeds(p))
	p.Wait("three tries", func() bool { return len(feeds(p)) >= tries+3 })
	began, _ := p.Eval(`performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/feed')).map((e) => e.startTime)`).([]any)
	t.Logf("the stream was requested at %.0f ms", began)
	for i, pause := range []float64{1000, 2000} { // each pause is twice the one before; a timer fires early only by its rounding
		at := began[len(began)-2+i].(float64) - began[len(began)-3+i].(float64)
		if at < pause-5 {
			t.Errorf("try %d came after %.0f ms, want at least %.0f", len(began)-2+i, at, pause)
		}
	}
	s.Start()
	p.Eventually(`!$('.stale') && !$('#banner.on')`)
	last := feeds(p)[len(feeds(p))-1]
	if u, err := url.Parse(last.URL); err != nil || u.Query().Get("last") == "" {
		t.Errorf("the new stream does not say which event was the last: %s", last.URL)
	}
	s.Do("SET", "three", "x", "PX", 1)
	tail("three,two,one")
	if open(p) != 1 {
		t.Errorf("%d streams are open", open(p))
	}
	p.Screen("now")
	p.Eventually(`byText('#screen .tile', 'Keys').length && $('#screen .tile b').innerText !== '–'`)
}

func TestEightTabsLoadAndHiddenOnesHoldNoStream(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{Hideable: true})
	p.Screen("now")
	tabs := []*browsertest.Page{p}
	for range 7 {
		q := p.Behind(s.URL)
		q.Front()
		tabs = append(tabs, q)
	}
	for i, q := range tabs {
		q.Screen("keys")
		q.Eventually(row("k"))
		t.Logf("tab %d is %s and has %d streams", i, q.Text(`document.visibilityState`), open(q))
	}
	last := tabs[len(tabs)-1]
	browsertest.Wait(t, "only the tab in front holds a stream", func() bool {
		for _, q := range tabs[:len(tabs)-1] {
			if open(q) != 0 {
				return false
			}
		}
		return open(last) == 1
	})
	// A tab that returns to the front opens its stream again.
	p.Front()
	p.Eventually(`document.visibilityState === 'visible'`)
	p.Wait("the stream is open", func() bool { return open(p) == 1 })
	p.Eventually(`!$('.stale')`)
}

func TestEverythingWorksBehindAProxyWithAPrefix(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret", "--http-hosts", "console.test")
	fill(s)
	target, err := url.Parse(strings.TrimSuffix(s.URL, "/console/"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/x/y")
		r.Out.Host = r.In.Host
	}}
	site := browsertest.Site(t, "console.test", http.StripPrefix("", proxy))
	p := browsertest.Open(t, site+"x/y/", browsertest.Options{}) // / leads to the console
	p.Allow(`^status 401: GET .*/api/me`)
	login(p, "default", "secret")
	if at := p.Text(`location.pathname`); at != "/x/y/console/" {
		t.Errorf("the page is at %s", at)
	}
	for _, name := range screens {
		p.Screen(name)
		if wrong := p.Text(`$$('#screen .error').filter(seen).map((e) => e.innerText).join()`); wrong != "" {
			t.Errorf("%s shows an error: %s", name, wrong)
		}
	}
	p.Screen("now")
	p.Eventually(`$('#screen .tile b').innerText !== '–' && !$('.stale')`) // events pass through the proxy
	p.Screen("key?db=0&k=" + keyURL("shop:greeting"))
	p.Click(button("Remove the TTL"))
	if command := confirm(p); command != "PERSIST shop:greeting" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`text('#screen .facts').includes('no TTL')`)
	p.Reload()
	p.Eventually(`text('#screen .facts').includes('no TTL')`) // the cookie has the path of the prefix
	for _, h := range p.Hits() {
		if !strings.HasPrefix(h.URL, site+"x/y/") {
			t.Errorf("%s leaves the prefix", h.URL)
		}
	}
	p.Click(button("Log out"))
	p.Eventually(`$('form.login')`)
}

// A program can mount the console under any path.
func TestTheConsoleOfAProgramWorksUnderItsPath(t *testing.T) {
	f := browsertest.Embed(t, browsertest.FrontOptions{Prefix: "/tools/ebb/"})
	f.Do("SET", "k", "v", "EX", 100)
	p := browsertest.Open(t, f.URL, browsertest.Options{})
	for _, name := range screens {
		p.Screen(name)
	}
	p.Screen("keys")
	p.Eventually(row("k"))
}

// A screen is left while an answer to it is on its way: the part that arrives must not count as the whole
// answer.
func TestAnAnswerThatIsCutOffIsNoAnswer(t *testing.T) {
	begun, leave := make(chan struct{}), make(chan struct{})
	f := browsertest.Embed(t, browsertest.FrontOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/api/commands") {
				h.ServeHTTP(w, r)
				return
			}
			whole := httptest.NewRecorder()
			h.ServeHTTP(whole, r)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()))
			_, _ = w.Write(whole.Body.Bytes()[:1000])
			w.(http.Flusher).Flush()
			close(begun)
			select {
			case <-leave:
			case <-r.Context().Done():
			}
		})
	}})
	defer close(leave)
	p := browsertest.Open(t, f.URL, browsertest.Options{})
	p.Screen("now")
	p.Eval(`location.hash = '#/shell'`)
	<-begun
	p.Eventually(`$('#screen form input')`)
	p.Screen("keys")
	p.Eventually(`byText('#screen', 'This database has no keys').length`)
}

// A screen that a busy server has refused opens by itself, although its stream of events is not lost.
func TestAScreenGoesOnAfterABusyServer(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("XADD", "orders", "*", "f", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`$('#screen > div')`)
	p.Eval(`(() => { const f = window.fetch; let n = 0; window.fetch = (u, o) => String(u).includes('api/streams') && n++ < 1
		? Promise.resolve(new Response('{"error":"BUSY a script runs","code":"BUSY"}', { status: 503 })) : f(u, o); })()`)
	p.Eval(`location.hash = '#/streams'`)
	p.Eventually(row("orders"))
}

// A page waits until the server has loaded, and shows why writes fail.
func TestLoadingAndFailedSnapshotsAreShownAndSurvived(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mkdir := func() {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mkdir()
	s := browsertest.Serve(t, "--dir", dir, "--save", "900 1")
	p := browsertest.Open(t, s.URL, browsertest.Options{Blank: true})
	p.Before(`{ const f = window.fetch; let n = 0; window.fetch = (u, o) => String(u).includes('api/me') && n++ < 1
		? Promise.resolve(new Response('{"error":"LOADING the data","code":"LOADING","loading":{"done":0.25}}', { status: 503 })) : f(u, o); }`)
	p.Go(s.URL)
	p.Eventually(`text('#app').includes('loading its data: 25% done')`)
	p.Eventually(`$('#screen .tile')`)

	s.Do("SET", "k", "v")
	save := func(want string) {
		t.Helper()
		s.Do("BGSAVE")
		browsertest.Wait(t, "the snapshot is "+want, func() bool {
			return strings.Contains(s.Do("INFO", "persistence").Str, "rdb_last_bgsave_status:"+want)
		})
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	save("err")
	p.Eventually(`byText('#screen', 'The last snapshot could not be written').length`)
	p.Screen("key?k=" + keyURL("k"))
	p.Click(button("Delete"))
	confirm(p)
	p.Eventually(`byText('.toast.bad', 'MISCONF').length`)
	mkdir()
	save("ok")
	p.Click(button("Delete"))
	confirm(p)
	p.Wait("the key is deleted", func() bool { return s.Do("EXISTS", "k").Int == 0 })
}

func TestUpdatesStandStillWhileTheyArePaused(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`text('#screen .tile b') === '0'`)
	p.Click(`$('#bar button[aria-label="Pause updates"]')`)
	p.Eventually(`text('#banner').includes('Updates are paused')`)
	p.Wait("the stream is closed", func() bool { return open(p) == 0 })
	s.Do("SET", "k", "v")
	p.Click(`$('#bar button[aria-label="Resume updates"]')`)
	p.Eventually(`!$('#banner.on') && text('#screen .tile b') === '1'`)
	if n := open(p); n != 1 {
		t.Errorf("%d streams are open", n)
	}
}
