package migrate

import (
	"fmt"
	"testing"
	"time"
)

// Nothing is lost when the connections to both sides are cut while keys are written and deleted.
func TestACopySurvivesCutConnections(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	gate, gate2 := newProxy(t, from), newProxy(t, to)
	c := open(t, from)
	fill(t, c, 300, true)
	w := write(t, from, "")
	m, l := migrating(t, Options{From: []string{gate.url()}, To: gate2.url(), Scan: true, Compare: true, Pause: time.Minute})
	ended, stop := follows(t, m)
	defer stop()
	for i, g := range []*proxy{gate, gate2} {
		l.untilTimes("TO has the data", i+1)
		g.cut()
		c.run(t, fmt.Sprintf("DEL string%d list%d set%d", i, i, i))
		c.run(t, fmt.Sprintf("SET after-cut%d v", i))
		w.rounds(t, 20)
		l.untilTimes("all keys are copied again", i+1)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	o := Options{From: []string{from}, To: to, Scan: true, Replace: true, Compare: true, Pause: time.Minute}
	if said, err := step(t, o, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
}

// FLUSHALL sends no events. The copier sees it by the source's counters, and deletes what the target still has.
func TestAFlushOfTheSourceIsFollowed(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	fill(t, c, 50, true)
	_, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: true})
	defer stop()
	c.run(t, "FLUSHALL")
	c.run(t, "SET after v")
	l.until("TO has the data: 1 keys")
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	if n := open(t, to).run(t, "DBSIZE").Int; n != 1 {
		t.Errorf("the target has %d keys, want 1\n%s", n, l)
	}
	mustEqual(t, []string{from}, to)
}
