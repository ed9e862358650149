package servercmd_test

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// longestKept returns the longest text in the entries of ACL LOG and of SLOWLOG.
func longestKept(svc *session.Service) (n int) {
	for _, e := range svc.Accounts().Log.Newest(1000) {
		n = max(n, len(e.Object), len(e.User), len(e.Client))
	}
	for _, e := range svc.Admin().Slowlog.Latest(-1) {
		n = max(n, len(e.Name))
		for _, a := range e.Args {
			n = max(n, len(a))
		}
	}
	return n
}

// A client may send long texts, and the logs keep 128 entries: so they keep only a part of a key, a channel,
// the name of an unknown user, and the client's own name.
func TestLogsKeepThePartOfALongArgument(t *testing.T) {
	svc := services.Start(t, "--slowlog-log-slower-than", "0")
	c := svc.NewSession(services.Quiet{})
	long := strings.Repeat("k", 1<<20)
	services.Exchange(c, "ACL", "SETUSER", "u", "on", "nopass", "~a", "+@all")
	services.Exchange(c, "CLIENT", "SETNAME", long)
	services.Exchange(c, "AUTH", long, "x")
	services.Exchange(c, "SET", long, long)
	services.Exchange(c, "AUTH", "u", "x")
	services.Exchange(c, "GET", long)
	services.Exchange(c, "GET", long+"another")
	services.Exchange(c, "SUBSCRIBE", long)
	services.Exchange(c, "PUBLISH", long, long)
	services.Exchange(c, "MULTI")
	services.Exchange(c, "GET", long)
	if n := longestKept(svc); n > 2000 {
		t.Errorf("a log keeps %d bytes of one text", n)
	}
	entries := svc.Accounts().Log.Newest(10)
	if len(entries) != 5 {
		t.Fatalf("%d entries, want 5", len(entries))
	}
	if want := strings.Repeat("k", 128) + "... (1048448 more bytes)"; entries[0].Object != want {
		t.Errorf("GET is logged as %q", entries[0].Object)
	}
}

// Passwords do not appear in the logs, even if the command that contains one is an argument of another.
func TestLogsDoNotShowPasswords(t *testing.T) {
	svc := services.Start(t, "--slowlog-log-slower-than", "0")
	watcher := svc.NewSession(services.Quiet{})
	services.Exchange(watcher, "MONITOR")
	c := svc.NewSession(services.Quiet{})
	services.Exchange(c, "ACL", "SETUSER", "u", "on", ">other", "~*", "&*", "+@all")
	for _, words := range [][]string{
		{"AUTH", "hush"},
		{"AUTH", "u", "hush"},
		{"HELLO", "3", "AUTH", "u", "hush"},
		{"ACL", "SETUSER", "u", ">hush"},
		{"ACL", "DRYRUN", "u", "AUTH", "hush"},
		{"ACL", "DRYRUN", "u", "AUTH", "u", "hush"},
		{"acl", "dryrun", "u", "hello", "3", "auth", "u", "hush"},
		{"ACL", "DRYRUN", "u", "ACL", "SETUSER", "x", ">hush"},
		{"ACL", "DRYRUN", "u", "CONFIG", "SET", "requirepass", "hush"},
		{"ACL", "DRYRUN", "u", "ACL", "DRYRUN", "u", "AUTH", "hush"},
		{"ACL", "DRYRUN", "u", "MIGRATE", "h", "1", "k", "0", "10", "AUTH", "hush"},
		{"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "k", "0", "10", "AUTH2", "u", "hush"},
		{"COMMAND", "GETKEYSANDFLAGS", "AUTH", "hush"},
	} {
		got := services.Exchange(c, words...)
		if strings.Contains(got, "hush") {
			t.Errorf("%q replies %q", words, got)
		}
	}
	if shown := string(watcher.TakePushes(nil)); strings.Contains(shown, "hush") {
		t.Errorf("MONITOR shows %s", shown)
	}
	for _, e := range svc.Admin().Slowlog.Latest(-1) {
		if all := strings.Join(e.Args, " "); strings.Contains(all, "hush") {
			t.Errorf("SLOWLOG shows %s", all)
		}
	}
	for _, e := range svc.Accounts().Log.Newest(100) {
		if strings.Contains(e.Object+e.User+e.Client, "hush") {
			t.Errorf("ACL LOG shows %+v", e)
		}
	}
}
