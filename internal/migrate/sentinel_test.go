package migrate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// hello subscribes as a Sentinel does, until stop.
func hello(t *testing.T, url string) (stop func()) {
	t.Helper()
	c := open(t, url)
	c.run(t, "SUBSCRIBE "+sentinelChannel)
	return func() {
		c.run(t, "UNSUBSCRIBE "+sentinelChannel)
		c.nc.Close()
	}
}

// findingOf returns the finding of an area.
func findingOf(t *testing.T, o Options, area string) doctor.Finding {
	t.Helper()
	m, _ := migrating(t, o)
	found, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Area == area {
			return f
		}
	}
	return doctor.Finding{}
}

func TestACutoverUnderSentinelIsRefused(t *testing.T) {
	for _, side := range []string{"FROM", "TO"} {
		t.Run(side, func(t *testing.T) {
			from, to := startEbb(t), startEbb(t)
			fill(t, open(t, from), 10, false)
			stop := hello(t, map[string]string{"FROM": from, "TO": to}[side])
			o := Options{From: []string{from}, To: to, Once: true}
			if f := findingOf(t, o, "sentinel"); f.Grade != doctor.Act || !strings.Contains(f.What, "1 Sentinels watch "+side) {
				t.Errorf("%+v", f)
			}
			said, err := step(t, o, (*Migration).Cutover)
			if err == nil || !strings.Contains(err.Error(), "SENTINEL REMOVE") || open(t, to).run(t, "DBSIZE").Int != 0 {
				t.Errorf("%v\n%s", err, said)
			}
			if said, err := step(t, o, (*Migration).Follow); err != nil || !strings.Contains(said, "may change the roles") {
				t.Errorf("%v\n%s", err, said)
			}
			stop()
			if f := findingOf(t, o, "sentinel"); f.Area != "" {
				t.Errorf("after SENTINEL REMOVE: %+v", f)
			}
			if said, err := step(t, o, (*Migration).Cutover); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// A copy leaves the roles of the servers as they are.
func TestACopyUnderSentinelIsAllowed(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	fill(t, open(t, from), 10, false)
	hello(t, from)
	o := Options{From: []string{from}, To: to, Scan: true}
	if f := findingOf(t, o, "sentinel"); f.Grade != doctor.Look {
		t.Errorf("%+v", f)
	}
	if said, err := step(t, o, (*Migration).Cutover); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestAUserThatMayNotAskAboutSentinelIsTold(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	hello(t, from)
	o := Options{From: []string{as(t, from, "-pubsub|numsub")}, To: to}
	open(t, from).run(t, "CLIENT SETNAME sentinel-0123abcd-cmd")
	f := findingOf(t, o, "sentinel")
	if f.Area != "" { // one connection with that name is not a Sentinel
		t.Errorf("%+v", f)
	}
	o.From[0] = as(t, from, "-pubsub|numsub -client|list")
	if f := findingOf(t, o, "sentinel"); f.Grade != doctor.Look || !strings.Contains(f.What, "does not tell") {
		t.Errorf("%+v", f)
	}
}

func TestAMoveFromARealSentinelLasts(t *testing.T) {
	from, to := realURL(t, realserver.Redis7), startEbb(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(from, "redis://"), ":")
	s := realserver.NewProcess(t, "redis-sentinel")
	s.Config = fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor shop 127.0.0.1 %s 1\n", s.Port, s.Dir, port)
	s.Start()
	o := Options{From: []string{from}, To: to}
	m, _ := migrating(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	for n := 0; n != 1; {
		var err error
		if n, _, err = m.from[0].sentinels(ctx); err != nil || !sleep(ctx, 20*time.Millisecond) {
			t.Fatal(err, ctx.Err())
		}
	}
	if said, err := step(t, o, (*Migration).Cutover); err == nil || !strings.Contains(err.Error(), "1 Sentinels watch FROM") {
		t.Fatalf("%v\n%s", err, said)
	}
	open(t, "redis://"+s.Addr()).run(t, "SENTINEL REMOVE shop")
	if said, err := step(t, o, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if v := open(t, to).run(t, "ROLE"); v.Elems[0].Str != "master" {
		t.Error(v)
	}
}
