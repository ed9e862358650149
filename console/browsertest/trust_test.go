package browsertest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// stored returns everything that the browser keeps of the page, as a text.
func stored(p *browsertest.Page) string {
	return p.Text(`JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage })`)
}

// shell runs a line in the shell.
func shell(p *browsertest.Page, line string) {
	p.Fill(`$('#screen form.line input')`, line)
	p.Press(kb.Enter)
	p.Eventually(`$('#screen [role=log] b')?.innerText === '> ' + ` + browsertest.Quote(line))
}

func TestTheShellKeepsNoPasswordAndNoHistoryOfAnother(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	s.Do("ACL", "SETUSER", "ro", "on", ">looking", "-@all", "+@read", "~shop:*")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status (401|403|409): `)
	p.Eventually(`$('input[name=user]')`)
	p.Eval(`localStorage.setItem('ebb.shell', '["AUTH 0ldPassword"]')`) // stored by a version that kept all lines
	p.Reload()
	login(p, "default", "secret")
	p.Screen("shell")
	shell(p, "SET shop:a b")
	for _, line := range []string{"ACL SETUSER carl on >S3cretPW ~* +@all", "CONFIG SET masterauth S3cretPW", "AUTH S3cretPW"} {
		p.Fill(`$('#screen form.line input')`, line)
		p.Press(kb.Enter)
		printed := `$('#screen [role=log] b')?.innerText === '> ' + ` + browsertest.Quote(line)
		p.Eventually(`$('dialog[open]') || ` + printed)
		if p.Eval(`!!$('dialog[open]')`) == true {
			p.Press(kb.Escape)
		}
		p.Eventually(printed)
	}
	shell(p, "history")
	if kept := p.Text(`text('#screen [role=log] div pre')`); !strings.Contains(kept, "SET shop:a b") || strings.Contains(kept, "S3cretPW") {
		t.Errorf("the history is %q", kept)
	}
	if all := stored(p); strings.Contains(all, "S3cretPW") || strings.Contains(all, "0ldPassword") || !strings.Contains(all, "shop:a") {
		t.Errorf("the browser keeps %s", all)
	}
	p.Click(button("Log out"))
	p.Eventually(`$('input[name=user]')`)
	if all := stored(p); strings.Contains(all, "shop:a") {
		t.Errorf("after the logout the browser keeps %s", all)
	}
	login(p, "ro", "looking")
	p.Screen("shell")
	shell(p, "history")
	if kept := p.Text(`text('#screen [role=log] div pre')`); kept != "history" {
		t.Errorf("the history of another user is %q", kept)
	}
}

func TestNowIsClearOnlyAfterACheckThatWorked(t *testing.T) {
	s := browsertest.Serve(t, "--rename-command", "SCAN", "")
	s.Do("SET", "k", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`text('#screen').includes('as far as your permissions allow') && text('#screen').includes('SCAN')`)
	p.Allow(`^status 403: GET .*/api/keys`)
	p.Screen("keys")
	p.Eventually(`text('#screen').includes('permission to run SCAN')`)
	p.Screen("server")
	p.Eventually(`byText('#screen h2', 'Clients').length && !$('#screen .error')`)

	s = browsertest.Serve(t, "--rename-command", "SCAN", "walkall", "--rename-command", "INFO", "tell")
	s.Do("SET", "k", "v")
	p = browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`byText('#screen .calm', 'All clear.').length`)
	p.Screen("keys")
	p.Eventually(row("no TTL"))

	// A database number that the server does not have is an error.
	p.Screen("now?db=99")
	p.Eventually(`byText('#screen .calm', 'All clear.').length`)
	p.Screen("shell")
	p.Eventually(`text('#screen form.line b') === 'db0>'`)

	// A failed check must not look like a result.
	p.Screen("queues")
	p.Allow(`^status 409: GET .*/api/concerns`)
	p.Eval(`(() => { const f = window.fetch; window.fetch = (u, o) => String(u).includes('api/concerns')
		? Promise.resolve(new Response('{"error":"it is broken","code":"ERR"}', { status: 409 })) : f(u, o); })()`)
	p.Screen("now")
	p.Eventually(`byText('#screen p', 'The data could not be checked: it is broken').length && !$('#screen .calm')`)
}

func TestSwitchingOffAUserSaysWhatFollows(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL+"#/server", browsertest.Options{})
	off := `[...$$('#screen .user-row').find((e) => e.innerText.includes('default')).querySelectorAll('button')]` +
		`.find((b) => b.innerText === 'Disable')`
	p.Eventually(`byText('#screen .user-row', 'default').length`)
	p.Click(off)
	p.Eventually(`text('dialog[open]').includes('You are logged in as this user') && text('dialog[open]').includes('No other user can log in')`)
	p.Press(kb.Escape)
	s.Do("ACL", "SETUSER", "bea", "on", ">x", "+@all", "~*")
	p.Reload()
	p.Eventually(`byText('#screen .user-row', 'bea').length`)
	p.Click(off)
	p.Eventually(`text('dialog[open]').includes('You are logged in as this user') && !text('dialog[open]').includes('No other user can log in')`)
}

func TestAScreenThatTheUserMayNotSeeAsksForNothing(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	s.Do("ACL", "SETUSER", "none", "on", ">nothing", "-@all")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status (401|403): `)
	login(p, "none", "nothing")
	for _, name := range []string{"limits", "locks", "queues", "streams", "keys", "expiry"} {
		p.Screen(name)
		p.Eventually(`text('#screen h2') === 'You do not have permission'`)
		p.Eventually(`/Required ACL rule: \+(scan|expiry\|survey)/.test(text('#screen'))`)
		if p.Eval(`!!$('#screen .error')`) == true {
			t.Errorf("%s is red", name)
		}
	}
	n := len(p.Hits())
	p.Eval(`new Promise((done) => setTimeout(done, 6000))`) // Expiry would ask every 5 s
	for _, h := range p.Hits()[n:] {
		if !strings.Contains(h.URL, "/api/feed") && !strings.Contains(h.URL, "/api/me") {
			t.Errorf("the screen asks for %s", h.URL)
		}
	}
	if v := s.Do("ACL", "LOG"); len(v.Elems) != 0 {
		t.Errorf("ACL LOG has %v", v)
	}
}

