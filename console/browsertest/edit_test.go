package browsertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// setValue is the value of a form's text area, as a person types it.
const setValue = `$('dialog[open] textarea')`

// run runs the command of the open dialog. The dialog may open again.
func run(p *browsertest.Page) {
	p.Eventually(`$('dialog[open] pre.command')`)
	p.Click(`$('dialog[open] button[type=submit]')`)
}

// Edit and Run without a change keep every byte of a value.
func TestAnEditWithoutAChangeKeepsEachByte(t *testing.T) {
	s := browsertest.Serve(t)
	values := map[string]string{
		"binary": "\x00\x01\xff\xfe\\x41 \"q\"", "lines": "line1\nline2\ttab", "carriage": "a\r\nb", "joined": "a\u200db", "text": `back\slash`,
	}
	for name, v := range values {
		s.Do("HSET", "h", name, v)
		s.Do("SET", "s:"+name, v)
	}
	s.Do("RPUSH", "l", "\xff\x00")
	s.Do("LPEXPIRE", "l", 500_000, "INDEXES", 1, 0)
	s.Do("HSET", "h", "long", strings.Repeat("x", 100_000))
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	same := func(what, want string, got func() string) {
		t.Helper()
		confirm(p)
		p.Eventually(`$('.toast.good, .toast.bad')`)
		if fault := p.Text(`text('.toast.bad') || ''`); fault != "" || got() != want {
			t.Errorf("%s: %q became %q; %s", what, want, got(), fault)
		}
		p.Eval(`document.getElementById('toasts')?.replaceChildren()`)
	}
	for name, v := range values {
		p.Screen("key?db=0&k=" + keyURL("h"))
		p.Click(within(name, "Edit"))
		same("the field "+name, v, func() string { return s.Do("HGET", "h", name).Str })
		p.Screen("key?db=0&k=" + keyURL("s:"+name))
		p.Click(button("Edit"))
		same("the string "+name, v, func() string { return s.Do("GET", "s:"+name).Str })
	}
	p.Screen("key?db=0&k=" + keyURL("l"))
	p.Click(within(`\xff\x00`, "Edit"))
	same("the element", "\xff\x00", func() string { return s.Do("LINDEX", "l", 0).Str })
	if ttl := s.Do("LPTTL", "l", "INDEXES", 1, 0).Elems[0].Int; ttl < 400_000 {
		t.Errorf("the element has %d ms to live: the edit has removed its deadline", ttl)
	}
	// A value that the page has only in part has no Edit.
	p.Screen("key?db=0&k=" + keyURL("h"))
	p.Eventually(within("100,000", "TTL"))
	if p.Eval(`!!(`+within("100,000", "Edit")+`)`) == true {
		t.Error("a value of which the page has a part may be edited")
	}
	// Escapes are bytes, and an invalid escape is an error.
	p.Click(within("binary", "Edit"))
	p.Fill(setValue, `\x41\q`)
	p.Eventually(`$('dialog[open] button[type=submit]').disabled && text('dialog[open] pre.command').includes('not a valid escape')`)
	p.Fill(setValue, `\x41\xfe\\`)
	confirm(p)
	p.Eventually(`$('.toast')`)
	if v := s.Do("HGET", "h", "binary").Str; v != "A\xfe\\" {
		t.Errorf("the value is %q", v)
	}
}

