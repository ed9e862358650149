package browsertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// fill writes data of every kind: a shop's keys, and a key outside of it.
func fill(s *browsertest.Server) {
	s.Do("SET", "shop:greeting", "hello", "EX", 600)
	s.Do("HSET", "shop:cart", "apple", 1, "pear", 2)
	s.Do("HPEXPIRE", "shop:cart", 500_000, "FIELDS", 1, "pear")
	s.Do("SADD", "shop:members", "ann", "bob")
	s.Do("ZADD", "shop:scores", 1.5, "ann", 2, "bob")
	s.Do("RPUSH", "shop:list", "a", "b")
	s.Do("XADD", "shop:events", "*", "id", 17)
	s.Do("XGROUP", "CREATE", "shop:events", "readers", 0)
	s.Do("RL.TAKE", "shop:limiter", 100, 3_600_000, "COST", 50)
	s.Do("LOCK.ACQUIRE", "shop:lock", "worker-1", 600_000)
	s.Do("SEM.ACQUIRE", "shop:semaphore", "worker-1", 3, 600_000)
	s.Do("DQ.ADD", "shop:queue", "job", "payload")
	s.Do("BF.ADD", "shop:bloom", "x")
	s.Do("SET", "secret:token", "s3cr3t")
	s.Do("LOCK.ACQUIRE", "secret:lock", "worker-9", 600_000)
}

// shopKeys are the keys of fill that begin with shop:.
var shopKeys = []string{"greeting", "cart", "members", "scores", "list", "events", "limiter", "lock", "semaphore", "queue", "bloom"}

// login fills in the login and waits for the screen behind it.
func login(p *browsertest.Page, user, password string) {
	p.Fill(`$('input[name=user]')`, user)
	p.Fill(`$('input[name=password]')`, password)
	p.Click(`$('form.login button[type=submit]')`)
	p.Eventually(`$('#screen > div')`)
}

// do runs a command by the API as the page's scripts do, and returns the status and the answer.
func do(p *browsertest.Page, words ...string) (status float64, answer map[string]any) {
	argv := make([]string, len(words))
	for i, w := range words {
		argv[i] = fmt.Sprintf("{t: %s}", browsertest.Quote(w))
	}
	out, _ := p.Eval(`fetch('api/do', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ db: 0, argv: [` +
		strings.Join(argv, ", ") + `] }) }).then(async (r) => ({ status: r.status, body: await r.json() }))`).(map[string]any)
	status, _ = out["status"].(float64)
	answer, _ = out["body"].(map[string]any)
	return status, answer
}

