package browsertest_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console/browsertest"
)

// many is the number of keys of tests with many. A million takes two minutes, of which the browser needs the most.
var many = flag.Int("browser.keys", 100_000, "the number of keys of the test with many keys; 1000000 is the promise")

// populate writes n keys below prefixes, ten keys to a prefix; one of ten has a deadline.
func populate(t *testing.T, s *browsertest.Server, n int) {
	t.Helper()
	for i := 0; i < n; i += 1000 {
		var b conn.Batch
		for j := i; j < min(i+1000, n); j++ {
			if j%10 == 0 {
				b.Do("SET", fmt.Sprintf("p%06d:%d", j/10, j%10), "some value", "EX", 86400+j)
			} else {
				b.Do("SET", fmt.Sprintf("p%06d:%d", j/10, j%10), "some value")
			}
		}
		if _, err := s.Conn.Pipeline(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListOfManyKeysIsWalkedToItsEndInFlatMemory(t *testing.T) {
	s := browsertest.Serve(t)
	populate(t, s, *many)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("keys")
	p.Eventually(`$$('#screen tbody tr').length >= 200`)
	shown := `Number(/^([\d,]+) (?:shown|found)/.exec($('#screen [role=status]').textContent)[1].replaceAll(',', ''))`
	pages := 0
	for p.Number(shown) < 3000 { // beyond the 2,000 rows that the page keeps
		was := p.Number(shown)
		p.Eventually(fmt.Sprintf(`$$('#screen tbody tr').length === %.0f`, min(2000, was))) // the rows come in steps
		p.Click(button("Load more"))
		p.Eventually(fmt.Sprintf(`%s > %.0f`, shown, was))
		pages++
	}
	full := p.Memory()
	t.Logf("after %d pages: %s", pages, full)
	began := time.Now()
	p.Click(button("Scan all keys"))
	p.Eventually(fmt.Sprintf(`$('#screen [role=status]').textContent.includes('All keys were scanned') || %s > %d`, shown, *many/2))
	half := p.Memory()
	t.Logf("at half: %s", half)
	p.Within(10*time.Minute, `$('#screen [role=status]').textContent.includes('All keys were scanned')`)
	end := p.Memory()
	t.Logf("%d keys scanned in %v: %s", *many, time.Since(began).Round(time.Millisecond), end)
	if got := p.Number(shown); got != float64(*many) {
		t.Errorf("%.0f keys were shown of %d", got, *many)
	}
	if rows := p.Number(`$$('#screen tbody tr').length`); rows > 2000 {
		t.Errorf("the page has %.0f rows", rows)
	}
	if end.Heap > 1.3*full.Heap+8 || end.Nodes > 1.3*full.Nodes {
		t.Errorf("the tab has grown from %s to %s", full, end)
	}
}

func TestATreeOfManyPrefixesOpens(t *testing.T) {
	s := browsertest.Serve(t)
	populate(t, s, *many)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	began := time.Now()
	p.Screen("keys?view=tree")
	p.Eventually(`$$('#screen tbody tr').length > 0`)
	t.Logf("the first prefixes stand after %v", time.Since(began).Round(time.Millisecond))
	p.Click(button("Scan all keys"))
	p.Within(10*time.Minute, `$('#screen [role=status]').textContent.includes('All keys were scanned')`)
	t.Logf("all %d prefixes after %v: %s", *many/10, time.Since(began).Round(time.Millisecond), p.Memory())
	first := p.Text(`$('#screen tbody tr .bytes').innerText`)
	if !strings.HasSuffix(first, ":") {
		t.Fatalf("the first row is %q", first)
	}
	p.Eventually(row(first) + `.innerText.split('\t').includes('10')`)
	p.Click(row(first))
	p.Eventually(`$$('#screen tbody tr').length === 10 && text('#screen tbody').includes(` + browsertest.Quote(first+"3") + `)`)
}
