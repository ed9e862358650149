package browsertest

import (
	_ "embed" // for audit.js
	"fmt"
)

//go:embed audit.js
var audit string

// Audit returns the faults of the visible page for low vision, for the keyboard and for screen readers: a
// sentence for each element.
func (p *Page) Audit() []string {
	p.t.Helper()
	return p.strings(audit)
}

// Overflow returns the elements of a selector, and the body, whose content is wider than they are: text is
// cut off, or the page scrolls sideways.
func (p *Page) Overflow(selector string) []string {
	p.t.Helper()
	return p.strings(`[document.documentElement, document.body, ...$$(` + Quote(selector) + `)]
	.filter((e) => (seen(e) || e === document.body) && e.scrollWidth > e.clientWidth + 1)
	.map((e) => e.tagName.toLowerCase() + '.' + e.className + ': ' + e.scrollWidth + ' > ' + e.clientWidth +
		' "' + e.innerText.slice(0, 60).replaceAll('\n', ' ') + '"')`)
}

// Columns returns the faults of table columns: those wider than their table, two cells of a row that overlap,
// and words of eight letters or more that wrap within six letters.
func (p *Page) Columns() []string {
	p.t.Helper()
	return p.strings(`$$('#screen .table:not(.heat)').filter(seen).flatMap((el) => {
	const out = [], name = el.querySelector('table')?.getAttribute('aria-label') + ': ';
	if (el.scrollWidth > el.clientWidth + 1) out.push(name + el.scrollWidth + ' px in ' + el.clientWidth);
	for (const tr of [...el.querySelectorAll('tr')].filter(seen).slice(0, 40)) {
		const cells = [...tr.children].filter(seen).map((td) => {
			const range = document.createRange();
			range.selectNodeContents(td);
			return { td, r: range.getBoundingClientRect() };
		});
		for (const [i, a] of cells.entries())
			for (const b of cells.slice(i + 1))
				if (Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left) > 1 &&
					Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top) > 1)
					out.push(name + a.td.innerText + ' is above ' + b.td.innerText);
		for (const e of tr.querySelectorAll('.bytes')) {
			const size = parseFloat(getComputedStyle(e).fontSize), r = e.getBoundingClientRect();
			if (seen(e) && e.innerText.length >= 8 && r.width < 6 * 0.6 * size)
				out.push(name + e.innerText + ' is ' + Math.round(r.width) + ' px wide');
		}
	}
	return out;
})`)
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
