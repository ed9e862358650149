package objects

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kit"
)

// Prefixes checks that objects of one name and two prefixes do not meet: all keys, rules and
// channels of an object contain its prefix and the name, and the Delete of one leaves those
// of the other.
func Prefixes(t testing.TB, s Site) {
	t.Helper()
	for _, o := range s.objects() {
		base := s.Name("prefix:" + o.Constructor)
		for _, c := range []struct{ name, one, other string }{
			{base, "one:", "other:"},
			{"{" + base + "}:x", "one:", "other:"},
			{base + ":y", "{one}:", "{other}:"},
		} {
			meet(t, s, o, c.name, c.one, c.other)
		}
	}
}

// meet checks an object under two prefixes.
func meet(t testing.TB, s Site, o Object, name, one, other string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	heard, err := s.PSubscribe(ctx, "*"+kit.Escape(name)+"*")
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()

	a, b := under(t, s, o, one, name), under(t, s, o, other, name)
	use(ctx, t, o, a)
	if all := left(t, s, name); len(all) != len(with(all, one+name)) || a.KeepsNothing != (len(all) == 0) {
		t.Errorf("%s, prefix %q: it keeps %q", o.Constructor, one, all)
	}
	use(ctx, t, o, b)
	all := left(t, s, name)
	if n := len(with(all, other+name)); len(all) != n+len(with(all, one+name)) || a.KeepsNothing != (n == 0) {
		t.Errorf("%s, prefixes %q and %q: they keep %q", o.Constructor, one, other, all)
	}
	const last = ":the last message"
	if _, err := s.Publish(ctx, one+name+last, ""); err != nil {
		t.Fatal(err)
	}
	for m, err := heard.Next(ctx); !strings.HasSuffix(m.Channel, last); m, err = heard.Next(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if c := m.Channel; !strings.Contains(c, one+name) && !strings.Contains(c, other+name) {
			t.Errorf("%s, prefixes %q and %q: a message on %q", o.Constructor, one, other, c)
		}
	}
	if a.KeepsNothing {
		return
	}
	err = a.Delete(ctx)
	now := left(t, s, name)
	if err != nil || len(with(now, one+name)) > 0 {
		t.Errorf("%s: the Delete of prefix %q leaves %q: %v", o.Constructor, one, now, err)
	}
	for _, key := range with(all, other+name) {
		if !slices.Contains(now, key) {
			t.Errorf("%s: the Delete of prefix %q has deleted %q", o.Constructor, one, key)
		}
	}
	if err := b.Delete(ctx); err != nil || len(left(t, s, name)) > 0 {
		t.Errorf("%s: the Delete of prefix %q leaves %q: %v", o.Constructor, other, left(t, s, name), err)
	}
}

// under returns an object of a view with a prefix.
func under(t testing.TB, s Site, o Object, prefix, name string) *Instance {
	t.Helper()
	c, err := s.WithPrefix(prefix)
	if err != nil {
		t.Fatal(err)
	}
	i, err := o.New(c, name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// use uses an object.
func use(ctx context.Context, t testing.TB, o Object, i *Instance) {
	t.Helper()
	if err := i.Use(ctx); err != nil {
		t.Errorf("%s: %v", o.Constructor, err)
	}
}

// with returns the keys that contain a text.
func with(keys []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.Contains(k, text) })
}
