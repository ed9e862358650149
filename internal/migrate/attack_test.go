package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// FROM's host and port may lead to another server from TO's machine. That server's data is not the source's.
func TestATargetThatFollowsAnotherServerIsNotPromoted(t *testing.T) {
	defer func(d time.Duration) { foreignAfter = d }(foreignAfter)
	foreignAfter = 100 * time.Millisecond
	from, other, to := startEbb(t), startEbb(t), startEbb(t)
	open(t, from).run(t, "SET k right")
	fill(t, open(t, other), 100, true)
	gate := newProxy(t, from)
	m, l := migrating(t, Options{From: []string{gate.url()}, To: to})
	gate.lead(other) // connections from now on: the target's
	err := m.Cutover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "follows a server other than FROM") {
		t.Errorf("%v\n%s", err, l)
	}
	if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "slave" {
		t.Errorf("the target is a %s", role)
	}
}

// A source that was made a replica meanwhile holds no writes: its master accepts them.
func TestASourceThatBecomesAReplicaEndsTheMove(t *testing.T) {
	for _, scan := range []bool{false, true} {
		from, to, elected := startEbb(t), startEbb(t), startEbb(t)
		c := open(t, from)
		fill(t, c, 10, true)
		_, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: scan})
		host, port, _ := strings.Cut(strings.TrimPrefix(elected, "redis://"), ":")
		c.run(t, "REPLICAOF "+host+" "+port)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "is a replica") {
			t.Errorf("scan %t: %v\n%s", scan, err, l)
		}
		stop()
	}
}

func TestATargetThatUsesMoreThanItsLimitIsNotPromoted(t *testing.T) {
	from, to := startEbb(t), startEbb(t, "maxmemory 100kb", "maxmemory-policy allkeys-lru")
	c := open(t, from)
	fill(t, c, 1000, true)
	said, err := step(t, Options{From: []string{from}, To: to}, (*Migration).Cutover)
	if err == nil || !strings.Contains(err.Error(), "as a master it would refuse writes or evict keys (maxmemory-policy allkeys-lru)") {
		t.Errorf("%v\n%s", err, said)
	}
	c.run(t, "SET writes go-on")
	// By copying the target evicts while it is written.
	to = startEbb(t, "maxmemory 100kb", "maxmemory-policy allkeys-lru")
	said, err = step(t, Options{From: []string{from}, To: to, Scan: true}, (*Migration).Cutover)
	if err == nil || !strings.Contains(err.Error(), "has evicted ") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestASourceThatIsRestartedInThePauseEndsTheCutover(t *testing.T) {
	m, _ := migrating(t, Options{From: []string{startEbb(t)}, To: startEbb(t)})
	runs, err := m.runs(t.Context())
	if err != nil || m.sameRuns(t.Context(), runs) != nil {
		t.Fatal(err, runs)
	}
	runs[0] = "another"
	_, _, err = m.cut(t.Context(), func(ctx context.Context) error { return m.sameRuns(ctx, runs) }, "TO still follows")
	if err == nil || !strings.Contains(err.Error(), "was restarted meanwhile") || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A program of the source's clients may set notify-keyspace-events for itself, and so end the events of a copy.
func TestACopyNoticesThatEventsAreSwitchedOff(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	fill(t, c, 10, true)
	m, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: true})
	defer stop()
	c.run(t, "CONFIG SET notify-keyspace-events Kx")
	c.run(t, "SET unseen v")
	l.untilTimes("TO has the data", 2)
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	mustEqual(t, []string{from}, to)
	m.Close()
	if got := c.run(t, "CONFIG GET notify-keyspace-events").Elems[1].Str; got != "xK" {
		t.Errorf("the source's notify-keyspace-events are %q", got)
	}
}

