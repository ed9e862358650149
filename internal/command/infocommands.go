package command

import (
	"fmt"
	"strconv"
	"strings"
)

// The sections of INFO about single commands and errors.

// tally is what one command has counted on all loops.
type tally struct {
	calls, micros, rejected, failed int64
	latency                         [latencyBins]int64
}

func (s *Service) tally(spec *Spec) (t tally) {
	for _, l := range s.stats {
		c := l.of(spec)
		t.calls += c.calls.Load()
		t.micros += c.micros.Load()
		t.rejected += c.rejected.Load()
		t.failed += c.failed.Load()
		if bins := c.latency.Load(); bins != nil {
			for i := range bins {
				t.latency[i] += bins[i].Load()
			}
		}
	}
	return t
}

func (i *info) commandstats() {
	for id := range i.svc.table.Len() {
		s := i.svc.table.Spec(id)
		t := i.svc.tally(s)
		if t.calls+t.rejected+t.failed == 0 {
			continue
		}
		i.put("cmdstat_"+s.Name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			t.calls, t.micros, ratio(t.micros, t.calls), t.rejected, t.failed))
	}
}

func (i *info) errorstats() {
	codes := i.svc.totals.errorCodes()
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
		for _, n := range t.latency {
			count += n
		}
		if count == 0 {
			continue
		}
		var parts []string
		for _, p := range i.svc.Config.LatencyPercentiles() {
			parts = append(parts, "p"+strconv.FormatFloat(p, 'g', -1, 64)+"="+fmt.Sprintf("%.3f", float64(t.percentile(p, count))))
		}
		i.put("latency_percentiles_usec_"+s.Name, strings.Join(parts, ","))
	}
}

// percentile returns a time in us that p percent of count calls did not exceed,
// to the width of a bucket.
func (t *tally) percentile(p float64, count int64) int64 {
	rank := int64(p / 100 * float64(count))
	for bin, n := range t.latency {
		if rank -= n; rank < 0 {
			return latencyTop(bin)
		}
	}
	for bin := latencyBins - 1; bin >= 0; bin-- {
		if t.latency[bin] > 0 {
			return latencyTop(bin)
		}
	}
	return 0
}
