package browsertest_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// Back leads to the row that the reader has opened.
func TestBackLeadsToThePlaceOnTheList(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 150 {
		s.Do("SET", fmt.Sprintf("k:%03d", i), "v")
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("keys")
	p.Eventually(`$$('#screen tbody tr').length === 150`)
	p.Eval(`$$('#screen tbody tr')[120].scrollIntoView({ block: 'center' })`)
	was := p.Number(`scrollY`)
	name := p.Text(`$$('#screen tbody tr')[120].querySelector('a').innerText`)
	link := `$$('#screen tbody a').find((e) => e.innerText === ` + browsertest.Quote(name) + `)`
	p.Click(link)
	p.Eventually(`location.hash.startsWith('#/key?') && text('#screen h1').includes(` + browsertest.Quote(name) + `)`)
	if at := p.Number(`scrollY`); at != 0 {
		t.Errorf("the page of the key begins at %v px", at)
	}
	p.Eval(`history.back()`)
	p.Eventually(`location.hash.startsWith('#/keys') && document.activeElement === ` + link)
	p.Eventually(fmt.Sprintf(`Math.abs(scrollY - %v) < 2`, was))

	// The keyboard does the same from the focused row.
	p.Eval(link + `.closest('tr').focus()`)
	p.Press(kb.Enter)
	p.Eventually(`location.hash.startsWith('#/key?')`)
	p.Eval(`history.back()`)
	p.Eventually(`location.hash.startsWith('#/keys') && document.activeElement === ` + link + `?.closest('tr')`)

	// A list that the reader opens by a link begins at its top.
	p.Screen("locks")
	p.Screen("keys")
	p.Eventually(`$$('#screen tbody tr').length === 150`)
	if at := p.Number(`scrollY`); at != 0 {
		t.Errorf("a new list begins at %v px", at)
	}
}

// The shell keeps what it has printed, until the login ends.
func TestTheShellKeepsItsOutput(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: `)
	login(p, "default", "secret")
	p.Screen("shell")
	for _, line := range []string{"ECHO one", "ECHO two"} {
		p.Fill(`$('#screen form input')`, line)
		p.Press(kb.Enter)
		p.Eventually(`$('#screen pre.value')?.innerText.includes(` + browsertest.Quote(line[5:]) + `)`)
	}
	p.Shot("shell-output")
	// A reply is nearer to its command than to the next command.
	if own, next := p.Number(`$('#screen pre.value').getBoundingClientRect().top - $('#screen .log .row').getBoundingClientRect().bottom`),
		p.Number(`$$('#screen .log .row')[1].getBoundingClientRect().top - $('#screen pre.value').getBoundingClientRect().bottom`); own*2 > next {
		t.Errorf("a reply is %v px below its command and %v px above the next one", own, next)
	}
	p.Screen("keys")
	p.Screen("shell")
	p.Eventually(`text('#screen [role=log]').includes('ECHO one') && !byText('#screen h2', 'Examples').length`)
	p.Click(button("Log out"))
	p.Eventually(`$('form.login')`)
	login(p, "default", "secret")
	p.Screen("shell")
	p.Eventually(`byText('#screen h2', 'Examples').length && !text('#screen').includes('ECHO one')`)
}
