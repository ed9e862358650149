package session_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// as runs a request in an embedded session and returns the reply as text.
func as(c *session.Session, line string) string {
	var args [][]byte
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	v := c.Do(args...)
	if err := v.Err(); err != nil {
		return err.Error()
	}
	return v.String()
}

func login(t *testing.T, s *session.Service, user, password string) *session.Identity {
	t.Helper()
	id, err := s.Login([]byte(user), []byte(password), session.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestASessionOfAnIdentityRunsAsItsUserAndShowsItsOrigin(t *testing.T) {
	s := services.Start(t, "--slowlog-log-slower-than", "0")
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	admin.Send("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "-del", "~a*")
	monitor := services.Dial(t, s, "tcp", "127.0.0.1:2")
	monitor.Send("MONITOR")
	from := session.Origin{Addr: "192.0.2.7:5312", Name: "tab 1", Lib: "ebb-console"}
	c := s.NewSessionFor(login(t, s, "ann", "secret"), session.GuestOptions{From: from})
	defer c.Closed(nil)

	as(c, "SELECT 3")
	as(c, "SET a 1")
	for request, want := range map[string]string{"ACL WHOAMI": "ann", "CLIENT NO-TOUCH ON": "OK", "CLIENT NO-EVICT ON": "OK", "GET a": "1"} {
		if got := as(c, request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	list := admin.Send("CLIENT", "LIST", "ADDR", from.Addr)
	for _, field := range []string{" addr=192.0.2.7:5312 ", " name=tab?1 ", " flags=eT ", " db=3 ", " user=ann ", " lib-name=ebb-console "} {
		if !strings.Contains(list, field) {
			t.Errorf("CLIENT LIST has no %q: %s", field, list)
		}
	}
	if got := admin.Send("CLIENT", "KILL", "ADDR", from.Addr); got != ":0\r\n" {
		t.Errorf("CLIENT KILL: %q", got)
	}
	if got := string(monitor.Session.TakePushes(nil)); !strings.Contains(got, ` [3 192.0.2.7:5312] "SET" "a" "1"`) {
		t.Errorf("MONITOR: %s", got)
	}
	if got := admin.Send("SLOWLOG", "GET", "-1"); !strings.Contains(got, "192.0.2.7:5312\r\n$5\r\ntab?1") {
		t.Errorf("SLOWLOG: %q", got)
	}
	for _, refused := range []string{"DEL a", "GET b"} {
		if got := as(c, refused); !strings.Contains(got, "NOPERM") {
			t.Errorf("%s: %s", refused, got)
		}
	}
	if got := admin.Send("ACL", "LOG", "1"); !strings.Contains(got, "addr=192.0.2.7:5312") || !strings.Contains(got, "lib-name=ebb-console") {
		t.Errorf("ACL LOG: %s", got)
	}
	if as(c, "RESET"); as(c, "ACL WHOAMI") != "ann" {
		t.Error("RESET has made the session that of another user")
	}
	admin.Send("ACL", "DELUSER", "ann")
	if got := as(c, "GET a"); !strings.Contains(got, "NOPERM") {
		t.Errorf("after ACL DELUSER: %s", got)
	}
	c.Closed(nil)
	if list := admin.Send("CLIENT", "LIST"); strings.Contains(list, "ebb-console") {
		t.Errorf("a closed session: %s", list)
	}
}

func TestAnIdentityIsValidForAsLongAsItWouldBeLetIn(t *testing.T) {
	s := services.Start(t)
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	byPassword := func() *session.Identity { return login(t, s, "ann", "secret") }
	program := func() *session.Identity { return s.ActAs("ann") }
	free := func() *session.Identity {
		id, err := s.WithoutLogin()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, x := range []struct {
		id     func() *session.Identity
		change string
		valid  bool
	}{
		{byPassword, "ACL SETUSER ann -get", true},
		{byPassword, "ACL SETUSER ann >other", true},
		{byPassword, "ACL SETUSER ann resetpass", false},
		{byPassword, "ACL SETUSER ann <secret", false},
		{byPassword, "ACL SETUSER ann off", false},
		{byPassword, "ACL SETUSER ann reset", false},
		{byPassword, "ACL DELUSER ann", false},
		{program, "ACL SETUSER ann resetpass", true},
		{program, "ACL SETUSER ann off", false},
		{program, "ACL DELUSER ann", false},
		{free, "ACL SETUSER ann off", true},
		{free, "ACL SETUSER default >secret", false},
		{free, "ACL SETUSER default off", false},
		{free, "CONFIG SET requirepass secret", false},
	} {
		admin.Send("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")
		admin.Send("ACL", "SETUSER", "ann", "reset", "on", ">secret", "+@all", "~*")
		id := x.id()
		if !id.Valid() {
			t.Errorf("%s: %s is not valid before", x.change, id.Name())
		}
		if got := admin.Send(strings.Fields(x.change)...); got[0] == '-' {
			t.Fatalf("%s: %s", x.change, got)
		}
		if id.Valid() != x.valid {
			t.Errorf("%s: %s is valid: %v", x.change, id.Name(), id.Valid())
		}
		admin.Send("ACL", "SETUSER", "ann", "reset", "on", ">secret", "+@all", "~*")
		if x.change == "ACL DELUSER ann" && id.Valid() {
			t.Error("the identity of a deleted user is valid for the next user of that name")
		}
	}
	admin.Send("CONFIG", "SET", "requirepass", "secret")
	if _, err := s.WithoutLogin(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("without a login, with a password: %v", err)
	}
	if s.ActAs("nosuch") != nil {
		t.Error("a user that does not exist")
	}
}

func TestALoginThatFailsCountsAsThatOfAUTHDoes(t *testing.T) {
	s := services.Start(t)
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	admin.Send("ACL", "SETUSER", "ann", "on", ">secret")
	admin.Send("ACL", "SETUSER", "bob", "off", "nopass")
	for i, x := range [][2]string{{"ann", "guess"}, {"nosuch", "secret"}, {"bob", "secret"}, {"ann", ""}} {
		id, err := s.Login([]byte(x[0]), []byte(x[1]), session.Origin{Addr: "192.0.2.7:5312", Lib: "ebb-console"})
		if id != nil || err == nil || err.Error() != "WRONGPASS invalid username-password pair or user is disabled." {
			t.Errorf("%q: %v %v", x, id, err)
		}
		if got := admin.Send("INFO", "stats"); !strings.Contains(got, fmt.Sprintf("acl_access_denied_auth:%d\r\n", i+1)) {
			t.Errorf("%q is not counted", x)
		}
		got := admin.Send("ACL", "LOG", "1")
		for _, want := range []string{"\r\nauth\r\n", "\r\nAUTH\r\n", "\r\n" + x[0] + "\r\n", " addr=192.0.2.7:5312 ", " cmd=auth user=default ",
			" lib-name=ebb-console"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: ACL LOG has no %q: %q", x, want, got)
			}
		}
	}
	if got := admin.Send("CLIENT", "LIST"); strings.Contains(got, "ebb-console") {
		t.Errorf("a login leaves a session: %s", got)
	}
}

func TestMayAgreesWithDispatch(t *testing.T) {
	s := services.Start(t)
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	admin.Send("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "-del", "-config|set", "~a*", "%R~r*", "resetchannels",
		"&news", "(+rl.reset ~*)")
	id := login(t, s, "ann", "secret")
	c := s.NewSessionFor(id, session.GuestOptions{})
	defer c.Closed(nil)
	for request, need := range map[string]string{
		"GET a": "", "SET a 1": "", "GET b": "~b", "GET r1": "", "SET r1 1": "~r1", "DEL a": "+del", "MSET a 1 b 2": "~b",
		"CONFIG SET maxmemory 0": "+config|set", "CONFIG GET maxmemory": "", "PUBLISH news x": "", "PUBLISH other x": "&other",
		"RL.RESET z": "", "nonsense": "", "GET": "", "AUTH a b": "", "dEl a": "+del", "EVAL return 1 b": "~b",
		"DQ.CONFIG a DEADLETTER b": "~b",
	} {
		var argv [][]byte
		for _, w := range strings.Fields(request) {
			argv = append(argv, []byte(w))
		}
		ok, got := id.May(argv)
		if ok != (need == "") || got != need {
			t.Errorf("%s: %v, %q, want %q", request, ok, got, need)
		}
		if reply := as(c, request); strings.Contains(reply, "NOPERM") == ok {
			t.Errorf("%s: May says %v, and the reply is %s", request, ok, reply)
		}
	}
	if ok, _ := id.May(nil); !ok {
		t.Error("an empty request")
	}
	for name, may := range map[string]bool{"GET": true, "DEL": false, "config set": false, "config get": true,
		"AUTH": true, "nonsense": true} {
		var argv [][]byte
		for _, w := range strings.Fields(name) {
			argv = append(argv, []byte(w))
		}
		if id.MayRun(argv...) != may {
			t.Errorf("MayRun(%s) is %v", name, !may)
		}
	}
}

func TestALocalDirectiveLooksAtTheOrigin(t *testing.T) {
	s := services.Start(t, "--enable-debug-command", "local", "--enable-protected-configs", "local")
	id, _ := s.WithoutLogin()
	for addr, local := range map[string]bool{"": true, "127.0.0.1:5000": true, "[::1]:5000": true,
		"192.0.2.7:5000": false, "nonsense": false} {
		c := s.NewSessionFor(id, session.GuestOptions{From: session.Origin{Addr: addr}})
		for _, request := range []string{"DEBUG SLEEP 0", "CONFIG SET dir ."} {
			got := as(c, request)
			if refused := strings.Contains(got, "not allowed") || strings.Contains(got, "protected config"); refused == local {
				t.Errorf("%s from %q: %s", request, addr, got)
			}
		}
		c.Closed(nil)
	}
}

// This test is for the race detector.
func TestAnIdentityIsForAllGoroutines(t *testing.T) {
	s := services.Start(t)
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	admin.Send("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~a*")
	id := login(t, s, "ann", "secret")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				c := s.NewSessionFor(id, session.GuestOptions{From: session.Origin{Addr: "192.0.2.7:1", Name: "n"}})
				as(c, "SET a 1")
				id.May([][]byte{[]byte("GET"), []byte("b")})
				id.Valid()
				c.Closed(nil)
			}
		})
	}
	for range 50 {
		admin.Send("CLIENT", "LIST")
		admin.Send("ACL", "SETUSER", "ann", "~b*")
	}
	wg.Wait()
}

// Reads agrees with May for the same commands, for the rules of any user.
func TestReadsAgreesWithMay(t *testing.T) {
	s := services.Start(t)
	admin := services.Dial(t, s, "tcp", "127.0.0.1:1")
	readers := []string{"PTTL", "TYPE", "GET", "HGETALL", "PERSIST", "GETDEL"}
	rules := []string{"~*", "~a*", "~b*", "%R~a*", "%W~b*", "+@all", "-@all", "+@read", "+get", "-get", "+type",
		"-@string", "+persist", "(~c* +get)",
		"(%W~c* +@write)", "(~* +hgetall)", "resetkeys"}
	draw.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(rules), 1, 6).Draw(t, "rules")
		admin.Send("ACL", "SETUSER", "ann", "reset", "on", "nopass")
		for _, w := range words {
			admin.Send("ACL", "SETUSER", "ann", w) // an error for a rule that adds nothing
		}
		id := s.ActAs("ann")
		commands := rapid.SliceOfNDistinct(rapid.SampledFrom(readers), 1, 3, rapid.ID).Draw(t, "commands")
		reads := id.Reads(append(commands, "nosuch")...)
		for _, key := range []string{"a1", "b", "c:1", "d", ""} {
			may := false
			for _, c := range commands {
				ok, _ := id.May([][]byte{[]byte(c), []byte(key)})
				may = may || ok
			}
			if got := reads([]byte(key)); got != may {
				t.Fatalf("%v: %v on %q: %v, and May says %v", words, commands, key, got, may)
			}
		}
	})
}
