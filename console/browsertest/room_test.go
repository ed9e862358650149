package browsertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

// phone is a small window, in English.
var phone = browsertest.Options{Width: 390, Height: 844, Mobile: true}

// clipped are the visible placeholders that have less room than their words. A search field reserves some
// room for its cross.
const clipped = `(() => {
	const pen = document.createElement('canvas').getContext('2d');
	return $$('input[placeholder]').filter(seen).flatMap((e) => {
		const style = getComputedStyle(e), inner = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
		pen.font = style.font;
		const words = pen.measureText(e.placeholder).width + (e.type === 'search' ? 16 : 0);
		return words > inner ? [e.placeholder + ': ' + Math.ceil(words) + ' px in ' + Math.floor(inner)] : [];
	}).join();
})()`

func TestPlaceholdersHaveRoom(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": phone,
		"phone, Chinese": {Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL, o)
			for _, to := range append([]string{"key?db=0&k=" + keyURL("shop:events"), "key?db=0&k=" + keyURL("shop:cart"),
				"queues?db=0&k=" + keyURL("shop:queue")}, screens...) {
				p.Screen(to)
				if got := p.Text(clipped); got != "" {
					t.Errorf("%s: %s", to, got)
				}
			}
			p.Screen("server")
			p.Shot("server-" + strings.ReplaceAll(name, ", ", "-"))
		})
	}
}

func TestAPhoneHasRoomForTheHeatMapAndTheFormats(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 3000 {
		s.Do("SET", fmt.Sprintf("coupon:%d", i), "v", "EX", 30+i*100_000%4_000_000)
	}
	p := browsertest.Open(t, s.URL+"#/expiry", phone)
	p.Click(`$$('#screen section').at(-1).querySelector('button')`)
	p.Eventually(`$('.heat td.cell')`)
	p.Eventually(`text('#screen').includes('100%')`)
	p.Eval(`$$('#screen section').at(-1).scrollIntoView()`)
	p.Shot("phone-heat")
	if over := p.Number(`$('.heat').scrollWidth - $('.heat').clientWidth`); over > 0 {
		t.Errorf("the heat map is cut by %v px", over)
	}
	p.Screen("key?db=0&k=" + keyURL("coupon:1"))
	p.Eventually(`byText('.segments button', 'Bits').length`)
	if n := p.Number(`new Set($$('#screen .segments button').map((e) => e.getBoundingClientRect().y)).size`); n != 1 {
		t.Errorf("the formats have %v lines", n)
	}
	p.Shot("phone-formats")
}

// shares are the shares of commands on a server at work.
const shares = `{ 'RL.TAKE': 25, SET: 22, 'BF.INSERT': 7.3, SCAN: 7.2, TYPE: 6.2, GET: 4, 'SEM.RELEASE': 3.4, 'DQ.INFO': 3, 'DQ.ACK': 3,
	HSETEX: 2.5, 'DQ.POP': 2, PTTL: 2, 'MEMORY USAGE': 2, 'DQ.ADD': 1.5, 'LOCK.ACQUIRE': 1.3, 'LOCK.RELEASE': 1.2, EVAL: 1, ZADD: 1,
	SADDEX: 1, INFO: 0.8 }`

// A name in a treemap is either whole or hidden. Most names have room, even on a phone.
func TestNamesInATreemapAreNotCut(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL+"#/performance", o)
			p.Eventually(`$$('.treemap .part').length > 5`)
			p.Eval(`import('./lib/treemap.js').then((m) => {
				const el = document.createElement('div');
				$('#screen > div').prepend(el);
				m.treemap(el, Object.entries(` + shares + `).map(([label, value]) => ({ label, value, title: label })), { rest: 'others' });
			})`)
			const inView = `((e) => seen(e) && e.getBoundingClientRect().top < e.closest('.fit').getBoundingClientRect().bottom - 1)`
			cut := p.Text(`$$('.treemap .part :is(b, i)').filter(` + inView + `).filter((e) => {
				const box = e.closest('.fit').getBoundingClientRect(), line = e.getBoundingClientRect();
				return line.bottom > box.bottom + 1 || line.right > box.right + 1 || e.scrollWidth > e.clientWidth;
			}).map((e) => e.innerText).join()`)
			if cut != "" {
				t.Errorf("there is no room for %s", cut)
			}
			named := p.Number(`[...$('.treemap').querySelectorAll('b')].filter(` + inView + `).length`)
			if all := p.Number(`$('.treemap').children.length`); named < all/2 {
				t.Errorf("%v of %v parts have a name", named, all)
			}
			alone := `$$('.treemap .part i').filter(` + inView + `).filter((e) => !` + inView + `(e.previousSibling)).length`
			if n := p.Number(alone); n > 0 {
				t.Errorf("%v parts have a share and no name", n)
			}
			p.Shot("treemap-" + name)
		})
	}
}
