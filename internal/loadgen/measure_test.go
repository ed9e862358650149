package loadgen

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestTypesComparesEachCommand(t *testing.T) {
	a, b := realserver.Start(t, "redis-server"), realserver.Start(t, "redis-server")
	var out bytes.Buffer
	cfg := TypesConfig{Ours: Side{Name: "ours", Target: Target{Addr: a}}, Theirs: Side{Name: "theirs", Target: Target{Addr: b}},
		Clients: 4, Duration: 30 * time.Millisecond, Rounds: 1, Only: "hset,lrange_100,incr,pfadd", Out: &out}
	if err := Types(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	row := regexp.MustCompile(`^[A-Z_0-9]+ +[\d,]+ +[\d,]+ +[\d.]+x`)
	if len(lines) != 5 || !row.MatchString(lines[4]) {
		t.Errorf("the table:\n%s", out.String())
	}
	cfg.Only = "nothing"
	if err := Types(t.Context(), cfg); err == nil {
		t.Error("an unknown command is not an error")
	}
}

func TestDropMeasuresEachStepOfEachKind(t *testing.T) {
	var out bytes.Buffer
	server := Common{Target: Target{Addr: realserver.Start(t, "redis-server")}, Out: &out}
	cfg := DropConfig{Common: server, Elements: 1000, Rate: 400, Around: 20 * time.Millisecond}
	if err := Drop(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^(hash|set|zset|list|stream) +(RENAME|DEL|EXPIRE) +[\d.]+ `).FindAllString(out.String(),
		-1)); n != 15 {
		t.Errorf("%d steps:\n%s", n, out.String())
	}
}

func TestLineSeesTheOrderOfService(t *testing.T) {
	ebb := realserver.NewProcess(t, realserver.Ebb(t))
	ebb.Start()
	for name, cfg := range map[string]LineConfig{
		"BLPOP":   {Common: Common{Target: Target{Addr: realserver.Start(t, "redis-server")}}},
		"ZPOPDUE": {Common: Common{Target: Target{Addr: ebb.Addr()}}, Due: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cfg.Clients, cfg.Rounds, cfg.Out = 10, 2, &out
			if err := Line(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), "10 clients, 0 deliveries out of order of 40\n") {
				t.Errorf("printed:\n%s", out.String())
			}
		})
	}
}

func TestDueTakesEachJobAndNoneTooEarly(t *testing.T) {
	ebb := realserver.NewProcess(t, realserver.Ebb(t))
	ebb.Start()
	for name, cfg := range map[string]DueConfig{
		"wait": {Common: Common{Target: Target{Addr: ebb.Addr()}}},
		"peek": {Common: Common{Target: Target{Addr: ebb.Addr()}}, Peek: true},
		"poll": {Common: Common{Target: Target{Addr: realserver.Start(t, "redis-server")}}, Poll: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cfg.Sets, cfg.Clients, cfg.Idle, cfg.Duration, cfg.Out = 20, 3, 100*time.Millisecond, time.Second, &out
			if err := Due(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^idle: \d+ commands a second\nbusy: \d+ commands a second\n20 of 20 jobs, 0 too early: late p50=`).MatchString(out.String()) {
				t.Errorf("printed:\n%s", out.String())
			}
		})
	}
}

func TestCachePrintsAHitRatioForEachPolicy(t *testing.T) {
	var out bytes.Buffer
	server := Common{Target: Target{Addr: realserver.Start(t, "redis-server")}, Out: &out}
	cfg := CacheConfig{Common: server, MaxMemory: "2mb", Policies: "allkeys-lru,noeviction", Keys: 20_000, Duration: 300 * time.Millisecond}
	if err := Cache(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^(allkeys-lru|noeviction) .*%`).FindAllString(out.String(), -1)); n != 2 {
		t.Errorf("printed:\n%s", out.String())
	}
}

// redis-server stands for the group here: the program of the group is tested with the real one in internal/test.
func TestAckedWantsAGroupAndCountsAReplyForEachRequest(t *testing.T) {
	cfg := AckedConfig{Common: Common{Target: Target{Addr: realserver.Start(t, "redis-server")}}}
	if err := Acked(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "acknowledge nothing") {
		t.Errorf("a server without a group: %v", err)
	}
	for _, x := range cfg.tests(0, 2, 3) {
		x.behind = []string{"WAIT", "0", "0"}
		for _, once := range []bool{false, true} {
			x.once = once
			cfg.Length = 30 * time.Millisecond
			if r, err := cfg.measure(t.Context(), x); err != nil || r.Requests == 0 || r.Requests%3 != 0 {
				t.Errorf("once=%v: %d requests, %v", once, r.Requests, err)
			}
		}
	}
}
