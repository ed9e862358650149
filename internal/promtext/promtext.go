// Package promtext writes metrics in the text format of Prometheus, version 0.0.4:
//
//	admin.Meter ──▶ Append ──▶ Handler ──▶ GET /metrics
//	names, numbers    text       gzip, a bound on scrapes
//	process.go: the runtime's and the process's
//
// Start reading at Handler.
package promtext

import (
	"compress/gzip"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/cleantext"
)

// ContentType is the media type of the format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// maxScrapes is the limit of scrapes at a time: one for Prometheus, and some for people.
// The handler answers further ones with 503.
const maxScrapes = 4

// Handler serves the metrics that read emits, and those of Go's runtime (go_...) and of the
// process (process_...). read must emit all metrics of a name one after the other. It must be
// safe for concurrent use: up to four scrapes run at a time.
func Handler(read func(emit func(admin.Metric))) http.Handler {
	slots := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "four scrapes are under way, which is the limit: try again later", http.StatusServiceUnavailable)
			return
		}
		page := page(read)
		w.Header().Set("Content-Type", ContentType)
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = w.Write(page) // a client that has disconnected needs no reply
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(page)
		_ = z.Close()
	})
}

// page returns the text for one scrape. The handler makes all of it before it sends a
// byte, because the client may be slow.
func page(read func(emit func(admin.Metric))) []byte {
	var out []byte
	last := ""
	emit := func(m admin.Metric) {
		out = Append(out, &m, m.Name != last)
		last = m.Name
	}
	read(emit)
	goMetrics(emit)
	out = appendPauses(out)
	processMetrics(emit)
	return out
}

// Append appends a metric's lines to out: with first, HELP and TYPE, which stand once above
// all metrics of a name, and then the value, or the buckets, the sum and the count of a
// distribution.
func Append(out []byte, m *admin.Metric, first bool) []byte {
	if first {
		out = append(append(out, "# HELP "...), m.Name...)
		out = append(append(out, ' '), escapeHelp.Replace(m.Help)...)
		out = append(append(out, "\n# TYPE "...), m.Name...)
		out = append(append(append(out, ' '), kinds[m.Kind]...), '\n')
	}
	if m.Kind != admin.Distribution {
		return appendSeries(out, m.Name, "", m.Labels, "", m.Value)
	}
	for _, bound := range slices.Sorted(maps.Keys(m.Buckets)) {
		out = appendSeries(out, m.Name, "_bucket", m.Labels, strconv.FormatFloat(bound, 'g', -1, 64), float64(m.Buckets[bound]))
	}
	out = appendSeries(out, m.Name, "_bucket", m.Labels, "+Inf", float64(m.Count))
	out = appendSeries(out, m.Name, "_sum", m.Labels, "", m.Sum)
	return appendSeries(out, m.Name, "_count", m.Labels, "", float64(m.Count))
}

// kinds are the words of TYPE lines.
var kinds = [...]string{admin.Gauge: "gauge", admin.Counter: "counter", admin.Distribution: "histogram"}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
)

// maxLabel is the number of bytes of a label's value. Prefixes of keys and names of users are labels.
const maxLabel = 1 << 10

// appendSeries appends one line. le is the bound of a bucket, "" where there is none.
func appendSeries(out []byte, name, suffix string, labels []string, le string, value float64) []byte {
	out = append(append(out, name...), suffix...)
	open := byte('{')
	label := func(name, value string) {
		out = append(append(append(out, open), name...), '=', '"')
		out = append(append(out, escapeLabel.Replace(cleantext.Line(value, maxLabel))...), '"')
		open = ','
	}
	for i := 0; i < len(labels); i += 2 {
		label(labels[i], labels[i+1])
	}
	if le != "" {
		label("le", le)
	}
	if open == ',' {
		out = append(out, '}')
	}
	return append(strconv.AppendFloat(append(out, ' '), value, 'g', -1, 64), '\n')
}
