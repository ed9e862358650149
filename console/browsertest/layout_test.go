package browsertest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/internal/demo"
)

// shop is a server with the data of the demo, and some that is long and of every kind.
func shop(t *testing.T) *browsertest.Server {
	t.Helper()
	s := browsertest.Serve(t, "--http-console-label", "production #c0392b")
	if err := demo.Fill(t.Context(), s.Conn, demo.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	fill(s)
	s.Do("SET", "a:very:long:name:of:a:key:"+long(300), long(5000), "EX", 86400)
	s.Do("HSET", "shop:wide", long(200), long(400), "short", "x")
	s.Do("HPEXPIRE", "shop:wide", 100_000, "FIELDS", 1, "short")
	s.Do("EXPIRY", "RULE", "SET", "ended-sessions", "MATCH", "session:*", "LEVEL", "KEY", "TO", "ended")
	return s
}

// long returns a word of n letters without a place to break it.
func long(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz"[i%26]
	}
	return string(b)
}

// routes are all screens, with one of each kind of detail.
func routes() []string {
	all := append([]string{"keys?view=tree", "expiry?span=hour", "expiry?span=month"}, screens...)
	for screen, key := range map[string]string{"locks": "shop:lock", "queues": "shop:queue"} {
		all = append(all, screen+"?db=0&k="+keyURL(key))
	}
	for _, k := range []string{"a:very:long:name:of:a:key:" + long(300), "shop:wide", "nothing"} {
		all = append(all, "key?db=0&k="+keyURL(k))
	}
	for _, k := range shopKeys {
		all = append(all, "key?db=0&k="+keyURL("shop:"+k))
	}
	return all
}

// T14
func TestNoScreenIsWiderThanItsWindow(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{
		"desktop":           {},
		"Chinese":           {Lang: "zh-CN"},
		"dark":              {Dark: true},
		"phone":             {Width: 390, Height: 844, Mobile: true},
		"phone, Chinese":    {Width: 390, Height: 844, Mobile: true, Lang: "zh-CN", Dark: true},
		"zoomed to 200 %":   {Width: 720, Height: 450, Scale: 4},
		"tablet, in German": {Width: 820, Height: 1180, Lang: "de-DE"},
	} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			p.Allow(`^status 404: GET .*/api/key\?`) // of the key that does not exist
			for _, to := range routes() {
				p.Screen(to)
				for _, wide := range p.Overflow(".card, .tile, #bar, #banner, .titlebar, dialog, .toast, #screen") {
					t.Errorf("%.40s: %s", to, wide)
				}
			}
			want := map[bool]string{true: "zh", false: "en"}[o.Lang == "zh-CN"] + " " + map[bool]string{true: "dark", false: "light"}[o.Dark]
			if got := p.Text(`document.documentElement.lang + ' ' + document.documentElement.dataset.theme`); got != want {
				t.Errorf("the page is %s, want %s", got, want)
			}
			// A dialog fits as well.
			p.Screen("key?db=0&k=" + keyURL("shop:cart"))
			p.Click(`$$('#screen .titlebar button').find((b) => b.innerText === 'TTL')`)
			p.Eventually(`$('dialog[open] pre.command')`)
			for _, wide := range p.Overflow("dialog, dialog *") {
				t.Errorf("the dialog: %s", wide)
			}
		})
	}
}

// ebb demo --lang zh prints an address with a language.
func TestAnAddressMayChooseTheLanguage(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL+"?lang=zh#/keys", browsertest.Options{})
	p.Eventually(`document.documentElement.lang === 'zh' && document.title.includes('键')`)
	if got := p.Text(`location.search + location.hash`); got != "#/keys" {
		t.Errorf("the address ends in %s", got)
	}
	// What the button chooses afterwards stays.
	p.Click(button("English"))
	p.Eventually(`document.documentElement.lang === 'en'`)
	p.Reload()
	p.Eventually(`document.title.includes('Keys')`)
	if got := p.Text(`document.documentElement.lang`); got != "en" {
		t.Errorf("after a reload the page is %s", got)
	}
	p.Go(s.URL + "?lang=zh")
	p.Eventually(`document.documentElement.lang === 'zh'`)
}

// T12
func TestWhatEyesAndScreenReadersNeedIsThere(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{"light": {}, "dark": {Dark: true},
		"phone, Chinese": {Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			p.Allow(`^status 404: GET .*/api/key\?`)
			for _, to := range routes() {
				p.Screen(to)
				for _, wrong := range p.Audit() {
					t.Errorf("%.40s: %s", to, wrong)
				}
			}
			audit := func(what string) {
				t.Helper()
				for _, wrong := range p.Audit() {
					t.Errorf("%s: %s", what, wrong)
				}
			}
			p.Screen("expiry")
			p.Click(`$$('#screen section').at(-1).querySelector('button')`)
			p.Eventually(`$('.heat td.cell')`)
			audit("the heat map")
			p.Screen("key?db=0&k=" + keyURL("shop:cart"))
			p.Click(`$$('#screen .titlebar button').find((b) => b.innerText === 'TTL')`)
			p.Eventually(`$('dialog[open] pre.command')`)
			audit("a form")
			confirm(p)
			p.Eventually(`$('.toast.good')`)
			audit("a message")
			p.Click(`$('#screen button.danger')`)
			p.Eventually(`$('dialog[open] pre.command')`)
			audit("a question")
			p.Press(kb.Escape)
			p.Eventually(`!$('dialog[open]')`)
			p.Press("k", input.ModifierCtrl)
			p.Type("shop:ca")
			p.Eventually(`byText('dialog li a', 'shop:cart').length`)
			audit("Find")
		})
	}
	t.Run("login", func(t *testing.T) {
		s := browsertest.Serve(t, "--requirepass", "secret")
		p := browsertest.Open(t, s.URL, browsertest.Options{})
		p.Allow(`^status 401: `)
		p.Eventually(`$('form.login')`)
		for _, wrong := range p.Audit() {
			t.Error(wrong)
		}
	})
}

// TestALineShowsEvenTimes: the samples of a page are a second apart while it is open, and ten before; a chart shows both on one scale.
func TestALineShowsEvenTimes(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL, browsertest.Options{})
	p.Eval(`void import('./lib/chart.js').then((m) => {
		const at = (ms) => ({ at: ms, v: ms / 1000 });
		const rows = [at(0), at(10000), at(20000), at(21000), at(22000), at(60000)];
		globalThis.drawn = m.even(rows).map((p) => (p.row ? p.row.v : '-')).join(' ');
		globalThis.many = m.even(Array.from({ length: 900 }, (_, i) => at(i * 1000))).length;
		globalThis.few = [[], [at(5)]].map((x) => m.even(x).length).join();
	})`)
	p.Eventually(`globalThis.few === '0,1' && globalThis.many === 300`)
	want := strings.Repeat("0 ", 10) + strings.Repeat("10 ", 10) + "20 21 " + strings.Repeat("22 ", 16) + strings.Repeat("- ", 22) + "60"
	if got := p.Eval(`globalThis.drawn`); got != want {
		t.Errorf("the line shows %v, want %s", got, want)
	}
}
