package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/bench/servers"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestSweepHasAWorkloadForEachCommandOrAReasonForNone(t *testing.T) {
	measured := map[string]bool{}
	names := map[string]bool{}
	for _, r := range workloads() {
		c := strings.ReplaceAll(r.command(), " ", "|")
		if c == "" || names[r.name] {
			t.Errorf("the row %q has no command of this name in %q, or another row is named so", r.name, r.run)
		}
		measured[c], names[r.name] = true, true
	}
	var patterns []string
	for _, l := range leftOut {
		patterns = append(patterns, strings.Fields(l.names)...)
	}
	used := map[string]bool{}
	seen := map[string]bool{}
	var walk func(s *command.Spec)
	walk = func(s *command.Spec) {
		if s.Run != nil {
			seen[s.Name] = true
			leftOut := false
			for _, p := range patterns {
				if glob.Match(p, s.Name) && (p == s.Name || !measured[s.Name]) {
					leftOut, used[p] = true, true
				}
			}
			if measured[s.Name] == leftOut {
				t.Errorf("%s: a workload %v, left out %v; want one of them", s.Name, measured[s.Name], leftOut)
			}
		}
		for _, sub := range s.Sub {
			walk(sub)
		}
	}
	for _, s := range servercmd.Specs() {
		walk(s)
	}
	for c := range measured {
		if !seen[c] {
			t.Errorf("the sweep has rows of %s, which is not a command", c)
		}
	}
	for _, p := range patterns {
		if !used[p] {
			t.Errorf("the sweep leaves %s out, which is not a command without a workload", p)
		}
	}
}

func TestSweepFillsInPlaceholders(t *testing.T) {
	r := workload{script: "return 1"}
	u := r.encode([]string{"A {a}:{dd} {x16}{w}", "B {script} {dump} k{a}"}, 2, 7, "\x00{a}")
	u.write(u.buf[u.size:], &[variables]uint64{varA: 123, varD: 456})
	const zero, ones = "000000000000", "000000000123"
	copyOf := func(a, d string) string {
		return "*3\r\n$1\r\nA\r\n$15\r\n" + a + ":" + d + "\r\n$17\r\nxxxxxxxxxxxxxxxx7\r\n*4\r\n$1\r\nB\r\n$8\r\nreturn 1\r\n$4\r\n" +
			"\x00{a}\r\n$13\r\nk" + a + "\r\n"
	}
	if got, want := string(u.buf), copyOf(zero, "00")+copyOf(ones, "56"); got != want {
		t.Errorf("encoded %q, want %q", got, want)
	}
}

// Every row runs on ebb and on redis-server without an error reply, but for commands that redis-server does not have.
func TestSweepMeasuresEachRowBesideRedis(t *testing.T) {
	redis := realserver.Start(t, "redis-server")
	ebb := realserver.NewProcess(t, realserver.Ebb(t))
	ebb.Start()
	var out bytes.Buffer
	cfg := config{Servers: []loadgen.Side{{Name: "ebb", Target: loadgen.Target{Addr: ebb.Addr()}},
		{Name: "redis", Target: loadgen.Target{Addr: redis}}},
		Clients: 2, Duration: time.Millisecond, Rounds: 1, JSON: true, Out: &out, maxKeys: 100}
	if tier.Short() {
		cfg.Only = "get*,zcount,dump hash*,hexpire"
	}
	if err := sweep(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	var rows []result
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for i, c := range r.Servers {
			if c.Error != "" && (i == 0 || !unknownCommand(c.Error)) {
				t.Errorf("%s on %s: %s", r.Name, c.Server, c.Error)
			}
		}
	}
	if !slices.IsSortedFunc(rows, func(a, b result) int {
		if a.Ratio < b.Ratio {
			return 1
		}
		return 0
	}) {
		t.Error("the worst ratio is not first")
	}
}

func TestSweepPrintsATableAndStartsServers(t *testing.T) {
	server, err := servers.Start(t.Context(), realserver.Program(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	target := loadgen.Target{Addr: server.Addr}
	var out, progress bytes.Buffer
	cfg := config{Servers: []loadgen.Side{{Name: "a", Target: target}, {Name: "b", Target: target}}, Clients: -1, // as 0, the default
		Duration: time.Millisecond, Rounds: -1, Only: "zcount of 10,ping,digest", Out: &out, Progress: &progress}
	if err := sweep(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^PING +[\d.]+ +[\d,]+ +[\d.]+ +[\d,]+ +[\d.]+x$`).Match(out.Bytes()) ||
		!regexp.MustCompile(`(?m)^DIGEST +- +- +- +- +-$`).Match(out.Bytes()) || !strings.Contains(out.String(), "3 rows, 2 compared, ") {
		t.Errorf("printed:\n%s", out.String())
	}
	if !regexp.MustCompile(`(?m)^3/3 PING: [\d.]+x \(0s left\)$`).Match(progress.Bytes()) {
		t.Errorf("progress:\n%s", progress.String())
	}
	cfg.Only = "nothing*"
	if err := sweep(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `no row of the sweep matches "nothing*"`) {
		t.Error(err)
	}
}
