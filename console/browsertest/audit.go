package browsertest

import (
	_ "embed" // for audit.js
	"fmt"
)

//go:embed audit.js
var audit string

// Audit returns what is wrong with what the page shows now, for eyes that need contrast, for the keyboard and for screen readers: a sentence
// for each element.
func (p *Page) Audit() []string {
	p.t.Helper()
	return p.strings(audit)
}

// Overflow returns the elements of a selector, and the body, that are wider inside than outside: text is cut off or the page scrolls sideways.
func (p *Page) Overflow(selector string) []string {
	p.t.Helper()
	return p.strings(`[document.documentElement, document.body, ...$$(` + Quote(selector) + `)]
	.filter((e) => (seen(e) || e === document.body) && e.scrollWidth > e.clientWidth + 1)
	.map((e) => e.tagName.toLowerCase() + '.' + e.className + ': ' + e.scrollWidth + ' > ' + e.clientWidth +
		' "' + e.innerText.slice(0, 60).replaceAll('\n', ' ') + '"')`)
}

func (p *Page) strings(js string) []string {
	p.t.Helper()
	all, _ := p.Eval(js).([]any)
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = fmt.Sprint(x)
	}
	return out
}
