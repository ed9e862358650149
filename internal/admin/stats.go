package admin

import (
	"fmt"
	"maps"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
)

// LoopStats holds the counters of one network loop. Each loop has its own, so that loops
// do not share cache lines. INFO shows the sums over all loops.
type LoopStats struct {
	commands []CommandStats // by the command's ID
	Total    atomic.Int64   // commands
	Direct   atomic.Int64   // direct calls, added for many at a time; engine.Counters has their exact number
	Input    atomic.Int64   // bytes
	Output   atomic.Int64   // bytes
	Reads    atomic.Int64   // batches of input
	Writes   atomic.Int64   // batches of output
	Held     Waits          // of replies for the group
}

// NewLoopStats returns statistics for n commands.
func NewLoopStats(n int) LoopStats { return LoopStats{commands: make([]CommandStats, n)} }

// Of returns the statistics of the command with an ID.
func (l *LoopStats) Of(id int) *CommandStats { return &l.commands[id] }

// Reset sets all counters to 0.
func (l *LoopStats) Reset() {
	for _, n := range []*atomic.Int64{&l.Total, &l.Direct, &l.Input, &l.Output, &l.Reads, &l.Writes} {
		n.Store(0)
	}
	l.Held.reset()
	for i := range l.commands {
		l.commands[i].reset()
	}
}

// Waits counts durations by the buckets of /metrics.
type Waits struct {
	sum  atomic.Int64 // us
	bins [len(lagBounds) + 1]atomic.Int64
}

// Record counts a duration. It costs two atomic operations.
func (w *Waits) Record(us int64) {
	w.sum.Add(us)
	w.bins[boundOf(us)].Add(1)
}

func (w *Waits) reset() {
	w.sum.Store(0)
	for i := range w.bins {
		w.bins[i].Store(0)
	}
}

// held returns the sum of all loops' Held.
func (s *Server) held() (counts boundCounts, sum int64) {
	for _, l := range s.Loops {
		sum += l.Held.sum.Load()
		for i := range counts {
			counts[i] += uint64(l.Held.bins[i].Load())
		}
	}
	return counts, sum
}

// InfoHeld calls put for the lines of INFO about replies that were held for the group.
func (s *Server) InfoHeld(put func(name string, value any)) {
	counts, sum := s.held()
	n, parts := int64(0), []string(nil)
	for i, count := range counts {
		n += int64(count)
		switch {
		case count == 0:
		case i == len(lagBounds):
			parts = append(parts, fmt.Sprintf(">%d=%d", lagBounds[i-1], count))
		default:
			parts = append(parts, fmt.Sprintf("<=%d=%d", lagBounds[i], count))
		}
	}
	put("group_waits", n)
	put("group_wait_mean_us", sum/max(n, 1))
	put("group_wait_histogram_us", strings.Join(parts, ","))
}

// CommandStats counts one command.
type CommandStats struct {
	Calls    atomic.Int64
	Micros   atomic.Int64
	Rejected atomic.Int64              // refused before they ran
	Failed   atomic.Int64              // ended in an error
	latency  atomic.Pointer[latencies] // nil before the first call
}

// latencies counts calls by how long they took. Four buckets cover a factor of two; the last
// ones begin at eight seconds.
type latencies [LatencyBins]atomic.Int64

// LatencyBins is the number of buckets of a latency histogram.
const LatencyBins = 4 * 23

func latencyBin(us int64) int {
	if us < 4 {
		return int(max(us, 0))
	}
	e := bits.Len64(uint64(us)) - 1
	return min(4*(e-1)+int(us>>(e-2))-4, LatencyBins-1)
}

// LatencyTop returns the longest time that a bucket counts, in us.
func LatencyTop(bin int) int64 {
	if bin < 3 {
		return int64(bin)
	}
	next := bin + 1
	return int64(4+next%4)<<(next/4-1) - 1
}

// Record counts n calls, each of which took us microseconds.
func (s *CommandStats) Record(us, n int64) {
	l := s.latency.Load()
	if l == nil {
		s.latency.CompareAndSwap(nil, new(latencies))
		l = s.latency.Load()
	}
	l[latencyBin(us)].Add(n)
}

func (s *CommandStats) reset() {
	s.Calls.Store(0)
	s.Micros.Store(0)
	s.Rejected.Store(0)
	s.Failed.Store(0)
	s.latency.Store(nil)
}

// Tally is the sum of all loops' counters of one command.
type Tally struct {
	Calls, Micros, Rejected, Failed int64
	Latency                         [LatencyBins]int64 // calls by how long they took: see LatencyTop
}

