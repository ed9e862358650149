package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/wire"
)

// growth has requests that make the server keep data besides the keys. Each step takes about 1 MB.
var growth = map[string]func(i int) []string{
	"SUBSCRIBE":   func(i int) []string { return []string{"SUBSCRIBE", large(i)} },
	"PSUBSCRIBE":  func(i int) []string { return []string{"PSUBSCRIBE", large(i)} },
	"SSUBSCRIBE":  func(i int) []string { return []string{"SSUBSCRIBE", large(i)} },
	"WATCH":       func(i int) []string { return []string{"WATCH", large(i)} },
	"MULTI":       func(i int) []string { return []string{"GET", large(i)} },
	"prefixes":    func(i int) []string { return []string{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", large(i)} },
	"SCRIPT LOAD": func(i int) []string { return []string{"SCRIPT", "LOAD", "return 1 --" + large(i)} },
	"ACL SETUSER": func(i int) []string { return []string{"ACL", "SETUSER", fmt.Sprint("u", i), "~" + large(i)} },
}

func large(i int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1_000_000)) }

// fullApart is a service with maxmemory 1mb that keeps more than that for clients, users and scripts.
func fullApart(t *testing.T) *Service {
	t.Helper()
	svc := loopService(t, "maxmemory", "1mb")
	svc.DB.ChargeApart(40 << 20)
	if !svc.DB.ApartFull() || svc.DB.OverLimit() {
		t.Fatal("40 MiB beside the data are not full, or close the gate for writes")
	}
	return svc
}

// asks sends a request and returns the reply; the loop may run it in the background.
func asks(c *loopConn, s *Session, words ...string) string {
	out, _ := c.beside(s, words...)
	return out
}

// The memory that the server keeps for clients, users and scripts has a bound of its own, and takes no memory
// away from the data: writes of other clients continue.
func TestWhatIsKeptBesideTheDataIsBoundedAndLeavesWritesAlone(t *testing.T) {
	for name, step := range growth {
		svc := loopService(t, "maxmemory", "1mb")
		writer := svc.NewSession(nil)
		c := newLoopConn()
		s := svc.NewSession(c)
		asks(c, s, "HELLO", "3")
		if name == "MULTI" {
			asks(c, s, "MULTI")
		}
		refused := ""
		for i := 0; i < 200 && refused == ""; i++ {
			if got := asks(c, s, step(i)...); strings.HasPrefix(got, "-") {
				refused = got
			}
		}
		if want := "-" + string(command.ErrApart) + "\r\n"; refused != want {
			t.Errorf("%s: %.90q; want %q", name, refused, want)
		}
		if used := svc.DB.UsedMemory(); used > 40<<20 {
			t.Errorf("%s: %d bytes are used", name, used)
		}
		if got := do(writer, "SET", "k", "v"); got.Str != "OK" {
			t.Errorf("%s: another client's SET: %s", name, got.Str)
		}
		want := fmt.Sprintf("mem_not_counted_for_evict:%d\r\n", svc.DB.Apart())
		if info := do(writer, "INFO", "memory").Str; !strings.Contains(info, want) {
			t.Errorf("%s: INFO lacks %s", name, want)
		}
		s.Closed(nil)
	}
}

