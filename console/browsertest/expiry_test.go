package browsertest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console/browsertest"
)

// watchFades records in window.faded, by the text of a row, when the row begins to fade: ms since 1970, by
// the clock that this machine's server uses.
const watchFades = `(() => {
	window.faded = {};
	new MutationObserver((all) => {
		for (const m of all) {
			const e = m.target, name = e.querySelector && e.tagName === 'TR' && e.classList.contains('gone') && e.querySelector('.bytes')?.innerText;
			if (name && !(name in window.faded)) window.faded[name] = Date.now();
		}
	}).observe(document, { subtree: true, attributes: true, attributeFilter: ['class'] });
})()`

func TestTheFirstRunLeadsFromAnEmptyServerToAKeyThatExpires(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	first := p.Text(`(() => {
	const n = performance.getEntriesByType('navigation')[0], all = [n, ...performance.getEntriesByType('resource')];
	window.load_ = { requests: all.length, bytes: all.reduce((sum, e) => sum + e.transferSize, 0) };
	return load_.requests + ' requests, ' + load_.bytes + ' bytes, DOMContentLoaded after ' + n.domContentLoadedEventEnd.toFixed(0) + ' ms';
})()`)
	t.Logf("first load: %s (bars: 25 requests, 150 KB, 300 ms)", first)
	if p.Number(`load_.bytes`) > 150_000 {
		t.Error("the first load takes more than 150 KB")
	}
	p.Eventually(`byText('#screen h2', 'The server has no keys yet').length && byText('#screen', 'All clear.').length`)
	p.Eventually(`byText('#screen p', 'Nothing expires in the next minute').length`)
	line := p.Text(`text('code.command')`)

	// The copied line, pasted into the shell.
	p.GrantClipboard()
	p.Click(`$('#screen button.copy')`)
	p.Eventually(`navigator.clipboard.readText().then((s) => s === ` + browsertest.Quote(line) + `)`)
	p.ClickText("Open in the shell")
	prompt := `$('#screen form input')`
	p.Eventually(prompt + `?.value === ` + browsertest.Quote(line))
	p.Fill(prompt, p.Text(`navigator.clipboard.readText()`))
	p.Click(button("Run"))
	p.Eventually(`byText('#screen pre.value', 'OK').length`)
	if got := s.Do("GET", "hello"); got.Str != "world" {
		t.Fatalf("hello is %q", got.Str)
	}

	// The limiter stands among the keys and counts down.
	p.Screen("keys")
	left := row("hello") + `.querySelector('.ttl .left').innerText`
	p.Eventually(row("hello"))
	shown := p.Text(left)
	p.Eventually(left + ` !== ` + browsertest.Quote(shown))

	// A button shortens the life; the row disappears at the deadline.
	p.Eval(watchFades)
	p.Click(within("hello", "TTL"))
	p.Fill(`$('dialog[open] input')`, "2s")
	if command := confirm(p); command != "PEXPIRE hello 2000" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(row("hello") + `?.querySelector('.ttl.soon')`)
	due := s.Do("PEXPIRETIME", "hello").Int
	p.Eventually(`window.faded['hello']`)
	t.Logf("the row faded %+d ms after the deadline (bar: 50 ms)", int64(p.Number(`window.faded['hello']`))-due)
	p.Eventually(`!` + row("hello"))
	p.Eventually(`byText('#screen', 'This database has no keys').length || byText('#screen .empty', 'keys').length`)

	// If keyspace events are on, the screen shows what has expired; otherwise it shows how to switch them on.
	p.Screen("expiry?match=g*")
	p.Eventually(`byText('#screen', 'Expirations are not shown').length`)
	p.Eventually(`byText('#screen', 'CONFIG SET notify-keyspace-events xE').length`)
	p.Eventually(`text('#screen .legend').includes('Keys and items')`)
	s.Do("CONFIG", "SET", "notify-keyspace-events", "xE")
	p.Screen("expiry")
	p.Eventually(`byText('#screen', 'All keys that expire').length && !text('#screen .legend').includes('Keys and items')`)
	p.Wait("the stream of expirations is open", func() bool { return following(p, "expired") >= 1 })
	s.Do("SET", "gone", "v", "PX", 1)
	p.Eventually(row("gone") + `?.innerText.includes('key')`)
}