// An edit keeps the changes that another client has made meanwhile.
func TestAnEditLosesNoChangeOfOthers(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "s", "one")
	s.Do("HSET", "h", "field", "one")
	s.Do("ZADD", "z", 1, "member")
	s.Do("RPUSH", "l", "A", "B", "C")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 409: POST .*/api/batch`) // the server reports the conflict
	lost := func(key string, open func(), input, typed string, meanwhile func(), same func() string) {
		t.Helper()
		p.Screen("key?db=0&k=" + keyURL(key))
		open()
		p.Eventually(input)
		meanwhile()
		want := same()
		if input != `$('dialog[open] .body p')` {
			p.Eval(`new Promise((done) => setTimeout(done, 2500))`) // the screen behind the dialog updates
			p.Fill(input, typed)
		}
		run(p)
		p.Eventually(`byText('.toast.bad', 'Another client has changed').length`)
		if got := same(); got != want {
			t.Errorf("%s: %q became %q", key, want, got)
		}
		if input == setValue || strings.HasSuffix(input, "[name=v]')") { // the typed text stays, and can be run again
			p.Eventually(input + `?.value === ` + browsertest.Quote(typed))
			p.Eventually(`text('dialog[open]').includes('Your text is kept')`)
			p.Shot("edit-conflict-" + key)
			p.Press(kb.Escape)
			p.Eventually(`!$('dialog[open]')`)
		}
		p.Eval(`document.getElementById('toasts')?.replaceChildren()`)
	}
	lost("s", func() { p.Click(button("Edit")) }, setValue, "mine", func() { s.Do("SET", "s", "two") },
		func() string { return s.Do("GET", "s").Str })
	s.Do("SET", "t", "one")
	lost("t", func() { p.Click(button("Edit")) }, `$('dialog[open] .body p')`, "", func() { s.Do("DEL", "t"); s.Do("HSET", "t", "f", "v") },
		func() string { return s.Do("TYPE", "t").Str })
	lost("h", func() { p.Click(within("field", "Edit")) }, setValue, "mine", func() { s.Do("HSET", "h", "field", "two") },
		func() string { return s.Do("HGET", "h", "field").Str })
	lost("z", func() { p.Click(within("member", "Edit")) }, `$('dialog[open] input[name=v]')`, "9", func() { s.Do("ZADD", "z", 5, "member") },
		func() string { return s.Do("ZSCORE", "z", "member").String() })
	all := func() string {
		return s.Do("LRANGE", "l", 0, -1).String() + s.Do("LPTTL", "l", "INDEXES", 3, 0, 1, 2).String()
	}
	lost("l", func() { p.Click(within("B", "Edit")) }, setValue, "B2", func() { s.Do("LPUSH", "l", "NEW") }, all)
	lost("l", func() { p.Click(within("B", "TTL")) }, `$('dialog[open] input[name=s]')`, "9m", func() { s.Do("LPUSH", "l", "NEWER") }, all)
	s.Do("LPEXPIRE", "l", 900_000, "INDEXES", 2, 3, 4)
	lost("l", func() { p.Click(within("B", "Remove the TTL")) }, `$('dialog[open] .body p')`, "", func() { s.Do("LPUSH", "l", "NEWEST") },
		func() string { return s.Do("LRANGE", "l", 0, -1).String() })
}

func TestAnElementIsRemovedAPlaceMappedAFilterMeasured(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("RPUSH", "l", "same", "other", "same")
	s.Do("GEOADD", "places", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")
	s.Do("BF.RESERVE", "seen", 0.01, 100, "WINDOW", 60_000, "GENERATIONS", 6)
	s.Do("BF.MADD", "seen", "a", "b")
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("l"), browsertest.Options{})
	p.Eventually(`$$('#screen tbody tr').length === 3`)
	p.Click(`[...$$('#screen tbody tr')[2].querySelectorAll('button')].find((b) => b.innerText === 'Remove')`)
	if command := confirm(p); !strings.HasPrefix(command, "LSET l 2 removed-") || !strings.Contains(command, "\nLREM l 1 removed-") {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`$$('#screen tbody tr').length === 2`)
	if v := s.Do("LRANGE", "l", 0, -1); len(v.Elems) != 2 || v.Elems[0].Str != "same" || v.Elems[1].Str != "other" {
		t.Errorf("the list has %v", v)
	}
	p.Screen("key?k=" + keyURL("places"))
	p.Click(button("Map"))
	p.Eventually(`$$('#screen .geo circle').length === 2`)
	p.Eventually(`$$('#screen .geo title').some((e) => e.textContent === 'Palermo: 38.1156°, 13.3614°')`)
	p.Shot("S33-geo")
	p.Screen("key?k=" + keyURL("seen"))
	p.Eventually(`/2 \/ \d+ \(/.test(text('#screen')) && /Generations\s+6 × 10(\.0)? s/.test(text('#screen'))`)
}

// Add and New key change no existing key.
func TestWhatIsMadeAnewReplacesNothing(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("HSET", "H", "f", "old")
	s.Do("ZADD", "Z", 1, "m")
	s.Do("RPUSH", "L", "a", "b")
	s.Do("SADD", "S", "x")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 409: POST .*/api/batch`)
	for key, fields := range map[string][]string{"H": {"f", "f"}, "Z": {"s", "9"}} {
		p.Screen("key?db=0&k=" + keyURL(key))
		p.Click(button("Add"))
		p.Fill(`$('dialog[open] input[name=`+fields[0]+`]')`, fields[1])
		p.Fill(`$('dialog[open] input[name=v]')`, "m")
		confirm(p)
		p.Eventually(`byText('.toast.bad', 'already has this item').length`)
		p.Eval(`document.getElementById('toasts')?.replaceChildren()`)
	}
	if v, n := s.Do("HGET", "H", "f").Str, s.Do("ZSCORE", "Z", "m").String(); v != "old" || n != "1" {
		t.Errorf("Add has replaced a field or a score: %q %q", v, n)
	}
	for key, kind := range map[string]string{"L": "list", "S": "set", "H": "hash"} {
		p.Screen("keys")
		p.Click(button("New key"))
		p.Fill(`$('dialog[open] input[name=k]')`, key)
		p.Eval(`$('dialog[open] select').value = '` + kind + `'`)
		p.Eval(`$('dialog[open] select').dispatchEvent(new Event('input', { bubbles: true }))`)
		if kind == "hash" {
			p.Fill(`$('dialog[open] input[name=f]')`, "f")
		}
		p.Fill(`$('dialog[open] textarea')`, "x")
		p.Fill(`$('dialog[open] input[name=s]')`, "2s")
		confirm(p)
		p.Eventually(`byText('.toast.bad', 'A key with that name exists').length`)
		p.Eval(`document.getElementById('toasts')?.replaceChildren()`)
		if ttl := s.Do("PTTL", key).Int; ttl != -1 {
			t.Errorf("the %s that was there has %d ms to live", kind, ttl)
		}
	}
	if n := s.Do("LLEN", "L").Int; n != 2 {
		t.Errorf("the list has %d elements", n)
	}
}

