package metricstest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

const packaging = "../../../packaging"

// ask sends an inline command, and fails the test if the reply is an error.
func ask(t *testing.T, addr, command string) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if _, err := nc.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	v, err := wire.ReadValue(bufio.NewReader(nc))
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
}

// expressions returns what the panels of the dashboard and its variable ask Prometheus.
func expressions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packaging, "grafana/ebb.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID    string
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	if d.UID != "ebb-overview" || len(list) < 50 {
		t.Fatalf("the dashboard %q has %d expressions", d.UID, len(list))
	}
	return list
}

// alerts returns the expressions of the alerts.
func alerts(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packaging, "prometheus/ebb.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (".*")$`).FindAllSubmatch(text, -1) {
		var expr string
		if err := json.Unmarshal(m[1], &expr); err != nil {
			t.Fatal(err)
		}
		list = append(list, expr)
	}
	return list
}

// Prometheus's own tool reads the rules, and each alert fires and is silent in the cases of its test file.
func TestEachAlertFiresAndIsSilent(t *testing.T) {
	promtool := realserver.Program(t, "promtool")
	dir := filepath.Join(packaging, "prometheus")
	for _, args := range [][]string{{"check", "rules", "ebb.rules.yml"}, {"test", "rules", "ebb.rules_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	rules, err := os.ReadFile(filepath.Join(dir, "ebb.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile(filepath.Join(dir, "ebb.rules_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^      - alert: (\w+)\n +expr: (.*)$`).FindAllSubmatch(rules, -1)
	if len(names) < 22 {
		t.Errorf("there are %d alerts", len(names))
	}
	for _, m := range names {
		for _, kind := range []string{"fires", "is silent"} {
			if !bytes.Contains(cases, fmt.Appendf(nil, "  - name: %s %s\n", m[1], kind)) {
				t.Errorf("no case in which %s %s", m[1], kind)
			}
		}
		_, fires, _ := bytes.Cut(cases, fmt.Appendf(nil, "  - name: %s fires\n", m[1]))
		fires, _, _ = bytes.Cut(fires, []byte("  - name: "))
		if bytes.Contains(m[2], []byte("sum by (instance")) && !bytes.Contains(fires, []byte(`instance=\"b\"`)) {
			t.Errorf("%s sums by instance, and no second server is beside the one for which it fires", m[1])
		}
	}
}

// Prometheus's own parser reads every expression of the dashboard: as a recording rule.
func TestPrometheusParsesTheDashboard(t *testing.T) {
	promtool := realserver.Program(t, "promtool")
	var b strings.Builder
	b.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, e := range expressions(t) {
		expr, err := json.Marshal(strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(e))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "      - record: expression:%d\n        expr: %s\n", i, expr)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Every metric of the dashboard and of the alerts has a series in a scrape of a busy master or of its replica.
func TestEveryExpressionHasItsMetric(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.Make(t, "ebb")
	for name, pem := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	master, addr := busy(t, []string{
		"SET k v PX 1", "GET k", "GET k", "LOCK.ACQUIRE l me 1", "SEM.ACQUIRE s me 2 1", "RL.TAKE r 1 60000", "RL.TAKE r 1 60000",
		"DQ.ADD q 1 x", "DQ.POP q LEASE 1", "DQ.SCHEDULE q each 1 EVERY 10", "EXPIRY RULE SET all MATCH * TO events",
		"CONFIG SET maxmemory 100mb",
	}, "--appendonly", "yes", "--tls-port", fmt.Sprint(realserver.FreePort(t)), "--tls-auth-clients", "no",
		"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"))
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	replica, _ := busy(t, nil, "--replicaof", host+" "+port)
	text := master()
	for end := time.Now().Add(tier.Patience); !bytes.Contains(text, []byte("\nredis_connected_slave_lag_seconds{")) &&
		time.Now().Before(end); {
		text = master() // until the replica is connected
	}
	scrape := string(text) + string(replica())
	names := regexp.MustCompile(`\b(?:ebb|redis|go|process)_[a-z_]+`)
	n := 0
	for _, e := range append(expressions(t), alerts(t)...) {
		for _, name := range names.FindAllString(e, -1) {
			n++
			if !strings.Contains(scrape, "\n"+name+"{") && !strings.Contains(scrape, "\n"+name+" ") {
				t.Errorf("%s has no series: %s", name, e)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d metrics were found in the expressions", n)
	}
}
