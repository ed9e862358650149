// Package metricstest has Prometheus's own parser and linter read the metrics of a server.
package metricstest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// page is /metrics of a server with options.
func page(t *testing.T, options ...string) []byte {
	t.Helper()
	scrape, _ := busy(t, nil, options...)
	return scrape()
}

// busy starts a server on which each of the commands has run, and returns a function that reads its /metrics, and its address.
func busy(t *testing.T, commands []string, options ...string) (scrape func() []byte, addr string) {
	t.Helper()
	admin := fmt.Sprintf("127.0.0.1:%d", realserver.FreePort(t))
	p := realserver.NewProcess(t, realserver.Ebb(t), append([]string{"--http", admin}, options...)...)
	p.Start()
	addr = p.Addr()
	for _, c := range commands {
		ask(t, addr, c)
	}
	return func() []byte {
		t.Helper()
		for {
			r, err := http.Get("http://" + admin + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode == http.StatusOK { // until it is ready it says 503
				return text
			}
		}
	}, addr
}

// TestOurMetricsAreWellNamed has Prometheus's own linter look at them, and at those of the process; those that
// have their names from redis_exporter are not ours to name.
func TestOurMetricsAreWellNamed(t *testing.T) {
	text := page(t)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "redis_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, want := range []string{`# HELP ebb_expiry_items Keys with a deadline, and containers in which something falls due.
# TYPE ebb_expiry_items gauge
ebb_expiry_items{of="`, `# HELP ebb_reclaiming_time_caps_total Slices of that which ended before the work did.
# TYPE ebb_reclaiming_time_caps_total counter
ebb_reclaiming_time_caps_total 0
`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no\n%s\nin\n%s", want, text)
		}
	}
}

// TestPrometheusReadsEveryMetric: the parser takes the page, which has no series twice, and
// the families that dashboards for Go programs and for redis_exporter ask for.
func TestPrometheusReadsEveryMetric(t *testing.T) {
	text := page(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go_goroutines", "go_threads", "go_info", "go_gc_duration_seconds", "go_memstats_heap_inuse_bytes",
		"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds", "process_max_fds",
		"redis_up", "redis_connected_clients", "ebb_expiry_lag_seconds"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		series := line[:strings.LastIndexByte(line, ' ')+1]
		if seen[series] && !strings.HasPrefix(line, "#") {
			t.Errorf("twice: %s", line)
		}
		seen[series] = true
	}
	if len(seen) < 200 {
		t.Errorf("only %d series:\n%s", len(seen), text)
	}
}

// The guide's table has every metric of ebb's own.
func TestTheGuideNamesEveryMetric(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "\n## Metrics of ebb\n")
	table, _, _ = strings.Cut(table, "\n## ")
	names := 0
	for line := range strings.Lines(string(page(t))) {
		rest, ok := strings.CutPrefix(line, "# TYPE ebb_")
		if !ok {
			continue
		}
		names++
		name, _, _ := strings.Cut("ebb_"+rest, " ")
		if !strings.Contains(table, "`"+name+"`") && !strings.Contains(table, "`"+name+"{") {
			t.Errorf("docs/guides/metrics.md has no line for %s", name)
		}
	}
	if names < 20 {
		t.Errorf("the page has %d metrics of ebb", names)
	}
}
