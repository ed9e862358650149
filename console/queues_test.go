package console

import (
	"strings"
	"testing"
)

func TestQueuesThatShareTheirDeadLettersAreNamed(t *testing.T) {
	b := newBench(t, Options{})
	for _, k := range []string{"{s}a", "{s}b", "{s}c", "other"} {
		b.admin("DQ.CONFIG", k, "MAXDELIVERIES", "1")
	}
	b.admin("DQ.CONFIG", "{s}a", "DEADLETTER", "{s}dl")
	b.admin("DQ.CONFIG", "{s}b", "DEADLETTER", "{s}dl")
	b.admin("DQ.CONFIG", "{s}c", "DEADLETTER", "{s}own")
	b.admin("DQ.ADD", "{s}dl", "j", "x")
	status, body := b.ask("GET", "api/queue?sharing=1&k="+url("{s}a"), "")
	if status != 200 || !strings.Contains(body, `"sharing":[{"t":"{s}b"}]`) || strings.Contains(body, "unsure") {
		t.Errorf("%d %s", status, body)
	}
	if _, body := b.ask("GET", "api/queue?sharing=1&k="+url("{s}c"), ""); strings.Contains(body, "sharing") {
		t.Error(body)
	}
	if _, body := b.ask("GET", "api/concerns", ""); strings.Count(body, `"code":"dead"`) != 1 {
		t.Errorf("the dead letters of two queues are told twice, or not at all: %s", body)
	}
}

// A page that ends with the job whose id is empty has a page behind it.
func TestTheJobsGoOnBehindAnEmptyID(t *testing.T) {
	b := newBench(t, Options{})
	for _, id := range []string{"a", "", "b"} {
		b.admin("DQ.ADD", "q", id, "v")
	}
	for from, want := range map[string]string{"": "a", "&from=" + url("a"): "", "&from=": "b"} {
		var page struct {
			More bool
			Jobs []struct{ ID blob }
		}
		b.get("api/queue?state=all&limit=1&k="+url("q")+from, &page)
		if len(page.Jobs) != 1 || page.Jobs[0].ID.s != want || page.More != (want != "b") {
			t.Errorf("behind %q: %+v, want %q", from, page, want)
		}
	}
	var one struct{ Jobs []struct{ ID blob } }
	if b.get("api/queue?id=&k="+url("q"), &one); len(one.Jobs) != 1 || one.Jobs[0].ID.s != "" {
		t.Errorf("the job with the empty id: %+v", one)
	}
}
