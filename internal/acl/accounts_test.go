package acl

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
)

type memory struct{ n int64 }

func (m *memory) ChargeApart(n int64) { m.n += n }

func newAccounts(t *testing.T) (*Accounts, *memory) {
	t.Helper()
	m, a := &memory{}, &Accounts{}
	a.Init(NewCatalog([]string{"read"}, []Command{{Name: "get", Categories: 1, Parent: -1}}), config.New(), slog.New(slog.DiscardHandler), m)
	return a, m
}

func edit(t *testing.T, a *Accounts, name string, rules ...string) Change {
	t.Helper()
	c, err := a.Edit(name, func(u *User) error { _, err := u.ApplyAll(a.Rules(), rules); return err })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(all []*Account) (list []string) {
	for _, a := range all {
		list = append(list, a.Name)
	}
	slices.Sort(list)
	return list
}

// A change names the accounts that are gone, and those that lost channels; an account of a
// deleted user may do nothing.
func TestAChangeNamesTheAccountsThatLoseSomething(t *testing.T) {
	a, mem := newAccounts(t)
	if c := edit(t, a, "ann", "on", "nopass", "+get", "~*", "&news", "&gossip"); c.Gone != nil || c.Narrow != nil {
		t.Errorf("a new user changes %v", c)
	}
	edit(t, a, "bob", "&news")
	ann := a.Find("ann")
	if c := edit(t, a, "ann", "&more"); c.Narrow != nil {
		t.Errorf("a user that gains a channel loses %v", names(c.Narrow))
	}
	if c := edit(t, a, "ann", "resetchannels", "&news"); !slices.Equal(names(c.Narrow), []string{"ann"}) || c.Gone != nil {
		t.Errorf("a user that loses channels changes %v", c)
	}
	if c := a.Remove([]string{"ann", "none", DefaultUser}); !slices.Equal(names(c.Gone), []string{"ann"}) {
		t.Errorf("removed %v", names(c.Gone))
	}
	if u := ann.User(); u.On || u.AllChannels() || a.Find("ann") != nil {
		t.Error("the account of a deleted user may still do something")
	}
	if c := a.Replace(nil); !slices.Equal(names(c.Gone), []string{"bob"}) ||
		!slices.Equal(names(a.List()), []string{DefaultUser}) || mem.n != 0 {
		t.Errorf("when all users are replaced by none: %v are gone, %v remain, %d bytes are charged", names(c.Gone), names(a.List()), mem.n)
	}
}

// A failed edit changes nothing.
func TestAnEditThatFailsChangesNothing(t *testing.T) {
	a, mem := newAccounts(t)
	edit(t, a, "ann", "on", ">secret")
	before, bytes := a.Lines(a.List()), mem.n
	for _, name := range []string{"ann", "new"} {
		if _, err := a.Edit(name, func(u *User) error { _, err := u.ApplyAll(a.Rules(), []string{"off", "+nonsense"}); return err }); err == nil {
			t.Errorf("%s: a rule that there is not was applied", name)
		}
	}
	if after := a.Lines(a.List()); !slices.Equal(before, after) || mem.n != bytes {
		t.Errorf("the users were %q and are %q", before, after)
	}
}

// Login takes the password of a user that is on.
func TestLoginNeedsThePasswordOfAUserThatIsOn(t *testing.T) {
	a, _ := newAccounts(t)
	edit(t, a, "ann", "on", ">secret")
	edit(t, a, "off", "off", ">secret")
	for _, x := range []struct {
		name, password string
		want           bool
	}{{"ann", "secret", true}, {"ann", "guess", false}, {"off", "secret", false}, {"none", "secret", false}} {
		called := false
		ok := a.Login([]byte(x.name), []byte(x.password), func(acc *Account) { called = acc.Name == x.name })
		if ok != x.want || called != x.want {
			t.Errorf("%s with %q: %v, login was called: %v", x.name, x.password, ok, called)
		}
	}
}

// A file that was saved makes the same users; one with mistakes changes nothing.
func TestUsersAreSavedAndLoaded(t *testing.T) {
	a, _ := newAccounts(t)
	edit(t, a, "ann", "on", ">secret", "~a*", "+get")
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := a.SaveFile(path); err != nil {
		t.Fatal(err)
	}
	saved := a.Lines(a.List())
	a.Remove([]string{"ann"})
	if _, err := a.LoadFile(path, nil); err != nil || !slices.Equal(a.Lines(a.List()), saved) {
		t.Errorf("%v: the users are %q, want %q", err, a.Lines(a.List()), saved)
	}
	if err := os.WriteFile(path, []byte("user ann +nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.LoadFile(path, nil); err == nil || !slices.Equal(a.Lines(a.List()), saved) {
		t.Errorf("%v: after a file with a mistake the users are %q", err, a.Lines(a.List()))
	}
}

// The log counts a request that is refused again within a minute, and keeps the newest entries.
func TestTheLogJoinsTheSameRefusalsOfAMinute(t *testing.T) {
	var l Log
	r := Refusal{Why: DeniedKey, Object: "k", User: "ann"}
	l.Add(r, TopLevel, 1e6, "a", 3)
	l.Add(r, TopLevel, 61e6, "b", 3)
	l.Add(r, InMulti, 61e6, "c", 3)
	l.Add(r, TopLevel, 122e6, "d", 3)
	var got []string
	for _, e := range l.Newest(10) {
		got = append(got, fmt.Sprint(e.ID, " ", e.Count, " ", e.Context, " ", e.Client, " ", e.Why))
	}
	if want := []string{"2 1 toplevel d key", "1 1 multi c key", "0 2 toplevel b key"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	l.Add(Refusal{Why: DeniedAuth, Object: "AUTH", User: "x"}, TopLevel, 123e6, "e", 3)
	if e := l.Newest(10); len(e) != 3 || e[2].Client != "c" {
		t.Errorf("beyond its limit the log has %v", e)
	}
	if l.Reset(); len(l.Newest(10)) != 0 || !strings.HasPrefix(DeniedKey.Reply(), "NOPERM") {
		t.Error("the log is not empty after Reset")
	}
}