func TestTheBarNamesTheActingUser(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	s.Do("ACL", "SETUSER", "bea", "on", ">bee", "+@all", "~*")
	s.Do("SET", "k", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status (401|403): `)
	login(p, "bea", "bee")
	p.Screen("keys")
	p.Eventually(within("k", "Delete") + `?.disabled === false`)
	// The rights change while the page is open.
	s.Do("ACL", "SETUSER", "bea", "-@write")
	p.Eval(`document.dispatchEvent(new Event('visibilitychange'))`) // as when the tab comes to the front
	p.Eventually(within("k", "Delete") + `?.disabled === true`)
	// Another user logs in, in another tab.
	q := p.Tab(s.URL)
	q.Allow(`^status (401|403): `)
	q.Click(button("Log out"))
	login(q, "default", "secret")
	p.Eventually(`$('#bar .user')?.innerText === 'default' || $('input[name=user]')`)
	if p.Eval(`!!$('input[name=user]')`) == true {
		p.Reload()
	}
	p.Eventually(`$('#bar .user')?.innerText === 'default'`)
	p.Eventually(within("k", "Delete") + `?.disabled === false`)
	// A name that is not a screen is not a route.
	for _, name := range []string{"login", "hot", "nosuch"} {
		p.Eval(`location.hash = '#/` + name + `'`)
		p.Eventually(`$('#screen .tiles') && document.title.startsWith('Now')`)
		p.Screen("keys")
	}
}

// A dialog belongs to the screen on which it was opened: it closes when the browser goes back to another one.
func TestADialogClosesWhenTheScreenBehindItChanges(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("locks")
	p.Screen("keys")
	p.Click(within("k", "Delete"))
	p.Eventually(`$('dialog[open]')`)
	p.Eval(`history.back()`)
	p.Eventually(`!$('dialog') && text('#screen h1') === 'Locks'`)
	if s.Do("EXISTS", "k").Int != 1 {
		t.Error("the key was deleted")
	}
	// An answer that arrives after the reader has gone elsewhere opens no other screen.
	p.Screen("key?db=0&k=" + keyURL("k"))
	p.Eval(`(() => { const f = window.fetch; window.fetch = async (u, o) => { const r = await f(u, o);
		if (String(u).includes('api/do')) await new Promise((go) => { window.arrive = go; }); return r; }; })()`)
	p.Click(button("Delete"))
	confirm(p)
	p.Eventually(`!!window.arrive`)
	p.Eval(`location.hash = '#/locks'`)
	p.Eventually(`text('#screen h1') === 'Locks'`)
	p.Eval(`window.arrive()`)
	p.Eventually(`byText('.toast', 'UNLINK k').length`)
	p.Eval(`new Promise((done) => setTimeout(done, 0))`)
	if at := p.Text(`location.hash`); at != "#/locks" {
		t.Errorf("the page is at %s", at)
	}
}
