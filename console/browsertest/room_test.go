package browsertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

// phone is a small window, in English.
var phone = browsertest.Options{Width: 390, Height: 844, Mobile: true}

// clipped are the visible placeholders that have less room than their words. A field for a search keeps some for its cross.
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

// The names in a map of rectangles are whole lines, with room for some letters.
func TestNamesInATreemapAreNotCut(t *testing.T) {
	s := shop(t)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL+"#/performance", o)
			p.Eventually(`$$('.treemap .part').length > 5`)
			cut := p.Text(`$$('.treemap .part').flatMap((part) => {
				const box = part.getBoundingClientRect();
				return [...part.children].filter(seen).flatMap((e) => {
					const line = e.getBoundingClientRect();
					return line.width < 30 || line.bottom > box.bottom || line.right > box.right ? [e.innerText] : [];
				});
			}).join()`)
			if cut != "" {
				t.Errorf("there is no room for %s", cut)
			}
			if n := p.Number(`$$('.treemap .part b').filter(seen).length`); n < 1 {
				t.Errorf("%v parts have a name", n)
			}
			p.Shot("treemap-" + name)
		})
	}
}