// Keys whose rows have expired make room for the next ones, and the line below the list counts the keys that
// exist.
func TestTheListOfKeysReadsOnWhenItsRowsExpire(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	for i := range 200 {
		s.Do("SET", fmt.Sprint("lasting:", i), "v")
	}
	storm(t, s, "voucher", 1000, time.Now().UnixMilli()+5000)
	p.Screen("keys")
	p.Eventually(`byText('#screen td', 'voucher:').length > 20`)
	// Below 50 rows the list reads more. How many rows it then has depends on the number of vouchers left.
	p.Eventually(`!byText('#screen td', 'voucher:').length && byText('#screen td', 'lasting:').length >= 50`)
	p.Eventually(`text('#screen [role=status]').startsWith($$('#screen tbody tr').length + ' shown')`)
}

// The rows of a storm do not move the cards below them.
func TestAListOfExpirationsScrollsByItself(t *testing.T) {
	s := browsertest.Serve(t, "--notify-keyspace-events", "xE")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("expiry")
	p.Wait("the stream of expirations is open", func() bool { return following(p, "expired") >= 1 })
	storm(t, s, "voucher", 200, time.Now().UnixMilli()+500)
	p.Eventually(`$$('#screen .recent tbody tr').length >= 50`)
	if tall := p.Number(`$('#screen .recent').clientHeight`); tall > 600 {
		t.Errorf("the card has %v px", tall)
	}
}

func TestFieldsOfAHashGoOneByOneAndTheKeyWithTheLast(t *testing.T) {
	s := browsertest.Serve(t)
	now := time.Now().UnixMilli()
	s.Do("HSET", "cart:ann", "apple", 1, "pear", 2, "plum", 3)
	fields := []string{"apple", "pear", "plum"}
	for i, f := range fields {
		s.Do("HPEXPIREAT", "cart:ann", now+int64(i+2)*1500, "FIELDS", 1, f)
	}
	p := browsertest.Open(t, s.URL+"#/key?db=0&k="+keyURL("cart:ann"), browsertest.Options{})
	p.Allow(`^status 404: GET .*/api/key\?`) // the key has expired
	p.Eval(watchFades)
	items := func(n int) string {
		return fmt.Sprintf(`$$('#screen .facts div').some((e) => e.innerText.replace(/\s+/g, ' ') === 'Items %d')`, n)
	}
	p.Eventually(items(3) + ` && $$('#screen tbody tr').length === 3`)
	first := p.Text(row("plum") + `.querySelector('.left').innerText`)
	p.Eventually(row("plum") + `.querySelector('.left').innerText !== ` + browsertest.Quote(first))
	p.Eventually(`window.faded['apple'] && ` + items(2) + ` && !` + row("apple"))
	p.Eventually(`window.faded['pear'] && ` + items(1) + ` && !` + row("pear"))
	p.Eventually(`/(expired|removed) \d\d:\d\d:\d\d\.\d\d\d/.test(text('#screen .titlebar'))`)
	for i, f := range fields {
		at := p.Number(`window.faded[` + browsertest.Quote(f) + `] || 0`)
		if at == 0 && i < 2 {
			t.Errorf("the row of %s did not fade", f)
		}
		t.Logf("%s faded %+d ms after its deadline", f, int64(at)-now-int64(i+2)*1500)
	}
	if s.Do("EXISTS", "cart:ann").Int != 0 {
		t.Error("the page says that the key has expired, and the server has it")
	}
	want := time.UnixMilli(now + 4*1500).UTC().Format("15:04:05.000")
	if said := p.Text(`text('#screen .titlebar .look')`); !strings.HasPrefix(said, "expired ") {
		t.Errorf("the page says %q of a key whose last field expired at %s", said, want)
	} else {
		t.Logf("the page says %q; the last field's deadline was %s", said, want)
	}
}

