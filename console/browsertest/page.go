package browsertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Patience bounds each wait. No test depends on its length.
var Patience = tier.Patience

// Options configure a Page. The zero value is a desktop: 1440 by 900, two device pixels to a CSS pixel, English, light.
type Options struct {
	Width, Height int     // CSS pixels
	Scale         float64 // device pixels to a CSS pixel; also how the zoom of 200 % is made: half the width, twice the scale
	Lang          string  // "zh-CN"
	Dark          bool
	Mobile        bool
	// Hideable lets a tab behind others be hidden. Other tabs are always visible, and have the focus.
	Hideable bool
	// Origins are further origins that the page may send requests to.
	Origins []string
	// Blank opens no console page: the test calls Go.
	Blank bool
}

// Page is a tab. The test's goroutine uses it.
type Page struct {
	t   testing.TB
	ctx context.Context // of the tab
	o   Options

	root      context.Context // of the browser
	incognito cdp.BrowserContextID

	mu      sync.Mutex // guards the fields below; listeners lock it
	origins []string
	allowed []*regexp.Regexp
	faults  []string
	seen    map[network.RequestID]string
	hits    []Hit
}

// Hit is a request that a page has sent.
type Hit struct {
	Method, URL string
	Status      int64 // 0: no answer yet
	Bytes       int64 // over the wire, with headers
	Ended       bool
	id          network.RequestID
}

