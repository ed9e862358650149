package console

import (
	"strings"
	"testing"
	"time"
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

// A page that ends with the job whose id is empty has a next page.
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

// A queue whose jobs no worker takes comes first; a queue of dead letters, whose jobs wait for no worker,
// does not.
func TestAQueueWithoutAWorkerComesFirst(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("DQ.CONFIG", "busy", "DEADLETTER", "{busy}:dead")
	b.admin("DQ.ADD", "{busy}:dead", "1", "x")
	b.clock.Advance(time.Minute)
	b.admin("DQ.ADD", "busy", "1", "x")
	b.admin("DQ.POP", "busy", "LEASE", "600000")
	b.admin("DQ.ADD", "busy", "2", "x")
	b.admin("DQ.ADD", "orphan", "1", "x")
	b.admin("DQ.ADD", "paused", "1", "x")
	b.admin("DQ.CONFIG", "paused", "PAUSED", "yes")
	list := func() string {
		var a struct{ Rows []queueRow }
		b.get("api/queues?sort=-late", &a)
		out := []string{}
		for _, r := range a.Rows {
			if r.Unattended {
				r.K.s += "!"
			}
			out = append(out, r.K.s)
		}
		return strings.Join(out, " ")
	}
	b.clock.Advance(unattendedMS*time.Millisecond - time.Millisecond)
	if got := list(); strings.Contains(got, "!") {
		t.Errorf("before %d ms: %s", unattendedMS, got)
	}
	b.clock.Advance(time.Millisecond)
	b.admin("DQ.ADD", "young", "1", "x")
	if got := list(); !strings.Contains(got, "orphan!") || strings.Count(got, "!") != 1 || !strings.HasSuffix(got, "young {busy}:dead") {
		t.Errorf("the list is %s", got)
	}
}
