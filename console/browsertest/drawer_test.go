package browsertest_test

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// While the drawer is open, keys stay in it.
func TestTheDrawerTakesTheKeysUntilItCloses(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL, phone)
	open := func() {
		t.Helper()
		p.Click(`$('#bar button.menu')`)
		p.Eventually(`seen($('#rail')) && $('#rail').contains(document.activeElement)`)
	}
	p.Screen("keys")
	open()
	for i := range 30 {
		p.Press(kb.Tab)
		if p.Eval(`document.activeElement === document.body || $('#rail').contains(document.activeElement)`) != true {
			t.Fatalf("after %d times Tab the focus is at %s", i+1, p.Focused())
		}
	}
	p.Shot("drawer")
	p.Press(kb.Escape)
	p.Eventually(`!seen($('#rail')) && document.activeElement.matches('#bar button.menu')`)
	open()
	p.Press(kb.Tab, input.ModifierShift)
	p.Eval(`$('#rail').contains(document.activeElement) || document.activeElement === document.body`)
	// The page behind it can be used again, whichever way the drawer closes.
	p.Click(`$('#rail a.entry[data-name=keys]')`)
	p.Eventually(`!seen($('#rail')) && !$('#screen').inert && !$('#bar').inert`)
	open()
	p.Click(`$('#rail a.entry[data-name=locks]')`)
	p.Eventually(`!seen($('#rail')) && !$('#screen').inert && text('#screen h1') === 'Locks'`)
}
