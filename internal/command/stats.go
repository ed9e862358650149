package command

import (
	"maps"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/script"
)

// loopStats counts what one network loop did, so that loops do not share cache
// lines. Sums over all of them are what INFO shows.
type loopStats struct {
	commands []commandStats // by spec ID
	total    atomic.Int64
	input    atomic.Int64 // bytes
	output   atomic.Int64
	reads    atomic.Int64 // batches of input
	writes   atomic.Int64 // batches of output

	// The loop's own; everybody else has none of it:
	strand  *strand // for scripts; nil before the first, and while the last runs on
	scratch []byte  // for its replies
	settles bool    // it calls Settle
	batch   bool    // and the log knows that it will
	_       [64]byte
}

// commandStats counts one command.
type commandStats struct {
	calls    atomic.Int64
	micros   atomic.Int64
	rejected atomic.Int64
	failed   atomic.Int64
	latency  atomic.Pointer[latencies] // nil before the first call
}

// latencies counts calls by how long they took, in buckets of a quarter of an
// octave; the last ones begin at eight seconds.
type latencies [latencyBins]atomic.Int64

const latencyBins = 4 * 23

func latencyBin(us int64) int {
	if us < 4 {
		return int(max(us, 0))
	}
	e := bits.Len64(uint64(us)) - 1
	return min(4*(e-1)+int(us>>(e-2))-4, latencyBins-1)
}

// latencyTop is the longest time that a bucket counts, in us.
func latencyTop(bin int) int64 {
	if bin < 3 {
		return int64(bin)
	}
	next := bin + 1
	return int64(4+next%4)<<(next/4-1) - 1
}

// record counts n calls that took us each.
func (s *commandStats) record(us, n int64) {
	l := s.latency.Load()
	if l == nil {
		s.latency.CompareAndSwap(nil, new(latencies))
		l = s.latency.Load()
	}
	l[latencyBin(us)].Add(n)
}

func (s *commandStats) reset() {
	s.calls.Store(0)
	s.micros.Store(0)
	s.rejected.Store(0)
	s.failed.Store(0)
	s.latency.Store(nil)
}

func newLoopStats(n int) *loopStats { return &loopStats{commands: make([]commandStats, n)} }

func (l *loopStats) of(s *Spec) *commandStats { return &l.commands[s.ID()] }

// batchStats collects what a session has done since its last batch ended, so
// that a pipeline of one command costs one addition.
type batchStats struct {
	spec  *Spec
	calls int64
	total int64
	since int64 // us
}

// count notes that a command is about to run.
func (c *Session) count(spec *Spec, _ int) {
	b := &c.batch
	if b.spec != spec {
		c.flushCalls()
		b.spec = spec
	}
	b.calls++
	b.total++
}

// countBeside counts a call that ran beside the loops and took us.
func (c *Session) countBeside(spec *Spec, us int64) {
	s := c.stats.of(spec)
	s.calls.Add(1)
	s.micros.Add(us)
	if c.svc.latency.Load() {
		s.record(us, 1)
	}
}

// flushCalls adds the calls of one command to the statistics, with the time
// that has passed since it was first called.
func (c *Session) flushCalls() {
	b := &c.batch
	now := c.svc.DB.Clock().Micros()
	if b.spec != nil && b.calls > 0 {
		s := c.stats.of(b.spec)
		s.calls.Add(b.calls)
		s.micros.Add(now - b.since)
		if c.svc.latency.Load() {
			s.record((now-b.since)/b.calls, b.calls)
		}
	}
	b.calls, b.since = 0, now
}

// endBatch settles the statistics of a batch.
func (c *Session) endBatch(in, out int) {
	b := &c.batch
	if b.total > 0 {
		c.flushCalls()
		c.stats.total.Add(b.total)
		c.view.last.Store(b.spec)
		c.view.active.Store(b.since)
		b.spec, b.total = nil, 0
		c.showTransaction()
	}
	if in > 0 {
		c.stats.input.Add(int64(in))
		c.stats.reads.Add(1)
	}
	if out > 0 {
		c.stats.output.Add(int64(out))
		c.stats.writes.Add(1)
	}
}

// showTransaction lets others see what MULTI and WATCH have gathered.
func (c *Session) showTransaction() {
	queued, watched := int32(-1), int32(0)
	if c.multi.on {
		queued = int32(len(c.multi.queue))
	}
	if c.watch != nil {
		watched = int32(c.watch.Len())
	}
	if queued != c.view.multi.Load() {
		c.view.multi.Store(queued)
	}
	if old := c.view.multiBytes.Load(); c.multi.bytes != old {
		c.view.multiBytes.Store(c.multi.bytes)
		c.svc.DB.Charge(c.multi.bytes - old)
	}
	if watched != c.view.watch.Load() {
		c.view.watch.Store(watched)
		bytes := int64(0)
		if c.watch != nil {
			bytes = c.watch.Bytes()
		}
		c.view.watchBytes.Store(bytes)
	}
}

