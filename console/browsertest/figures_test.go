package browsertest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// The server sorts all rows by the column, sends the first ones, and finds a name among all rows.
func TestAListOfManyIsSortedAndFilteredByTheServer(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 1000 {
		s.Do("DQ.ADD", fmt.Sprintf("q%04d", i), "1", "x")
		s.Do("LOCK.ACQUIRE", fmt.Sprintf("l%04d", i), "o", 600_000)
		s.Do("RL.TAKE", fmt.Sprintf("r%04d", i), 10, 600_000)
		s.Do("XADD", fmt.Sprintf("s%04d", i), "*", "f", "v")
	}
	for i := range 5 {
		s.Do("DQ.ADD", "q0777", fmt.Sprint("j", i), "x")
		s.Do("RL.TAKE", "r0777", 10, 600_000)
		s.Do("XADD", "s0777", "*", "f", "v")
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	head := func(name string) {
		p.Click(`$$('#screen thead button.head').find((b) => seen(b) && b.innerText === '` + name + `')`)
	}
	first := func(section int, name string) {
		p.Eventually(fmt.Sprintf(`$$('#screen section')[%d].querySelector('tbody tr')?.innerText.includes('%s')`, section, name))
	}
	p.Screen("queues")
	p.Eventually(`text('#screen').includes('Showing the first 200 of 1,000,')`)
	head("Ready")
	first(0, "q0777")
	p.Shot("queues-many")
	p.Screen("limits")
	first(3, "r0777")
	p.Screen("streams")
	head("Entries")
	first(0, "s0777")
	for screen, part := range map[string]string{"queues": "q09", "locks": "l09", "limits": "r09", "streams": "s09"} {
		p.Screen(screen)
		p.Fill(`$('#screen input[type=search]')`, part)
		p.Press(kb.Enter)
		p.Eventually(`location.hash.includes('match=` + part + `') && $$('#screen tbody tr').length === 100`)
	}
}

// The tiles stay visible, however many concerns there are.
func TestNowNamesTheWorstOfEachKind(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 50 {
		s.Do("DQ.CONFIG", fmt.Sprintf("{%d}q", i), "MAXDELIVERIES", 1, "DEADLETTER", fmt.Sprintf("{%d}dl", i))
		for j := range i + 1 {
			s.Do("DQ.ADD", fmt.Sprintf("{%d}dl", i), fmt.Sprint(j), "x")
		}
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`$$('#screen .attention li').length === 4 && text('#screen .attention').includes('And 47 more')`)
	p.Eventually(`$('#screen .attention li').innerText.includes('{49}q')`)
	p.Eventually(`$('#screen .tiles').getBoundingClientRect().bottom < innerHeight`)
	p.Shot("now-many")
	p.Click(`byText('#screen .attention li a', 'Open').at(-1)`)
	p.Eventually(`location.hash.startsWith('#/queues')`)
}

func TestAJobShowsTheNumbersOfItsPayload(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.ADD", "q", "job", `{"order":12345678901234567890,"a":1,"a":2}`)
	p := browsertest.Open(t, s.URL+"#/queues?k="+keyURL("q"), browsertest.Options{})
	p.Click(row("job") + `?.querySelector('td.wide')`)
	p.Eventually(`text('dialog[open] pre.value') === '{\n  "order": 12345678901234567890,\n  "a": 1,\n  "a": 2\n}'`)
	p.Click(`byText('dialog[open] button', 'Hex')[0]`)
	p.Eventually(`text('dialog[open] pre.value').startsWith('00000000  7b 22')`)
}

// Names of any bytes have a place in the tree.
func TestTheTreeKeepsBytesAndTextApart(t *testing.T) {
	s := browsertest.Serve(t)
	for _, k := range []string{"\xff:a", "\xff:b", "\xff:c:d", `\xff:lit`, "a*b:x", "a*b:y", "axb:z"} {
		s.Do("SET", k, "v")
	}
	p := browsertest.Open(t, s.URL+"#/keys?view=tree", browsertest.Options{})
	p.Eventually(`$$('#screen tbody tr').length === 4`)
	p.Eventually(`$$('#screen tbody tr').every((r) => !!r.querySelector('.strong') === r.innerText.includes('▸'))`) // prefixes stand out
	p.Click(`$$('#screen tbody tr').find((e) => e.innerText.includes('\\xff:') && /\t3\t/.test(e.innerText)).querySelector('td')`)
	p.Eventually(`$$('#screen tbody tr').length === 3 && text('#screen').includes('\\xff:c:') && !text('#screen').includes('lit')`)
	p.Shot("tree-bytes")
	p.Screen("keys?view=tree")
	p.Click(row("a*b:") + `?.querySelector('td')`)
	p.Eventually(`$$('#screen tbody tr').length === 2 && !text('#screen tbody').includes('axb')`)
}

func TestNoClientHidesTheOthers(t *testing.T) {
	s := browsertest.Serve(t)
	c := client(t, s)
	send(t, c, "CLIENT SETNAME "+strings.Repeat("N", 5000))
	d := client(t, s)
	send(t, d, "CLIENT SETINFO LIB-NAME "+strings.Repeat("L", 3000))
	for range 250 {
		send(t, client(t, s), "CLIENT SETNAME worker")
	}
	p := browsertest.Open(t, s.URL+"#/server", browsertest.Options{})
	p.Eventually(row("NNNN"))
	if w := p.Number(`$$('#screen table').find((e) => e.getAttribute('aria-label') === 'Clients').scrollWidth`); w > 1300 {
		t.Errorf("the table of the clients is %v px wide", w)
	}
	p.Eventually(`text('#screen').includes('Showing the first 200 of 25')`)
	p.Fill(`$('#screen input[placeholder^="Find by address"]')`, "nnnn")
	p.Eventually(`$$('#screen table').find((e) => e.getAttribute('aria-label') === 'Clients').querySelectorAll('tbody tr').length === 1`)
	p.Shot("clients-hostile")
}

func TestAWideEntryIsShownInPart(t *testing.T) {
	s := browsertest.Serve(t)
	args := []any{"XADD", "x", "1-1"}
	for i := range 1000 {
		args = append(args, fmt.Sprint("field", i), "v")
	}
	s.Do(args...)
	p := browsertest.Open(t, s.URL+"#/key?db=0&k="+keyURL("x"), browsertest.Options{})
	p.Eventually(`byText('#screen a', 'and 980 more fields').length`)
	if n := p.Number(`document.querySelectorAll('#screen *').length`); n > 1000 {
		t.Errorf("the screen has %v elements", n)
	}
	p.Click(`byText('#screen a', 'and 980 more fields')[0]`)
	p.Eventually(`$('#screen form.line input')?.value === 'XRANGE x 1-1 1-1'`)
}

// The page shows the length of a name that no request can hold, and the login has no scrollbar.
func TestWhatIsTooLongOrTooHighIsSaid(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: GET .*/api/me`)
	p.Eventually(`$('form.login')`)
	if over := p.Number(`document.documentElement.scrollHeight - innerHeight`); over > 0 {
		t.Errorf("the login is %v px higher than the window", over)
	}
	login(p, "default", "secret")
	p.Eval(`location.hash = '#/key?db=0&k=' + 'A'.repeat(1400000)`)
	p.Eventually(`text('#screen').includes('The name of this key has 1,050,000 bytes')`)
}

// Times to live in words, Find, and a screen that is opened for the first time while the server is away.
func TestSmallThingsSayWhatIsSo(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v")
	s.Do("SET", " lead", "v")
	s.Do("SET", "a*b", "v")
	p := browsertest.Open(t, s.URL+"#/key?db=0&k="+keyURL("k"), browsertest.Options{})
	p.Click(button("TTL"))
	for typed, want := range map[string]string{
		"1h30m": "PEXPIRE k 5400000", "1 h 30 min": "PEXPIRE k 5400000", "90": "PEXPIRE k 90000", "2d 1s": "PEXPIRE k 172801000",
		"9223372036854775807": "Enter a time to live", "1h30": "Enter a time to live", "30 1": "Enter a time to live", "soon": "Enter a time to live",
	} {
		p.Fill(`$('dialog[open] input[name=s]')`, typed)
		p.Eventually(`text('dialog[open] pre.command').startsWith(` + browsertest.Quote(want) + `)`)
	}
	p.Press(kb.Escape)
	find := func(typed, kind string) {
		t.Helper()
		p.Eventually(`!$('dialog[open]')`)
		p.Click(`$('#bar .find')`)
		p.Fill(`$('dialog[open] input')`, typed)
		p.Eventually(`$('dialog[open] .results li')?.innerText.includes(` + browsertest.Quote(kind) + `)`)
		p.Press(kb.Escape)
	}
	find(" lead", "string")
	find("SET x y", "open in the shell")
	find("a*", "list matching keys")
	find("[", "list keys with this prefix")

	p.Screen("keys")
	p.Allow(`^(status 50|failed: |console error: )`)
	p.Allow(`ERR_`)
	s.Stop()
	p.Eval(`location.hash = '#/performance'`)
	p.Eventually(`text('#screen').includes('opens as soon as it does')`)
	if got := p.Text(`text('#screen')`); strings.Contains(got, "module") || !strings.Contains(got, "Waiting for the server") {
		t.Errorf("the page says %q", got)
	}
	s.Start()
	p.Eventually(`byText('#screen h1', 'Performance').length`)
}

// A replica offers no write, and shows when its master last spoke.
func TestAReplicaOffersNoWrite(t *testing.T) {
	master := browsertest.Serve(t)
	master.Do("SET", "k", "v")
	_, port, _ := strings.Cut(master.Addr, ":")
	s := browsertest.Serve(t, "--replicaof", "127.0.0.1 "+port)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`text('#screen .tiles').includes('last contact with its master')`)
	p.Screen("keys")
	p.Eventually(within("k", "Delete") + `?.disabled && ` + within("k", "Delete") + `.title.includes('only its master accepts writes')`)
}

// charted opens a page and runs a script that draws into el by m, the module chart.js.
func charted(t *testing.T, script string) *browsertest.Page {
	p := browsertest.Open(t, browsertest.Serve(t).URL, browsertest.Options{})
	p.Eventually(`$('#screen .tiles')`)
	p.Eval(`import(location.origin + location.pathname + 'lib/chart.js').then((m) => {
		const el = document.createElement('div');
		el.id = 'chart';
		el.style.width = '600px';
		document.querySelector('#screen').prepend(el);
		` + script + ` })`)
	return p
}

// A spike of one second does not flatten the others.
func TestASpikeIsCutOffAndMarked(t *testing.T) {
	p := charted(t, `
		const times = Array.from({ length: 60 }, (_, i) => 1700000000000 + 1000 * i);
		m.lines(el, times, [{ label: 'p99', cls: 's-key', values: times.map((_, i) => (i === 30 ? 5000 : 10 + (i % 3))) }], { label: 'x' });`)
	p.Eventually(`$('#chart path.storm') && text('#chart .legend').includes('higher')`)
	high := p.Number(`(() => {
		const y = $('#chart path.series').getAttribute('d').match(/ [\d.]+/g).map(Number).filter((_, i) => i !== 30);
		return Math.max(...y) - Math.min(...y);
	})()`)
	if high < 10 {
		t.Errorf("the usual values are %v px high", high)
	}
}

// A storm of 50,000 expirations leaves the bars of the other seconds readable.
func TestABarThatIsFarHigherThanTheOthersIsBroken(t *testing.T) {
	p := charted(t, `
		const values = Array.from({ length: 60 }, (_, i) => (i === 30 ? 50000 : 5 + (i % 3)));
		m.bars(el, [{ label: 'expire', cls: 's-key', values }], { label: 'x', x: String });`)
	p.Eventually(`$$('#chart .gap').length === 1 && $('#chart text.top').textContent === '50k'`)
	bar := func(i int) float64 {
		return p.Number(fmt.Sprintf(`Number($$('#chart rect.s-key')[%d].getAttribute('height'))`, i))
	}
	if usual, high := bar(0), bar(30); usual < 40 || high < 1.2*usual {
		t.Errorf("a usual bar has %v px, and the storm %v", usual, high)
	}
}

// A waiting command of the program that embeds the engine has no connection: the tile counts connections, and
// commands beside them.
func TestTheTileOfTheClientsCountsCommandsThatWaitAsThese(t *testing.T) {
	s := browsertest.Serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _, _ = s.Conn.Do(ctx, "BLPOP", "nothing", 0) }) // the error is that of the context
	defer work.Wait()
	defer cancel()
	for lang, want := range map[string]string{"en": "Clients\n0\none blocked command", "zh-CN": "客户端\n0\n1 条阻塞的命令"} {
		p := browsertest.Open(t, s.URL, browsertest.Options{Lang: lang})
		p.Eventually(`$$('#screen .tiles a').some((e) => e.innerText.replace(/\n+/g, '\n') === ` + browsertest.Quote(want) + `)`)
		p.Shot("now-blocked-" + lang)
	}
}

// A phone has no room for the column Failed: the name has a badge where a call has failed.
func TestAPhoneMarksTheCommandsThatHaveFailed(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "text", "a")
	for range 2 {
		if _, err := s.Try("INCR", "text"); err == nil {
			t.Fatal("INCR of a text has not failed")
		}
	}
	for name, x := range map[string]struct {
		o    browsertest.Options
		seen bool
	}{"desktop": {}, "phone": {browsertest.Options{Width: 390, Height: 844, Mobile: true}, true}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL+"#/performance", x.o)
			p.Eventually(row("INCR"))
			p.Eventually(row("SET"))
			marks := `byText('#screen tbody .badge', 'failed').map((e) => text(e.closest('tr')).split(/\s/)[0] + ' ' + text(e)).join()`
			want := ""
			if x.seen {
				want = "INCR 2 failed"
			}
			if got := p.Text(marks); got != want {
				t.Errorf("the commands have the marks %q, want %q", got, want)
			}
			if over := p.Number(`((e) => e.scrollWidth - e.clientWidth)($('#screen .table'))`); over > 0 {
				t.Errorf("the table is cut by %v px", over)
			}
			p.Shot("failed-" + name)
		})
	}
}
