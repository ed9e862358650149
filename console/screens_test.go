package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/demo"
)

func TestTheScreensShowTheirKeys(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	b.admin("RL.TAKE", "abuse", "1", "60000")
	b.admin("RL.TAKE", "abuse", "1", "60000")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "s*", "LEVEL", "KEY", "TO", "ended", "MAXLEN", "100")
	b.admin("EXPIRY", "RULE", "SET", "jobs", "MATCH", "t*", "LEVEL", "KEY", "TO", "QUEUE", "{m}")
	b.admin("DQ.CONFIG", "{m}", "MAXDELIVERIES", "3", "DEADLETTER", "{m}:dead")
	b.admin("DQ.ADD", "{m}", "x", "p", "DELAY", "5000")
	b.admin("DQ.SCHEDULE", "{m}", "beat", "p", "EVERY", "60000")
	b.admin("DQ.CONFIG", "{m}", "PAUSED", "60000")
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	for path, want := range map[string][]string{
		"limits": {`"top":[{"k":{"t":"abuse"},"denied":1,"allowed":0`,
			`"info":{"k":{"t":"abuse"},"algorithm":"gcra","limit":1,"period":60000,"remaining":0`,
			`{"k":{"t":"rl"},"algorithm":"gcra","limit":5,"period":60000,"remaining":4`},
		"limits?match=ab*": {`"rows":[{"k":{"t":"abuse"}`},
		"locks": {`{"k":{"t":"lock"},"kind":"lock","mode":"exclusive","holders":[{"owner":{"t":"ann"},"token":"`,
			`"since":1700000000000,"until":1700000030000`,
			`{"k":{"t":"sem"},"kind":"semaphore","taken":1,"holders":[{"owner":{"t":"ann"},"permits":1`},
		"lock?k=" + url("lock"): {`"owner":{"t":"ann"}`},
		"queues": {`{"k":{"t":"q"},"delayed":0,"ready":1,"leased":0`, `{"k":{"t":"{m}"},"delayed":1`, `"next":1700000005000`, `"to":{"t":"{m}:dead"}`,
			`"paused":true,"until":1700000060000,"schedules":1`, `"paused":false,"until":null,"schedules":0`},
		"hot": {`"rows":[],"waiting":true,"window":10000,"percent":2`},
		"streams": {`"k":{"t":"stream"},"length":5,"last":"5-0","groups":[{"name":{"t":"g"},"consumers":1,"pending":2,"lag":3`,
			`{"name":{"t":"r"},"match":{"t":"s*"},"levels":["key"],"to":{"t":"ended"},"queue":false,"maxLen":100,"fired":0`, `"why":null`,
			`{"name":{"t":"jobs"},"match":{"t":"t*"},"levels":["key"],"to":{"t":"{m}"},"queue":true,"maxLen":0,"fired":0`},
		"clients": {`"addr":"127.0.0.1:50000"`, `"lib":"ebb-console"`}, // the sessions of viewers, not those of other embedded clients
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
	b.admin("DQ.POP", "q", "LEASE", "1000")
	for path, want := range map[string]string{
		"queue?k=" + url("q"): `"leased":1`,
		"queue?k=" + url("{m}"): `"schedules":[{"name":{"t":"beat"},"rule":"EVERY 60000","zone":"","next":1700000060000,` +
			`"last":null,"runs":0,"skipped":0,"late":0}]`,
		"queue?state=leased&k=" + url("q"):            `"state":"leased","due":1700000000000,"token":"`,
		"queue?state=ready&k=" + url("q"):             `"jobs":[],"more":false`,
		"queue?state=delayed&k=" + url("{m}"):         `{"id":{"t":"x"},"payload":{"t":"p"},"deliveries":0,"state":"delayed","due":1700000005000}],"more":false`,
		"queue?from=" + url("x") + "&k=" + url("{m}"): `"jobs":[],"more":false`,
		"queue?from=" + url("y") + "&k=" + url("{m}"): `"jobs":[],"more":false`,
		"queue?k=" + url("nothing"):                   `"row":null,"jobs":[]`,
		"queue?id=" + url("x") + "&k=" + url("{m}"):   `"letters":0,`,
		"queue?id=" + url("j") + "&k=" + url("q"):     `"jobs":[{"id":{"t":"j"},"payload":{"t":"payload"},"deliveries":1,"state":"leased"`,
		"queue?id=" + url("none") + "&k=" + url("q"):  `"jobs":[],"more":false`,
	} {
		if status, body := b.ask("GET", "api/"+path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s\nwant %s", path, status, body, want)
		}
	}
	for path, want := range map[string]int{"queue": 400, "queue?state=dead&k=" + url("q"): 400, "queue?limit=0&k=" + url("q"): 400,
		"queue?from=%21&k=" + url("q"): 400,
		"queue?k=" + url("s"):          409} {
		if status, body := b.ask("GET", "api/"+path, ""); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	for _, key := range []string{"s", "nothing"} {
		if status, body := b.ask("GET", "api/lock?k="+url(key), ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", key, status, body)
		}
	}
}

// A user who may not run the command behind a screen gets the screen without the result of that command.
func TestAScreenNamesWhatTheUserMayNotSee(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "support", true }})
	b.admin("ACL", "SETUSER", "support", "on", "nopass", "-@all", "+@read", "~shop:*")
	for path, want := range map[string]string{
		"server":      `{"info":{},"now":1700000000000,"denied":["INFO"]}`,
		"clients":     `{"rows":[],"more":false,"looked":0,"all":true,"total":0,"denied":["CLIENT LIST"]}`,
		"slowlog":     `{"rows":[],"denied":["SLOWLOG GET"]}`,
		"config":      `{"file":"","rows":[],"denied":["CONFIG GET"]}`,
		"acl":         `{"me":{"t":"support"},"users":[],"denied":["ACL LIST"]}`,
		"performance": `{"now":1700000000000,"timing":false,"commands":[],"errors":[],"denied":["INFO"]}`,
		"latency":     `{"now":1700000000000,"threshold":null,"events":[],"denied":["LATENCY LATEST"]}`,
		"scripts": `{"now":1700000000000,"cached":0,"bytes":0,"evicted":0,"functions":0,"functionBytes":0,"running":null,"scripts":[],"libraries":[],` +
			`"denied":["INFO","SCRIPT SHOW","FUNCTION LIST"]}`,
		"acllog": `{"rows":[],"denied":["ACL LOG"]}`,
		"files":  `{"now":1700000000000,"dir":null,"memory":false,"denied":["INFO"]}`,
		"replication": `{"now":1700000000000,"master":null,"replicas":[],"grouped":false,"full":0,"partial":0,"partialRefused":0,` +
			`"denied":["INFO"]}`,
	} {
		if status, body := b.ask("GET", "api/"+path, ""); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
}

