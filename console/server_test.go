package console

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestTheServerScreenShowsFilesAndReplication(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "v")
	for path, want := range map[string][]string{
		"replication": {`"role":"master","offset":"`, `"master":null,"replicas":[],"grouped":false,"full":0`, `"backlog":{"on":false`},
		"files": {`"dir":null,"memory":true,"aof":{"on":false,"fsync":"everysec"`,
			`"snapshot":{"saving":false`, `"changes":`, `"loaded":{"keys":0,"expired":0}`},
	} {
		status, body := b.ask("GET", "api/"+path, "")
		for _, w := range want {
			if status != http.StatusOK || !strings.Contains(body, w) {
				t.Errorf("%s: %d %s\nwant %s", path, status, body, w)
			}
		}
	}
	got := replicaOf("ip=::1,port=7000,state=online,offset=90,lag=1", 100)
	if want := (replicaRow{Addr: "[::1]:7000", State: "online", Offset: "90", Behind: "10", Lag: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTheConfigurationHasChangesFirstAndNoSecrets(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "default", true }})
	b.admin("CONFIG", "SET", "timeout", "77", "requirepass", "open sesame")
	var got struct {
		File string
		Rows []struct {
			Name           string
			Value, Default *blob
			Changed        bool
			Secret, Set    bool
			Immutable      bool
			Choices        []string
			Usage, Doc     string
			Ignored        string
		}
	}
	_, body := b.ask("GET", "api/config", "")
	if strings.Contains(body, "sesame") {
		t.Fatal("the answer has a password")
	}
	decode(t, body, &got)
	first := true
	for _, r := range got.Rows {
		if r.Changed && !first {
			t.Errorf("%s has changed, and comes after one that has not", r.Name)
		}
		first = first && r.Changed
		switch r.Name {
		case "timeout":
			if r.Value.s != "77" || r.Default.s != "0" || !r.Changed || r.Doc == "" || r.Usage == "" {
				t.Errorf("%+v", r)
			}
		case "requirepass":
			if r.Value != nil || r.Default != nil || !r.Secret || !r.Set || !r.Changed {
				t.Errorf("%+v", r)
			}
		case "appendonly":
			if strings.Join(r.Choices, " ") != "no yes" {
				t.Errorf("%+v", r)
			}
		case "http":
			if !r.Immutable {
				t.Errorf("%+v", r)
			}
		}
	}
	if last := got.Rows[len(got.Rows)-1]; last.Ignored == "" || len(got.Rows) < 150 {
		t.Errorf("%d rows, and the last is %+v", len(got.Rows), last)
	}
}

// grants returns a user's row.
func (b *bench) grants(name string) (u userRow) {
	b.t.Helper()
	var got struct {
		Me    blob
		Users []json.RawMessage
	}
	b.get("api/acl", &got)
	for _, raw := range got.Users {
		var row struct {
			Name blob
			On   bool
			May  []grantRow
		}
		decode(b.t, string(raw), &row)
		if row.Name.s == name {
			if strings.Contains(string(raw), "#") {
				b.t.Errorf("%s has a hash", raw)
			}
			return userRow{Name: row.Name, On: row.On, May: row.May}
		}
	}
	b.t.Fatalf("there is no user %q", name)
	return u
}

func TestUsersAreDescribed(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("ACL", "SETUSER", "support", "on", ">looking", "-@all", "+@read", "+set", "resetchannels", "&news:*", "%R~shop:*", "~cart:*", "%W~log:*")
	b.admin("ACL", "SETUSER", "nearly", "on", "nopass", "+@all", "-@scripting", "-flushall", "~*", "&*")
	b.admin("ACL", "SETUSER", "two", "on", "nopass", "-@all", "+get", "~a", "(+set ~b)")
	b.admin("ACL", "SETUSER", "<script>\u202e", "off", ">x")

	all := b.grants("default").May[0]
	if all.Commands.Runs != all.Commands.Of || all.Commands.Of < 200 || !all.Keys.All || !all.Channels.All {
		t.Errorf("%+v", all)
	}
	s := b.grants("support").May[0]
	if s.Commands.But || s.Commands.Whole[0] != "read" || strings.Join(s.Commands.Some, " ") != "SET" || s.Commands.Writes < 1 {
		t.Errorf("%+v", s.Commands)
	}
	if s.Keys.All || s.Keys.Read[0].s != "shop:*" || s.Keys.Both[0].s != "cart:*" || s.Keys.Write[0].s != "log:*" || s.Channels.Patterns[0].s != "news:*" {
		t.Errorf("%+v", s)
	}
	n := b.grants("nearly").May[0].Commands
	if !n.But || n.Whole[0] != "scripting" || strings.Join(n.Some, " ") != "FLUSHALL" || n.More != 0 {
		t.Errorf("%+v", n)
	}
	if two := b.grants("two").May; len(two) != 2 || two[0].Commands.Some[0] != "GET" || two[1].Commands.Some[0] != "SET" || two[1].Keys.Both[0].s != "b" {
		t.Errorf("%+v", two)
	}
	off := b.grants("<script>\u202e")
	if off.On || off.May[0].Commands.Runs != 0 {
		t.Errorf("%+v", off)
	}
	if _, body := b.ask("GET", "api/acl", ""); strings.Contains(body, "<script>") || !strings.Contains(body, `\\xe2\\x80\\xae`) {
		t.Error("a hostile name is not escaped: ", body)
	}
}

func TestTheACLLogIsShown(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("ACL", "SETUSER", "weak", "on", "nopass", "-@all", "+ping")
	b.admin("AUTH", "weak", "x")
	for range 2 {
		b.admin("GET", "<b>\x00")
	}
	b.admin("AUTH", "<i>", "wrong")
	b.admin("AUTH", "weak", "x")
	_, body := b.ask("GET", "api/acllog", "")
	for _, want := range []string{`"count":2,"reason":"command","context":"toplevel","object":{"t":"get"},"user":{"t":"weak"},"first":1700000000000`,
		`"reason":"auth"`, `"user":{"t":"\u003ci\u003e"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s\nwant %s", body, want)
		}
	}
}

// A page calls slice and map on lists: null would fail there.
func TestAListWithoutRowsIsNoNull(t *testing.T) {
	b := newBench(t, Options{})
	lists := regexp.MustCompile(`"(rows|buckets|commands|errors|rules|groups|scripts|libraries|events|replicas|users)":null`)
	for _, r := range routes() {
		if r.method != "GET" || r.lasts {
			continue
		}
		if status, body := b.ask("GET", "api/"+r.path, ""); status == 200 && lists.MatchString(body) {
			t.Errorf("api/%s answers %.200s", r.path, body)
		}
	}
}
