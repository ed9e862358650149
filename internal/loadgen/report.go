package loadgen

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Report prints results as they come.
type Report interface {
	Row(Result)
	End() error
}

// NewTable returns a Report for people.
func NewTable(w io.Writer) Report { return &table{w: w} }

// NewCSV returns a Report of comma-separated values with a header.
func NewCSV(w io.Writer) Report { return &csv{w: w} }

// NewJSON returns a Report of one JSON array.
func NewJSON(w io.Writer) Report { return &jsonReport{w: w, rows: []row{}} }

type table struct {
	w      io.Writer
	header bool
}

func (t *table) Row(r Result) {
	if !t.header {
		fmt.Fprintf(t.w, "%-16s %9s %10s %8s %8s %8s %8s %8s %8s %9s\n",
			"test", "requests", "op/s", "avg ms", "p50", "p90", "p99", "p99.9", "max", "cpu us/op")
		t.header = true
	}
	l := &r.Latency
	fmt.Fprintf(t.w, "%-16s %9d %10s %8s %8s %8s %8s %8s %8s %9s\n", r.Name, r.Requests, thousands(r.PerSecond()),
		ms(l.Mean()), ms(l.Quantile(0.5)), ms(l.Quantile(0.9)), ms(l.Quantile(0.99)), ms(l.Quantile(0.999)), ms(l.Max),
		micros(r.CPUPerRequest(), "-"))
	if r.Errors > 0 {
		fmt.Fprintf(t.w, "%-16s %9d errors, the first: %s\n", "", r.Errors, r.FirstError)
	}
}

func (t *table) End() error { return nil }

type csv struct {
	w      io.Writer
	header bool
}

func (c *csv) Row(r Result) {
	if !c.header {
		fmt.Fprintln(c.w, `"test","requests","errors","seconds","rps","avg_ms","p50_ms","p90_ms","p99_ms","p99.9_ms","max_ms","cpu_us_per_op"`)
		c.header = true
	}
	l := &r.Latency
	fmt.Fprintf(c.w, "\"%s\",%d,%d,%.3f,%.2f,%s,%s,%s,%s,%s,%s,%s\n", strings.ReplaceAll(r.Name, `"`, `""`), r.Requests, r.Errors,
		r.Elapsed.Seconds(), r.PerSecond(),
		ms(l.Mean()), ms(l.Quantile(0.5)), ms(l.Quantile(0.9)), ms(l.Quantile(0.99)), ms(l.Quantile(0.999)), ms(l.Max),
		micros(r.CPUPerRequest(), ""))
}

func (c *csv) End() error { return nil }

type jsonReport struct {
	w    io.Writer
	rows []row
}

type row struct {
	Test     string   `json:"test"`
	Requests int64    `json:"requests"`
	Errors   int64    `json:"errors"`
	First    string   `json:"first_error,omitempty"`
	Seconds  float64  `json:"seconds"`
	RPS      float64  `json:"rps"`
	Avg      float64  `json:"avg_ms"`
	P50      float64  `json:"p50_ms"`
	P90      float64  `json:"p90_ms"`
	P99      float64  `json:"p99_ms"`
	P999     float64  `json:"p99.9_ms"`
	Max      float64  `json:"max_ms"`
	CPU      *float64 `json:"cpu_us_per_op,omitempty"`
}

func (j *jsonReport) Row(r Result) {
	l := &r.Latency
	f := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	out := row{
		Test: r.Name, Requests: r.Requests, Errors: r.Errors, First: r.FirstError,
		Seconds: r.Elapsed.Seconds(), RPS: r.PerSecond(), Avg: f(l.Mean()), P50: f(l.Quantile(0.5)), P90: f(l.Quantile(0.9)),
		P99: f(l.Quantile(0.99)), P999: f(l.Quantile(0.999)), Max: f(l.Max),
	}
	if d := r.CPUPerRequest(); d >= 0 {
		us := float64(d.Nanoseconds()) / 1000
		out.CPU = &us
	}
	j.rows = append(j.rows, out)
}

func (j *jsonReport) End() error {
	enc := json.NewEncoder(j.w)
	enc.SetIndent("", "  ")
	return enc.Encode(j.rows)
}

// statusLine is a line on a terminal that renews itself. Without a terminal it
// is silent.
type statusLine struct{ w io.Writer }

func (s statusLine) set(format string, args ...any) {
	if s.w != nil {
		fmt.Fprintf(s.w, "\r\x1b[K"+format, args...)
	}
}

func (s statusLine) clear() {
	if s.w != nil {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
	}
}

func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
}

func micros(d time.Duration, unknown string) string {
	if d < 0 {
		return unknown
	}
	return strconv.FormatFloat(float64(d)/float64(time.Microsecond), 'f', 2, 64)
}

// thousands writes 1234567.8 as 1,234,568.
func thousands(f float64) string {
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
