package console

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Errors of commands that a screen needs do not count as errors of a client, and SLOWLOG names their session.
func TestTheConsolesOwnCommandsAreNoMistakesOfClients(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	b.admin("SET", "large", strings.Repeat("x", 1<<20))
	codes := func() map[string]int64 { return b.svc.Admin().Totals.ErrorCodes() }
	for _, policy := range []string{"noeviction", "allkeys-lfu"} {
		b.admin("CONFIG", "SET", "maxmemory-policy", policy)
		b.admin("CONFIG", "RESETSTAT")
		var page keyPage
		b.get("api/keys?limit=2000", &page)
		for _, r := range page.Rows {
			if status, body := b.ask("GET", "api/key?k="+url(r.K.s), ""); status != 200 || strings.Contains(body, `"freq"`) != (policy == "allkeys-lfu") {
				t.Errorf("%s of %s: %d %.200s", r.K.s, policy, status, body)
			}
		}
		for _, path := range []string{"forecast", "soon", "limits", "locks", "queues", "streams", "clients", "slowlog", "server", "me", "config", "acl", "acllog",
			"files", "replication", "performance", "latency", "scripts", "hot", "queue?k=" + url("q") + "&from=" + url("gone"),
			"stream?k=" + url("stream") + "&g=" + url("gone")} {
			_, _ = b.ask("GET", "api/"+path, "")
		}
		if got := codes(); len(got) > 0 {
			t.Errorf("the console's own errors under %s are counted: %v", policy, got)
		}
		for id, name := range b.svc.Admin().Commands {
			if n := b.svc.Admin().Tally(id, nil).Calls; n > 0 && (name == "dump" || name == "debug") {
				t.Errorf("the console has run %s %d times", name, n)
			}
		}
	}
	if status, body := b.ask("POST", "api/do", `{"db":0,"argv":[{"t":"INCR"},{"t":"large"}]}`); status != 200 || codes()["ERR"] != 1 {
		t.Errorf("a mistake of the user is not counted: %d %s %v", status, body, codes())
	}
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	b.admin("SLOWLOG", "RESET")
	b.admin("GET", "s")
	_, _ = b.ask("GET", "api/key?k="+url("large"), "")
	own := 0
	for _, e := range b.svc.Admin().Slowlog.Latest(-1) {
		switch {
		case e.Name == library:
			own++
		case e.Addr == "127.0.0.1:50000":
			t.Errorf("SLOWLOG has a call of the console without a name: %v", e.Args)
		}
		if e.Args[0] == "DIGEST" || e.Args[0] == "DUMP" {
			t.Errorf("the console has run %v", e.Args)
		}
	}
	if own < 3 {
		t.Errorf("SLOWLOG has %d calls of the console", own)
	}
}

// The numbers of keys that no page shows are removed, and their watches end.
func TestVersionsAreForgotten(t *testing.T) {
	b := newBench(t, Options{})
	x, used := &b.versions, b.svc.DB.UsedMemory()
	first := x.of(0, "k")
	if x.of(0, "k") != first {
		t.Error("the number of a key that has not changed is another one")
	}
	x.follow(0, "k")
	for i := range 100 {
		x.of(0, fmt.Sprint(i))
	}
	if x.of(0, strings.Repeat("n", 2*idleNames)); len(x.idle) != 0 || len(x.all) != 1 {
		t.Errorf("%d keys are idle, and %d have a number", len(x.idle), len(x.all))
	}
	if x.of(0, "k") != first || b.svc.DB.Watches() != 1 {
		t.Errorf("%d keys are watched", b.svc.DB.Watches())
	}
	b.admin("SET", "k", "1")
	if second := x.of(0, "k"); second == first || x.of(0, "k") != second || x.of(1, "k") == second {
		t.Error("a change gives a key no new number")
	}
	tx := b.svc.DB.BeginAll(0)
	held := x.of(0, "held")
	tx.Commit()
	if x.of(0, "held") == held {
		t.Error("a key that could not be watched keeps its number")
	}
	x.leave(0, "k")
	x.close()
	b.admin("DEL", "k")
	b.clock.Advance(time.Second)
	if n := b.svc.DB.Watches(); n != 0 || b.svc.DB.UsedMemory() > used+4096 {
		t.Errorf("%d keys are watched, and %d bytes more are in use", n, b.svc.DB.UsedMemory()-used)
	}
}