func TestABulkChangeKeepsTheFiltersOfTheList(t *testing.T) {
	s := browsertest.Serve(t)
	for _, k := range []string{"1", "2", "3"} {
		s.Do("SET", "bf:s"+k, "x")
		s.Do("HSET", "bf:h"+k, "f", "x")
	}
	s.Do("EXPIRE", "bf:h1", 600)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	run := func(what string) {
		t.Helper()
		p.Click(button(what))
		p.Eventually(`$('dialog[open] ul.value li')`)
		p.Fill(`$('dialog[open] input[type=text]')`, "bf:*")
		p.Click(`$('dialog[open] button[type=submit]')`)
		p.Eventually(`byText('dialog[open]', 'Done.').length`)
		p.Press(kb.Escape)
		p.Eventually(`!$('dialog[open]')`)
	}
	s.Do("BF.ADD", "filter", "x")
	p.Screen("keys")
	p.Eval(`(() => { const e = $('select[aria-label="Type"]'); e.value = [...e.options].find((o) => o.text === 'bloom').value;
		e.dispatchEvent(new Event('change')); })()`)
	p.Eventually(`$$('#screen tbody tr').length === 1 && ` + row("filter") + `.innerText.includes('bloom')`)
	s.Do("DEL", "filter")
	s.Do("SET", "large", strings.Repeat("x", 2000))
	p.Screen("keys?size=1024")
	p.Eventually(`$$('#screen tbody tr').length === 1 && ` + row("large"))
	s.Do("DEL", "large")
	p.Screen("keys?match=bf:*&type=hash&ttl=none")
	p.Eventually(`$$('#screen tbody tr').length === 2`)
	p.Click(button("Delete"))
	p.Eventually(`$$('dialog[open] ul.value li').length === 2`)
	p.Eventually(`/Only keys of the type:\s*hash/.test(text('dialog[open]')) && text('dialog[open]').includes('no TTL')`)
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]')`)
	run("Delete")
	if n := s.Do("EXISTS", "bf:s1", "bf:s2", "bf:s3", "bf:h1").Int; n != 4 || s.Do("DBSIZE").Int != 4 {
		t.Errorf("%d of the keys that the list did not show are left, %v in all", n, s.Do("DBSIZE"))
	}
}

