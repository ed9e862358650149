package console

import (
	"net/http"
	"strings"
	"testing"
)

// none is a console of a user who may run nothing.
func none(t *testing.T) *bench {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "none", true }})
	b.admin("ACL", "SETUSER", "none", "on", "nopass", "-@all")
	return b
}

func TestAScreenOfAUserWithoutRightsRunsNothing(t *testing.T) {
	b := none(t)
	for _, path := range []string{"lag", "limits", "locks", "queues", "streams", "keys", "forecast", "soon", "concerns", "hot"} {
		if status, body := b.ask("GET", "api/"+path, ""); status >= 500 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if v := b.admin("ACL", "LOG"); len(v.Elems) != 0 {
		t.Errorf("ACL LOG has %v", v)
	}
	if rows := b.audits.latest(); len(rows) != 0 {
		t.Errorf("the audit has %v", rows)
	}
}

func TestARefusalNamesTheCommandAndTheRule(t *testing.T) {
	b := none(t)
	for path, rule := range map[string]string{
		"lag": "+expiry|lag", "limits": "+scan", "queues": "+scan", "keys": "+scan", "forecast": "+expiry|survey",
	} {
		status, body := b.ask("GET", "api/"+path, "")
		if status != 403 || !strings.Contains(body, `"rule":"`+rule+`"`) || !strings.Contains(body, "the ACL rule "+rule) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	var list struct{ Code, Command, Rule string }
	if b.listen("limits:0").next("limits", &list); list.Rule != "+scan" || list.Command != "SCAN" || list.Code != "NOPERM" {
		t.Errorf("the feed says %+v", list)
	}
}

func TestTheShellIsToldWhichCommandsHavePasswords(t *testing.T) {
	b := newBench(t, Options{})
	for line, want := range map[string]bool{
		"ACL SETUSER carl on >S3cret ~* +@all": true, "CONFIG SET requirepass S3cret": true, "AUTH carl S3cret": true,
		"HELLO 3 AUTH carl S3cret": true, "CONFIG SET maxmemory 0": false, "SET k v": false, "GET": false, "NOSUCH >x": false,
		"MIGRATE 127.0.0.1 1 k 0 10 AUTH S3cret": true, "ACL SETUSER carl >": true,
	} {
		status, body := b.ask("POST", "api/do", `{"db":0,"argv":`+argvJSON(line)+`}`)
		if strings.Contains(body, `"secret":true`) != want {
			t.Errorf("%s: %d %s", line, status, body)
		}
		b.admin("CONFIG", "SET", "requirepass", "")
	}
}

func TestAHiddenNumberIsNotGuessed(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("SET", "s", "S3cret!")
	b.admin("SET", "n", "9223372036854775000")
	for _, line := range []string{"BITFIELD s OVERFLOW FAIL INCRBY u8 #0 200", "BITFIELD s INCRBY u8 #0 1 OVERFLOW fail INCRBY u8 #1 1",
		"INCREX n UBOUND 5", "INCREX n LBOUND 5"} {
		if status, body := b.do(line); status != 403 || !strings.Contains(body, "HIDDEN") {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	replies := map[string]bool{}
	for _, line := range []string{"BITFIELD s OVERFLOW SAT GET u8 #0 GET u8 #1", "BITFIELD s GET u8 #0", "BITPOS s 1", "LCS s n IDX"} {
		_, body := b.do(line)
		replies[body] = true
	}
	if len(replies) != 1 {
		t.Errorf("replies differ: %v", replies)
	}
	replies = map[string]bool{}
	for _, line := range []string{"INCRBY n 1000", "INCR s", "HINCRBY h f x"} {
		_, body := b.do(line)
		replies[body] = true
	}
	if len(replies) != 1 {
		t.Errorf("errors differ: %v", replies)
	}
	if _, body := b.ask("GET", "api/key?k="+url("s"), ""); strings.Contains(body, "digest") {
		t.Errorf("the digest of a hidden value: %s", body)
	}
	if got := b.admin("GET", "s").Str; got != "S3cret!" {
		t.Errorf("the value is %q", got)
	}
}
