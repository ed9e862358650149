package conn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// named is a driver that does nothing.
type named struct {
	conn.Driver
	closed int
}

func (*named) String() string { return "a driver" }
func (d *named) Close() error { d.closed++; return nil }
func (*named) Do(context.Context, []any) (conn.Value, error) {
	return conn.Value{}, nil
}

// around is a driver over another Conn.
type around struct {
	named
	c *conn.Conn
}

func (w *around) Unwrap() *conn.Conn { return w.c }

func TestAPrefixFollowsTheViewsOfAConn(t *testing.T) {
	d := &named{}
	c, err := conn.NewPrefixed(d, "shop:")
	if err != nil {
		t.Fatal(err)
	}
	view, err := c.WithPrefix("eu:")
	if err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string]struct {
		c    *conn.Conn
		want string
	}{
		"the Conn":                  {c, "shop:"},
		"a view":                    {view, "shop:eu:"},
		"its view of replicas":      {view.Replicated(1, time.Second), "shop:eu:"},
		"a view of replicas":        {c.Replicated(1, time.Second), "shop:"},
		"a Conn around it":          {conn.New(&around{c: view}), "shop:eu:"},
		"a Conn without":            {conn.New(d), ""},
		"a view of a Conn without":  {first(conn.New(d).WithPrefix("x:")), "x:"},
		"a view without a further":  {first(c.WithPrefix("")), "shop:"},
		"a view of one of replicas": {first(c.Replicated(1, time.Second).WithPrefix("us:")), "shop:us:"},
	} {
		if got := of.c.Prefix(); got != of.want {
			t.Errorf("%s has the prefix %q, want %q", what, got, of.want)
		}
	}
	if s := view.String(); s != `a driver, objects under "shop:eu:"` {
		t.Error(s)
	}
	if s := first(c.Replicated(1, time.Second).WithPrefix("us:")).String(); !strings.Contains(s, "1 replicas") ||
		!strings.Contains(s, `"shop:us:"`) {
		t.Error(s)
	}
	if view.Close() != nil || d.closed != 0 || c.Close() != nil || d.closed != 1 {
		t.Errorf("the driver was closed %d times: by the view, or not by the Conn", d.closed)
	}
}

func first[T any](v T, _ error) T { return v }

func TestAPrefixHasNoBracesThatAreNoHashTag(t *testing.T) {
	for _, p := range []string{"{", "}", "a{:", "{}:", "a}:", "}{"} {
		_, err := conn.New(&named{}).WithPrefix(p)
		_, made := conn.NewPrefixed(&named{}, p)
		if !errors.Is(err, conn.ErrArgument) || !errors.Is(made, conn.ErrArgument) || !strings.Contains(err.Error(), "hash tag") {
			t.Errorf("%q: %v, %v", p, err, made)
		}
	}
	if _, err := conn.New(&named{}).WithPrefix("{shop}:"); err != nil {
		t.Error(err)
	}
}