// The question before a change to a pattern shows the number of matching keys, and the commands. If no key
// matches, it has no button.
func TestAChangeToAPatternSaysHowManyKeys(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 600 {
		s.Do("SET", fmt.Sprintf("coupon:%03d", i), "x")
		s.Do("SET", fmt.Sprintf("other:%03d", i), "x")
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("keys?match=coupon:*")
	p.Click(button("Delete"))
	p.Eventually(`text('dialog[open] [role=status]') === '600 keys.' && byText('dialog[open] p', 'and 580 more').length`)
	p.Eventually(`/^(UNLINK coupon:\d{3}\n){3}… and 597 more$/.test(text('dialog[open] pre.command'))`)
	p.Shot("bulk-delete")
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]')`)
	p.Screen("keys?match=none:*")
	p.Eventually(`text('#screen').includes('Nothing matches the filters')`)
	for _, name := range []string{"Delete", "Extend the TTL", "Remove the TTL"} {
		if p.Eval(`!!(`+button(name)+`)`) == true {
			t.Errorf("the list without a key has the button %q", name)
		}
	}
}

// The names of chosen keys get another prefix.
func TestChosenKeysAreCopiedAndRenamed(t *testing.T) {
	s := browsertest.Serve(t)
	for _, k := range []string{"old:a", "old:b\xff", "other"} {
		s.Do("SET", k, k)
	}
	p := browsertest.Open(t, s.URL+"#/keys", browsertest.Options{})
	run := func(what, command string, keys ...string) {
		t.Helper()
		for _, k := range keys {
			p.Click(row(k) + `.querySelector('input')`)
		}
		p.Click(`[...$$('#screen .row button')].find((b) => b.innerText === ` + browsertest.Quote(what) + `)`)
		p.Fill(`$('dialog[open] input[name=to]')`, "new:")
		p.Eventually(`text('dialog[open] pre.command').includes(` + browsertest.Quote(command) + `)`)
		p.Click(`$('dialog[open] button[type=submit]')`)
		p.Eventually(`$('dialog[open] ul.value li')`)
		p.Click(`$('dialog[open] button[type=submit]')`)
		p.Eventually(`byText('dialog[open]', 'Done.').length`)
		p.Press(kb.Escape)
		p.Eventually(`!$('dialog[open]')`)
	}
	p.Eventually(row("old:a") + ` && ` + row("old:b"))
	run("Copy", "COPY old:a new:a", "old:a", "old:b")
	p.Eventually(row("new:a") + ` && ` + row("new:b"))
	run("Rename", "RENAMENX other new:", "other")
	if s.Do("GET", "new:b\xff").Str != "old:b\xff" || s.Do("GET", "new:").Str != "other" || s.Do("EXISTS", "old:a", "other").Int != 1 {
		t.Errorf("the keys are %v", s.Do("KEYS", "*"))
	}
}