// storm writes n keys with deadlines within a second, the first at a time in ms.
func storm(t *testing.T, s *browsertest.Server, prefix string, n int, from int64) {
	t.Helper()
	for i := 0; i < n; i += 1000 {
		var b conn.Batch
		for j := i; j < min(i+1000, n); j++ {
			b.Do("SET", fmt.Sprintf("%s:%05d", prefix, j), "5 %", "PXAT", from+int64(j)*999/int64(n))
		}
		if _, err := s.Conn.Pipeline(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
}

// frames records in window.frames the times between two frames, and in window.long the tasks over 50 ms.
const frames = `(() => {
	window.frames_ = []; window.long = [];
	let last = performance.now();
	const next = () => { const now = performance.now(); window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
	requestAnimationFrame(next);
	new PerformanceObserver((l) => { for (const e of l.getEntries()) window.long.push(e.duration); }).observe({ type: 'longtask' });
})()`

// report logs the figures that frames has recorded.
func report(t *testing.T, p *browsertest.Page, what string) {
	t.Helper()
	t.Logf("%s: %s", what, p.Text(`(() => {
	const f = window.frames_.slice(5), sum = f.reduce((a, b) => a + b, 0), sorted = [...f].sort((a, b) => a - b);
	const at = (q) => sorted[Math.floor(q * (sorted.length - 1))].toFixed(1) + ' ms';
	return f.length + ' frames, ' + (1000 * f.length / sum).toFixed(1) + ' fps, p50 ' + at(0.5) + ', p99 ' + at(0.99) + ', max ' + at(1) +
		'; tasks over 50 ms: ' + (window.long.map((x) => x.toFixed(0) + ' ms').join(', ') || 'none');
})()`))
}

func TestAStormOfExpirationsIsSeenBeforeItComesAndCountedAfter(t *testing.T) {
	const keys = 50_000
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	storm(t, s, "coupon", keys, time.Now().UnixMilli()+8000)
	p.Eval(frames)
	p.Eventually(`$('#screen .chart .storm') && /50,000 expire together in \d+ s: 100% of all keys|\d\d,\d\d\d expire together/.test(text('#screen'))`)
	p.Eventually(`$$('#screen .tile')[0]?.querySelector('b').innerText === '0'`)
	report(t, p, "Now during the storm")
	if got := s.Do("DBSIZE").Int; got != 0 {
		t.Errorf("%d keys are left", got)
	}
	p.Screen("expiry")
	p.Eventually(`$$('#screen tbody tr').some((e) => /^All\s+50,000\s/.test(e.innerText) && !e.innerText.includes('–'))`)
	p.Eventually(`byText('#screen p', 'No backlog').length`)
	t.Logf("on time: %s", p.Text(`$$('#screen tbody tr').find((e) => /^All/.test(e.innerText)).innerText`))
}

// Keys is the screen with the most rows.
func TestAScreenOfTwoHundredRowsHasNoLongTask(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 1000 {
		s.Do("SET", fmt.Sprintf("session:%04d", i), "x", "PX", 60_000+i*10)
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	tasks := p.Tasks(func() {
		p.Screen("keys")
		p.Eventually(`$$('#screen tbody tr').length >= 200`)
		for range 3 { // ticks of the cells
			left := `$('#screen tbody .left').textContent`
			p.Eventually(left + ` !== ` + browsertest.Quote(p.Text(left)))
		}
	})
	if len(tasks) == 0 {
		t.Fatal("the trace has no task")
	}
	for _, task := range tasks[:min(5, len(tasks))] {
		t.Logf("a task took %.0f ms, %.0f ms of the processor", task.Took, task.CPU)
	}
	slices.SortFunc(tasks, func(a, b browsertest.Task) int { return cmp.Compare(b.CPU, a.CPU) })
	if tasks[0].CPU > 100 {
		t.Errorf("a task took %.0f ms of the processor; 100 ms is the bound", tasks[0].CPU)
	}
}

// Rows make room for others when they expire, so that the list of the next expirations is never empty while
// deadlines fall.
func TestWhatExpiresNextIsNeverEmptyWhileDeadlinesFall(t *testing.T) {
	s := browsertest.Serve(t)
	at := time.Now().UnixMilli() + 3000
	for i := range 1500 {
		s.Do("SET", fmt.Sprintf("due:%04d", i), "v", "PXAT", at+int64(i)*40)
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{Blank: true})
	p.Before(`new MutationObserver(() => {
		const row = document.querySelector('#screen tbody .bytes'), none = [...document.querySelectorAll('#screen .empty')];
		if (row && row.innerText.startsWith('due:')) window.began ??= row.innerText;
		if (window.began && none.some((e) => e.checkVisibility() && e.innerText.includes('Nothing expires'))) window.gone = true;
	}).observe(document, { subtree: true, childList: true, attributes: true, characterData: true })`)
	p.Go(s.URL + "#/expiry")
	p.Eventually(`window.began`)
	// More rows than the list had at first, and more than it shows, have expired.
	p.Eventually(`Number($('#screen tbody .bytes').innerText.slice(4)) > Number(window.began.slice(4)) + 210`)
	if gone, _ := p.Eval(`window.gone === true`).(bool); gone {
		t.Error("Expiry said that nothing expires")
	}
}

// The list of an interval has at most a thousand rows. The text must not say that nothing precedes them.
func TestAnIntervalBehindAStormIsTooFarToList(t *testing.T) {
	s := browsertest.Serve(t)
	now := time.Now().UnixMilli()
	storm(t, s, "voucher", 3000, (now/1000+35)*1000)
	for i := range 5 {
		s.Do("SET", fmt.Sprintf("later:%d", i), "v", "PXAT", (now/1000+50)*1000+500)
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("expiry")
	// The forecast is an estimate: at either end of the second, a part of a slot of 256 ms may count in the next
	// second.
	p.Eventually(`/(3,000|2,[5-9]\d\d) expire together at \d\d:\d\d:\d\d,/.test(text('#screen'))`)
	want := time.UnixMilli((now/1000 + 35) * 1000).UTC().Format("15:04:05")
	if !strings.Contains(p.Text(`text('#screen')`), "together at "+want) {
		t.Errorf("the storm at %s is not named by its time", want)
	}
	p.Eval(`$('#screen .chart').focus()`)
	for range 60 {
		p.Press(kb.ArrowLeft)
		if p.Eval(`text('#screen .tip').includes('Keys 5')`) == true {
			break
		}
	}
	p.Press(kb.Enter)
	p.Eventually(`text('#screen').includes('This interval is too far ahead to list its keys')`)
}

// A key that no longer exists leaves no control behind, and its page shows it again when it exists again.
func TestThePageOfAKeyThatHasGoneHasNoControls(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("HSET", "cart", "apple", 1)
	s.Do("PEXPIRE", "cart", 3000)
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("cart"), browsertest.Options{})
	p.Allow(`^status 404: GET .*/api/key\?`) // the key has expired
	p.Wait("the stream is open", func() bool { return open(p) == 1 })
	gone := func(why string) {
		t.Helper()
		p.Eventually(`text('#screen .titlebar .look').startsWith(` + browsertest.Quote(why) + `)`)
		p.Eventually(`!$$('#screen button').some(seen) && !$$('#screen input').some(seen)`)
	}
	gone("expired ")
	p.Shot("key-gone")
	s.Do("SET", "cart", "a string now")
	p.Eventually(`text('#screen pre.value') === 'a string now' && text('#screen .titlebar .look') === ''`)
	s.Do("DEL", "cart")
	gone("removed ")
	s.Do("HSET", "cart", "pear", 2)
	p.Eventually(row("pear") + ` && seen(` + button("Add") + `)`)
}
