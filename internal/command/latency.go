package command

import (
	"sync"
	"time"
)

// latencyMonitor keeps, for each kind of event, when it last took longer than
// latency-monitor-threshold.
type latencyMonitor struct {
	mu     sync.Mutex // guards what follows
	events map[string]*latencySeries
}

// latencySeries are the samples of an event: one a second at most, the worst of it.
type latencySeries struct {
	samples []latencySample // oldest first
	max     int64           // ms, of all times
}

type latencySample struct{ at, ms int64 } // at in seconds since 1970

// latencySamples is how many samples an event keeps, as Redis does.
const latencySamples = 160

// The events there are: command, fast-command, command-unblocking (a command that
// has waited is served), expire-cycle (a slice of reclaiming) and eviction-cycle
// (a command has made room).

// Latency notes that an event took so many microseconds, if latency-monitor-threshold
// asks for it.
func (s *Service) Latency(event string, us int64) {
	threshold := s.Config.LatencyMonitorThreshold()
	if threshold == 0 || us/1000 < threshold {
		return
	}
	s.latencies.add(event, s.DB.Clock().Micros()/1e6, us/1000)
}

// Reclaim runs a slice of the engine's own work and notes how long it took.
func (s *Service) Reclaim(run func() time.Duration) time.Duration {
	if s.Config.LatencyMonitorThreshold() == 0 {
		return run()
	}
	began := s.DB.Clock().Micros()
	next := run()
	s.Latency("expire-cycle", s.DB.Clock().Micros()-began)
	return next
}

func (m *latencyMonitor) add(event string, at, ms int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = map[string]*latencySeries{}
	}
	s := m.events[event]
	if s == nil {
		s = &latencySeries{}
		m.events[event] = s
	}
	s.max = max(s.max, ms)
	if n := len(s.samples); n > 0 && s.samples[n-1].at == at {
		s.samples[n-1].ms = max(s.samples[n-1].ms, ms)
		return
	}
	if len(s.samples) == latencySamples {
		s.samples = append(s.samples[:0], s.samples[1:]...)
	}
	s.samples = append(s.samples, latencySample{at, ms})
}

// get returns a copy of an event's samples and the worst time of all, nothing if
// there was none.
func (m *latencyMonitor) get(event string) latencySeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.events[event]; s != nil {
		return latencySeries{append([]latencySample(nil), s.samples...), s.max}
	}
	return latencySeries{}
}

// names lists the events that have samples, in order.
func (m *latencyMonitor) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sortedNames(m.events)
}

// reset forgets an event and reports whether there was one.
func (m *latencyMonitor) reset(event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[event]
	delete(m.events, event)
	return ok
}

// last is the latest sample.
func (s *latencySeries) last() latencySample { return s.samples[len(s.samples)-1] }

// span returns the smallest and the largest sample in ms.
func (s *latencySeries) span() (lo, hi int64) {
	lo = s.samples[0].ms
	for _, x := range s.samples {
		lo, hi = min(lo, x.ms), max(hi, x.ms)
	}
	return lo, hi
}

// average returns the mean of the samples in ms, the mean deviation from it, and the
// seconds from one to the next.
func (s *latencySeries) average(now int64) (mean, deviation int64, period float64) {
	n := int64(len(s.samples))
	for _, x := range s.samples {
		mean += x.ms
	}
	mean /= n
	for _, x := range s.samples {
		deviation += max(x.ms-mean, mean-x.ms)
	}
	return mean, deviation / n, float64(max(now-s.samples[0].at, 1)) / float64(n)
}

// Sizes of the graph, in characters.
const (
	graphCols = 80
	graphRows = 4
)

// graph draws the latest samples as columns, under them how long ago each was.
func (s *latencySeries) graph(now int64) string {
	shown := s.samples[max(0, len(s.samples)-graphCols):]
	part := latencySeries{samples: shown}
	lo, hi := part.span()
	ages := make([]string, len(shown))
	rows := graphRows + 1 // one stays empty
	for i, x := range shown {
		ages[i] = age(now - x.at)
		rows = max(rows, graphRows+1+len(ages[i]))
	}
	var b []byte
	for row := range rows {
		for i, x := range shown {
			char := byte(' ')
			switch {
			case row < graphRows:
				char = column(x.ms-lo, hi-lo, graphRows-1-row)
			case row > graphRows && row-graphRows-1 < len(ages[i]):
				char = ages[i][row-graphRows-1]
			}
			b = append(b, char)
		}
		b = append(b, '\n')
	}
	return string(b)
}

// column is what a column of height v of top shows in a row, counted from below:
// each row has three heights, and below the top it is filled.
func column(v, top int64, row int) byte {
	const heights = "_o#"
	const steps = int64(len(heights) * graphRows)
	step := min(v*steps/max(top, 1), steps-1) - int64(row*len(heights))
	switch {
	case step < 0:
		return ' '
	case step >= int64(len(heights)):
		return '|'
	}
	return heights[step]
}

// age writes seconds with the largest unit that fits.
func age(seconds int64) string {
	switch {
	case seconds < 60:
		return itoa(seconds) + "s"
	case seconds < 3600:
		return itoa(seconds/60) + "m"
	case seconds < 86400:
		return itoa(seconds/3600) + "h"
	}
	return itoa(seconds/86400) + "d"
}
