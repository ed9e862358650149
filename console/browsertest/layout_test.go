package browsertest_test

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/internal/demo"
)

// shop is a server with the data of the demo, and long data of every kind.
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

// routes returns the routes of all screens, with one of each kind of detail.
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

func TestNoScreenIsWiderThanItsWindow(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{
		"desktop":           {},
		"Chinese":           {Lang: "zh-CN"},
		"dark":              {Dark: true},
		"phone":             {Width: 390, Height: 844, Mobile: true},
		"small, Chinese":    {Width: 320, Height: 640, Mobile: true, Lang: "zh-CN"},
		"phone, Chinese":    {Width: 390, Height: 844, Mobile: true, Lang: "zh-CN", Dark: true},
		"zoomed to 200 %":   {Width: 720, Height: 450, Scale: 4},
		"tablet, in German": {Width: 820, Height: 1180, Lang: "de-DE"},
	} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			p.Allow(`^status 404: GET .*/api/key\?`) // of the key that does not exist
			for _, to := range routes() {
				p.Screen(to)
				const cutOff = `$$('#screen .acts button').filter((b) => seen(b) && b.getBoundingClientRect().right > innerWidth).length`
				if n := p.Number(cutOff); o.Mobile && n > 0 {
					t.Errorf("%.40s: %v buttons of rows are cut off", to, n)
				}
				if n := p.Number(`$('#bar .label').getBoundingClientRect().width`); n < 70 {
					t.Errorf("%.40s: the label has %v px", to, n)
				}
				for _, wide := range p.Overflow(".card, .tile, #bar, #banner, .titlebar, dialog, .toast, #screen") {
					t.Errorf("%.40s: %s", to, wide)
				}
			}
			want := map[bool]string{true: "zh", false: "en"}[o.Lang == "zh-CN"] + " " + map[bool]string{true: "dark", false: "light"}[o.Dark]
			if got := p.Text(`document.documentElement.lang + ' ' + document.documentElement.dataset.theme`); got != want {
				t.Errorf("the page is %s, want %s", got, want)
			}
			// A dialog fits too.
			p.Screen("key?db=0&k=" + keyURL("shop:cart"))
			p.Click(`$$('#screen .tools button').find((b) => b.innerText === 'TTL')`)
			p.Eventually(`$('dialog[open] pre.command')`)
			for _, wide := range p.Overflow("dialog, dialog *") {
				t.Errorf("the dialog: %s", wide)
			}
		})
	}
}

// `ebb demo --lang zh` prints an address with a language.
func TestAnAddressMayChooseTheLanguage(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL+"?lang=zh#/keys", browsertest.Options{})
	p.Eventually(`document.documentElement.lang === 'zh' && document.title.includes('键')`)
	if got := p.Text(`location.search + location.hash`); got != "#/keys" {
		t.Errorf("the address ends in %s", got)
	}
	// A later choice by the button stays.
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

// The theme and the language are in the drawer of a phone.
func TestTheBarOfAPhoneHasOneLine(t *testing.T) {
	s := browsertest.Serve(t, "--http-console-read-only", "yes", "--http-console-label", "production #c0392b")
	p := browsertest.Open(t, s.URL, browsertest.Options{Width: 390, Height: 844, Mobile: true})
	p.Eventually(`$('#screen > div')`)
	if n := p.Number(`$('#bar').getBoundingClientRect().height`); n > 60 {
		t.Errorf("the bar has %v px", n)
	}
	p.Click(`$('#bar button.menu')`)
	p.Click(button("中文"))
	p.Eventually(`document.documentElement.lang === 'zh'`)
}

// On a phone a key shows its facts before its buttons; on a desktop the buttons stand beside its name.
func TestAPhoneShowsWhatAKeyIsBeforeItsButtons(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("HSET", "cart:ann", "apple", 1, "pear", 2)
	s.Do("PEXPIRE", "cart:ann", 7_200_000)
	at := s.URL + "#/key?k=" + keyURL("cart:ann")
	const facts = `$('#screen .facts').getBoundingClientRect()`
	const buttons = `$$('#screen button').find((b) => b.innerText === 'Rename').getBoundingClientRect()`
	phone := browsertest.Open(t, at, browsertest.Options{Width: 390, Height: 844, Mobile: true})
	phone.Eventually(row("apple") + ` && ` + buttons + `.top >= ` + facts + `.bottom`)
	phone.Shot("key-phone")
	desk := browsertest.Open(t, at, browsertest.Options{})
	desk.Eventually(row("apple") + ` && ` + buttons + `.bottom <= ` + facts + `.top`)
	desk.Eventually(`Math.abs(` + buttons + `.top - $('#screen h1').getBoundingClientRect().top) < 16`)
	desk.Shot("key-desk")
}

func TestLongScreensLeadToTheirCards(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL, browsertest.Options{Width: 390, Height: 844, Mobile: true})
	for screen, title := range map[string]string{"server": "Users", "performance": "Latency events"} {
		p.Screen(screen)
		p.Eventually(`$$('#screen .jumps button').length === ($('#screen h1').innerText === 'Server' ? 8 : 7)`)
		p.Click(`byText('#screen .jumps button', ` + browsertest.Quote(title) + `)[0]`)
		head := `byText('#screen h2', ` + browsertest.Quote(title) + `)[0].getBoundingClientRect().y`
		p.Eventually(head + ` > 40 && ` + head + ` < innerHeight - 40`)
	}
}

