package browsertest_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/console/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }

// screens are the names of the screens in the rail.
var screens = []string{"now", "expiry", "keys", "limits", "locks", "queues", "streams", "performance", "server", "shell"}

// keyURL is the name of a key in the hash of a route.
func keyURL(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// row is an expression for the row of a table that has a text.
func row(text string) string {
	return "$$('#screen tbody tr').find((e) => seen(e) && e.innerText.includes(" + browsertest.Quote(text) + "))"
}

// within is an expression for a button of a row.
func within(text, button string) string {
	return "[...(" + row(text) + "?.querySelectorAll('button') || [])].find((b) => b.innerText === " + browsertest.Quote(button) + ")"
}

// button is an expression for the visible button with a text.
func button(text string) string {
	return "$$('button').find((b) => seen(b) && b.innerText.trim() === " + browsertest.Quote(text) + ")"
}

// confirm runs the command that the open dialog shows, and returns it.
func confirm(p *browsertest.Page) (command string) {
	p.Eventually(`$('dialog[open] pre.command')`)
	command = p.Text(`text('dialog[open] pre.command')`)
	p.Click(`$('dialog[open] button[type=submit]')`)
	p.Eventually(`!$('dialog[open]')`)
	return command
}

// client is a program on the server's port, with a connection of its own.
func client(t *testing.T, s *browsertest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends a command of words without blanks.
func send(t *testing.T, c net.Conn, line string) {
	t.Helper()
	words := strings.Fields(line)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
}

func TestEveryScreenOpensOnAnEmptyServer(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	for _, name := range screens {
		p.Screen(name)
	}
	for _, name := range []string{"keys", "limits", "locks", "queues", "streams"} {
		p.Screen(name)
		p.Eventually(`$('#screen .empty code.command') && $('#screen .empty a[href^="#/shell?line="]')`)
	}
}

// A harness that overlooks faults would let every test pass.
func TestTheHarnessNotesWhatGoesWrong(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("now")
	if f := p.Faults(); len(f) > 0 {
		t.Fatalf("the console has faults: %q", f)
	}
	p.Allow(`^`)
	p.Eval(`console.error('told')`)
	p.Eval(`setTimeout(() => { throw new Error('thrown'); }, 0)`)
	p.Eval(`fetch('api/nonsense')`)
	p.Eval(`fetch('http://127.0.0.1:1/').catch(() => 0)`)
	p.Eval(`(() => { const s = document.createElement('img'); s.src = 'http://other.test/x.png'; document.body.append(s); })()`)
	for _, want := range []string{"console error: ", "exception: ", "status 404: GET ", "csp: connect-src", "csp: img-src"} {
		p.Wait("the fault "+want, func() bool {
			return slices.ContainsFunc(p.All(), func(f string) bool { return strings.HasPrefix(f, want) })
		})
	}
}
