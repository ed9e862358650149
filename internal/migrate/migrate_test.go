package migrate

import (
	"strings"
	"testing"
	"time"
)

// moves follows with a writer, compares, cuts over with a comparison and compares again.
func moves(t *testing.T, from []string, to string, o Options, fills ...string) (said string) {
	t.Helper()
	for i, url := range fills {
		fill(t, open(t, url), 300+i, len(fills) == 1)
	}
	w := write(t, fills[0], "")
	w.rounds(t, 20)
	o.From, o.To = from, to
	m, l := migrating(t, o)
	if !m.o.Scan && len(m.from) == 1 { // a copy is followed by the process that cuts over
		ended, stop := follows(t, m)
		l.until("TO has the data")
		w.rounds(t, 50)
		stop()
		if err := <-ended; err != nil {
			t.Fatalf("follow: %v\n%s", err, l)
		}
		mustEqualOrBusy(t, from, to)
	}
	o.Compare = true
	said, err := step(t, o, (*Migration).Cutover)
	if err != nil {
		t.Fatalf("cutover: %v\n%s", err, said)
	}
	if !strings.Contains(said, "equal: ") || !strings.Contains(said, "Writes were held for ") {
		t.Errorf("cutover said:\n%s", said)
	}
	if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "master" {
		t.Errorf("the target is a %s", role)
	}
	mustEqual(t, from, to) // the writer is held
	return said
}

func TestDataMovesByReplicationWhileAClientWrites(t *testing.T) {
	from, to := startEbb(t, "requirepass secret"), startEbb(t)
	from = strings.Replace(from, "://", "://:secret@", 1)
	said := moves(t, []string{from}, to, Options{Reverse: true, Pause: time.Minute}, from)
	if !strings.Contains(said, "follows TO") || open(t, from).run(t, "ROLE").Elems[0].Str != "slave" {
		t.Errorf("the source does not follow the target:\n%s", said)
	}
	if got := open(t, to).run(t, "CONFIG GET masterauth").Elems[1].Str; got != "" {
		t.Errorf("the target still has the source's password %q", got)
	}
}

func TestDataMovesByCopyingWhileAClientWrites(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	moves(t, []string{from}, to, Options{Scan: true, Pause: time.Minute}, from)
	if got := open(t, from).run(t, "CONFIG GET notify-keyspace-events").Elems[1].Str; got != "" {
		t.Errorf("the source's notify-keyspace-events are %q", got)
	}
}

func TestSeveralSourcesMoveIntoOne(t *testing.T) {
	a, b, to := startEbb(t), startEbb(t), startEbb(t)
	fill(t, open(t, a), 100, true)
	open(t, b).run(t, "MSET only-b1 v only-b2 v")
	if said, err := step(t, Options{From: []string{a, b}, To: to, Compare: true}, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{a, b}, to)
	if v := open(t, to).run(t, "GET only-b2"); v.Str != "v" {
		t.Errorf("GET only-b2: %v", v)
	}
}