// The login offers the language and the theme, which otherwise are in the bar behind it.
func TestTheLoginOffersTheLanguageAndTheTheme(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t, "--requirepass", "secret").URL, browsertest.Options{})
	p.Allow(`^status 401: `)
	p.Click(button("中文"))
	p.Eventually(`document.documentElement.lang === 'zh' && text('form.login').includes('密码')`)
	p.Click(`$('form.login button[aria-label]')`)
	p.Eventually(`document.documentElement.dataset.theme === 'dark'`)
	p.Click(button("English"))
	p.Eventually(`text('form.login').includes('Password')`)
}

func TestAWrongPasswordIsToldInTheLanguageOfThePage(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t, "--requirepass", "secret").URL, browsertest.Options{Lang: "zh-CN"})
	p.Allow(`^status 401: `)
	p.Eventually(`$('form.login')`)
	p.Fill(`$('input[name=password]')`, "wrong")
	p.Press(kb.Enter)
	p.Eventually(`text('form.login [role=alert]') === '用户或密码错误，或用户已停用。'`)
}

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
			p.Click(`$$('#screen .tools button').find((b) => b.innerText === 'TTL')`)
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

// Seven minutes without a sample are seven minutes wide, and no line crosses them.
func TestALinePlacesSamplesByTimeAndEndsAtAGap(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL, browsertest.Options{})
	p.Eval(`void import('./lib/chart.js').then((m) => {
		const draw = (times, values) => {
			const el = document.createElement('div');
			el.style.width = '660px'; // of which the plot has 600
			document.body.append(el);
			m.lines(el, times, [{ label: 'v', cls: 's-key', values }], { label: 'v' });
			const d = el.querySelector('.series').getAttribute('d'), words = [...el.querySelectorAll('svg text')].map((e) => e.textContent);
			el.remove();
			return { d, words, x: [...d.matchAll(/[ML]([\d.]+)/g)].map((m) => Math.round(m[1] - 52)), gaps: d.split('M').length - 2 };
		};
		const at = Date.UTC(2030, 0, 1, 12);
		// ten minutes: two samples ten seconds apart, seven minutes of nothing, and samples each second at the end
		const times = [0, 10, 430, 598, 599, 600].map((s) => at + s * 1000);
		globalThis.drawn = draw(times, [1, 2, 3, 4, null, 5]);
		globalThis.young = draw([at, at + 1000], [1, 2]);
		globalThis.empty = draw([], []);
	})`)
	p.Eventually(`globalThis.empty && empty.d === ''`)
	for js, want := range map[string]string{
		"drawn.x.join()": "0,10,430,598,600",
		"drawn.gaps":     "3", // before 430, before 598, and where a value is missing
		// The axis has full minutes, and its words stand at them.
		"drawn.words.filter((w) => /^12:/.test(w)).join()": "12:00,12:02,12:04,12:06,12:08",
		"young.x.join()": "590,600", // a chart shows a minute at least
	} {
		if got := p.Text(`String(` + js + `)`); got != want {
			t.Errorf("%s is %s, want %s", js, got, want)
		}
	}
}

// Content for screen readers only takes no space.
func TestNoScreenScrollsIntoNothing(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": {Width: 390, Height: 844, Mobile: true}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			p.Allow(`^status 404: GET .*/api/key\?`)
			for _, to := range routes() {
				p.Screen(to)
				if name == "desktop" {
					if below := p.Number(`$('#rail').scrollHeight - $('#rail').clientHeight`); below > 0 {
						t.Errorf("%.40s: the rail scrolls by %v", to, below)
					}
				}
				// The list may grow between the two figures.
				p.Eventually(`(() => {
					const last = Math.max(...$$('#screen > div > *').filter(seen).map((e) => e.getBoundingClientRect().bottom + scrollY));
					return document.scrollingElement.scrollHeight <= Math.max(innerHeight, last + 48);
				})()`)
			}
		})
	}
}

// On a phone the columns of a table neither overlap nor stand outside, and a name does not wrap letter by letter.
func TestColumnsHaveRoom(t *testing.T) {
	s := shop(t)
	s.Do("EXPIRY", "RULE", "SET", "checkout-sessions-of-europe", "MATCH", "session:checkout:eu-central-1:*",
		"TO", "ended:checkout:eu-central-1")
	stream := "ended:checkout:eu-central-1"
	s.Do("XGROUP", "CREATE", stream, "warehouse-of-the-north", "0", "MKSTREAM")
	s.Do("XADD", stream, "*", "id", "17")
	s.Do("XREADGROUP", "GROUP", "warehouse-of-the-north", "packer-17", "STREAMS", stream, ">")
	all := append([]string{"streams?db=0&k=" + keyURL(stream) + "&g=" + keyURL("warehouse-of-the-north"),
		"key?db=0&k=" + keyURL("cart:ann")}, screens...)
	for name, o := range map[string]browsertest.Options{
		"desktop":        {},
		"small":          {Width: 1024, Height: 768},
		"phone":          {Width: 390, Height: 844, Mobile: true},
		"phone, Chinese": {Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			for _, to := range all {
				p.Screen(to)
				for _, wrong := range p.Columns() {
					t.Errorf("%s: %s", to, wrong)
				}
			}
		})
	}
}
