package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/demo"
)

func TestTheScreensShowTheirKeys(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	b.admin("RL.TAKE", "abuse", "1", "60000")
	b.admin("RL.TAKE", "abuse", "1", "60000")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "s*", "LEVEL", "KEY", "TO", "ended", "MAXLEN", "100")
	b.admin("DQ.CONFIG", "{m}", "MAXDELIVERIES", "3", "DEADLETTER", "{m}:dead")
	b.admin("DQ.ADD", "{m}", "x", "p", "DELAY", "5000")
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	for path, want := range map[string][]string{
		"limits":           {`"top":[{"k":{"t":"abuse"},"denied":1,"allowed":0`, `{"k":{"t":"rl"},"algorithm":"gcra","limit":5,"period":60000,"remaining":4`},
		"limits?match=ab*": {`"rows":[{"k":{"t":"abuse"}`},
		"locks": {`{"k":{"t":"lock"},"kind":"lock","mode":"exclusive","holders":[{"owner":{"t":"ann"},"token":"`,
			`"until":1700000030000`, `{"k":{"t":"sem"},"kind":"semaphore","taken":1,"holders":[{"owner":{"t":"ann"},"permits":1`},
		"lock?k=" + url("lock"): {`"owner":{"t":"ann"}`},
		"queues":                {`{"k":{"t":"q"},"delayed":0,"ready":1,"leased":0`, `{"k":{"t":"{m}"},"delayed":1`, `"next":1700000005000`, `"to":{"t":"{m}:dead"}`},
		"streams": {`"k":{"t":"stream"},"length":5,"last":"5-0","groups":[{"name":{"t":"g"},"consumers":1,"pending":2,"lag":3`,
			`{"name":{"t":"r"},"match":{"t":"s*"},"levels":["key"],"to":{"t":"ended"},"maxLen":100,"fired":0`, `"why":null`},
		"clients": {`"addr":"127.0.0.1:50000"`, `"lib":"ebb-console"`}, // the sessions of viewers, and of no other embedded client
		"slowlog": {`"threshold":"0"`, `"argv":[{"t":"CONFIG"}`},
		"server":  {`"redis_version":"`, `"keyspace":{`},
	} {
		status, body := b.ask("GET", "api/"+path, "")
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s:\n%s\nwant %s", path, body, w)
			}
		}
	}
	for _, key := range []string{"s", "nothing"} {
		if status, body := b.ask("GET", "api/lock?k="+url(key), ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", key, status, body)
		}
	}
}

// A screen of the demo's data changes none of it.
func TestLookingAtTheDemoChangesNothing(t *testing.T) {
	b := newBench(t, Options{})
	if err := demo.Fill(t.Context(), b.conn, demo.Options{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	before, ttl := b.admin("DEBUG", "DIGEST").Str, b.admin("EXPIRY", "SOON", "COUNT", "1000").String()
	for _, path := range []string{"keys?limit=2000", "forecast", "soon", "limits", "locks", "queues", "streams", "clients", "slowlog", "server", "me"} {
		if status, body := b.ask("GET", "api/"+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	var page keyPage
	b.get("api/keys?limit=2000", &page)
	if len(page.Rows) < 300 {
		t.Fatalf("%d keys", len(page.Rows))
	}
	for _, r := range page.Rows {
		if status, body := b.ask("GET", "api/key?k="+url(r.K.s), ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", r.K.s, status, body)
		}
	}
	if after := b.admin("DEBUG", "DIGEST").Str; after != before {
		t.Error("looking has changed the data")
	}
	if after := b.admin("EXPIRY", "SOON", "COUNT", "1000").String(); after != ttl {
		t.Error("looking has moved a deadline")
	}
}

func TestClientsAreReadFromCLIENTLIST(t *testing.T) {
	text := "id=7 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=8 name=app age=12 idle=3 flags=N db=2 sub=0 tot-mem=2048 cmd=get user=ann " +
		"lib-name=go-redis lib-ver=9.1 resp=3\n\n"
	want := clientRow{ID: 7, Addr: "127.0.0.1:5000", Name: "app", User: bytesOf("ann"), DB: 2, Age: 12, Idle: 3, Cmd: "get", Flags: "N", Mem: 2048, Resp: 3,
		Lib: "go-redis", LibVer: "9.1"}
	if got := parseClients(text); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
}
