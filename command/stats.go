package command

import (
	"strings"
	"sync"
	"sync/atomic"
)

// loopStats counts what one network loop did, so that loops do not share cache
// lines. Sums over all of them are what INFO shows.
type loopStats struct {
	commands []commandStats // by spec ID
	total    atomic.Int64
	input    atomic.Int64 // bytes
	output   atomic.Int64
	_        [64]byte
}

// commandStats counts one command.
type commandStats struct {
	calls    atomic.Int64
	micros   atomic.Int64
	rejected atomic.Int64
	failed   atomic.Int64
}

func newLoopStats(n int) *loopStats { return &loopStats{commands: make([]commandStats, n)} }

func (l *loopStats) of(s *Spec) *commandStats { return &l.commands[s.id] }

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

// flushCalls adds the calls of one command to the statistics, with the time
// that has passed since it was first called.
func (c *Session) flushCalls() {
	b := &c.batch
	now := c.svc.DB.Clock().Micros()
	if b.spec != nil && b.calls > 0 {
		s := c.stats.of(b.spec)
		s.calls.Add(b.calls)
		s.micros.Add(now - b.since)
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
	}
	if in > 0 {
		c.stats.input.Add(int64(in))
	}
	if out > 0 {
		c.stats.output.Add(int64(out))
	}
}

// totals are the service's counters that no hot path touches.
type totals struct {
	connections    atomic.Int64
	rejected       atomic.Int64 // connections beyond maxclients
	protocolErrors atomic.Int64
	errors         atomic.Int64

	mu     sync.Mutex // guards what follows
	byCode map[string]int64
}

// maxErrorCodes bounds the error codes that are counted apart: scripts may make
// up their own.
const maxErrorCodes = 128

// countError counts an error reply by its first word.
func (t *totals) countError(text string) {
	code, _, _ := strings.Cut(text, " ")
	t.errors.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byCode == nil {
		t.byCode = map[string]int64{}
	}
	if _, known := t.byCode[code]; known || len(t.byCode) < maxErrorCodes {
		t.byCode[code]++
	}
}
