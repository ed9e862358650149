package expirytest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
)

// Ruled is an object with Events: its first Add makes an expiry rule.
type Ruled struct {
	Add, Clear, Delete func(context.Context) error
}

// CountRules checks that Clear of an object keeps its rule, that Delete gives it back, and that the error of an object that needs
// one more than the 128 of a database names the way out. open returns an object of that name.
func CountRules(t *testing.T, open func(c *ebb.Conn, name string) Ruled) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := ebb.Open(ctx, "mem://")
	must(err)
	defer c.Close()
	expect := func(want int) {
		t.Helper()
		v, err := c.Do(ctx, "EXPIRY", "RULE", "LIST")
		must(err)
		if len(v.Elems) != want {
			t.Errorf("%d rules, want %d", len(v.Elems), want)
		}
	}
	const limit = 128
	all := make([]Ruled, limit)
	for i := range all {
		all[i] = open(c, fmt.Sprint("m", i))
		must(all[i].Add(ctx))
		must(all[i].Clear(ctx))
	}
	expect(limit)
	more := open(c, "more")
	const says = "128 expiry rules at most: Delete of an object with Events gives its rule back, Clear does not"
	if err := more.Add(ctx); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("an object too many: %v", err)
	}
	must(all[0].Delete(ctx))
	must(more.Add(ctx))
	must(more.Clear(ctx))
	all[0] = more
	for _, m := range all {
		must(m.Delete(ctx))
	}
	expect(0)
}
