package browsertest_test

import (
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

// The page tells a read-only user so once, and offers no command that the server refuses.
func TestThePageTellsAUserOfReadsAlone(t *testing.T) {
	s := browsertest.Serve(t, "--requirepass", "secret")
	s.Do("ACL", "SETUSER", "support", "on", ">looking", "-@all", "+@read", "~*")
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Allow(`^status 401: GET .*/api/me`)
	p.Eventually(`text('form.login').includes(location.host)`)
	p.Shot("login-host")
	login(p, "support", "looking")
	p.Eventually(`byText('#bar .badge', 'read-only').length`)
	p.Screen("queues")
	p.Eventually(`$('#screen .empty code.command')`)
	if p.Eval(`!!$('#screen .empty a')`) == true {
		t.Error("the page leads to the shell for a command that the user may not run")
	}
	fill(s)
	s.Do("XREADGROUP", "GROUP", "readers", "ann", "STREAMS", "shop:events", ">")
	for name, want := range map[string]string{"keys": "shop:cart", "queues?k=" + keyURL("shop:queue"): "payload",
		"streams?k=" + keyURL("shop:events"): "readers"} {
		p.Screen(name)
		p.Eventually(`text('#screen').includes(` + browsertest.Quote(want) + `)`)
		if n := p.Number(`$$('#screen td.pick').filter(seen).length`); n > 0 {
			t.Errorf("%s has %v boxes, and the user can do nothing with what they choose", name, n)
		}
	}
	p.Screen("keys")
	style := func(js string) string { return p.Text(`getComputedStyle(` + js + `).backgroundColor`) }
	p.Eventually(`$('#screen button.primary:disabled')`)
	if got := style(`$('#screen button.primary:disabled')`); got != "rgba(0, 0, 0, 0)" {
		t.Errorf("a button that the user may not use is filled with %s", got)
	}
	p.Shot("reader-keys")
	for _, name := range []string{"server", "performance"} {
		p.Screen(name)
		p.Eventually(`byText('#screen p', 'Not shown, because you do not have permission: ').length === 1`)
		p.Eventually(`$$('#screen section').filter(seen).length <= 2`)
		p.Shot("reader-" + name)
	}
	s.Do("ACL", "SETUSER", "support", "+@all")
	p.Reload()
	p.Screen("keys")
	p.Eventually(`$$('#screen td.pick').length > 5`)
	p.Eventually(`$('#screen > div') && !byText('#bar .badge', 'read-only').length`)
	p.Screen("server")
	p.Eventually(`$$('#screen .jumps button').filter(seen).length === 8 && !text('#screen').includes('you do not have permission')`)
}