// Add adds the counters of one loop.
func (t *Tally) Add(c *CommandStats) {
	t.Calls += c.Calls.Load()
	t.Micros += c.Micros.Load()
	t.Rejected += c.Rejected.Load()
	t.Failed += c.Failed.Load()
	if bins := c.latency.Load(); bins != nil {
		for i := range bins {
			t.Latency[i] += bins[i].Load()
		}
	}
}

// Timed returns how many calls were timed.
func (t *Tally) Timed() (n int64) {
	for _, x := range t.Latency {
		n += x
	}
	return n
}

// Percentile returns a time in us that p percent of count calls did not exceed,
// to the width of a bucket.
func (t *Tally) Percentile(p float64, count int64) int64 {
	rank := int64(p / 100 * float64(count))
	for bin, n := range t.Latency {
		if rank -= n; rank < 0 {
			return LatencyTop(bin)
		}
	}
	for bin := LatencyBins - 1; bin >= 0; bin-- {
		if t.Latency[bin] > 0 {
			return LatencyTop(bin)
		}
	}
	return 0
}

// Totals are the counters that no hot path touches. Its methods are safe for concurrent
// use.
type Totals struct {
	Connections    atomic.Int64
	Rejected       atomic.Int64 // connections that protected mode refused
	ProtocolErrors atomic.Int64
	Errors         atomic.Int64
	InputLimit     atomic.Int64 // clients closed at client-query-buffer-limit
	OutputLimit    atomic.Int64 // clients closed at client-output-buffer-limit
	Evicted        atomic.Int64 // clients closed at maxmemory-clients
	Denied         [acl.Denials]atomic.Int64

	mu     sync.Mutex // guards what follows
	byCode map[string]int64
}

// maxErrorCodes is the number of error codes that are counted separately: scripts may create their own.
const maxErrorCodes = 128

// maxErrorCode is the greatest length of a code, in bytes. An error with a longer first word,
// which only a script can create, counts as ERR, as in Redis.
const maxErrorCode = 31

// CountError counts an error reply by its first word. A script may return any text as an error.
func (t *Totals) CountError(text string) {
	code := text
	if i := strings.IndexAny(text, " \r\n"); i >= 0 {
		code = text[:i]
	}
	if code = cleantext.Word(code, len(code)); code == "" || len(code) > maxErrorCode {
		code = "ERR"
	}
	t.Errors.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byCode == nil {
		t.byCode = map[string]int64{}
	}
	if _, known := t.byCode[code]; known || len(t.byCode) < maxErrorCodes {
		t.byCode[strings.Clone(code)]++
	}
}

// ErrorCodes returns the counted errors by code.
func (t *Totals) ErrorCodes() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.byCode)
}

// Reset sets all counters to 0.
func (t *Totals) Reset() {
	for _, n := range []*atomic.Int64{&t.Connections, &t.Rejected, &t.ProtocolErrors, &t.Errors, &t.InputLimit, &t.OutputLimit, &t.Evicted} {
		n.Store(0)
	}
	for i := range t.Denied {
		t.Denied[i].Store(0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byCode = nil
}

// Rates are the instantaneous_ fields of INFO: commands, bytes in and bytes out per
// second, over the last second or so in which a client was connected.
type Rates struct {
	next atomic.Int64 // us from which on the next sample is taken

	mu   sync.Mutex // guards what follows
	at   int64      // us of the last sample
	last [3]int64
	per  [3]float64 // per second
}

// sampleEvery is the time between samples, in us. Idle checks come once a second, from every
// connection.
const sampleEvery = 900 * 1000

// Due reports whether it is time for a sample. Of several concurrent callers, only one
// gets true.
func (r *Rates) Due(now int64) bool {
	next := r.next.Load()
	return now >= next && r.next.CompareAndSwap(next, now+sampleEvery)
}

// Sample takes a sample: total is what all loops have counted so far.
func (r *Rates) Sample(now int64, total [3]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := float64(now-r.at) / 1e6; r.at > 0 && d > 0 {
		for i := range total {
			r.per[i] = max(0, float64(total[i]-r.last[i])) / d
		}
	}
	r.at, r.last = now, total
}

// Get returns the commands, the bytes in and the bytes out per second.
func (r *Rates) Get() [3]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.per
}

// Reset forgets the samples.
func (r *Rates) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.last, r.per = 0, [3]int64{}, [3]float64{}
}
