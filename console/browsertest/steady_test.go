package browsertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/console/browsertest"
)

// The content below the list of the next expirations stays in its place while rows come and go.
func TestWhatExpiresNextHasRowsOfOneHeight(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 20 {
		s.Do("SET", fmt.Sprintf("session:%02d", i), "v", "PX", 600_000+i)
	}
	s.Do("SET", "long:"+strings.Repeat("name", 40), "v", "PX", 500_000)
	s.Do("LOCK.ACQUIRE", "report", "worker-3:"+strings.Repeat("0475c6009d4e", 8), 400_000)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": {Width: 390, Height: 844, Mobile: true}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL+"#/expiry", o)
			rows := `$$('#screen section')[1].querySelectorAll('tbody tr')`
			p.Eventually(rows + `.length === 15`)
			heights := p.Text(`[...new Set([...` + rows + `].map((e) => Math.round(e.getBoundingClientRect().height)))].join()`)
			if strings.Contains(heights, ",") {
				t.Errorf("rows are %s px high", heights)
			}
			p.Eval(`$$('#screen section')[1].scrollIntoView()`)
			p.Shot("expiry-next-" + name)
		})
	}
}

// A disappearing row is visible until the row below it has taken its place.
func TestARowThatGoesLeavesNoGap(t *testing.T) {
	s := browsertest.Serve(t)
	at := time.Now().UnixMilli() + 3000
	for i := range 100 {
		s.Do("SET", fmt.Sprintf("due:%03d", i), "v", "PXAT", at+int64(i)*50)
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{Blank: true})
	p.Before(`new MutationObserver((all) => {
		for (const { target } of all) if (target.matches?.('tr.gone')) {
			target.addEventListener('transitionend', (e) => (window.faded = [...(window.faded || []), getComputedStyle(target).opacity]));
		}
	}).observe(document, { subtree: true, attributes: true, attributeFilter: ['class'] })`)
	p.Go(s.URL + "#/expiry")
	p.Eventually(`window.faded?.length > 5`)
	if got := p.Number(`Math.min(...window.faded.map(Number))`); got < 0.3 {
		t.Errorf("a row has the opacity %v", got)
	}
}

func TestAForecastOfNothingHasNoAdvice(t *testing.T) {
	p := browsertest.Open(t, browsertest.Serve(t).URL+"#/expiry", browsertest.Options{})
	p.Eventually(`text('#screen section p') === 'Nothing expires in the next minute.'`)
}
