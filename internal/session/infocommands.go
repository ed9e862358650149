package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
)

// The sections of INFO about single commands and errors.

// tally sums up what all loops have counted of a command.
func (s *Service) tally(spec *command.Spec) (t admin.Tally) {
	for _, l := range s.stats {
		t.Add(l.of(spec))
	}
	return t
}

func (i *info) commandstats() {
	for id := range i.svc.table.Len() {
		s := i.svc.table.Spec(id)
		t := i.svc.tally(s)
		if t.Calls+t.Rejected+t.Failed == 0 {
			continue
		}
		i.put("cmdstat_"+s.Name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			t.Calls, t.Micros, ratio(t.Micros, t.Calls), t.Rejected, t.Failed))
	}
}

func (i *info) errorstats() {
	codes := i.svc.totals.ErrorCodes()
	for _, code := range sortedNames(codes) {
		i.put("errorstat_"+code, fmt.Sprintf("count=%d", codes[code]))
	}
}

func (i *info) latencystats() {
	if !i.svc.latency.Load() { // what was counted before would look as if it were of now
		return
	}
	for id := range i.svc.table.Len() {
		s := i.svc.table.Spec(id)
		t := i.svc.tally(s)
		count := int64(0)
		for _, n := range t.Latency {
			count += n
		}
		if count == 0 {
			continue
		}
		var parts []string
		for _, p := range i.svc.Config.LatencyPercentiles() {
			parts = append(parts, "p"+strconv.FormatFloat(p, 'g', -1, 64)+"="+fmt.Sprintf("%.3f", float64(t.Percentile(p, count))))
		}
		i.put("latency_percentiles_usec_"+s.Name, strings.Join(parts, ","))
	}
}
