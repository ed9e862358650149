package browsertest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// field is the line of the shell.
const field = `$('#screen form input')`

func TestNowTellsWhatWentWrongBeforeThePageWasOpen(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.CONFIG", "mail", "MAXDELIVERIES", 1, "DEADLETTER", "{mail}:dead")
	for i := range 31 {
		s.Do("DQ.ADD", "mail", fmt.Sprint("letter-", i), "hello")
		id, token := pop(t, s, "mail")
		s.Do("DQ.NACK", "mail", id, token)
	}
	for i := range 167 {
		s.Do("XADD", "orders", "*", "n", i)
	}
	s.Do("XGROUP", "CREATE", "orders", "slow", 0)
	for range 76 {
		s.Do("RL.TAKE", "api:ann", 1, 3_600_000)
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	p.Eventually(`byText('#screen h2', 'Needs attention').length && !byText('#screen', 'All clear').length`)
	for _, want := range []string{"mail: 31 jobs have failed permanently (dead letters).", "orders: The group slow has 167 entries left to read.",
		"api:ann: The limiter denies about 75 requests a minute."} {
		p.Eventually(`text('#screen .attention').includes(` + browsertest.Quote(want) + `)`)
	}
	p.Shot("S25-now-attention")
	p.Click(`byText('#screen .attention a', 'mail')[0]`)
	p.Eventually(row("letter-0") + ` && ` + button("Requeue all"))
	p.Click(button("Requeue all"))
	confirm(p)
	p.Screen("now")
	p.Eventually(`$('#screen .attention') && !byText('#screen .attention li', 'dead letters').length`)
}

func TestAJobIsFoundRunNowAddedAndCanceled(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 3 {
		s.Do("DQ.ADD", "mail", fmt.Sprint("later-", i), fmt.Sprintf(`{"to":"ann%d"}`, i), "DELAY", 3_600_000, "PRIORITY", i)
	}
	p := browsertest.Open(t, s.URL+"#/key?db=0&k="+keyURL("mail"), browsertest.Options{})
	p.ClickText("Open in Queues") // the key's page leads there
	p.ClickText("Delayed 3")
	p.Eventually(row("later-0"))
	p.Eventually(`$('#screen .chart svg') && $('#screen .facts .states .delayed')`)
	p.Shot("S26-queue-delayed")
	p.Click(button("Configure"))
	p.Eventually(`$('dialog[open] button[type=submit]').disabled && text('dialog[open]').includes('Nothing is changed yet')`)
	p.Fill(`$('dialog[open] input[name=MAXLEN]')`, "9")
	p.Fill(`$('dialog[open] input[name=DEADLETTER]')`, "{mail}:dead")
	if command := confirm(p); command != "DQ.CONFIG mail DEADLETTER {mail}:dead MAXLEN 9" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`/Jobs at most\s+9/.test(text('#screen .facts'))`)
	p.Fill(`$('#screen input[type=search]')`, "later-2")
	p.Press(kb.Enter)
	p.Eventually(row("later-2") + ` && !` + row("later-0"))
	p.Click(within("later-2", "Run now"))
	beside := regexp.MustCompile(`\{mail\}:run-now-\w+`) // a name that no other queue has
	if command := beside.ReplaceAllString(confirm(p), "B"); command != "DQ.MOVE mail B IDS 1 later-2 DELAY 0\nDQ.MOVE B mail IDS 1 later-2" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`byText('.toast', 'One job is due now.').length && $$('.toast').length === 1`)
	if v := s.Do("DQ.GET", "mail", "later-2"); v.Elems == nil {
		t.Fatal("the job is gone")
	} else if state, _ := v.Get("state"); state.Str != "ready" {
		t.Errorf("the job is %s", state.Str)
	} else if priority, _ := v.Get("priority"); priority.Int != 2 {
		t.Errorf("its priority is %d", priority.Int)
	}
	if len(s.Do("KEYS", "{mail}:run-now*").Elems) != 0 {
		t.Error("the queue beside stays")
	}
	p.Click(button("Add a job"))
	p.Fill(`$('dialog[open] textarea')`, "hello")
	p.Fill(`$('dialog[open] input[name=delay]')`, "1h")
	p.Fill(`$('dialog[open] input[name=id]')`, "mine")
	if command := confirm(p); command != "DQ.ADD mail mine hello DELAY 3600000" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Fill(`$('#screen input[type=search]')`, "")
	p.Press(kb.Enter)
	p.Eventually(row("mine") + ` && ` + row("later-0"))
	for _, id := range []string{"mine", "later-0"} {
		p.Click(row(id) + `.querySelector('input')`)
	}
	p.Click(button("Remove the jobs"))
	if command := confirm(p); !strings.HasPrefix(command, "DQ.CANCEL mail ") || len(strings.Fields(command)) != 4 {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`!` + row("mine") + ` && !` + row("later-0") + ` && ` + row("later-1"))
	// Another operator has meanwhile removed the job: there is one message, and it says so.
	p.Click(within("later-1", "Remove the job"))
	p.Eventually(`$('dialog[open] pre.command')`)
	s.Do("DQ.CANCEL", "mail", "later-1")
	confirm(p)
	p.Eventually(`byText('.toast.bad', 'no longer in this state').length`)
}

