package admin

import "github.com/ebbdb/ebb/internal/engine"

// A Meter returns the metrics of a server and its engine, with names, for monitoring. It
// does not format them:
//
//	redis_...   what redis_exporter makes of INFO, under its names, so that its
//	            dashboards work as they are: metrics_redis.go
//	ebb_...     what only ebb has: metrics_ebb.go
//
// Start reading at Meter.Read.

// MetricKind is the kind of a metric.
type MetricKind uint8

// The kinds.
const (
	Gauge        MetricKind = iota // goes up and down
	Counter                        // only grows, except for CONFIG RESETSTAT
	Distribution                   // Count, Sum and Buckets instead of Value
)

// Metric is one number, or one distribution.
type Metric struct {
	Name   string
	Help   string // one sentence; the same for all metrics of a name
	Kind   MetricKind
	Labels []string // names and values in turn; the same names for all metrics of a name
	Value  float64

	// The fields of a Distribution:
	Count   uint64
	Sum     float64
	Buckets map[float64]uint64 // number of values that were not above a bound
}

// Meter reads the metrics of a server. It is safe for concurrent use. It holds
// the engine's latest survey, some 20 KB for each shard.
type Meter struct {
	svc      *Server
	surveyor *engine.Surveyor
}

// NewMeter returns a meter of a server.
func NewMeter(s *Server) *Meter { return &Meter{s, s.DB.NewSurveyor()} }

// Read calls emit for every metric, those of one name together. It locks the
// shards one at a time for microseconds and waits for none that is held for long;
// see engine.Surveyor. It takes some hundred microseconds and O(clients), and
// never more than 50 ms beside that. The caller must hold no shard.
func (m *Meter) Read(emit func(Metric)) {
	r := &scrape{svc: m.svc, v: m.surveyor.Survey(), now: m.svc.DB.Clock().Micros(), emit: emit}
	r.redis()
	r.ebb()
}

// scrape is one Read.
type scrape struct {
	svc  *Server
	v    *engine.Survey
	now  int64 // us
	emit func(Metric)
}

func (r *scrape) gauge(name, help string, value float64, labels ...string) {
	r.emit(Metric{Name: name, Help: help, Value: value, Labels: labels})
}

func (r *scrape) counter(name, help string, value float64, labels ...string) {
	r.emit(Metric{Name: name, Help: help, Kind: Counter, Value: value, Labels: labels})
}

// lagBounds are the upper bounds of the buckets of durations, in us. They are bounds of
// the engine's own buckets, so the counts are exact. They go from 128 us, the least time
// of anything on a network, to two minutes.
var lagBounds = [...]int64{1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16,
	1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 22, 1 << 24, 1 << 27}

// boundCounts has the durations up to each of lagBounds, but above the one before, and then those above all of them.
type boundCounts [len(lagBounds) + 1]uint64

// boundOf returns where a duration counts.
func boundOf(us int64) (i int) {
	for i < len(lagBounds) && us > lagBounds[i] {
		i++
	}
	return i
}

// durations emits a histogram of the engine's, in seconds.
func (r *scrape) durations(name, help string, h *engine.Histogram, labels ...string) {
	var counts boundCounts
	h.Each(func(_, hi, n int64) { counts[boundOf(hi)] += uint64(n) })
	r.distribution(name, help, counts, h.Sum, labels...)
}

// distribution emits counts of durations, and their sum in us, in seconds.
func (r *scrape) distribution(name, help string, counts boundCounts, us int64, labels ...string) {
	d := Metric{Name: name, Help: help, Kind: Distribution, Labels: labels, Sum: float64(us) / 1e6,
		Buckets: make(map[float64]uint64, len(lagBounds))}
	for i, bound := range lagBounds {
		d.Count += counts[i]
		d.Buckets[float64(bound)/1e6] = d.Count
	}
	d.Count += counts[len(lagBounds)]
	r.emit(d)
}
