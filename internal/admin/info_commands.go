package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
)

// The sections of INFO about single commands and errors.

// Tally sums up what all loops have counted of the command with an ID, and adds its direct calls in c, which may be nil.
func (s *Server) Tally(id int, c *engine.Counters) (t Tally) {
	for _, l := range s.Loops {
		t.Add(l.Of(id))
	}
	if c != nil {
		for kind, of := range s.Direct {
			if of == id {
				t.Calls += c.Direct[kind]
			}
		}
	}
	return t
}

func (i *info) commandstats() {
	for id := range i.svc.Commands {
		t := i.svc.Tally(id, i.engine())
		if t.Calls+t.Rejected+t.Failed == 0 {
			continue
		}
		i.put("cmdstat_"+cleantext.Word(i.svc.Commands[id], maxInfoText), fmt.Sprintf(
			"calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			t.Calls, t.Micros, Ratio(t.Micros, t.Calls), t.Rejected, t.Failed))
	}
}

func (i *info) errorstats() {
	codes := i.svc.Totals.ErrorCodes()
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		i.put("errorstat_"+code, fmt.Sprintf("count=%d", codes[code]))
	}
}

func (i *info) latencystats() {
	if !i.svc.Host.Timing() { // old counts would look like present ones
		return
	}
	for id := range i.svc.Commands {
		t := i.svc.Tally(id, nil)
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
		i.put("latency_percentiles_usec_"+cleantext.Word(i.svc.Commands[id], maxInfoText), strings.Join(parts, ","))
	}
}