func TestSharedDeadLettersAreNotRequeuedAsAWhole(t *testing.T) {
	s := browsertest.Serve(t)
	for _, k := range []string{"{s}a", "{s}b"} {
		s.Do("DQ.CONFIG", k, "MAXDELIVERIES", 1, "DEADLETTER", "{s}dl")
	}
	s.Do("DQ.CONFIG", "{o}q", "MAXDELIVERIES", 1, "DEADLETTER", "{o}dl")
	for _, k := range []string{"{s}dl", "{o}dl"} {
		s.Do("DQ.ADD", k, "job-1", "x")
		s.Do("DQ.ADD", k, "job-2", "x")
	}
	p := browsertest.Open(t, s.URL+"#/queues", browsertest.Options{})
	p.Eventually(row("dead letters of"))
	p.Eventually(`byText('#screen tbody tr', '{s}dl').some((e) => e.innerText.includes('{s}a') && e.innerText.includes('{s}b'))`)
	p.Eventually(row("shared dead letters"))
	// On a phone the count of dead letters stands within its column.
	phone := browsertest.Open(t, s.URL+"#/queues", browsertest.Options{Width: 390, Height: 844, Mobile: true})
	phone.Eventually(row("shared dead letters"))
	if over := phone.Number(`(() => { const e = $('#screen .table'); return e.scrollWidth - e.clientWidth; })()`); over > 0 {
		t.Errorf("the table of the queues is %v px wider than a phone", over)
	}
	phone.Shot("queues-shared-phone")
	p.Shot("queues-shared")
	p.Screen("queues?db=0&k=" + keyURL("{o}q") + "&s=dead")
	p.Eventually(button("Requeue all"))
	p.Screen("queues?db=0&k=" + keyURL("{s}a") + "&s=dead")
	p.Eventually(row("job-1"))
	p.Eventually(`byText('#screen p.look', 'These dead letters are shared with').some((e) => e.innerText.includes('{s}b'))`)
	if p.Eval(`!!(`+button("Requeue all")+`)`) == true {
		t.Error("the dead letters of two queues may be requeued as a whole")
	}
	p.Shot("queue-shared")
	p.Click(within("job-1", "Requeue"))
	p.Eventually(`text('dialog[open]').includes('Several queues share')`)
	confirm(p)
	p.Eventually(`!` + row("job-1"))
}

func TestTheTTLOfASlidingKeyGoesOnSliding(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "session", "v", "PX", 600_000, "SLIDE")
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("session"), browsertest.Options{})
	p.Eventually(`text('#screen dl.facts').includes('Each read renews it to')`)
	p.Shot("S30-sliding-key")
	p.Click(button("TTL"))
	if command := confirm(p); command != "PEXPIRE session 600000 SLIDE" {
		t.Errorf("the dialog proposes %q", command)
	}
	p.Screen("keys?match=ses*")
	p.Click(within("session", "TTL"))
	p.Eventually(`$('dialog[open] input[name=slide]').checked`)
	if command := confirm(p); command != "PEXPIRE session 600000 SLIDE" {
		t.Errorf("the dialog of the list proposes %q", command)
	}
	p.Click(button("Extend the TTL"))
	p.Fill(`$('dialog[open] input[name=span]')`, "20m")
	p.Click(`$('dialog[open] button[type=submit]')`)
	p.Eventually(`$('dialog[open] ul.value')`)
	p.Fill(`$('dialog[open] input[type=text]')`, "ses*")
	if command := p.Text(`text('dialog[open] pre.command')`); command != "PEXPIRE session 1200000 GT SLIDE" {
		t.Errorf("the dialog of the pattern proposes %q", command)
	}
}