// Viewing the demo's data changes none of it.
func TestLookingAtTheDemoChangesNothing(t *testing.T) {
	b := newBench(t, Options{})
	if err := demo.Fill(t.Context(), b.conn, demo.Options{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	before, ttl := b.admin("DEBUG", "DIGEST").Str, b.admin("EXPIRY", "SOON", "COUNT", "1000").String()
	for _, path := range []string{"keys?limit=2000", "forecast", "soon", "limits", "locks", "queues", "streams", "clients", "slowlog", "server", "me",
		"config", "acl", "acllog", "files", "replication", "performance", "latency", "scripts"} {
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

func TestHotKeysAreSampledWhileTheScreenIsOpen(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("CONFIG", "SET", "hotkey-sampling-percentage", "100")
	for range 20 {
		b.admin("SET", "hot", "1") // not sampled
	}
	if _, body := b.ask("GET", "api/hot", ""); !strings.Contains(body, `"waiting":true`) {
		t.Fatal(body)
	}
	for i := range 40 {
		b.admin("GET", []string{"mine", "mine", "mine", "yours"}[i%4])
		b.ask("GET", "api/key?k="+url("hot"), "") // a page's reads make no key hot
	}
	b.clock.Advance(10 * time.Second)
	want := `"rows":[{"k":{"t":"mine"},"db":0,"qps":3,"share":0.75},{"k":{"t":"yours"},"db":0,"qps":1,"share":0.25}],"waiting":false`
	if _, body := b.ask("GET", "api/hot", ""); !strings.Contains(body, want) {
		t.Fatalf("%s\nwant %s", body, want)
	}
	b.admin("GET", "mine")
	b.clock.Advance(10 * time.Second)
	if _, body := b.ask("GET", "api/hot", ""); !strings.Contains(body, `"rows":[],"waiting":false`) || !strings.Contains(body, `"few":true`) {
		t.Errorf("of one call in ten seconds: %s", body)
	}
	b.clock.Advance(time.Minute) // no viewer is present
	b.admin("SET", "mine", "1")
	if v := b.admin("HOTKEYS", "GET"); !strings.Contains(v.Str, "hot keys are not collected") {
		t.Fatal(v)
	}
}

// A page iterates over each list of an answer: one without rows must be empty, not null.
func TestAnEmptyServerHasEmptyLists(t *testing.T) {
	b := newBench(t, Options{})
	null := regexp.MustCompile(`"(rows|top|rules|jobs|schedules|users|commands|errors|events|scripts|libraries|replicas|groups|args)":null`)
	looked := 0
	for _, r := range routes() {
		if r.method != "GET" || r.open || r.lasts {
			continue
		}
		if status, body := b.ask("GET", "api/"+r.path, ""); status == http.StatusOK {
			looked++
			if found := null.FindString(body); found != "" {
				t.Errorf("%s has %s", r.path, found)
			}
		}
	}
	if looked < 20 {
		t.Errorf("%d endpoints answer", looked)
	}
}

// Of all keys, a list has the rows that come first by the column that the page sorts by.
func TestAListHasTheFirstRowsByItsColumn(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("LOCK.ACQUIRE", "z-old", "ann", "7200000")
	b.clock.Advance(time.Hour)
	b.admin("LOCK.ACQUIRE", "a-new", "ann", "7200000")
	for i := range 1200 {
		b.admin("DQ.ADD", fmt.Sprintf("q%04d", i), "1", "x")
		b.admin("RL.TAKE", fmt.Sprintf("l%04d", i), "10", "60000")
		b.admin("XADD", fmt.Sprintf("s%04d", i), "1-1", "f", "v")
	}
	for range 5 {
		b.admin("DQ.ADD", "q1111", "*", "x")
		b.admin("RL.TAKE", "l1111", "10", "60000")
		b.admin("XADD", "s1111", "*", "f", "v")
	}
	for path, want := range map[string]string{"queues?sort=-ready": "q1111", "limits?sort=left": "l1111", "streams?sort=-length": "s1111",
		"locks?sort=-held": "z-old", "locks?sort=-lease": "a-new",
		"queues?sort=k": "q0000", "queues?sort=-k": "q1199", "queues?match=11": "q0011", "queues?match=q118?&sort=-k": "q1189"} {
		var a struct {
			Rows   []struct{ K struct{ T string } }
			More   bool
			Looked int
		}
		b.get("api/"+path, &a)
		if len(a.Rows) == 0 || a.Rows[0].K.T != want || len(a.Rows) > maxRows || a.More != (a.Looked > maxRows) {
			t.Errorf("%s: %d rows of %d, more %v, first %v", path, len(a.Rows), a.Looked, a.More, a.Rows[:min(1, len(a.Rows))])
		}
	}
	l := b.listen("queues:0::-ready")
	var list struct {
		Sort string
		Rows []struct{ K struct{ T string } }
	}
	if l.next("queues", &list); list.Sort != "-ready" || len(list.Rows) != maxRows || list.Rows[0].K.T != "q1111" {
		t.Errorf("the stream's list is sorted by %q and has %d rows", list.Sort, len(list.Rows))
	}
}

func TestClientsOfAnyNameFitTheTable(t *testing.T) {
	all := parseClients("id=7 addr=1.2.3.4:5 name=" + strings.Repeat("N", 5000) + " lib-name=" + strings.Repeat("L", 3000) +
		" cmd=get user=ann")
	for i := range 10_000 {
		all = append(all, clientRow{ID: int64(100 + i), Mem: int64(i % 777), Cmd: "ping"})
	}
	if x := clientsBy(all, "NNNN", ""); len(x.Rows) != 1 || len(x.Rows[0].Name) > clientText+3 || len(x.Rows[0].Lib) > clientText+3 || x.More {
		t.Errorf("%+v", x)
	}
	for sort, want := range map[string]int64{"id": 7, "-id": 10_099, "-mem": 876, "cmd": 7} {
		if x := clientsBy(all, "", sort); len(x.Rows) != maxRows || !x.More || x.Rows[0].ID != want {
			t.Errorf("by %s: %d rows, the first is %d", sort, len(x.Rows), x.Rows[0].ID)
		}
	}
}
