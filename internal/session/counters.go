package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/script"
)

// loopStats holds the counters and the memory of one network loop.
type loopStats struct {
	admin.LoopStats

	// Only the sessions of the loop use these fields:
	coroutine *coroutine // for scripts; nil before the first script, and while the last one still runs
	scratch   []byte     // for its replies
	settles   bool       // the loop calls Settle
	batch     bool       // the log expects that call
	pushes    bool       // the log expects that the call pushes the stream to replicas
	_         [64]byte
}

func newLoopStats(n int) *loopStats { return &loopStats{LoopStats: admin.NewLoopStats(n)} }

func (l *loopStats) of(s *command.Spec) *admin.CommandStats { return l.Of(s.ID()) }

// batchStats collects the counts of a session since its last batch ended, so that a pipeline of
// equal commands costs one addition.
type batchStats struct {
	spec  *command.Spec
	calls int64
	total int64
	since int64 // us

	// notRun is the last command that was refused or queued, and notRunAt is total at that moment. If total is
	// unchanged, no command has run since.
	notRun   *command.Spec // nil: its name is unknown
	notRunAt int64
	isNotRun bool
}

// last returns the command that CLIENT LIST shows after the batch; ok is false if there was
// none.
func (b *batchStats) last() (_ *command.Spec, ok bool) {
	if b.isNotRun && b.notRunAt == b.total {
		return b.notRun, true
	}
	return b.spec, b.total > 0
}

// noteNotRun records a command that was refused or queued. It does not count as a call, but it is the
// client's last command.
func (b *batchStats) noteNotRun(spec *command.Spec) {
	b.notRun, b.notRunAt, b.isNotRun = spec, b.total, true
}

// count records that a command is about to run.
func (c *Session) count(spec *command.Spec, _ int) {
	b := &c.batch
	if b.spec != spec {
		c.flushCalls()
		b.spec = spec
	}
	b.calls++
	b.total++
}

// countInBackground counts a call that ran in the background and took us microseconds.
func (c *Session) countInBackground(spec *command.Spec, us int64) {
	s := c.stats.of(spec)
	s.Calls.Add(1)
	s.Micros.Add(us)
	if c.svc.latency.Load() {
		s.Record(us, 1)
	}
}

// flushCalls adds the calls of one command to the statistics, with the time since the first of
// them.
func (c *Session) flushCalls() {
	b := &c.batch
	now := c.svc.steady()
	if b.spec != nil && b.calls > 0 {
		s := c.stats.of(b.spec)
		s.Calls.Add(b.calls)
		s.Micros.Add(now - b.since)
		if c.svc.latency.Load() {
			s.Record((now-b.since)/b.calls, b.calls)
		}
	}
	b.calls, b.since = 0, now
}

// endBatch settles the statistics of a batch.
func (c *Session) endBatch(in, out int) {
	b := &c.batch
	if last, ok := b.last(); ok {
		c.flushCalls()
		c.stats.Total.Add(b.total)
		c.view.last.Store(last)
		c.view.active.Store(b.since)
		b.spec, b.total, b.notRun, b.isNotRun = nil, 0, nil, false
		c.showTransaction()
	}
	if in > 0 {
		c.stats.Input.Add(int64(in))
		c.stats.Reads.Add(1)
	}
	if out > 0 {
		c.stats.Output.Add(int64(out))
		c.stats.Writes.Add(1)
	}
}

// crashes records the panics of handlers.
type crashes struct {
	n    atomic.Int64
	last atomic.Pointer[string]
}

// ResetStats resets the statistics for CONFIG RESETSTAT.
func (s *Service) ResetStats(tx *engine.Tx) {
	tx.ResetStats()
	s.admin.Reset()
	s.hot.Clear(s.DB.Clock().Micros())
	s.listeners.ResetRefused()
	s.Keeper().ResetStats()
}

// sample takes a sample of the traffic if one is due. Each connection calls it once a second, in its idle
// check.
func (s *Service) sample(now int64) {
	if s.admin.Sample(now) {
		s.boundClients(nil)
	}
}

// countFailure counts the error with which a command has failed, except one that a script
// has counted already, and returns its text.
func (s *Service) countFailure(err error) string {
	text := command.WireText(err)
	if _, known := err.(script.Counted); !known {
		s.admin.Totals.CountError(text)
	}
	return text
}