func TestAUserOfSomeKeysSeesThoseAndNoError(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	fill(s)
	s.Do("ACL", "SETUSER", "support", "on", ">looking", "-@all", "+@read", "~shop:*")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: GET .*/api/me`) // before the login
	login(p, "support", "looking")
	for _, name := range screens {
		p.Screen(name)
		p.Eventually(`!/(Scanning|Checking) …/.test(text('#screen'))`)
		if wrong := p.Text(`byText('#screen .error', '').map((e) => e.innerText).join()`); wrong != "" {
			t.Errorf("%s shows an error: %s", name, wrong)
		}
		// A control for a command that the user may not run is absent, or grey with the rule that would allow it.
		usable := p.Text(`$$('#screen button:not(.head)').filter((b) => seen(b) && !b.disabled).map((b) => b.innerText.trim()).join('\n')`)
		for b := range strings.SplitSeq(usable, "\n") {
			switch b {
			case "Delete", "TTL", "Force release", "Reset", "Remove the job", "Requeue", "Create a rule", "Close connection", "Clear the slow log",
				"Save a snapshot", "Rewrite the append-only file":
				t.Errorf("%s has the button %q, which the user may not use", name, b)
			}
		}
		if p.Eval(`text('#screen').includes('secret:')`) == true {
			t.Errorf("%s shows a key that the user may not read: %s", name, p.Text(`text('#screen')`))
		}
	}
	p.Screen("keys")
	p.Eventually(fmt.Sprintf(`$$('#screen tbody tr').length === %d`, len(shopKeys)))
	for _, k := range shopKeys {
		p.Screen("key?db=0&k=" + keyURL("shop:"+k))
		p.Eventually(`text('#screen h1').includes(` + browsertest.Quote("shop:"+k) + `) && $('#screen .facts')`)
	}
	if why := p.Text(`$$('#screen button').find((b) => b.innerText === 'Delete').title`); !strings.Contains(why, "+unlink") && !strings.Contains(why, "+del") {
		t.Errorf("the grey button says %q", why)
	}
	p.Allow(`^status 403: POST .*/api/do`)
	if status, answer := do(p, "SET", "shop:greeting", "x"); status != 403 || answer["code"] != "NOPERM" {
		t.Errorf("SET by hand: %v %v", status, answer)
	}
	if status, answer := do(p, "GET", "secret:token"); status != 403 || answer["code"] != "NOPERM" {
		t.Errorf("GET of another key by hand: %v %v", status, answer)
	}
	if status, answer := do(p, "GET", "shop:greeting"); status != 200 || answer["text"] != `"hello"` {
		t.Errorf("GET by hand: %v %v", status, answer)
	}
}

func TestAReadOnlyConsoleHasNoWayToWrite(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret", "--http-console-read-only", "yes")
	fill(s)
	s.Do("ACL", "SETUSER", "admin", "on", ">everything", "+@all", "~*", "&*")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: GET .*/api/me`)
	login(p, "admin", "everything")
	p.Eventually(`byText('#bar .badge', 'read-only').length`)
	routes := append([]string{"keys?view=tree", "keys?match=shop:*", "locks?db=0&k=" + keyURL("shop:lock"), "queues?db=0&k=" + keyURL("shop:queue")}, screens...)
	for _, k := range shopKeys {
		routes = append(routes, "key?db=0&k="+keyURL("shop:"+k))
	}
	harmless := map[string]bool{"": true, "List": true, "Tree": true, "Refresh": true, "Scan all keys": true, "Minute": true, "Hour": true, "Day": true,
		"Month": true, "Stop": true, "Load more": true, "Run": true, "Text": true, "JSON": true, "Hex": true, "MessagePack": true, "gzip": true,
		"Bits": true, "Dump to a file": true, "Next": true, "Previous": true, "Highest first": true,
		"Next jobs": true, "First jobs": true, "×": true,
		"Changed": true, "All": true, "Show": true, "help": true, "help SET": true, "INFO server": true,
		"SCAN 0 COUNT": true, "EXPIRY NEXT": true}
	for _, name := range routes {
		p.Screen(name)
		p.Eventually(`!/(Scanning|Checking) …/.test(text('#screen'))`)
		for _, b := range strings.Split(p.Text(`$$('#screen button:not(.head, .jumps *)').filter(seen).map((b) => b.innerText.trim()).join('\n')`), "\n") {
			if !harmless[strings.TrimRight(b, " 0123456789")] {
				t.Errorf("%s has the button %q", name, b)
			}
		}
	}
	p.Allow(`^status 403: POST .*/api/do`)
	if status, answer := do(p, "SET", "shop:greeting", "x"); status != 403 || answer["code"] != "READONLY" {
		t.Errorf("SET by hand: %v %v", status, answer)
	}
	if status, answer := do(p, "EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "shop:greeting"); status != 403 || answer["code"] != "READONLY" {
		t.Errorf("EVAL by hand: %v %v", status, answer)
	}
	if got := s.Do("GET", "shop:greeting"); got.Str != "hello" {
		t.Errorf("the value is %q", got.Str)
	}
}

// tabTo presses Tab until an expression about the focused element e is true.
func tabTo(t *testing.T, p *browsertest.Page, what string) {
	t.Helper()
	for range 60 {
		if p.Eval(`((e) => `+what+`)(document.activeElement)`) == true {
			return
		}
		p.Press(kb.Tab)
	}
	t.Fatalf("60 times Tab do not lead to %s; the focus is on %s", what, p.Focused())
}