// While many keys are copied, nothing may happen on the source: the silence of its events is not a cut connection.
func TestASourceWithoutWritesIsSentPings(t *testing.T) {
	defer func(d time.Duration) { quiet = d }(quiet)
	quiet = 5 * time.Millisecond
	from := startEbb(t)
	m, _ := migrating(t, Options{From: []string{from}, To: startEbb(t), Scan: true})
	if err := m.startCopy(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close() // before quiet is set back
	c := open(t, from)
	c.run(t, "MONITOR")
	for pings := 0; pings < 3; {
		v, err := c.reply(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(v.Str, `"PING" "alive"`) {
			pings++
		}
	}
}

// CLIENT PAUSE of all commands makes a server silent: the wait has an end, and its error a reason. One of writes does not delay a check.
func TestAPausedServerIsNamed(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	c.run(t, "CLIENT PAUSE 100000 WRITE")
	m, _ := migrating(t, Options{From: []string{from}, To: to})
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	if err := m.countRules(ctx, c, 0, map[string][2]int64{}); err != nil {
		t.Error(err)
	}
	c.run(t, "CLIENT PAUSE 100000 ALL")
	defer func(d time.Duration) { learnTimeout = d }(learnTimeout)
	learnTimeout = 100 * time.Millisecond
	_, err := m.connect(t.Context(), "FROM", from) // not by Open: TO replies, on a slow machine after the timeout
	if err == nil || !strings.Contains(err.Error(), "FROM ") || !strings.Contains(err.Error(), "may be paused (CLIENT PAUSE)") {
		t.Error(err)
	}
	open(t, from).run(t, "CLIENT UNPAUSE")
}

func TestAnEmptyPayloadIsNoStream(t *testing.T) {
	for payload, want := range map[string]bool{"": false, "\x00a": false, "\x0f": true, "\x13": true, "\x15": true} {
		if isStream(payload) != want {
			t.Errorf("isStream(%q) = %t", payload, !want)
		}
	}
}

// CONFIG RESETSTAT makes the counter that shows a FLUSHALL what it was before.
func TestACopyNoticesAFlushBehindAReset(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	c.run(t, "FLUSHALL")
	fill(t, c, 10, true)
	for range 100 {
		c.run(t, "PING")
	}
	_, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: true})
	defer stop()
	for _, line := range []string{"MULTI", "CONFIG RESETSTAT", "FLUSHALL", "SET left alone", "EXEC"} {
		c.run(t, line)
	}
	l.untilTimes("TO has the data", 2)
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	mustEqual(t, []string{from}, to)
}

// A library that is gone, and a function that has moved to another one, are so on the target as well.
func TestACopyHasTheFunctionsOfTheSource(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c, on := open(t, from), open(t, to)
	on.run(t, `FUNCTION LOAD "#!lua name=own\nredis.register_function('mine', function() return 1 end)"`)
	c.run(t, "SET k v")
	o := Options{From: []string{from}, To: to, Scan: true}
	for _, scan := range []bool{false, true} {
		o.Scan = scan
		if _, err := step(t, o, (*Migration).Cutover); err == nil || !strings.Contains(err.Error(), "holds 1 libraries of functions") {
			t.Errorf("scan %t: %v", scan, err)
		}
	}
	o.Replace, o.Compare = true, true
	if said, err := step(t, o, (*Migration).Cutover); err != nil || len(on.run(t, "FUNCTION LIST").Elems) != 0 {
		t.Errorf("%v\n%s", err, said)
	}
	c.run(t, "CLIENT UNPAUSE")
	c.run(t, `FUNCTION LOAD "#!lua name=first\nredis.register_function('f', function() return 1 end)"`)
	_, l, ended, stop := following(t, o)
	defer stop()
	c.run(t, "FUNCTION DELETE first")
	c.run(t, `FUNCTION LOAD "#!lua name=second\nredis.register_function('f', function() return 1 end)"`)
	c.run(t, "FLUSHALL")
	l.untilTimes("TO has the data", 2)
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	mustEqual(t, []string{from}, to)
}

// Any client may publish on the channel of a database that does not exist.
func TestAnEventOfNoDatabaseDoesNotEndACopy(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	c.run(t, "SET k v")
	_, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: true})
	defer stop()
	c.run(t, "PUBLISH __keyevent@99__:set k")
	c.run(t, "PUBLISH __keyevent@-1__:set k")
	c.run(t, "SET later v")
	on := open(t, to)
	for on.run(t, "EXISTS later").Int == 0 {
		select {
		case err := <-ended:
			t.Fatalf("%v\n%s", err, l)
		default:
		}
	}
}

func TestACopyNoticesThatTheTargetWasRestarted(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	open(t, from).run(t, "SET k v")
	m, _ := migrating(t, Options{From: []string{from}, To: to, Scan: true})
	if err := m.startCopy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.copies.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.copies.run = "another"
	if err := m.copies.check(t.Context()); !errors.Is(err, errAgain) {
		t.Error(err)
	}
	if err := m.copies.check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a user may not read cannot be set back.
func TestACopyNeedsToReadTheSettingThatItSetsBack(t *testing.T) {
	from := startEbb(t, "notify-keyspace-events Kx")
	o := Options{From: []string{as(t, from, "-config|get")}, To: startEbb(t), Scan: true, Once: true}
	if _, err := step(t, o, (*Migration).Follow); err == nil || !strings.Contains(err.Error(), "+config|get") {
		t.Error(err)
	}
	if got := open(t, from).run(t, "CONFIG GET notify-keyspace-events").Elems[1].Str; got != "xK" {
		t.Errorf("%q", got)
	}
}
