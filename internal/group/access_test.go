package group

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
)

// server returns a service with directives.
func server(t *testing.T, directives ...string) *session.Service {
	t.Helper()
	cfg, err := config.Load(directives, nil)
	if err != nil {
		t.Fatal(err)
	}
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks})
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		svc.Close()
		db.Close()
	})
	return svc
}

// does runs a command as the program itself.
func does(t *testing.T, svc *session.Service, line string) {
	t.Helper()
	c := svc.NewSessionFor(svc.ActAs("default"), session.GuestOptions{})
	defer c.Closed(nil)
	var argv [][]byte
	for _, w := range strings.Fields(line) {
		argv = append(argv, []byte(w))
	}
	if err := c.Do(argv...).Err(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

func TestUsersOfAServerAreThoseOfItsSentinelPort(t *testing.T) {
	svc := server(t)
	a := serverAccess{svc}
	if a.Denied() == "" {
		t.Error("protected mode lets clients of other machines in")
	}
	if u := a.Guest(); u == nil || u.Refusal() != "" {
		t.Error("a client of a server without users may not change the group")
	}
	does(t, svc, "ACL SETUSER admin on >a +@all")
	does(t, svc, "ACL SETUSER reader on >r +@read")
	does(t, svc, "ACL SETUSER default on nopass -@all +@read")
	if u := a.Guest(); u == nil || !strings.HasPrefix(u.Refusal(), "NOPERM") {
		t.Error("a client of a server whose default user may only read changes the group")
	}
	does(t, svc, "ACL SETUSER default off")
	if a.Guest() != nil {
		t.Error("a client need not log in, and the default user is off")
	}
	for _, x := range []struct{ name, password, want string }{{"admin", "a", ""}, {"admin", "b", "none"}, {"none", "a", "none"},
		{"reader", "r", "NOPERM User reader has no permissions to run the 'failover' command"}} {
		got := "none"
		if u := a.Login(x.name, x.password, "192.0.2.1:5"); u != nil {
			got = u.Refusal()
		}
		if got != x.want {
			t.Errorf("%s with the password %s: %q, want %q", x.name, x.password, got, x.want)
		}
	}
	admin := a.Login("admin", "a", "192.0.2.1:5")
	does(t, svc, "ACL SETUSER admin resetpass >b")
	if admin.Valid() {
		t.Error("a client stays logged in with a password that is no longer right")
	}
}

// A server that does not have the command FAILOVER for its clients has it at no other port.
func TestACommandThatWasRemovedIsRemovedFromSentinelPort(t *testing.T) {
	svc := server(t, "--rename-command", "failover", "")
	if (serverAccess{svc}).Guest().Refusal() == "" {
		t.Error("the command FAILOVER was removed, and a client may change the group")
	}
}

func TestAWitnessKnowsRequirepassAndMasterauth(t *testing.T) {
	for _, x := range []struct {
		a               witnessAccess
		denied, guest   bool // of clients of other machines; whether clients may ask
		operates, login bool // without a login; with the password p
	}{
		{witnessAccess{protected: true}, true, true, true, true},
		{witnessAccess{}, false, true, true, true},
		{witnessAccess{secret: "p", protected: true}, true, true, false, true},
		{witnessAccess{password: "p", secret: "s", protected: true}, false, false, false, true},
		{witnessAccess{password: "s", secret: "p"}, false, false, false, false},
	} {
		guest, login := x.a.Guest(), x.a.Login("default", "p", "")
		if (x.a.Denied() != "") != x.denied || (guest != nil) != x.guest || guest != nil && (guest.Refusal() == "") != x.operates ||
			(login != nil && login.Refusal() == "") != x.login {
			t.Errorf("%+v: denied %q, guest %v, login %v", x.a, x.a.Denied(), guest, login)
		}
		if x.a.Login("other", "p", "") != nil {
			t.Errorf("%+v: a witness has a user other", x.a)
		}
	}
}