func TestTheKeyboardAloneChangesATTL(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	fill(s)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: `)
	p.Eventually(`document.activeElement?.name === 'password'`)
	p.Type("wrong")
	p.Press(kb.Enter)
	p.Eventually(`byText('[role=alert]', '').some((e) => e.innerText)`)
	p.Eventually(`document.activeElement?.name === 'password' && !document.activeElement.value`)
	p.Type("secret")
	p.Press(kb.Enter)
	p.Eventually(`$('#screen .tile')`)

	p.Press("k", input.ModifierCtrl)
	p.Eventually(`$('dialog[open]') && document.activeElement.tagName === 'INPUT'`)
	p.Type("shop:gre")
	p.Eventually(`byText('dialog li a', 'shop:greeting').length`)
	p.Eventually(`$('dialog li a.on')?.innerText.includes('shop:greeting')`)
	p.Press(kb.Enter)
	p.Eventually(`!$('dialog[open]') && text('#screen h1').includes('shop:greeting')`)

	tabTo(t, p, `e.tagName === 'BUTTON' && e.innerText === 'TTL'`)
	p.Press(kb.Enter)
	p.Eventually(`$('dialog[open] pre.command')`)
	tabTo(t, p, `e.closest('dialog') && e.type === 'text'`)
	p.Press("a", input.ModifierCtrl)
	p.Type("2h")
	p.Eventually(`text('dialog[open] pre.command') === 'PEXPIRE shop:greeting 7200000'`)
	p.Press(kb.Enter)
	p.Eventually(`!$('dialog[open]')`)
	p.Eventually(`/1 h 59 min/.test(text('#screen .facts .ttl'))`)
	if ttl := s.Do("PTTL", "shop:greeting").Int; ttl < 7_000_000 {
		t.Errorf("the TTL is %d ms", ttl)
	}

	// A dialog keeps the focus inside; Escape closes it and returns the focus.
	tabTo(t, p, `e.tagName === 'BUTTON' && e.innerText === 'Delete'`)
	p.Press(kb.Enter)
	p.Eventually(`$('dialog[open]')`)
	for range 6 {
		p.Press(kb.Tab)
		if p.Eval(`!document.activeElement.closest('dialog') && document.activeElement !== document.body`) == true {
			t.Errorf("Tab has left the dialog for %s", p.Focused())
		}
	}
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]') && document.activeElement.innerText === 'Delete'`)

	// Rows: j and k move, Enter opens.
	p.Screen("keys")
	p.Eventually(`$$('#screen tbody tr').length > 5`)
	tabTo(t, p, `e.tagName === 'TR'`)
	p.Press("j")
	p.Press("j")
	p.Press("k")
	name := p.Text(`document.activeElement.querySelector('.bytes').innerText`)
	if want := p.Text(`$$('#screen tbody tr')[1].querySelector('.bytes').innerText`); name != want {
		t.Errorf("j, j, k lead to the row %s, want %s", name, want)
	}
	p.Press(kb.Enter)
	p.Eventually(`text('#screen h1').includes(` + browsertest.Quote(name) + `)`)
}

// A screen renders again when its key changes.
func TestTheFocusStaysWhereItIsWhenAKeyChanges(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("HSET", "cart", "apple", 1)
	p := browsertest.Open(t, s.URL+"#/key?db=0&k="+keyURL("cart"), browsertest.Options{})
	p.Wait("the stream is open", func() bool { return open(p) == 1 })
	tabTo(t, p, `e.tagName === 'BUTTON' && e.innerText === 'Rename'`)
	s.Do("HSET", "cart", "pear", 2)
	p.Eventually(row("pear") + ` && document.activeElement.innerText === 'Rename'`)
}

// If default has no password, other users can still log in; and a user on a phone can log out.
func TestAUserLogsInBesideDefaultAndOutOnAPhone(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{Width: 320, Height: 640, Mobile: true})
	p.Eventually(`$('#screen > div')`)
	p.Click(`$('#bar button.menu')`)
	p.Eventually(`seen($('#rail .account'))`)
	if p.Eval(`!!$('#rail .account button')`) == true {
		t.Error("there is a login, but no other user")
	}
	s.Do("ACL", "SETUSER", "bea", "on", ">secret", "+@all", "~*")
	p.Reload()
	p.Eventually(`$('#screen > div')`)
	p.Click(`$('#bar button.menu')`)
	p.Click(button("Log in"))
	p.Eventually(`$('input[name=user]')`)
	login(p, "bea", "secret")
	p.Click(`$('#bar button.menu')`)
	p.Eventually(`text('#rail .account').includes('bea')`)
	p.Shot("S31-phone-account")
	p.Click(button("Log out"))
	p.Eventually(`!$('#screen .login') && $('#screen > div') && !text('#rail .account').includes('bea')`)
}