// A bar shows the remaining part of a TTL whose span is known: not if the key had the TTL before the page was
// opened.
func TestTheBarOfATTLMeasuresItsSpan(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v", "PX", 7_200_000)
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("k"), browsertest.Options{})
	p.Wait("the stream is open", func() bool { return open(p) == 1 })
	p.Eventually(`/^1 h 59 min/.test(text('#screen .facts .ttl'))`)
	if p.Eval(`!!$('#screen .facts .track')`) == true {
		t.Error("there is a bar for a TTL of which the page does not know the span")
	}
	const share = `parseFloat($('#screen .facts .track .bar').style.width)`
	p.Click(button("TTL"))
	p.Fill(`$('dialog[open] input[name=s]')`, "40s")
	confirm(p)
	p.Eventually(`text('#screen .facts .ttl').endsWith(' s') && ` + share + ` > 50`)
	s.Do("PEXPIRE", "k", 3_600_000)
	p.Eventually(`/^59 min/.test(text('#screen .facts .ttl')) && ` + share + ` > 90`)
}

// Typing replaces the TTL that the form proposes.
func TestAFormSelectsWhatItProposes(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("HSET", "h", "field", "v")
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("h"), browsertest.Options{})
	p.Click(within("field", "TTL"))
	p.Eventually(`$('dialog[open] input[name=s]')?.value`)
	p.Type("40s")
	if command := confirm(p); !strings.Contains(command, "HPEXPIRE h 40000 ") {
		t.Errorf("it runs %q", command)
	}
}

// A sorted set of many members is shown from either end, page by page.
func TestASortedSetIsShownFromItsHighestScore(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 450 {
		s.Do("ZADD", "z", i, fmt.Sprintf("m%03d", i))
	}
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("z"), browsertest.Options{})
	first := func(want string) {
		t.Helper()
		p.Eventually(`$('#screen tbody tr')?.innerText.includes('` + want + `')`)
	}
	first("m000")
	p.Click(button("Highest first"))
	first("m449")
	p.Click(button("Next"))
	first("m249")
	p.Click(button("Lowest first"))
	first("m000")
	p.Fill(`$('#screen input[type=search]')`, "m01")
	p.Press(kb.Enter)
	p.Eventually(row("m019") + ` && !` + button("Highest first") + ` && !` + button("Lowest first"))
}

// The screen behind a dialog renders its buttons again, and the focus returns to the one that opened the
// dialog.
func TestTheFocusReturnsFromAConflict(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "s", "one")
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("s"), browsertest.Options{})
	p.Allow(`^status 409: POST .*/api/batch`) // the server reports the conflict
	p.Eventually(button("Edit"))
	tabTo(t, p, `e.tagName === 'BUTTON' && e.innerText === 'Edit'`)
	p.Press(kb.Enter)
	p.Fill(setValue, "mine")
	s.Do("SET", "s", "two")
	p.Eventually(`text('#screen pre.value') === 'two'`)
	run(p)
	p.Eventually(`text('dialog[open]').includes('has changed the value to two.')`)
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]') && document.activeElement.innerText === 'Edit'`)
}

// After a change by another client, the typed text can be run again against the current value.
func TestAConflictKeepsWhatWasTyped(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "s", "one", "PX", 3_600_000)
	s.Do("HSET", "h", "field", "one")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 409: POST .*/api/batch`) // the server reports the conflict
	for key, edit := range map[string]string{"s": button("Edit"), "h": within("field", "Edit")} {
		p.Screen("key?db=0&k=" + keyURL(key))
		p.Click(edit)
		p.Fill(setValue, "my long text")
		if key == "s" {
			s.Do("SET", "s", "two", "KEEPTTL")
		} else {
			s.Do("HSET", "h", "field", "two")
		}
		run(p)
		p.Eventually(`$('dialog[open] textarea')?.value === 'my long text'`)
		p.Eventually(`text('dialog[open]').includes('has changed the value to two.')`)
		confirm(p)
		p.Eventually(`$('.toast.good')`)
		p.Eval(`document.getElementById('toasts')?.replaceChildren()`)
	}
	if v, f := s.Do("GET", "s").Str, s.Do("HGET", "h", "field").Str; v != "my long text" || f != "my long text" {
		t.Errorf("the values are %q and %q", v, f)
	}
	if ttl := s.Do("PTTL", "s").Int; ttl < 3_000_000 {
		t.Errorf("the string has %d ms to live", ttl)
	}
}