func TestTheShellHelpsANewcomer(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("shell")
	if wide := p.Number(field + `.getBoundingClientRect().width / $('#screen').clientWidth`); wide < 0.8 {
		t.Errorf("the line has %.0f %% of the width of the screen", 100*wide)
	}
	run := func(line string) {
		p.Fill(field, line)
		p.Press(kb.Enter)
		p.Eventually(`text('#screen [role=log] b') === ` + browsertest.Quote("> "+line))
	}
	answer := `text('#screen [role=log] pre')`
	p.Eventually(`byText('#screen h2', 'Examples').filter(seen).length`)
	p.Shot("S27-shell")
	p.Fill(field, "HPERS")
	p.Eventually(`byText('#screen .hint button', 'HPERSIST').length`) // the commands are there
	s.Do("HSET", "cart", "apples", 3)
	run("HGETALL cart")
	p.Eventually(`/^apples\s+3$/.test(text('#screen [role=log] table.map'))`)
	run("help")
	p.Eventually(answer + `.includes('help @hash') && ` + answer + `.includes('history')`)
	run("help @lock")
	p.Eventually(answer + `.includes('LOCK.ACQUIRE')`)
	run("help set")
	p.Eventually(answer + `.includes('PX milliseconds')`)
	run("help nonsense")
	p.Eventually(answer + `.includes('There is no command NONSENSE')`)
	run("history")
	p.Eventually(answer + `.includes('help @lock')`)
	p.Fill(field, "hpers")
	p.Press(kb.Tab)
	p.Eventually(field + `.value === 'HPERSIST ' && byText('#screen .hint', 'numfields').length`)
	p.Press(kb.ArrowUp)
	p.Press(kb.ArrowUp)
	p.Eventually(field + `.value === 'help nonsense'`)
	p.Fill(field, "clear")
	p.Press(kb.Enter)
	p.Eventually(`byText('#screen h2', 'Examples').filter(seen).length`)
}

func TestTheShellOfAPhoneNamesNoKeyThatAPhoneLacks(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL+"#/shell", phone)
	p.Eventually(`text('#screen .hint').includes('A tap on a name completes it') && !text('#screen .hint').includes('Tab')`)
}

func TestFindShowsWhatIsTypedAndOpensOnlyWhatThereIs(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "mail", "v")
	s.Do("SET", "mailbox", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	find := func(what string) {
		p.Click(`$('button.find')`)
		p.Eventually(`$('dialog[open] input')`)
		p.Type(what)
	}
	find("mai")
	p.Eventually(`byText('dialog .results li', 'list keys with this prefix')[0]?.innerText.startsWith('mai')`)
	p.Eventually(`byText('dialog .results li', 'string').length === 2 && !byText('dialog .results li', 'open this key').length`)
	p.Shot("S28-find")
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]')`)

	// Enter waits for the answer, and opens the first row that then exists.
	find("mail" + kb.Enter)
	p.Eventually(`location.hash.startsWith('#/key') && byText('#screen h1', 'mail').length`)
	find("nothing:like:this" + kb.Enter)
	p.Eventually(`location.hash.startsWith('#/keys') && byText('#screen .empty', 'Nothing matches').length`)
	find("queues" + kb.Enter)
	p.Eventually(`location.hash.startsWith('#/queues')`)
}

