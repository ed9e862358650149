package admin

import (
	"maps"
	"slices"
	"strconv"
	"sync"
)

// LatencyMonitor stores, for each kind of event, samples of those that took longer than
// latency-monitor-threshold. Its methods are safe for concurrent use. The zero value is
// empty.
//
// The events are command, fast-command, command-unblocking (the server runs a command that
// has waited), expire-cycle (a slice of reclaiming) and eviction-cycle (a command has made
// room).
type LatencyMonitor struct {
	mu     sync.Mutex // guards what follows
	events map[string]*LatencySeries
}

// LatencySeries are the samples of an event: at most one for each second, the worst.
type LatencySeries struct {
	Samples []LatencySample // oldest first
	Max     int64           // ms, since the event was last reset
}

// LatencySample is one sample of an event.
type LatencySample struct {
	At int64 // seconds since 1970
	Ms int64
}

// latencySamples is the number of samples that an event keeps, as in Redis.
const latencySamples = 160

// Add records that an event took ms milliseconds; at is in seconds since 1970.
func (m *LatencyMonitor) Add(event string, at, ms int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = map[string]*LatencySeries{}
	}
	s := m.events[event]
	if s == nil {
		s = &LatencySeries{}
		m.events[event] = s
	}
	s.Max = max(s.Max, ms)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].At == at {
		s.Samples[n-1].Ms = max(s.Samples[n-1].Ms, ms)
		return
	}
	if len(s.Samples) == latencySamples {
		s.Samples = append(s.Samples[:0], s.Samples[1:]...)
	}
	s.Samples = append(s.Samples, LatencySample{at, ms})
}

// Get returns a copy of an event's samples, none if there is no such event.
func (m *LatencyMonitor) Get(event string) LatencySeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.events[event]; s != nil {
		return LatencySeries{append([]LatencySample(nil), s.Samples...), s.Max}
	}
	return LatencySeries{}
}

// Names returns the events that have samples, in order.
func (m *LatencyMonitor) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.events))
}

// Reset forgets an event and reports whether it had samples.
func (m *LatencyMonitor) Reset(event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[event]
	delete(m.events, event)
	return ok
}

// Last returns the latest sample. There must be one.
func (s *LatencySeries) Last() LatencySample { return s.Samples[len(s.Samples)-1] }

// Span returns the smallest and the largest sample in ms.
func (s *LatencySeries) Span() (lo, hi int64) {
	lo = s.Samples[0].Ms
	for _, x := range s.Samples {
		lo, hi = min(lo, x.Ms), max(hi, x.Ms)
	}
	return lo, hi
}

// Average returns the mean of the samples in ms, the mean deviation from it, and the
// seconds from one to the next.
func (s *LatencySeries) Average(now int64) (mean, deviation int64, period float64) {
	n := int64(len(s.Samples))
	for _, x := range s.Samples {
		mean += x.Ms
	}
	mean /= n
	for _, x := range s.Samples {
		deviation += max(x.Ms-mean, mean-x.Ms)
	}
	return mean, deviation / n, float64(max(now-s.Samples[0].At, 1)) / float64(n)
}

// The size of the graph, in characters.
const (
	GraphCols = 80
	graphRows = 4
)

// Graph draws the latest samples as columns, with their ages below. now is in seconds since
// 1970.
func (s *LatencySeries) Graph(now int64) string {
	shown := s.Samples[max(0, len(s.Samples)-GraphCols):]
	part := LatencySeries{Samples: shown}
	lo, hi := part.Span()
	ages := make([]string, len(shown))
	rows := graphRows + 1 // one row stays empty
	for i, x := range shown {
		ages[i] = age(now - x.At)
		rows = max(rows, graphRows+1+len(ages[i]))
	}
	var b []byte
	for row := range rows {
		for i, x := range shown {
			char := byte(' ')
			switch {
			case row < graphRows:
				char = column(x.Ms-lo, hi-lo, graphRows-1-row)
			case row > graphRows && row-graphRows-1 < len(ages[i]):
				char = ages[i][row-graphRows-1]
			}
			b = append(b, char)
		}
		b = append(b, '\n')
	}
	return string(b)
}

// column returns the character of a column of height v of top in a row, counted from below:
// a row has three heights, and is filled below the top of the column.
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
		return strconv.FormatInt(seconds, 10) + "s"
	case seconds < 3600:
		return strconv.FormatInt(seconds/60, 10) + "m"
	case seconds < 86400:
		return strconv.FormatInt(seconds/3600, 10) + "h"
	}
	return strconv.FormatInt(seconds/86400, 10) + "d"
}