// Open opens a tab in an incognito context of its own and, unless o.Blank is set, loads a URL. At its end the
// test closes the tab, and fails for the faults of the page.
func Open(t testing.TB, to string, o Options) *Page {
	t.Helper()
	root := start(t)
	var id cdp.BrowserContextID
	err := inBrowser(root, func(ctx context.Context) (err error) {
		id, err = target.CreateBrowserContext().Do(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inBrowser(root, func(ctx context.Context) error { return target.DisposeBrowserContext(id).Do(ctx) }); err != nil {
			t.Error(err)
		}
	})
	return open(t, root, id, true, to, o)
}

// inBrowser runs a command of the browser, not of a tab.
func inBrowser(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return fn(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
}

// Tab opens another tab, in a window of its own, of the same incognito context: it shares cookies and storage with p.
func (p *Page) Tab(to string) *Page {
	p.t.Helper()
	return open(p.t, p.root, p.incognito, true, to, p.o)
}

// Behind opens another tab of the same window, which hides p.
func (p *Page) Behind(to string) *Page {
	p.t.Helper()
	return open(p.t, p.root, p.incognito, false, to, p.o)
}

// Front brings the tab to the front of its window.
func (p *Page) Front() {
	p.t.Helper()
	p.Run(page.BringToFront())
}

func open(t testing.TB, root context.Context, incognito cdp.BrowserContextID, window bool, to string, o Options) *Page {
	t.Helper()
	if o.Width == 0 {
		o.Width, o.Height = 1440, 900
	}
	o.Scale = cmp.Or(o.Scale, 2)
	o.Lang = cmp.Or(o.Lang, "en-US")
	// A tab that chromedp opens by itself would go to a window, and a new incognito context has none.
	var id target.ID
	err := inBrowser(root, func(ctx context.Context) (err error) {
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(incognito).WithNewWindow(window).Do(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(root, chromedp.WithTargetID(id))
	p := &Page{t: t, ctx: ctx, root: root, incognito: incognito, o: o, origins: slices.Clone(o.Origins), seen: map[network.RequestID]string{}}
	p.origins = append(p.origins, origin(to))
	t.Cleanup(func() {
		p.settle()
		if t.Failed() && ctx.Err() == nil {
			p.dump()
		}
		cancel()
	})
	if err := chromedp.Run(ctx); err != nil { // opens the tab, which lives as long as ctx
		t.Fatal(err)
	}
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	agent := ""
	err = inBrowser(ctx, func(ctx context.Context) error {
		_, _, _, ua, _, err := browser.GetVersion().Do(ctx)
		agent = strings.Replace(ua, "Headless", "", 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, p.listen)
	p.Run(
		network.Enable(), log.Enable(), runtime.Enable(), audits.Enable(),
		emulation.SetUserAgentOverride(agent).WithAcceptLanguage(o.Lang),
		emulation.SetTimezoneOverride("UTC"),
		emulation.SetFocusEmulationEnabled(!o.Hideable), // several windows are open, and one has the focus
		emulation.SetDeviceMetricsOverride(int64(o.Width), int64(o.Height), o.Scale, o.Mobile),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
	if !o.Blank {
		p.Go(to)
	}
	return p
}

func origin(u string) string {
	x, err := url.Parse(u)
	if err != nil || x.Host == "" {
		return ""
	}
	return x.Scheme + "://" + x.Host
}

// Allow announces a fault: lines that match the pattern do not fail the test. Lines read `console error: ...`, `exception: ...`, `log error: ...`,
// `csp: ...`, `status 403: GET http://...`, `failed: GET http://... net::ERR_CONNECTION_REFUSED`, `foreign: GET http://...`, `crash: ...`.
func (p *Page) Allow(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, regexp.MustCompile(pattern))
}

// Faults returns the faults of the page so far that the test did not announce.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, f := range p.faults {
		if !slices.ContainsFunc(p.allowed, func(r *regexp.Regexp) bool { return r.MatchString(f) }) {
			out = append(out, f)
		}
	}
	return out
}

// All returns the lines of all faults, announced or not.
func (p *Page) All() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// Hits returns the requests of the page, in order.
func (p *Page) Hits() []Hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

// Quiet waits until no request is under way, except those whose URL contains the text except, such as a
// stream, and the page has drawn the answers.
func (p *Page) Quiet(except string) {
	p.t.Helper()
	p.Wait("the page is quiet", func() bool {
		return !slices.ContainsFunc(p.Hits(), func(h Hit) bool { return !h.Ended && !strings.Contains(h.URL, except) })
	})
	p.Eval(`new Promise((done) => setTimeout(done, 0))`)
}

// settle fails the test for the faults.
func (p *Page) settle() {
	for _, f := range p.Faults() {
		p.t.Errorf("the page has a fault that the test did not announce: %s", f)
	}
}

func (p *Page) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// listen records the events of the tab. It must not wait.
func (p *Page) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.fault("exception: %s", ev.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeAssert || ev.Type == runtime.APITypeWarning {
			var words []string
			for _, a := range ev.Args {
				words = append(words, strings.Trim(string(a.Value)+" "+a.Description, " "))
			}
			p.fault("console %s: %s", ev.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		// The network events say more about a failed request than the log does.
		// Over plain HTTP, Chromium ignores one header of pages under a name that is not localhost, and logs that.
		ignored := strings.HasPrefix(ev.Entry.Text, "The Cross-Origin-Opener-Policy header has been ignored")
		if e := ev.Entry; e.Source != log.SourceNetwork && !ignored && (e.Level == log.LevelError || e.Level == log.LevelWarning) {
			p.fault("log %s: %s: %s %s", e.Level, e.Source, e.Text, e.URL)
		}
	case *audits.EventIssueAdded:
		if ev.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			d := ev.Issue.Details.ContentSecurityPolicyIssueDetails
			p.fault("csp: %s blocked %q (%s)", d.ViolatedDirective, d.BlockedURL, d.ContentSecurityPolicyViolationType)
		}
	case *inspector.EventTargetCrashed:
		p.fault("crash: the tab has crashed")
	case *network.EventRequestWillBeSent:
		u := ev.Request.URL
		if i := slices.IndexFunc(p.hits, func(h Hit) bool { return h.id == ev.RequestID }); i >= 0 && ev.RedirectResponse != nil {
			p.hits[i].Status, p.hits[i].Ended, p.hits[i].id = ev.RedirectResponse.Status, true, ""
		}
		p.seen[ev.RequestID] = ev.Request.Method + " " + u
		p.hits = append(p.hits, Hit{Method: ev.Request.Method, URL: u, id: ev.RequestID})
		if strings.HasPrefix(u, "http") && !slices.Contains(p.origins, origin(u)) {
			p.fault("foreign: %s %s", ev.Request.Method, u)
		}
	case *network.EventResponseReceived:
		if h := p.hit(ev.RequestID); h != nil {
			h.Status = ev.Response.Status
		}
		if ev.Response.Status >= 400 {
			p.fault("status %d: %s", ev.Response.Status, p.seen[ev.RequestID])
		}
	case *network.EventLoadingFinished:
		if h := p.hit(ev.RequestID); h != nil {
			h.Bytes, h.Ended = int64(ev.EncodedDataLength), true
		}
	case *network.EventLoadingFailed:
		if h := p.hit(ev.RequestID); h != nil {
			h.Ended = true
		}
		if !ev.Canceled && ev.ErrorText != "net::ERR_ABORTED" {
			p.fault("failed: %s %s", p.seen[ev.RequestID], ev.ErrorText)
		}
	}
}

func (p *Page) hit(id network.RequestID) *Hit {
	for i := range p.hits {
		if p.hits[i].id == id {
			return &p.hits[i]
		}
	}
	return nil
}

// Run runs actions of chromedp within Patience.
func (p *Page) Run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := p.try(actions...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) try(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// Go loads a URL and waits for the event load.
func (p *Page) Go(to string) {
	p.t.Helper()
	p.mu.Lock()
	p.origins = append(p.origins, origin(to))
	p.mu.Unlock()
	p.Run(chromedp.Navigate(to))
}

// Load loads a URL as Go does, but returns the error if that fails.
func (p *Page) Load(to string) error {
	p.t.Helper()
	p.mu.Lock()
	p.origins = append(p.origins, origin(to))
	p.mu.Unlock()
	return p.try(chromedp.Navigate(to))
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.Run(chromedp.Reload())
}

// Before runs JavaScript in each document that the tab loads from now on, before the document's own.
func (p *Page) Before(js string) {
	p.t.Helper()
	p.Run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(js).Do(ctx)
		return err
	}))
}

// Screen goes to a screen of the console by its hash, such as "keys" or "key?db=0&k=aGk", and waits until the
// screen is open and has the answers to its requests.
func (p *Page) Screen(name string) {
	p.t.Helper()
	to := Quote("#/" + name)
	p.Eval(`(() => { if (location.hash !== ` + to + `) { const old = $('#screen > div'); if (old) old.dataset.left = ''; location.hash = ` + to + `; } })()`)
	short, _, _ := strings.Cut(name, "?")
	if short == "key" {
		short = "keys"
	}
	p.Eventually(`$('#rail a[aria-current=page]')?.dataset.name === ` + Quote(short) + ` && $('#screen > div:not([data-left])')?.childElementCount > 0`)
	p.Quiet("/api/feed")
}

// helpers are functions for the tests' JavaScript: $ returns the first element of a selector; $$ all of them;
// byText the visible elements of a selector whose text contains a string; text the visible text of an
// element; seen whether an element is visible on the screen.
const helpers = `
const $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];
const seen = (e) => !!e && e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
const text = (s) => { const e = typeof s === 'string' ? $(s) : s; return e ? e.innerText : ''; };
const byText = (s, what) => $$(s).filter((e) => seen(e) && e.innerText.includes(what));
`

// Eval evaluates an expression in the page, waits for it if it is a promise, and returns its value as decoded
// from JSON. The expression may use the helpers $, $$, text, seen and byText.
func (p *Page) Eval(js string) any {
	p.t.Helper()
	v, err := p.eval(Patience, js)
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func (p *Page) eval(patience time.Duration, js string) (any, error) {
	var out any
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		call := runtime.Evaluate("(async () => {" + helpers + "return (" + js + "\n); })()")
		v, exception, err := call.WithAwaitPromise(true).WithReturnByValue(true).Do(ctx)
		switch {
		case err != nil:
			return err
		case exception != nil:
			return exception
		case len(v.Value) == 0:
			return nil
		}
		return json.Unmarshal(v.Value, &out)
	}))
	return out, err
}

// Text evaluates an expression to a string.
func (p *Page) Text(js string) string {
	p.t.Helper()
	s, _ := p.Eval(js).(string)
	return s
}

// Number evaluates an expression to a number.
func (p *Page) Number(js string) float64 {
	p.t.Helper()
	n, _ := p.Eval(js).(float64)
	return n
}

// Eventually waits until an expression is true, and returns its value. It evaluates the expression after each
// change of the document, and every 50 ms for other changes. An exception, such as a missing element, counts
// as false. If the page navigates meanwhile, the wait starts again.
func (p *Page) Eventually(js string) any {
	p.t.Helper()
	return p.Within(Patience, js)
}

// Within waits as Eventually does, up to a longer time than Patience.
func (p *Page) Within(patience time.Duration, js string) any {
	p.t.Helper()
	v, err := p.until(patience, js)
	if err != nil {
		p.t.Fatalf("%s does not become true: %v", js, err)
	}
	return v
}

func (p *Page) until(patience time.Duration, js string) (any, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// The page gives up first, because it knows the reason.
	look := `new Promise((done, fail) => {
	const end = performance.now() + ` + fmt.Sprint((patience - 10*time.Second).Milliseconds()) + `;
	let busy_ = false, ended_ = false;
	const look = async () => {
		if (busy_ || ended_) return;
		busy_ = true;
		let v, why;
		try { v = await (` + js + `
		); } catch (e) { why = e; }
		busy_ = false;
		if (v) { stop(); done(v); } else if (performance.now() > end) { stop(); fail(why || new Error('it is ' + String(v))); }
	};
	const watch = new MutationObserver(look), timer = setInterval(look, 50), stop = () => { ended_ = true; watch.disconnect(); clearInterval(timer); };
	watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
	look();
})`
	for {
		v, err := p.eval(patience, look)
		var gone *cdp.Error
		if err != nil && ctx.Err() == nil && errors.As(err, &gone) { // the document was replaced
			continue
		}
		return v, err
	}
}

// Wait calls the function Wait with the page's test.
func (p *Page) Wait(what string, fn func() bool) {
	p.t.Helper()
	Wait(p.t, what, fn)
}

// Wait waits until a function returns true. It calls the function every 10 ms, within Patience.
func Wait(t testing.TB, what string, fn func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(Patience); !fn(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// Quote returns a string as a literal of JavaScript.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string does that
	}
	return string(b)
}

// shots are the names of the screenshots of this run.
var (
	shotMu sync.Mutex
	shots  = map[string]bool{}
)

// ShotEnv names the environment variable with the directory for screenshots. Without it, tests take none.
const ShotEnv = "EBB_SCREENSHOTS"

func shotDir() string { return os.Getenv(ShotEnv) }

// Shot writes a screenshot of the viewport to name.png, if EBB_SCREENSHOTS names a directory.
func (p *Page) Shot(name string) {
	p.t.Helper()
	if shotDir() == "" {
		return
	}
	var png []byte
	p.Run(chromedp.CaptureScreenshot(&png))
	p.write(name, png)
}

func (p *Page) write(name string, png []byte) {
	if err := os.MkdirAll(shotDir(), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shotDir(), name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
	shotMu.Lock()
	shots[name] = true
	shotMu.Unlock()
}

// dump logs the content of the page of a failed test.
func (p *Page) dump() {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	var at, shown string
	_ = chromedp.Run(ctx, chromedp.Location(&at), chromedp.Evaluate(
		`document.body ? (document.getElementById("screen") || document.body).innerText.slice(0, 2000) : ''`, &shown))
	p.t.Logf("the page %s shows:\n%s", at, shown)
	if shotDir() == "" {
		return
	}
	var png []byte
	if chromedp.Run(ctx, chromedp.CaptureScreenshot(&png)) == nil {
		p.write("failed-"+strings.ReplaceAll(p.t.Name(), "/", "-"), png)
	}
}

// Shots returns the names of the screenshots of this run, sorted.
func Shots() []string {
	shotMu.Lock()
	defer shotMu.Unlock()
	return slices.Sorted(maps.Keys(shots))
}
