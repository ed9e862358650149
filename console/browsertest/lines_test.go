package browsertest_test

import (
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

// lines are the distances in px between the line on which the first text of a row stands and those of the other cells.
const lines = `(() => {
	const probe = document.createElement('span');
	probe.style.display = 'inline-block';
	const lineOf = (td) => {
		const walk = document.createTreeWalker(td, NodeFilter.SHOW_TEXT);
		for (let n = walk.nextNode(); n; n = walk.nextNode()) {
			if (!n.textContent.trim() || !seen(n.parentElement)) continue;
			n.before(probe);
			const y = probe.getBoundingClientRect().bottom;
			probe.remove();
			return [{ text: n.textContent, y }];
		}
		return [];
	};
	return $$('#screen tbody tr').slice(0, 5).flatMap((tr) => {
		const all = [...tr.cells].flatMap(lineOf);
		return all.filter((m) => Math.abs(m.y - all[0].y) > 0.6).map((m) => m.text + ' ' + (m.y - all[0].y).toFixed(1));
	}).join();
})()`

func TestTheTextsOfARowStandOnOneLine(t *testing.T) {
	s := shop(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	for _, to := range []string{"locks", "keys", "limits", "key?db=0&k=" + keyURL("shop:cart")} {
		p.Screen(to)
		p.Eventually(`$('#screen tbody tr')`)
		if off := p.Text(lines); off != "" {
			t.Errorf("%s: %s", to, off)
		}
	}
	p.Screen("keys")
	p.Eventually(`$('#screen tbody td.pick input')`)
	if off := p.Number(`(() => {
		const tr = $('#screen tbody tr'), middle = (e) => { const r = e.getBoundingClientRect(); return r.y + r.height / 2; };
		return Math.abs(middle(tr.querySelector('.pick input')) - middle(tr.querySelector('.wide .bytes')));
	})()`); off > 1.5 {
		t.Errorf("the box to tick is %v px beside the name", off)
	}
	p.Shot("keys-lines")
	p.Screen("locks")
	p.Eventually(`$('#screen tbody tr')`)
	p.Shot("locks-lines")
}