// Find offers existing commands, whatever the case of the typed text. The row that Enter opens and the row
// below the mouse differ.
func TestFindOffersTheCommandsOfTheServer(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	const offered = `byText('dialog .results li', 'open in the shell').map((e) => e.querySelector('.mono').innerText).join()`
	for typed, want := range map[string]string{"expir": "EXPIRE,", "SET k v": "SET k v", "set k v": "set k v",
		"cart": ""} {
		p.Click(`$('button.find')`)
		p.Fill(`$('dialog[open] input')`, typed)
		p.Quiet("/api/feed")
		p.Eventually(offered + `.startsWith(` + browsertest.Quote(want) + `)`)
		if got := p.Text(offered); want == "" && got != "" {
			t.Errorf("%s offers %s", typed, got)
		}
		if typed == "expir" {
			p.Eventually(`[',EXPIREAT,', ',PEXPIRE,'].every((name) => (` + offered + `).includes(name))`)
			p.Shot("find-commands")
		}
		p.Press(kb.Escape)
		p.Eventually(`!$('dialog[open]')`)
	}
	p.Click(`$('button.find')`)
	p.Fill(`$('dialog[open] input')`, "hgetall")
	p.Eventually(`$('dialog li a.on')?.innerText.startsWith('HGETALL')`)
	ground := func(of string) string { return p.Text(`getComputedStyle($('` + of + `')).backgroundColor`) }
	if on := ground("dialog li a.on"); on == ground("#rail a[aria-current]") { // that is the colour of the row below the mouse
		t.Errorf("the row that Enter opens has the colour %s of a row below the mouse", on)
	}
	p.Press(kb.Enter)
	p.Eventually(`location.hash.startsWith('#/shell') && ` + field + `.value.startsWith('HGETALL')`)
}

func TestANewKeyIsMadeAndItsTTLIsProposed(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("keys")
	name, value := `$('dialog[open] input[name=k]')`, `$('dialog[open] textarea')`
	p.Click(button("New key"))
	p.Eventually(`$('dialog[open]') && !seen($('dialog[open] input[name=f]'))`)
	p.Fill(name, "greeting")
	p.Fill(value, "hello you")
	p.Fill(`$('dialog[open] input[name=s]')`, "2h")
	if command := confirm(p); command != `SET greeting "hello you" NX PX 7200000` {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`location.hash.startsWith('#/key?') && byText('#screen h1', 'greeting').length`)
	p.Click(button("TTL"))
	p.Eventually(`/^(2h|1h 59m( \d+s)?)$/.test($('dialog[open] input').value)`)
	p.Press(kb.Escape)

	p.Screen("keys")
	p.Click(button("New key"))
	p.Fill(name, "cart")
	p.Eval(`(() => { const e = $('dialog[open] select'); e.value = 'hash'; e.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	p.Fill(`$('dialog[open] input[name=f]')`, "apple")
	p.Fill(value, "3")
	p.Fill(`$('dialog[open] input[name=s]')`, "1h")
	if command := confirm(p); command != "HSETNX cart apple 3\nPEXPIRE cart 3600000" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(row("apple"))
	s.Do("HPEXPIRE", "cart", 1_800_000, "FIELDS", 1, "apple")
	p.Eventually(row("apple") + `?.querySelector('.ttl .left')`)
	p.Click(within("apple", "TTL"))
	p.Eventually(`/^(30m|29m( \d+s)?)$/.test($('dialog[open] input').value)`)
	p.Press(kb.Escape)

	// An existing key of that name is not changed.
	p.Screen("keys")
	p.Click(button("New key"))
	p.Fill(name, "greeting")
	p.Fill(value, "other")
	confirm(p)
	p.Eventually(`byText('.toast.bad', 'A key with that name exists').length && $$('.toast').length === 1`)
	if got := s.Do("GET", "greeting"); got.Str != "hello you" {
		t.Errorf("the value is %q", got.Str)
	}
}

func TestLogOutIsOfferedOnlyAfterALogin(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	if p.Number(`byText('#bar button', 'Log out').length`) != 0 {
		t.Error("there is no login, and a button that ends it")
	}
	s.Do("ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all")
	s.Do("ACL", "SETUSER", "default", ">other")
	q := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: `)
	q.Allow(`^status 401: `)
	q.Eventually(`$('form.login')`)
	login(q, "ann", "secret")
	q.ClickText("Log out")
	q.Eventually(`$('form.login')`)
}
