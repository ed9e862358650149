package admin

import "testing"

// An event keeps its latest samples.
func TestLatencySamplesAreBounded(t *testing.T) {
	var m LatencyMonitor
	for i := range int64(1000) {
		m.Add("command", i, 1000-i)
	}
	s := m.Get("command")
	if len(s.Samples) != latencySamples || s.Samples[0].At != 1000-latencySamples || s.Last().At != 999 || s.Max != 1000 {
		t.Errorf("%d samples, from %d to %d, the worst %d", len(s.Samples), s.Samples[0].At, s.Last().At, s.Max)
	}
}