// crashes are the panics of handlers.
type crashes struct {
	n    atomic.Int64
	last atomic.Pointer[string]
}

// totals are the service's counters that no hot path touches.
type totals struct {
	connections    atomic.Int64
	rejected       atomic.Int64 // connections that protected mode kept out
	protocolErrors atomic.Int64
	errors         atomic.Int64
	inputLimit     atomic.Int64 // clients closed at client-query-buffer-limit
	outputLimit    atomic.Int64 // and at client-output-buffer-limit
	evicted        atomic.Int64 // and at maxmemory-clients
	denied         [acl.Denials]atomic.Int64

	mu     sync.Mutex // guards what follows
	byCode map[string]int64
}

// maxErrorCodes bounds the error codes that are counted apart: scripts may make
// up their own.
const maxErrorCodes = 128

// maxErrorCode is how long a code is at most, in bytes. What begins with a longer
// word, which scripts can make, has none and counts as ERR, as in Redis.
const maxErrorCode = 31

// countError counts an error reply by its first word.
func (t *totals) countError(text string) {
	code, _, _ := strings.Cut(text, " ")
	if len(code) > maxErrorCode {
		code = "ERR"
	}
	t.errors.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byCode == nil {
		t.byCode = map[string]int64{}
	}
	if _, known := t.byCode[code]; known || len(t.byCode) < maxErrorCodes {
		t.byCode[strings.Clone(code)]++
	}
}

// countFailure counts the error with which a command has failed, but for that of a
// script which is a failed call's, and returns its text.
func (t *totals) countFailure(err error) string {
	text := wireText(err)
	if _, known := err.(script.Counted); !known {
		t.countError(text)
	}
	return text
}

// errorCodes returns the counted errors by code.
func (t *totals) errorCodes() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.byCode)
}

func (t *totals) reset() {
	for _, n := range []*atomic.Int64{&t.connections, &t.rejected, &t.protocolErrors, &t.errors, &t.inputLimit, &t.outputLimit, &t.evicted} {
		n.Store(0)
	}
	for i := range t.denied {
		t.denied[i].Store(0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byCode = nil
}

// resetStats is CONFIG RESETSTAT.
func (s *Service) resetStats(tx *engine.Tx) {
	tx.ResetStats()
	s.totals.reset()
	s.door.resetRefused()
	for _, l := range s.stats {
		l.total.Store(0)
		l.input.Store(0)
		l.output.Store(0)
		l.reads.Store(0)
		l.writes.Store(0)
		for i := range l.commands {
			l.commands[i].reset()
		}
	}
	s.peak.Store(0)
	s.rates.reset()
}

// traffic is what all loops have counted so far.
func (s *Service) traffic() (t [3]int64) {
	for _, l := range s.stats {
		t[0] += l.total.Load()
		t[1] += l.input.Load()
		t[2] += l.output.Load()
	}
	return t
}

// batches is how many batches of input and of output all loops have counted.
func (s *Service) batches() (reads, writes int64) {
	for _, l := range s.stats {
		reads += l.reads.Load()
		writes += l.writes.Load()
	}
	return reads, writes
}

// rates are INFO's instantaneous_ ones: commands, bytes in and bytes out per
// second, over the last second or so in which a client was connected.
type rates struct {
	next atomic.Int64 // us from which on the next sample is taken

	mu   sync.Mutex // guards what follows
	at   int64      // us of the last sample
	last [3]int64
	per  [3]float64 // per second
}

// sampleEvery is how far samples are apart, in us. Idle checks come once a
// second, from every connection.
const sampleEvery = 900 * 1000

// sample takes a sample if it is time.
func (s *Service) sample(now int64) {
	r := &s.rates
	next := r.next.Load()
	if now < next || !r.next.CompareAndSwap(next, now+sampleEvery) {
		return
	}
	total := s.traffic()
	r.mu.Lock()
	if d := float64(now-r.at) / 1e6; r.at > 0 && d > 0 {
		for i := range total {
			r.per[i] = max(0, float64(total[i]-r.last[i])) / d
		}
	}
	r.at, r.last = now, total
	r.mu.Unlock()
	s.boundClients(nil)
}

func (r *rates) get() [3]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.per
}

func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.last, r.per = 0, [3]int64{}, [3]float64{}
}
