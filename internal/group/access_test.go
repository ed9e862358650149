package group

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// operator returns a function that runs commands on a server as a user with all permissions.
func operator(t *testing.T, svc *session.Service) func(line string) {
	t.Helper()
	as := func(user string) func(string) {
		c := svc.NewSessionFor(svc.ActAs(user), session.GuestOptions{})
		t.Cleanup(func() { c.Closed(nil) })
		return func(line string) {
			t.Helper()
			var argv [][]byte
			for _, w := range strings.Fields(line) {
				argv = append(argv, []byte(w))
			}
			if err := c.Do(argv...).Err(); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	as("default")("ACL SETUSER operator on nopass +@all")
	return as("operator")
}

func TestUsersOfAServerAreThoseOfItsSentinelPort(t *testing.T) {
	svc := services.Start(t)
	does := operator(t, svc)
	a := serverAccess{svc}
	if a.Denied() == "" {
		t.Error("protected mode lets clients of other machines in")
	}
	if u := a.Guest(); u == nil || u.Refusal("failover") != "" {
		t.Error("a client of a server without users may not change the group")
	}
	does("ACL SETUSER admin on >a +@all")
	does("ACL SETUSER reader on >r +@read")
	does("ACL SETUSER default on nopass -@all +@read")
	if u := a.Guest(); u == nil || !strings.HasPrefix(u.Refusal("failover"), "NOPERM") {
		t.Error("a client of a server whose default user may only read changes the group")
	}
	does("ACL SETUSER default off")
	if a.Guest() != nil {
		t.Error("a client need not log in, and the default user is off")
	}
	for _, x := range []struct{ name, password, want string }{{"admin", "a", ""}, {"admin", "b", "none"}, {"none", "a", "none"},
		{"reader", "r", "NOPERM User reader has no permissions to run the 'failover' command"}} {
		got := "none"
		if u := a.Login(x.name, x.password, "192.0.2.1:5"); u != nil {
			got = u.Refusal("failover")
		}
		if got != x.want {
			t.Errorf("%s with the password %s: %q, want %q", x.name, x.password, got, x.want)
		}
	}
	does("ACL SETUSER switcher on >s +failover")
	does("ACL SETUSER accepter on >s +group|recover")
	for name, want := range map[string]string{"switcher": "NOPERM User switcher has no permissions to run the 'group|recover' command",
		"accepter": "", "admin": ""} {
		password := "s"
		if name == "admin" {
			password = "a"
		}
		if got := a.Login(name, password, "192.0.2.1:5").Refusal("group", "recover"); got != want {
			t.Errorf("%s accepts losses: %q, want %q", name, got, want)
		}
	}
	admin := a.Login("admin", "a", "192.0.2.1:5")
	does("ACL SETUSER admin resetpass >b")
	if admin.Valid() {
		t.Error("a client stays logged in with a password that is no longer right")
	}
}

// A server whose command FAILOVER was removed refuses it at sentinel-port too.
func TestACommandThatWasRemovedIsRemovedFromSentinelPort(t *testing.T) {
	svc := services.Start(t, "--rename-command", "failover", "")
	if (serverAccess{svc}).Guest().Refusal("failover") == "" {
		t.Error("the command FAILOVER was removed, and a client may change the group")
	}
	svc = services.Start(t, "--rename-command", "group", "")
	guest := serverAccess{svc}.Guest()
	if guest.Refusal("group", "recover") == "" || guest.Refusal("failover") != "" {
		t.Error("the command GROUP was removed, and a client may accept losses, or not fail over")
	}
}

func TestAWitnessKnowsRequirepassAndMasterauth(t *testing.T) {
	for _, x := range []struct {
		a               witnessAccess
		denied, guest   bool // for clients of other machines; whether they may ask without a login
		operates, login bool // may change the group without a login; with the password p
	}{
		{witnessAccess{protected: true}, true, true, true, true},
		{witnessAccess{}, false, true, true, true},
		{witnessAccess{secret: "p", protected: true}, true, true, false, true},
		{witnessAccess{password: "p", secret: "s", protected: true}, false, false, false, true},
		{witnessAccess{password: "s", secret: "p"}, false, false, false, false},
	} {
		guest, login := x.a.Guest(), x.a.Login("default", "p", "")
		if (x.a.Denied() != "") != x.denied || (guest != nil) != x.guest || guest != nil && (guest.Refusal("failover") == "") != x.operates ||
			(login != nil && login.Refusal("failover") == "") != x.login {
			t.Errorf("%+v: denied %q, guest %v, login %v", x.a, x.a.Denied(), guest, login)
		}
		if x.a.Login("other", "p", "") != nil {
			t.Errorf("%+v: a witness has a user other", x.a)
		}
	}
}

// The group's port listens only at the addresses of bind.
func TestTheGroupsPortIsOpenWhereBindSays(t *testing.T) {
	for _, c := range []struct {
		bind    string
		address string
		want    string // "": an error
	}{
		{"10.0.0.5 -::1", "10.0.0.5:7379", "10.0.0.5 -::1 7379"},
		{"* -::*", "a:7379", "* -::* 7379"},
		{"10.0.0.5", "127.0.0.1:7379", "127.0.0.1 7379"}, // all nodes are on one machine
		{"* -::*", "localhost:1", "localhost 1"},
		{"127.0.0.1 -::1", "10.0.0.5:7379", ""},
		{"", "a:7379", ""},
	} {
		at, port, err := listensAt(strings.Fields(c.bind), c.address)
		if got := strings.Join(at, " ") + " " + strconv.Itoa(port); (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("bind %q, reached at %s: it listens at %s, %v, want %s", c.bind, c.address, got, err, c.want)
		}
	}
}
