package migrate

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// DEBUG DIGEST leaves out consumer groups and functions.
func TestACutoverComparesWhatTheDigestLeavesOut(t *testing.T) {
	for _, plant := range []string{"XGROUP CREATE stream2 planted 0",
		`FUNCTION LOAD "#!lua name=planted\nredis.register_function('f', function() return 1 end)"`} {
		from, to := startEbb(t), startEbb(t)
		fill(t, open(t, from), 10, true)
		if said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true}, (*Migration).Follow); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		open(t, to).run(t, plant)
		said, err := step(t, Options{From: []string{from}, To: to}, (*Migration).compareHeld)
		if !errors.Is(err, errDiffer) {
			t.Errorf("after %s: %v\n%s", plant, err, said)
		}
	}
}

func TestCutoverFailsWithoutAChangeWhenThePauseIsTooShort(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	fill(t, open(t, from), 300, true)
	said, err := step(t, Options{From: []string{from}, To: to, Compare: true, Pause: time.Microsecond}, (*Migration).Cutover)
	if err == nil || !strings.Contains(err.Error(), "no cutover") || !strings.Contains(err.Error(), "TO still follows") {
		t.Errorf("%v\n%s", err, said)
	}
	open(t, from).run(t, "SET writes go-on")
	if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "slave" {
		t.Errorf("the target is a %s", role)
	}
}

// A master that sends its replica nothing before the first acknowledgement would let writes wait for that.
func TestACutoverWaitsForTheFirstAcknowledgement(t *testing.T) {
	for _, x := range []struct {
		lines []string
		want  bool
	}{
		{nil, true},
		{[]string{"ip=10.0.0.1,port=6379,state=online,offset=0,lag=0"}, false},
		{[]string{"ip=10.0.0.1,port=6379,state=online,offset=14,lag=0"}, true},
		{[]string{"ip=10.0.0.1,port=7000,state=online,offset=0,lag=0"}, true},
		{[]string{"ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0", "ip=10.0.0.1,port=6379,state=online,offset=14,lag=0"}, true},
	} {
		info := map[string]string{"connected_slaves": strconv.Itoa(len(x.lines)), "master_repl_offset": "14"}
		for i, line := range x.lines {
			info["slave"+strconv.Itoa(i)] = line
		}
		if got := hasAck(info, "6379"); got != x.want {
			t.Errorf("%q: %v", x.lines, got)
		}
		if info["master_repl_offset"] = "0"; !hasAck(info, "6379") {
			t.Errorf("%q: silent at the beginning of the stream", x.lines)
		}
	}
}

// Writes are held only when the stream flows: a new replica may get its first byte a second after it has loaded.
func TestACutoverWaitsForAStreamThatFlows(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	gate := newProxy(t, from)
	if said, err := step(t, Options{From: []string{gate.url()}, To: to, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	release := sync.OnceFunc(gate.stall()) // of the link; those of the next Migration are open
	defer release()
	c := open(t, from)
	c.run(t, "SET written meanwhile")
	m, l := migrating(t, Options{From: []string{gate.url()}, To: to, Live: true, Pause: tier.Patience})
	ended := make(chan error, 1)
	go func() { ended <- m.Cutover(t.Context()) }()
	l.until("wait  lag")
	c.run(t, "SET goes on") // it would wait for the end of a pause
	release()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	if got := open(t, to).run(t, "GET written").Str; got != "meanwhile" {
		t.Errorf("%q", got)
	}
}