// While the bound is exceeded, connections that use little memory continue, and requests that free memory
// work.
func TestAClientThatKeepsLittleIsNotRefused(t *testing.T) {
	svc := fullApart(t)
	s := svc.NewSession(newLoopConn())
	admin := svc.NewSession(nil)
	svc.DB.ChargeApart(-40 << 20)
	do(admin, "ACL", "SETUSER", "ann", "on", "~*", "&*", "+@all")
	svc.DB.ChargeApart(40 << 20)
	for _, line := range []string{"HELLO 3", "SUBSCRIBE news", "PSUBSCRIBE n*", "WATCH k", "MULTI", "SET k v", "EXEC", "CLIENT SETNAME me",
		"CLIENT TRACKING ON", "EVAL return{1} 0", "GETFRESH k"} {
		if got := ask(t, s, strings.Fields(line)...); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, line := range []string{"ACL SETUSER ann off", "ACL SETUSER ann resetkeys", "SCRIPT FLUSH"} {
		if got := do(admin, strings.Fields(line)...); got.Str != "OK" {
			t.Errorf("%s: %s", line, got.Str)
		}
	}
	for _, line := range []string{"ACL SETUSER ann ~a ~b", "ACL SETUSER bob", "SCRIPT LOAD return"} {
		if got := do(admin, strings.Fields(line)...); got.Str != string(command.ErrApart) {
			t.Errorf("%s: %s", line, got.Str)
		}
	}
	if got := do(admin, "GETFRESH", "missing", "LEASE", "100"); got.Str != string(command.ErrApart) { // a lease would take memory too
		t.Errorf("GETFRESH with LEASE: %v", got)
	}
	if got := do(admin, "ACL", "DELUSER", "ann"); got.Int != 1 {
		t.Errorf("ACL DELUSER: %v", got)
	}
}

// As in Redis, full data does not refuse requests that take no memory from it.
func TestFullDataRefusesWritesAndLibrariesAlone(t *testing.T) {
	svc := loopService(t, "maxmemory", "1mb")
	s := svc.NewSession(newLoopConn())
	do(svc.NewSession(nil), "SETRANGE", "k", "2000000", "x")
	for _, x := range []struct {
		line    string
		refused bool
	}{
		{"HELLO 3", false}, // in RESP2 a client that has subscribed could not send the others
		{"SUBSCRIBE news", false}, {"WATCH k", false}, {"SCRIPT LOAD return{1}", false}, {"ACL SETUSER ann on", false}, {"SET k v", true},
		{"FUNCTION LOAD x", true}, {"DEL nothing", false},
	} {
		got := ask(t, s, strings.Fields(x.line)...)
		if strings.HasPrefix(got, "-OOM") != x.refused {
			t.Errorf("%s: %s", x.line, got)
		}
	}
}

// The table of tracked keys shrinks first: it invalidates keys that other clients have read.
func TestTrackedKeysGiveWayWhenTooMuchIsKept(t *testing.T) {
	svc := loopService(t, "maxmemory", "100mb")
	c := newLoopConn()
	s := svc.NewSession(c)
	for _, line := range []string{"HELLO 3", "CLIENT TRACKING ON"} {
		ask(t, s, strings.Fields(line)...)
	}
	for i := range 100 {
		ask(t, s, "GET", fmt.Sprint("k", i))
	}
	do(svc.NewSession(nil), "CONFIG", "SET", "maxmemory", "1mb")
	svc.DB.ChargeApart(40 << 20)
	before := svc.DB.Apart()
	for i := range 100 {
		s.Serve(wire.AppendCommand(nil, "GET", fmt.Sprint("other", i)), nil)
	}
	if now := svc.DB.Apart(); now >= before {
		t.Errorf("the table has grown by %d bytes", now-before)
	}
}

// ACL LOAD may take no more memory for users than ACL SETUSER, and does not read a larger file.
func TestUsersOfAFileHaveTheBoundOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	const all = "user default on nopass ~* &* +@all\n"
	write := func(users string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(all+users), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	svc, _ := serviceWith(t, "--aclfile", path)
	admin := svc.NewSession(nil)
	load := func(users, want string) {
		t.Helper()
		write(users)
		if got := do(admin, "ACL", "LOAD"); got.Str != want {
			t.Errorf("ACL LOAD of %.30q: %.100s, want %s", users, got.Str, want)
		}
	}
	load("user ann on ~a ~b\n", "OK")
	if got := do(admin, "CONFIG", "SET", "maxmemory", "1mb"); got.Str != "OK" {
		t.Fatal(got)
	}
	load("user ann on ~"+strings.Repeat("x", 33<<20)+"\n", string(command.ErrApart))
	many := ""
	for i := range 1000 {
		many += fmt.Sprintf("user u%d on ~a\n", i)
	}
	svc.DB.ChargeApart(32<<20 - 100_000 - svc.DB.Apart())
	load(many, string(command.ErrApart)) // the file is smaller, but its users are not
	if got := do(admin, "ACL", "USERS"); len(got.Elems) != 2 {
		t.Errorf("a refused file has changed the users: %v", got)
	}
	svc.DB.ChargeApart(8 << 20)
	load("user ann on ~a ~b ~c\n", string(command.ErrApart))
	load("user ann on ~a ~b\n", "OK")
	load("", "OK")
}
