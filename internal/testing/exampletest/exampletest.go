// Package exampletest runs examples as tests.
package exampletest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// Run runs an example on the backends of package backends, and checks that its output
// contains the given lines or parts of lines. A line that begins with a kind and a colon,
// as in "mem:taken", is checked on that kind of backend only. An example must leave
// nothing behind: Run fails if the backend holds keys or expiry rules that it did not hold
// before.
func Run(t *testing.T, run func(ctx context.Context, c *ebb.Conn, w io.Writer) error, want ...string) {
	t.Helper()
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		before := contents(t, b)
		var out bytes.Buffer
		if err := run(b.Context(), b.Conn, &out); err != nil {
			t.Fatalf("%v, after:\n%s", err, out.String())
		}
		for _, w := range want {
			if kind, rest, ok := strings.Cut(w, ":"); ok && isKind(kind) {
				if kind != b.Kind {
					continue
				}
				w = rest
			}
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is missing in:\n%s", w, out.String())
			}
		}
		for what := range contents(t, b) {
			if !before[what] {
				t.Errorf("the example left %s behind", what)
			}
		}
	})
}

// contents returns the names of the keys and the expiry rules of a backend.
func contents(t *testing.T, b *backends.Backend) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for key, err := range b.Scan(b.Context(), "*") {
		if err != nil {
			t.Fatal(err)
		}
		all["key "+key] = true
	}
	if !b.Capabilities().Native {
		return all
	}
	rules, err := b.Do(b.Context(), "EXPIRY", "RULE", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules.Elems {
		name, _ := rule.Get("name")
		all["expiry rule "+name.String()] = true
	}
	return all
}

func isKind(name string) bool {
	for _, k := range backends.Kinds() {
		if k == name {
			return true
		}
	}
	return false
}
