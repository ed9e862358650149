package serverurl

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestSpellingsOfOtherClientsAreRead(t *testing.T) {
	for raw, want := range map[string]Server{
		"redis://":        {},
		"redis://h":       {Host: "h"},
		"REDIS://h:7000/": {Host: "h", Port: "7000"},
		"redis://[::1]/3": {Host: "::1", DB: 3, HaveDB: true},
		"redis://h/0":     {Host: "h", HaveDB: true},
		"valkey://me:pw@h:1/2": {Host: "h", Port: "1", User: "me", Password: "pw",
			HavePassword: true, DB: 2, HaveDB: true},
		"valkeys://h":                      {Host: "h", TLS: true},
		"rediss://:p%2Fw@h":                {Host: "h", TLS: true, Password: "p/w", HavePassword: true},
		"redis+tls://h":                    {Host: "h", TLS: true},
		"redis+ssl://h":                    {Host: "h", TLS: true},
		"redis://pw@h":                     {Host: "h", Password: "pw", HavePassword: true},
		"redis://h?user=me&pass=pw&db=4":   {Host: "h", User: "me", Password: "pw", HavePassword: true, DB: 4, HaveDB: true},
		"redis://h/1?database=5":           {Host: "h", DB: 5, HaveDB: true},
		"redis://h?protocol=resp3":         {Host: "h", Protocol: 3},
		"redis://h?protocol=2&pool_size=3": {Host: "h", Protocol: 2, Params: url.Values{"pool_size": {"3"}}},
		"redis://h?clientName=x":           {Host: "h", Params: url.Values{"client_name": {"x"}}},
		"unix:///run/x.sock":               {Socket: "/run/x.sock"},
		"unix://me:pw@/run/x.sock?db=1": {Socket: "/run/x.sock", User: "me", Password: "pw",
			HavePassword: true, DB: 1, HaveDB: true},
		"unix://me@/run/x.sock?password=pw":           {Socket: "/run/x.sock", User: "me", Password: "pw", HavePassword: true},
		"unix:///run/a%20b@c?username=me&password=pw": {Socket: "/run/a b@c", User: "me", Password: "pw", HavePassword: true},
		"unix://localhost/run/x":                      {Socket: "/run/x"},
		"redis+unix:///run/x?db=2":                    {Socket: "/run/x", DB: 2, HaveDB: true},
		"redis+socket:///run/x?virtual_host=2":        {Socket: "/run/x", DB: 2, HaveDB: true},
		"redis-socket://pw@/run/x?database=0":         {Socket: "/run/x", Password: "pw", HavePassword: true, HaveDB: true},
	} {
		if want.Params == nil {
			want.Params = url.Values{}
		}
		got, err := Parse(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
			continue
		}
		if again, err := Parse(got.URL().String()); err != nil || again.DB != got.DB || again.Socket != got.Socket ||
			again.Password != got.Password || again.User != got.User {
			t.Errorf("%s: URL %s is read as %+v, %v", raw, got.URL(), again, err)
		}
	}
}

func TestBadURLsSayWhatIsWrongAndWhatIsRight(t *testing.T) {
	for raw, want := range map[string][]string{
		"localhost:6379":                {`scheme ""`, "redis://127.0.0.1:6379"},
		"http://h":                      {`scheme "http"`, "none of redis, rediss, valkey"},
		"redis+sentinel://h/m":          {`scheme "redis+sentinel"`},
		"redis://h/three":               {"redis://h/three", `a number from 0 on, not "three"`},
		"redis://h?db=-1":               {`not "-1"`},
		"redis://h:70000":               {"from 0 to 65535", `"70000"`},
		"redis://h?db=1;x=2":            {"separated by &"},
		"redis://h?protocol=4":          {`2 or 3, not "4"`},
		"redis://h#x":                   {"write # as %23"},
		"unix://":                       {`socket is ""`, "unix://user:password@/path/to/socket"},
		"unix://run/x.sock":             {`socket is "run/x.sock"`, "must begin with a /"},
		"redis://:a/secret@h":           {"write / as %2F"},
		"redis://me:secret@h/x":         {"redis://me:xxxxx@h/x"},
		"redis://secret@h/x":            {"redis://xxxxx@h/x"},
		"secret@h":                      {"xxxxx@h"},
		"redis://h/x?password=secret":   {"password=xxxxx"},
		"unix://?user=me&pass=secret":   {"pass=xxxxx"},
		"redis://h:bad/?pass=secret&db": {"pass=xxxxx"},
	} {
		_, err := Parse(raw)
		if err == nil {
			t.Errorf("%s is read", raw)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nwant %s", raw, err, w)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestSchemesOfSeveralServersHaveTheSameNames(t *testing.T) {
	for scheme, want := range map[string]string{
		"valkey+sentinel": "redis+sentinel", "valkeys+cluster": "rediss+cluster", "rediss+sentinel": "rediss+sentinel", "redis-socket": "unix",
		"unix+cluster": "", "redis+other": "", "mem": "", "": "",
	} {
		if got, ok := Canonical(scheme); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v", scheme, got, ok)
		}
	}
}

// A password may have an @ and a / in it: the text between the two is a part of it.
func TestNoPartOfAPasswordIsShown(t *testing.T) {
	for _, raw := range []string{"redis://:p@hidden/w@host", "redis://:secret@hidden/y@127.0.0.1:1", "rediss://me:p@hidden?w@host:1",
		"redis://:p@hidden/1@host/2"} {
		_, err := Parse(raw)
		if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "%2F") {
			t.Errorf("%s: %v", raw, err)
		}
		if got := Shown(raw); strings.Contains(got, "hidden") {
			t.Errorf("%s is shown as %s", raw, got)
		}
	}
	if s, err := Parse("redis://me:pw@h/1?client_name=a@b"); err != nil || s.Host != "h" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Parse("unix://me:pw@/run/a@b.sock"); err != nil || s.Socket != "/run/a@b.sock" {
		t.Errorf("%+v, %v", s, err)
	}
}
