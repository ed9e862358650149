package console

import (
	"net/http"
	"strings"
	"testing"
)

// none is a console for a user who may run nothing.
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

func TestTheConsoleKnowsWhetherAUserMayChangeAnything(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "ann", true }})
	for rules, want := range map[string]bool{"-@all": false, "-@all +@read": false, "-@all +@read +info": false,
		"-@all +unlink": true, "+@all": true, "-@all +client|kill": true} {
		b.admin(append([]string{"ACL", "SETUSER", "ann", "reset", "on", "nopass", "~*"}, strings.Fields(rules)...)...)
		var m struct{ Writes bool }
		if b.get("api/me", &m); m.Writes != want {
			t.Errorf("%s: the user may change something: %v", rules, m.Writes)
		}
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
