package browsertest

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Click waits until the element that an expression yields is enabled, stands still and is not covered, and
// clicks into its middle, as a mouse does. It clicks again if the page has replaced or moved the element at
// that moment.
func (p *Page) Click(js string) {
	p.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		at, _ := p.Eventually(`(async () => {
	const e = (` + js + `);
	if (!e || !seen(e) || e.disabled) return null;
	e.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	const place = () => { const r = e.getBoundingClientRect(); return { x: r.x + r.width / 2, y: r.y + r.height / 2 }; };
	const { x, y } = place();
	await new Promise((next) => { requestAnimationFrame(() => requestAnimationFrame(next)); setTimeout(next, 200); });
	const later = place(), top = document.elementFromPoint(x, y);
	if (x !== later.x || y !== later.y || !top || !e.contains(top)) return null;
	window.clicked = false;
	document.addEventListener('click', (c) => { window.clicked = !!(` + js + `)?.contains(c.target); }, { capture: true, once: true });
	return { x, y };
})()`).(map[string]any)
		x, _ := at["x"].(float64)
		y, _ := at["y"].(float64)
		p.Run(chromedp.MouseClickXY(x, y))
		if hit, err := p.eval(Patience, `window.clicked !== false`); err != nil || hit == true { // a link may have led to another document
			return
		}
	}
	p.t.Fatalf("%s cannot be clicked", js)
}

// ClickText clicks the innermost visible button, link or summary whose text has a string.
func (p *Page) ClickText(what string) {
	p.t.Helper()
	p.Click(`byText('button, a, summary, [role=tab], [role=button]', ` + Quote(what) + `).at(-1)`)
}

// Fill replaces, by keys, the text of the input that an expression yields.
func (p *Page) Fill(js, value string) {
	p.t.Helper()
	p.Eventually(`(() => { const e = (` + js + `); if (!e || !seen(e)) return false; e.focus(); e.select(); return document.activeElement === e; })()`)
	if value == "" {
		p.Press(kb.Backspace)
		return
	}
	p.Run(input.InsertText(value))
}

// Type sends text by keys to the focused element.
func (p *Page) Type(s string) {
	p.t.Helper()
	p.Run(chromedp.KeyEvent(s))
}

// Press sends keys of chromedp/kb to the focused element. With modifiers they are pressed together.
func (p *Page) Press(keys string, with ...input.Modifier) {
	p.t.Helper()
	p.Run(chromedp.KeyEvent(keys, chromedp.KeyModifiers(with...)))
}

// Focused describes the focused element in a line: tag, label and text.
func (p *Page) Focused() string {
	p.t.Helper()
	return strings.TrimSpace(p.Text(`(() => {
	const e = document.activeElement;
	return [e.tagName, e.id && '#' + e.id, e.getAttribute('aria-label'), (e.innerText || e.value || '').slice(0, 80)].filter(Boolean).join(' ');
})()`))
}

// GrantClipboard lets the page read and write the clipboard without a question.
func (p *Page) GrantClipboard() {
	p.t.Helper()
	err := inBrowser(p.root, func(ctx context.Context) error {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			set := browser.SetPermission(&browser.PermissionDescriptor{Name: name}, browser.PermissionSettingGranted)
			if err := set.WithBrowserContextID(p.incognito).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}
