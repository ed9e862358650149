package console

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// columns are the columns of a series, computed from a sample. NaN means no value.
var columns = [...]struct {
	name string
	of   func(s *sample) float64
}{
	{"keys", func(s *sample) float64 { return s.Keys }},
	{"keysTTL", func(s *sample) float64 { return s.KeysTTL }},
	{"ops", func(s *sample) float64 { return s.Ops }},
	{"p50", func(s *sample) float64 { return orNaN(s.P50) }},
	{"p99", func(s *sample) float64 { return orNaN(s.P99) }},
	{"mem", func(s *sample) float64 { return s.Mem }},
	{"rss", func(s *sample) float64 { return s.RSS }},
	{"lag50", func(s *sample) float64 { return orNaN(s.Lag50) }},
	{"lag99", func(s *sample) float64 { return orNaN(s.Lag99) }},
	{"lagMax", func(s *sample) float64 { return orNaN(s.LagMax) }},
	{"backlog", func(s *sample) float64 { return s.Backlog }},
	{"clients", func(s *sample) float64 { return s.Clients }},
	{"waiting", func(s *sample) float64 { return s.Waiting }},
	{"hits", func(s *sample) float64 { return s.Hits }},
	{"misses", func(s *sample) float64 { return s.Misses }},
	{"in", func(s *sample) float64 { return s.In }},
	{"out", func(s *sample) float64 { return s.Out }},
	{"cpu", func(s *sample) float64 { return s.CPU }},
	{"allowed", func(s *sample) float64 { return s.Allowed }},
	{"denied", func(s *sample) float64 { return s.Denied }},
	{"jobsAdded", func(s *sample) float64 { return s.Added }},
	{"jobsDelivered", func(s *sample) float64 { return s.Taken }},
	{"jobsAcked", func(s *sample) float64 { return s.Acked }},
	{"replLag", func(s *sample) float64 { return s.ReplLag }},
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// point is a sample in a series: the columns, and the expirations by level.
type point struct {
	at      int64 // ms since 1970
	value   [len(columns)]float32
	expired [len(levels)]float32
}

func pointOf(s *sample) point {
	p := point{at: s.At}
	for i := range columns {
		p.value[i] = float32(columns[i].of(s))
	}
	for i, l := range levels {
		p.expired[i] = float32(s.Expired[l])
	}
	return p
}

// ring is a series of points. Its zero value has space for none.
type ring struct {
	points []point // once it is full, the oldest is at next
	next   int
}

func newRing(n int) ring { return ring{points: make([]point, 0, n)} }

func (r *ring) add(p point) {
	if len(r.points) < cap(r.points) {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % len(r.points)
}

// since returns the points after an instant, oldest first.
func (r *ring) since(ms int64) (out []point) {
	for i := range r.points {
		if p := &r.points[(r.next+i)%len(r.points)]; p.at > ms {
			out = append(out, *p)
		}
	}
	return out
}

// last returns the time of the last point, 0 if there is none.
func (r *ring) last() int64 {
	if len(r.points) == 0 {
		return 0
	}
	return r.points[(r.next+len(r.points)-1)%len(r.points)].at
}

// seriesJSON returns points by column: {"now":1,"step":1000,"at":[..],"ops":[..],"expired":{"key":[..]}}.
// Columns are shorter than objects, because they do not repeat the names, and six digits are enough for a
// chart.
func seriesJSON(now int64, points []point, step time.Duration) json.RawMessage {
	b := make([]byte, 0, 64+len(points)*(len(columns)+len(levels)+2)*5)
	b = strconv.AppendInt(append(b, `{"now":`...), now, 10)
	b = strconv.AppendInt(append(b, `,"step":`...), step.Milliseconds(), 10)
	b = append(b, `,"at":[`...)
	for i := range points {
		b = strconv.AppendInt(comma(b, i), points[i].at, 10)
	}
	b = append(b, ']')
	column := func(name string, of func(p *point) float32) {
		b = append(strconv.AppendQuote(b, name), ":["...)
		for i := range points {
			b = appendFloat32(comma(b, i), of(&points[i]))
		}
		b = append(b, ']')
	}
	for c := range columns {
		b = append(b, ',')
		column(columns[c].name, func(p *point) float32 { return p.value[c] })
	}
	b = append(b, `,"expired":{`...)
	for l, name := range levels {
		b = comma(b, l)
		column(name, func(p *point) float32 { return p.expired[l] })
	}
	return append(b, "}}"...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

func appendFloat32(b []byte, f float32) []byte {
	x := float64(f)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(b, "null"...)
	}
	if x == math.Trunc(x) && math.Abs(x) < 1e6 {
		return strconv.AppendInt(b, int64(x), 10)
	}
	return strconv.AppendFloat(b, x, 'g', 6, 32)
}
