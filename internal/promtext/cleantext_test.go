package promtext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/promtext"
)

// Prometheus drops a scrape with a byte that is not UTF-8.
func TestALabelIsCleanText(t *testing.T) {
	got := string(promtext.Append(nil, &admin.Metric{Name: "n", Value: 1, Labels: []string{"rule", "caf\xe9 \r\nrole:slave \"x\" \\"}}, false))
	if want := `n{rule="caf_ __role:slave \"x\" \\"} 1` + "\n"; got != want || !utf8.ValidString(got) {
		t.Errorf("%q, want %q", got, want)
	}
	long := string(promtext.Append(nil, &admin.Metric{Name: "n", Labels: []string{"rule", strings.Repeat("é", 5000)}}, false))
	if len(long) > 1100 || !utf8.ValidString(long) {
		t.Errorf("a label of %d bytes", len(long))
	}
}
